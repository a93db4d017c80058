package import ThicketCrypto
internal import ThicketKeyLog

/// Makes an account: generates all its keys on this device, and sends the server only data that it cannot open (spec
/// 3.2).
///
/// A name belongs to its first writer. If the answer does not arrive, a login shows whether the account was made; the
/// request is not repeated.
package struct SignUpFlow: AccountFlow {
    package typealias Outcome = SignedIn

    private enum State {
        case begun
        case stretching
        case signing(Draft)
        /// The answer to the sign-up did not arrive.
        case looking(Draft, ClientError)
    }

    private struct Draft {
        let account: OpenAccount
        let keys: PasswordKeys
        /// Whether its entries follow those of an earlier account with this name.
        let isAgain: Bool
    }

    private let app: String
    private let name: AccountName
    private let password: SecureBytes
    private let device: String
    private let accessKey: AccessKey
    private let bundle: AccountBundle
    private let pin: PasswordPin
    private let now: UInt64?
    private var state = State.begun

    /// - Parameter now: milliseconds since 1970, the time from which the keys are valid in the key log; nil: no entries
    ///   are sent.
    package init(
        app: String, name: String, password: SecureBytes, device: String, random: AccountRandom = .system,
        now: UInt64? = nil
    ) throws(AccountError) {
        guard password.count > 0 else { throw .unusable("the password is empty") }
        self.name = try AccountName(name)
        (self.app, self.password, self.device, self.now) = (app, password, device, now)
        guard let key = try? AccessKey(random.secret(AccessKey.bytesCount)) else {
            throw .unusable("no random bytes are available")
        }
        accessKey = key
        bundle = .make(random: random.secret)
        pin = .new(salt: random.salt())
    }

    package mutating func begin() throws(AccountError) -> AccountStep<SignedIn> {
        state = .stretching
        return .stretch(password, salt: pin.salt, .standard)
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<SignedIn> {
        switch (state, event) {
        case (.stretching, .stretched(let keys)): return try send(keys)
        case (.signing(let draft), .answered(let reply)), (.looking(let draft, _), .answered(let reply)):
            guard try reply.text("userid").utf8.elementsEqual(draft.account.user.utf8), try reply.version() == 1 else {
                throw .otherAccount
            }
            return .done(SignedIn(account: draft.account, accessToken: try reply.token()))
        case (.signing(let draft), .refused(let error)):
            if let earlier = error.earlierEntry, !draft.isAgain { return try send(draft.keys, after: earlier) }
            guard error.leavesFirstOpen else { throw error.number == 409 ? .nameTaken : .server(error) }
            state = .looking(draft, error)
            return .ask(.login(name, draft.keys.authKey, device: device))
        case (.looking(_, let first), .refused(let error)):
            // Only the device that made the account can log in with this key.
            throw error.number == 401 ? .server(first) : .unknown(error)
        default: throw outOfStep()
        }
    }

    /// - Parameter earlier: the newest entry of an earlier account with this name.
    private mutating func send(
        _ keys: PasswordKeys, after earlier: KeyLogEntry? = nil
    ) throws(AccountError) -> AccountStep<SignedIn> {
        let user = try accessKey.userID(app: app)
        let draft = Draft(
            account: OpenAccount(
                app: app, user: user, name: name.text, accessKey: accessKey, bundle: bundle, version: 1, pin: pin),
            keys: keys, isAgain: earlier != nil)
        let new = AccountRequest.NewAccount(
            name: name, keys: keys, pin: pin,
            access: try AccountPlace.wrap(accessKey, app: app, user: user, under: keys.vaultKey),
            bundle: try OpenAccount.seal(bundle, app: app, user: user, replacing: 0, with: accessKey),
            proof: try accessKey.proof(), device: device,
            entries: try draft.account.firstEntries(after: earlier, now: now))
        state = .signing(draft)
        return .ask(.signup(new))
    }
}

extension OpenAccount {
    /// The first entries of the account in the key log, for the request that makes it; none without a time.
    ///
    /// - Parameter earlier: the newest entry of an earlier account with the same name or id.
    func firstEntries(after earlier: KeyLogEntry? = nil, now: UInt64?) throws(AccountError) -> [[UInt8]] {
        guard let now else { return [] }
        do throws(KeyLogError) { return try OwnEntries(self).first(after: earlier, now: now).map(\.bytes) } catch {
            throw .unusable(error.description)
        }
    }
}

extension ClientError {
    /// The newest entry of an earlier account with the same name or id: the first entries have to follow it.
    var earlierEntry: KeyLogEntry? { newestEntry.flatMap { try? KeyLogEntry($0) } }
}

/// The source of a flow's randomness.
package struct AccountRandom: Sendable {
    /// Secret bytes.
    package let secret: @Sendable (Int) -> SecureBytes
    /// Public bytes, such as salts.
    package let bytes: @Sendable (Int) -> [UInt8]

    package init(
        secret: @escaping @Sendable (Int) -> SecureBytes, bytes: @escaping @Sendable (Int) -> [UInt8]
    ) { (self.secret, self.bytes) = (secret, bytes) }

    package static let system = AccountRandom(
        secret: { SecureBytes.random($0) }, bytes: { RandomBytes.make($0) })

    func salt() -> [UInt8] { bytes(PasswordKeys.saltBytes) }
}
