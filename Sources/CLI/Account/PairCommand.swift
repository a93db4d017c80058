import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// `thicket pair`: sends keys from one machine to another, by a code that the user carries.
enum PairCommand {
    /// The time between two polls for the other machine's answer.
    private static let pause = Duration.seconds(2)

    static func run(_ call: Call) async throws(Failure) {
        let code = call.argument("CODE")
        if code.isEmpty { try await receive(call) } else { try await give(call, code) }
    }

    // MARK: - The machine that has the keys

    private static func give(_ call: Call, _ code: String) async throws(Failure) {
        let keys = try KeyCall(call, "nothing was given away")
        let account = try await keys.finishingKeyChange("nothing was given away")
        let token = keys.account.profile.token
        let lost =
            "The other machine shows four words if it was. If it shows none, start again with 'thicket pair' there; "
            + "'thicket token list' shows a login that was not picked up, and 'thicket token revoke' ends it."
        let words = try await keyed("nothing was given away", lost: lost) { () throws(AccountError) in
            try await keys.accounts.give(account, accessToken: token, toDeviceWithCode: code)
        }
        Terminal.write(
            "The keys of \(Screen.safe(keys.account.profile.user ?? "this account")) are on their way. The other "
                + "machine shows these four words, or the connection is intercepted:\n\n    \(words)\n")
    }

    // MARK: - The new machine

    private static func receive(_ call: Call) async throws(Failure) {
        let place = try LoginPlace(call)
        let isPartner = place.old?.kind == .partner
        try await expectNoKeys(call, place)
        if !isPartner { try await place.expectNothingUnsent() }
        var profile = try place.profile(token: "")
        if isPartner, let old = place.old { profile = old }
        if !isPartner {
            guard let apiKey = call.setting("api-key") ?? place.old?.login?.apiKey else {
                throw PasswordLogin.missing(user: "", apiKey: nil)
            }
            profile.kind = .keys
            profile.login = Profile.Login(apiKey: apiKey, userId: "", device: DeviceID.make())
        }
        let accounts = try KeyCall.accounts(try Account(call, trying: profile))
        let begun = try await keyed("no pairing was begun") { () throws(AccountError) in
            try await accounts.beginPairing()
        }
        Terminal.write(
            "thicket pair \(begun.pairing.code)\n\nRun this on a machine that has the keys, within two minutes. Waiting…\n"
        )
        let received = try await answer(accounts, begun)
        Terminal.write("Four words for you to compare:\n\n    \(received.words)\n\n")
        if isPartner {
            try await confirm(call)
            try await keepPartner(accounts, received, profile, place)
        } else {
            try await keepAccount(accounts, received, profile, place, call)
        }
    }

    /// - Throws: `refused` when this machine already has the account's keys. A machine whose login has ended, or whose
    ///   keys are not the newest any more, may get both by pairing.
    private static func expectNoKeys(_ call: Call, _ place: LoginPlace) async throws(Failure) {
        guard !call.flag("discard"), let old = place.old, same(old.server, place.server),
            same(old.app, place.app), old.kind == .keys || old.kind == .partner,
            let kept = try place.home.readKeys(place.name)
        else { return }
        let accounts = try KeyCall.accounts(try Account(call, trying: old))
        do throws(AccountError) { _ = try await accounts.refresh(try kept.open(), accessToken: old.token) } catch {
            // Only the partner can renew a partner's login: without a login neither machine gets keys.
            guard case .server = error, old.kind == .partner else { return }
        }
        throw Failure(
            "there is nothing to wait for: this machine has the keys of \(Screen.safe(old.user ?? "the account")) already. To give them "
                + "to another machine, say 'thicket pair' there, and here 'thicket pair CODE' with the code that it shows. "
                + "--profile OTHER is for another account.", .refused)
    }

    private static func answer(_ accounts: Accounts, _ begun: Pairing.Begun) async throws(Failure) -> Pairing.Received {
        // The server ends the pairing after two minutes; a server that fails to do so is not polled for much longer.
        for _ in 0..<70 {
            if let received = try await look(accounts, begun) { return received }
            do { try await Task.sleep(for: pause) } catch { throw Failure("cancelled, nothing was received") }
        }
        throw Failure("nothing was received", keys: AccountError.pairingOver)
    }

    /// nil: no answer yet, or a network error that may pass.
    private static func look(_ accounts: Accounts, _ begun: Pairing.Begun) async throws(Failure) -> Pairing.Received? {
        do throws(AccountError) { return try await accounts.receive(begun) } catch {
            if case .server(let reason) = error, reason.code == .network || reason.code == .unavailable { return nil }
            throw Failure("nothing was received", keys: error)
        }
    }

    private static func confirm(_ call: Call) async throws(Failure) {
        if call.flag("yes") { return }
        let interrupts = Interrupts.stream()
        Terminal.write("Does the other machine show the same four? Type yes: ")
        let line = await typed(or: interrupts)
        guard same(line.lowercased(), "yes") else { throw Failure("cancelled, nothing was kept") }
    }

    /// Reads a line; empty when Ctrl-C or SIGTERM comes first. A user that ends the program so has not agreed, and the
    /// pending login must end with it.
    private static func typed(or interrupts: AsyncStream<Int32>) async -> String {
        let (lines, line) = AsyncStream.makeStream(of: String.self)
        OwnThread.detachedOrHere("input") { line.yield(readLine(strippingNewline: true) ?? "") }
        Task {
            for await _ in interrupts { line.yield("") }
        }
        defer { Interrupts.release() }
        for await first in lines { return first }
        return ""
    }

    private static func keepAccount(
        _ accounts: Accounts, _ received: Pairing.Received, _ profile: Profile, _ place: LoginPlace, _ call: Call
    ) async throws(Failure) {
        let signedIn: SignedIn
        do throws(Failure) {
            try await confirm(call)
            signedIn = try await keepLogin(accounts, received, profile, place)
        } catch {
            // The other machine has made the login for this one, which does not accept it.
            await accounts.discard(received)
            throw error
        }
        try KeyCall.keep(signedIn.account, place.home, place.name, known: nil)
        KeyCall.remind(signedIn.account)
    }

    private static func keepLogin(
        _ accounts: Accounts, _ received: Pairing.Received, _ profile: Profile, _ place: LoginPlace
    ) async throws(Failure) -> SignedIn {
        guard !received.accessToken.isEmpty else { throw Failure("the other machine is of another kind of account") }
        let signedIn = try await keyed("nothing was kept") { () throws(AccountError) in
            try await accounts.open(received)
        }
        var profile = profile
        (profile.token, profile.user) = (signedIn.accessToken, signedIn.account.name)
        profile.login?.userId = signedIn.account.user
        try KeyCall.expectPlace(for: signedIn.account, place.home, place.name, known: nil)
        try await place.keep(profile)
        return signedIn
    }

    private static func keepPartner(
        _ accounts: Accounts, _ received: Pairing.Received, _ profile: Profile, _ place: LoginPlace
    ) async throws(Failure) {
        guard let entity = profile.login?.userId, same(entity, received.user) else {
            throw Failure("the other machine is logged in as another user; nothing was kept")
        }
        let result = try await keyed("nothing was kept") { () throws(AccountError) in
            try await accounts.open(received, ofPartnerUser: entity, accessToken: profile.token)
        }
        guard case .open(let account, _) = result else {
            throw Failure("nothing was kept", keys: AccountError.bundleMissing)
        }
        try KeyCall.keep(account, place.home, place.name, known: nil)
        Terminal.write("the keys are open here\n")
    }
}
