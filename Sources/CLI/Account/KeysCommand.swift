import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket words`: the access key as words that the user can keep outside of machines.
enum WordsCommand {
    static func run(_ call: Call) async throws(Failure) {
        let keys = try KeyCall(call, "there are no words")
        let kind = try kind(call)
        let key =
            call.flag("renew") ? try await NewAccessKey.make(call, keys) : try await newest(keys)
        try await show(key, as: kind, call)
    }

    /// The stored key, compared with the server: words of an outdated key, written down now, would be noticed only on
    /// the day they are needed.
    private static func newest(_ keys: KeyCall) async throws(Failure) -> AccessKey {
        let what = "the words are not shown"
        let account = try await keys.finishingKeyChange(what)
        let token = keys.account.profile.token
        do throws(AccountError) {
            return try await keys.accounts.refresh(account, accessToken: token).accessKey
        } catch {
            guard case .server(let reason) = error else { throw Failure(what, keys: error) }
            Terminal.writeError(
                "warning: whether these are still the newest words was not looked up (\(reason.detail))\n")
            return account.accessKey
        }
    }

    private static func show(
        _ key: AccessKey, as kind: AccountBundle.BackupKind, _ call: Call
    ) async throws(Failure) {
        switch kind {
        case .words:
            Terminal.writeError(
                "These 24 words are the key to everything in this account. Write them down, in this order, where no "
                    + "other person looks;\nthey give access to all of your content. Then 'thicket verify' confirms "
                    + "what you wrote.\n\n")
            write(grid(key.words))
        case .code:
            let passcode = try await Secrets.secret(
                call, "passcode", label: "Passcode for this code: ", isNew: true)
            let code = try await keyed("no code was made") { () throws(AccountError) in
                try RecoveryCode.make(key, passcode: passcode)
            }
            Terminal.writeError(
                "This code and the passcode together are the key to everything in this account. Keep them apart.\n"
                    + "'thicket verify --code-file FILE' confirms what you kept.\n\n")
            write(code)
        case .pieces:
            let count = try call.number("pieces", in: 2...KeyPieces.piecesMax, default: 3)
            let needed = try call.number("needed", in: 2...KeyPieces.piecesMax, default: 2)
            let pieces = try await keyed("no pieces were made") { () throws(AccountError) in
                try KeyPieces.split(key, needed: needed, count: count)
            }
            Terminal.writeError(
                "Any \(needed) of these \(count) pieces are the key to everything in this account; fewer say nothing "
                    + "of it.\nGive each to another person, or keep each in another place. 'thicket verify "
                    + "--pieces-file FILE' tries them.\n\n"
            )
            for piece in pieces { write(.joined([piece, SecureBytes(copying: [0x0A])])) }
        }
    }

    private static func kind(_ call: Call) throws(Failure) -> AccountBundle.BackupKind {
        let isSplit = call.value("pieces") != nil || call.value("needed") != nil
        guard !(isSplit && call.flag("code")) else {
            throw Failure("either --code, or --pieces with --needed", .usage)
        }
        return isSplit ? .pieces : call.flag("code") ? .code : .words
    }

    /// Six rows of four words, each with its number.
    private static func grid(_ words: SecureBytes) -> SecureBytes {
        let starts: [Range<Int>] = words.withUnsafeBytes { bytes in
            var (ranges, start): ([Range<Int>], Int) = ([], 0)
            for place in 0...bytes.count where place == bytes.count || bytes[place] == 0x20 {
                ranges.append(start..<place)
                start = place + 1
            }
            return ranges
        }
        var parts = [SecureBytes]()
        for (index, range) in starts.enumerated() {
            let number = index < 9 ? " \(index + 1). " : "\(index + 1). "
            let isLast = index % 4 == 3
            let space = isLast ? "\n" : String(repeating: " ", count: 10 - range.count)
            parts += [
                SecureBytes(copying: Array(number.utf8)), words.part(range), SecureBytes(copying: Array(space.utf8)),
            ]
        }
        return .joined(parts)
    }

    /// Writes to standard output directly from the secret's memory, without a copy.
    private static func write(_ secret: SecureBytes) {
        secret.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = put(STDOUT_FILENO, bytes.baseAddress.map { $0 + sent }, bytes.count - sent)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                sent += count
            }
        }
    }
}

/// The system call, which this type's `write` would shadow.
private func put(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int { write(file, bytes, count) }

/// `thicket verify`: whether a backup is the access key, so that a wrong backup is noticed before the day it is needed.
enum VerifyCommand {
    static func run(_ call: Call) async throws(Failure) {
        let keys = try KeyCall(call, "nothing was verified")
        let key = try await BackupInput.read(call)
        let known = try await keys.finishingKeyChange("nothing was verified")
        guard key == known.accessKey else {
            throw Failure(
                "this is a good backup, but not of this account as this machine knows it. Look for the words of "
                    + "\(Screen.safe(keys.account.profile.user ?? "this account")), or write them down again: 'thicket words'. If "
                    + "they are newer than this machine's keys ('thicket words --renew' elsewhere): 'thicket login' first."
            )
        }
        let kind: AccountBundle.BackupKind =
            call.value("code-file") != nil ? .code : call.value("pieces-file") != nil ? .pieces : .words
        let now = Int64(time(nil))
        let token = keys.account.profile.token
        let account: OpenAccount
        do throws(AccountError) {
            account = try await keys.accounts.update(known, accessToken: token) {
                $0.backup = .confirmed(kind, at: now)
            }
        } catch {
            throw unconfirmed(error)
        }
        try keys.keep(account)
        Terminal.write("verified: what you kept is the key of this account\n")
    }

    /// The backup fits the keys of this machine. What matters is whether it opens the keys that the server returns now,
    /// so it is not reported as right before that is known.
    private static func unconfirmed(_ error: AccountError) -> Failure {
        switch error {
        case .keyChanged:
            Failure(
                "not verified: what you kept opens the keys that this machine has, and not the newer ones at the server",
                keys: error)
        case .unknown(let reason):
            Failure(
                "what you kept opens the keys that this machine has; the server's answer did not come, so it is not known whether "
                    + "that was noted (\(reason.detail)). Try again.", Failure.code(error))
        default:
            Failure(
                "what you kept opens the keys that this machine has; whether these are still the newest is not known, and nothing was "
                    + "noted", keys: error)
        }
    }
}

/// `thicket passwd`, also `thicket password`: sets another password for the account, for every kind of account.
enum PasswdCommand {
    static func run(_ call: Call) async throws(Failure) {
        switch try Account(call).profile.kind {
        case .keys: try await change(call)
        case .partner: try await passphrase(call)
        case .account, .token: try await PasswordCommand.run(call)
        }
    }

    private static func change(_ call: Call) async throws(Failure) {
        let what = "the password was not changed"
        let keys = try KeyCall(call, what)
        let known = try await keys.finishingKeyChange(what)
        let old = try await Secrets.secret(call, label: "Password now: ", isNew: false)
        let login = Secrets.isTyped(call, "new-password") ? try await proved(keys, known, old, what) : nil
        let token = login?.accessToken ?? keys.account.profile.token
        let changed: SignedIn
        do throws(Failure) {
            let new = try await Secrets.secret(
                call, "new-password", label: "New password: ", isNew: true)
            changed = try await keyed(what, lost: Failure.lostPassword) { () throws(AccountError) in
                try await keys.accounts.changePassword(
                    of: login?.account ?? known, accessToken: token, from: old, to: new)
            }
        } catch {
            await end(login, keys)
            throw error
        }
        var profile = keys.account.profile
        profile.token = changed.accessToken
        try keys.home.write(profile, keys.account.profileName)
        try keys.keep(changed.account)
        Terminal.write("the password is changed; other machines are signed out. Sealed content stays unchanged.\n")
        KeyCall.remind(changed.account)
    }

    /// Logs in with the present password, so that a wrong one is reported before the user types a new one twice. The
    /// login ends with the change of the password, like all logins.
    private static func proved(
        _ keys: KeyCall, _ known: OpenAccount, _ old: SecureBytes, _ what: String
    ) async throws(Failure) -> SignedIn {
        let result = try await keyed(what) { () throws(AccountError) in
            try await keys.accounts.signIn(name: known.name, password: old, known: keys.keys)
        }
        guard case .open(let login) = result else { throw Failure(what, keys: AccountError.locked) }
        return login
    }

    /// Ends a login that is not needed any more. Best effort: the user learns that the password was not changed, and
    /// sees a login that remains in `thicket token list`.
    private static func end(_ login: SignedIn?, _ keys: KeyCall) async {
        guard let login,
            let session = try? await keys.account.app(store: .memory, isOnline: false).resume(login)
        else { return }
        await session.signOut()
        await session.close()
    }

    /// For a partner's user: the passphrase that seals the access key beside the bundle.
    private static func passphrase(_ call: Call) async throws(Failure) {
        let what = "the passphrase was not changed"
        let keys = try KeyCall(call, what)
        let known = try await keys.finishingKeyChange(what)
        let new = try await Secrets.secret(call, "new-password", label: "New passphrase: ", isNew: true)
        let token = keys.account.profile.token
        let account = try await keyed(what) { () throws(AccountError) in
            try await keys.accounts.setPassphrase(new, of: known, accessToken: token)
        }
        try keys.keep(account)
        Terminal.write("the content passphrase is set; the password at the partner is another thing and stays\n")
    }
}

/// `thicket keys`: the keys of a partner's user on this machine. With `--restored`, the keys of any user that has keys,
/// see `RestoredKeys`.
enum KeysCommand {
    static func run(_ call: Call) async throws(Failure) {
        guard !(call.flag("restored") && call.flag("rotate")) else {
            throw Failure("either --restored or --rotate", .usage)
        }
        guard call.flag("rotate") || !call.flag("exchange-only") else {
            throw Failure("--exchange-only goes with --rotate", .usage)
        }
        if call.flag("restored") { return try await RestoredKeys.putBack(call) }
        if call.flag("rotate") { return try await ReplacedKeys.rotate(call) }
        let what = "the keys were not opened"
        let account = try Account(call)
        try account.expectProfile(what)
        guard account.profile.kind == .partner, let home = account.home,
            let user = account.profile.login?.userId
        else {
            throw Failure(
                "\(what): this is for users of partners. An account of the server gets its keys with 'thicket login'.",
                .usage)
        }
        if try home.readKeys(account.profileName)?.next != nil {
            _ = try await KeyCall(call, what).finishingKeyChange(what)
        }
        let known = try home.readKeys(account.profileName)
        let accounts = try KeyCall.accounts(account)
        let token = account.profile.token
        let open: (KeyOpener) async throws(AccountError) -> PartnerKeys = { opener throws(AccountError) in
            try await accounts.openKeys(
                ofPartnerUser: user, accessToken: token, opener, known: known, makes: call.flag("make"))
        }
        var opener = try await opener(call, known)
        var first: Result<PartnerKeys, AccountError>
        do throws(AccountError) { first = .success(try await open(opener)) } catch { first = .failure(error) }
        if case .failure(.keyChanged) = first, case .none = opener, !call.flag("no-passphrase") {
            Terminal.writeError(
                "the access key was changed on another machine; the content passphrase opens the new one\n")
            opener = .passphrase(try await passphrase(call, isNew: false))
            do throws(AccountError) { first = .success(try await open(opener)) } catch { first = .failure(error) }
        }
        let result = try await keyed(what) { () throws(AccountError) in try first.get() }
        guard case .open(let opened, let isNew) = result else {
            throw Failure(
                "\(what): there are none at the server, or what was given does not belong to them. On the first machine say "
                    + "--make; else --words-file, --code-file or --pieces-file.", .notFound)
        }
        try KeyCall.keep(opened, home, account.profileName, known: known)
        Terminal.write(isNew ? "made the account's keys; they are sealed at the server\n" : "the keys are open here\n")
        KeyCall.remind(opened)
    }

    private static func opener(_ call: Call, _ known: DeviceKeys?) async throws(Failure) -> KeyOpener {
        if ["words-file", "code-file", "pieces-file"].contains(where: { call.value($0) != nil }) {
            return .accessKey(try await BackupInput.read(call))
        }
        if known != nil || call.flag("no-passphrase") { return .none }
        return .passphrase(try await passphrase(call, isNew: call.flag("make")))
    }

    private static func passphrase(_ call: Call, isNew: Bool) async throws(Failure) -> SecureBytes {
        try await Secrets.secret(call, "content-passphrase", label: "Content passphrase: ", isNew: isNew)
    }
}

/// `thicket account delete`, for an account with keys.
enum KeyedDelete {
    static func run(_ call: Call) async throws(Failure) {
        let keys = try KeyCall(call, "nothing was deleted")
        let known = try keys.open()
        let password = try await Secrets.secret(
            call, label: "Password, to delete \(Screen.safe(known.name)) and all its data: ", isNew: false)
        let token = keys.account.profile.token
        try await keyed("nothing was deleted", lost: Failure.lostDeletion) { () throws(AccountError) in
            try await keys.accounts.delete(known, accessToken: token, password: password)
        }
        Terminal.write("the account is deleted. 'thicket logout' removes the copies on this machine.\n")
    }
}
