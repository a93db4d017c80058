internal import ThicketCrypto

/// The new device's half: publishes its key, and polls for an answer until one arrives or the time is over.
package struct ReceiveFlow: AccountFlow {
    /// nil: no answer yet.
    package typealias Outcome = Pairing.Received?

    private let begun: Pairing.Begun
    /// Whether to open the mailbox first; otherwise it is polled.
    private let opens: Bool

    package init(_ begun: Pairing.Begun, opens: Bool) { (self.begun, self.opens) = (begun, opens) }

    package mutating func begin() throws(AccountError) -> AccountStep<Outcome> {
        .ask(opens ? .openPairing(begun.pairing.hello) : .lookAtPairing(begun.pairing.name))
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Outcome> {
        switch event {
        case .answered(let reply):
            if opens || reply.isNull("sealed") { return .done(nil) }
            return .done(try begun.open(try reply.octets("sealed")))
        case .refused(let error): throw error.number == 404 || error.number == 409 ? .pairingOver : .server(error)
        case .stretched: throw outOfStep()
        }
    }
}

/// The old device's half: reads the new device's key, compares it with the code that the user typed, and seals the
/// access key to it, together with a login if the server makes those.
package struct GiveFlow: AccountFlow {
    /// The four words.
    package typealias Outcome = String

    private enum State {
        case begun, reading
        case adding(Pairing)
        /// Checks whether the keys on this device are the newest.
        case checking(Pairing, refusal: ClientError?)
        /// How often the answer was sent, and the login in it; empty when it has none.
        case answering(Pairing, [UInt8], asks: Int, token: String)
        /// An answer exists already: checks whether it is this device's.
        case looking(Pairing, [UInt8], token: String)
        /// Revokes a login that will not be delivered.
        case ending(AccountError)
    }

    private let code: String
    private let account: OpenAccount
    private let token: String
    private let isPartner: Bool
    private let device: String
    private var state = State.begun

    /// - Parameter typed: the code as typed by the user.
    package init(
        _ typed: String, _ account: OpenAccount, token: String, isPartner: Bool, device: String
    ) throws(AccountError) {
        guard let code = PairingCode.read(typed) else { throw .unreadableCode(line: nil) }
        (self.code, self.account, self.token) = (code, account, token)
        (self.isPartner, self.device) = (isPartner, device)
    }

    package mutating func begin() throws(AccountError) -> AccountStep<String> {
        state = .reading
        return .ask(.lookAtPairing(code))
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<String> {
        switch (state, event) {
        case (.reading, .answered(let reply)):
            let pairing = try Pairing(hello: try reply.octets("hello"))
            // The key differs from the one whose code the user read from the new device.
            guard pairing.name.utf8.elementsEqual(code.utf8) else { throw .pairingForged }
            guard reply.isNull("sealed") else { throw .pairingOver }
            // A partner's server makes the logins, so the Thicket server has not checked whether the access key is the
            // newest.
            if isPartner { return check(pairing, refusal: nil) }
            state = .adding(pairing)
            return .ask(.addToken(try account.accessKey.proof(), device: pairing.device, token: token))
        case (.adding(let pairing), .answered(let reply)): return try answer(pairing, token: try reply.token())
        case (.adding(let pairing), .refused(let error)) where error.number == 401:
            return check(pairing, refusal: error)
        // The login may have been made.
        case (.adding, .refused(let error)) where error.leavesFirstOpen: throw .unknown(error)
        case (.checking(let pairing, let refusal), .answered(let reply)):
            if isChanged(reply) { throw .keyChanged }
            if let refusal { throw .server(refusal) }
            return try answer(pairing, token: "")
        case (.answering(let pairing, let sealed, _, _), .answered): return .done(try pairing.words(sealed))
        case (.answering(let pairing, let sealed, let asks, let token), .refused(let error)):
            return try sendAgain(pairing, sealed, asks: asks, token: token, after: error)
        case (.looking(let pairing, let sealed, let token), .answered(let reply)):
            return try look(pairing, sealed, token: token, reply)
        // The answer may have been delivered.
        case (.looking, .refused(let error)): throw .unknown(error)
        // An invalid token means that the login has ended.
        case (.ending(let reason), .refused(let error)) where error.number != 401: throw .loginLeft(reason)
        case (.ending(let reason), _): throw reason
        case (.checking(_, let refusal?), .refused): throw .server(refusal)
        case (_, .refused(let error)): throw error.number == 404 || error.number == 409 ? .pairingOver : .server(error)
        default: throw outOfStep()
        }
    }

    private mutating func check(_ pairing: Pairing, refusal: ClientError?) -> AccountStep<String> {
        state = .checking(pairing, refusal: refusal)
        return .ask(.readBundle(isPartner ? .partner(token: token) : .user(token: token)))
    }

    private func isChanged(_ reply: AccountReply) -> Bool {
        do throws(AccountError) {
            _ = try OpenAccount.openOwn(
                try reply.octets("bundle"), app: account.app, user: account.user, version: try reply.version(),
                seen: account.seen, with: account.accessKey)
            return false
        } catch {
            // Any other error does not answer the question.
            return error == .keyChanged
        }
    }

    private mutating func answer(_ pairing: Pairing, token: String) throws(AccountError) -> AccountStep<String> {
        let sealed: [UInt8]
        do throws(AccountError) {
            sealed = try pairing.seal(
                .init(
                    accessKey: account.accessKey, user: account.user, name: account.name, accessToken: token,
                    device: device, pin: account.pin, version: account.version), app: account.app)
        } catch { return try end(token, error) }
        state = .answering(pairing, sealed, asks: 1, token: token)
        return .ask(.answerPairing(code, sealed))
    }

    /// An answer that was refused or got no reply: sending the same bytes again is harmless.
    private mutating func sendAgain(
        _ pairing: Pairing, _ sealed: [UInt8], asks: Int, token: String, after error: ClientError
    ) throws(AccountError) -> AccountStep<String> {
        if error.leavesItOpen {
            guard asks < AccountFlowLimits.asksMax else { throw .unknown(error) }
            state = .answering(pairing, sealed, asks: asks + 1, token: token)
            return .ask(.answerPairing(code, sealed))
        }
        if error.number == 409 {
            // The existing answer may be this device's even after a single request, because proxies repeat lost
            // requests.
            state = .looking(pairing, sealed, token: token)
            return .ask(.lookAtPairing(code))
        }
        // The first answer may have arrived and been taken by now.
        guard asks == 1 else { throw .unknown(error) }
        return try end(token, error.number == 404 ? .pairingOver : .server(error))
    }

    /// Checks whose answer is in the mailbox. If the server says that there is one but does not show it, the result is
    /// unknown.
    private mutating func look(
        _ pairing: Pairing, _ sealed: [UInt8], token: String, _ reply: AccountReply
    ) throws(AccountError) -> AccountStep<String> {
        guard let found = try? reply.octets("sealed") else {
            throw .unknown(ClientError(.protocolViolation, "the server reports an answer but does not show it"))
        }
        return found == sealed ? .done(try pairing.words(sealed)) : try end(token, .pairingOver)
    }

    /// Revokes the login made for a device that will not get it.
    private mutating func end(_ token: String, _ reason: AccountError) throws(AccountError) -> AccountStep<String> {
        // A partner's server makes its own logins.
        guard !token.isEmpty else { throw reason }
        state = .ending(reason)
        return .ask(.logout(token: token))
    }
}

extension Accounts {
    /// Begins to get an account's keys from another device: publishes a one-time key at the server, for two minutes.
    ///
    /// - Returns: the pairing; the user types its `pairing.code` on the other device.
    public func beginPairing() async throws(AccountError) -> Pairing.Begun {
        let begun = try Pairing.begin(app: app, device: device, random: random)
        _ = try await api.run(ReceiveFlow(begun, opens: true))
        return begun
    }

    /// Checks whether the other device has answered; nil: not yet. Call it about every two seconds.
    ///
    /// Show `words` to the user before anything is stored: if they differ on the two screens, another party has
    /// answered. The answer stays available until the two minutes are over: when it is lost on the way, call again.
    ///
    /// - Throws: `pairingOver` after two minutes; `pairingForged` for an answer that cannot be opened.
    public func receive(_ begun: Pairing.Begun) async throws(AccountError) -> Pairing.Received? {
        try await api.run(ReceiveFlow(begun, opens: false))
    }

    /// Gives this account's keys to the device that shows this code. Keys that are not the newest are not given,
    /// because they would open nothing.
    ///
    /// - Returns: four words that the other device shows as well.
    /// - Throws: `unreadableCode`, `pairingOver`, `pairingForged` when the server's key does not match the code;
    ///   `keyChanged`; `unknown` when the other device may get the keys. A login made for the other device is revoked
    ///   when it is certain that the device does not get it; `loginLeft` when that failed.
    public func give(
        _ account: OpenAccount, accessToken: String, toDeviceWithCode code: String
    ) async throws(AccountError) -> String {
        var isPartner = false
        if case .partner = asker(account, accessToken) { isPartner = true }
        return try await api.run(
            try GiveFlow(code, account, token: accessToken, isPartner: isPartner, device: device))
    }

    /// Revokes the login of an answer that is not used, such as when the words differ. Best effort: otherwise it
    /// remains in the account's list of tokens until it is revoked there.
    public func discard(_ received: Pairing.Received) async {
        guard !received.accessToken.isEmpty else { return }
        do throws(AccountError) { try await api.run(EndFlow(token: received.accessToken)) } catch {}
    }

    /// Opens the account of a login that another device has made for this one. The remembered parameters of the key
    /// derivation and the bundle's version come from that device: so a server that asks for weaker parameters or shows
    /// an older bundle is not accepted here either.
    ///
    /// - Throws: `rolledBack`, `doesNotOpen`, `bundleMissing`, `newerFormat`.
    public func open(_ received: Pairing.Received) async throws(AccountError) -> SignedIn {
        let bundle: OpenAccount = try await api.run(
            OpenFlow(app: app, received, .user(token: received.accessToken)))
        return SignedIn(account: bundle, accessToken: received.accessToken)
    }

    /// Opens the keys of a partner's user that another device has given, with what it remembers of the content
    /// passphrase and the bundle's version.
    ///
    /// - Throws: `rolledBack`, `doesNotOpen`, `newerFormat`.
    public func open(
        _ received: Pairing.Received, ofPartnerUser entity: String, accessToken: String
    ) async throws(AccountError) -> PartnerKeys {
        try await api.run(
            try PartnerKeysFlow(
                app: app, entity: entity, token: accessToken, opener: .accessKey(received.accessKey),
                handed: received, makes: false, rules: rules, random: random))
    }
}

/// Revokes a login.
private struct EndFlow: AccountFlow {
    typealias Outcome = Void

    let token: String

    mutating func begin() throws(AccountError) -> AccountStep<Void> { .ask(.logout(token: token)) }

    mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Void> {
        if case .refused(let error) = event { throw .server(error) }
        return .done(())
    }
}

/// Reads the bundle for the first time with a key from another device.
private struct OpenFlow: AccountFlow {
    typealias Outcome = OpenAccount

    private let app: String
    private let received: Pairing.Received
    private let asker: AccountRequest.Asker

    init(app: String, _ received: Pairing.Received, _ asker: AccountRequest.Asker) {
        (self.app, self.received, self.asker) = (app, received, asker)
    }

    mutating func begin() throws(AccountError) -> AccountStep<OpenAccount> { .ask(.readBundle(asker)) }

    mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<OpenAccount> {
        switch event {
        case .answered(let reply):
            guard !reply.isNull("bundle") else { throw .bundleMissing }
            let version = try reply.version()
            let bundle = try OpenAccount.open(
                try reply.octets("bundle"), app: app, user: received.user, version: version,
                seen: SeenBundle(version: received.version ?? 0, bundle: nil), with: received.accessKey)
            return .done(
                OpenAccount(
                    app: app, user: received.user, name: received.name, accessKey: received.accessKey, bundle: bundle,
                    version: version, pin: received.pin))
        case .refused(let error): throw .server(error)
        case .stretched: throw outOfStep()
        }
    }
}
