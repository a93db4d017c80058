package import ThicketCrypto
import ThicketProtocol

/// Makes a guest of an account: keys as for any account, made on the owner's device, under a name that follows from
/// them.
package struct GuestFlow: AccountFlow {
    package typealias Outcome = GuestAccount

    /// What the owner wants.
    package struct Wish: Sendable {
        let app: String
        /// The id of the branch's root.
        let root: String
        let purpose: LinkPurpose
        let limits: LinkLimits

        package init(app: String, root: String, purpose: LinkPurpose, limits: LinkLimits) {
            (self.app, self.root, self.purpose, self.limits) = (app, root, purpose, limits)
        }
    }

    private enum State { case begun, stretching, asking }

    private let wish: Wish
    private let password: SecureBytes
    private let token: String
    private let accessKey: AccessKey
    private let bundle: AccountBundle
    private let pin: PasswordPin
    private let user: String
    private let now: UInt64
    private var state = State.begun

    /// - Parameters:
    ///   - token: of the owner's login.
    ///   - now: milliseconds since 1970, from which the guest's keys are valid in the key log.
    package init(
        _ wish: Wish, password: SecureBytes, token: String, random: AccountRandom = .system, now: UInt64
    ) throws(AccountError) {
        guard password.count > 0 else { throw .unusable("the passphrase is empty") }
        guard let key = try? AccessKey(random.secret(AccessKey.bytesCount)) else {
            throw .unusable("no random bytes are available")
        }
        (self.wish, self.password, self.token, self.now) = (wish, password, token, now)
        accessKey = key
        user = GuestName.of(try key.userID(app: wish.app))
        bundle = .make(random: random.secret)
        pin = .new(salt: random.salt())
    }

    package mutating func begin() throws(AccountError) -> AccountStep<GuestAccount> {
        state = .stretching
        return .stretch(password, salt: pin.salt, .standard)
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<GuestAccount> {
        switch (state, event) {
        case (.stretching, .stretched(let keys)):
            state = .asking
            return .ask(try request(keys))
        case (.asking, .answered(let reply)):
            guard let guest = GuestAccount(reply.members), guest.id.text.utf8.elementsEqual(user.utf8) else {
                throw .otherAccount
            }
            return .done(guest)
        case (.asking, .refused(let error)): throw error.leavesFirstOpen ? .unknown(error) : .server(error)
        default: throw outOfStep()
        }
    }

    private func request(_ keys: PasswordKeys) throws(AccountError) -> AccountRequest {
        let account = OpenAccount(
            app: wish.app, user: user, name: user, accessKey: accessKey, bundle: bundle, version: 1, pin: pin)
        let new = AccountRequest.NewAccount(
            name: try AccountName(user), keys: keys, pin: pin,
            access: try AccountPlace.wrap(accessKey, app: wish.app, user: user, under: keys.vaultKey),
            bundle: try OpenAccount.seal(bundle, app: wish.app, user: user, replacing: 0, with: accessKey),
            proof: try accessKey.proof(), device: "", entries: try account.firstEntries(now: now))
        return .addGuest(new, wish, token: token)
    }
}

extension AccountRequest {
    static func addGuest(_ new: NewAccount, _ wish: GuestFlow.Wish, token: String) -> AccountRequest {
        .init(
            method: "POST", path: "guests", asker: .user(token: token),
            body: secretBody { body in
                body.add(new)
                body.add("kind", .string(wish.purpose.rawValue))
                body.add("root", .string(wish.root))
                body.add("days", .number(JSONNumber(Int64(wish.limits.days))))
                guard wish.purpose == .deposit else { return }
                body.add("deposits", .number(JSONNumber(Int64(wish.limits.deposits))))
                body.add("bytes", .number(JSONNumber(wish.limits.bytes)))
            })
    }
}
