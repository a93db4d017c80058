import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketPlatform

/// `thicket lock`: closes the login and the local copies of a profile until its passphrase is given.
enum LockCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, file) = try LockedProfile.find(call)
        let (isLocked, hasPassphrase) = try blocking("cannot lock '\(name)'") { () throws(ClientError) in
            (try file.isLocked, try file.hasPassphrase)
        }
        guard !isLocked else {
            guard !call.flag("new-passphrase") else {
                throw Failure("the profile '\(name)' is locked: 'thicket unlock' first, then set another one", .locked)
            }
            try await expectSame(
                call, file, name,
                "the profile '\(name)' is locked already, and this is not its passphrase: 'thicket unlock' needs the one that is "
                    + "set, and 'thicket lock --new-passphrase' then sets another")
            Terminal.write("the profile '\(name)' is locked already\n")
            return
        }
        if hasPassphrase, !call.flag("new-passphrase") {
            try await expectSame(
                call, file, name,
                "nothing was locked: this is not the passphrase of the profile '\(name)'. --new-passphrase sets it in the place of "
                    + "the other one; without a passphrase the one that is set stays.")
            try blocking("cannot lock '\(name)'") { () throws(ClientError) in try file.lock() }
        } else {
            let passphrase = try await LockedProfile.passphrase(call, isNew: true)
            let cost = CheapPasswords.cost(call)
            // Takes about a second of one processor, so it must not run on a shared thread.
            let result: Result<Void, ClientError> = await OwnThread.run("wait") {
                Result { () throws(ClientError) in try file.lock(passphrase: passphrase, cost: cost) }
            }
            try blocking("cannot lock '\(name)'") { () throws(ClientError) in try result.get() }
        }
        Terminal.write(
            "locked the profile '\(name)': 'thicket unlock' opens it. Commands that run now have the key until they end.\n"
        )
    }
}

extension LockCommand {
    /// Checks a passphrase against the present one. A passphrase on the command line must be the present one: else
    /// `unlock` would want another passphrase than the user believes. One from the environment may belong to another
    /// profile or be outdated, and a user that leaves a machine wants it locked: here, and where the two cannot be
    /// compared, a warning says so.
    ///
    /// - Parameter differs: the text about another passphrase on the command line.
    private static func expectSame(
        _ call: Call, _ file: StoreKeyFile, _ name: String, _ differs: String
    ) async throws(Failure) {
        guard !Secrets.isTyped(call, "passphrase") else { return }
        let isSaid = call.value("passphrase-file") != nil
        let passphrase: SecureBytes
        do throws(Failure) { passphrase = try await LockedProfile.passphrase(call, isNew: false) } catch {
            guard !isSaid else { throw error }
            return warn("whether the passphrase is the one of the profile '\(name)' was not checked: \(error.text)")
        }
        let rules = CheapPasswords.rules(call)
        let result: Result<Void, ClientError> = await OwnThread.run("wait") {
            Result { () throws(ClientError) in try file.check(passphrase: passphrase, rules: rules) }
        }
        guard case .failure(let error) = result else { return }
        guard error.code == .unauthorized else {
            return warn("whether the passphrase is the one of the profile '\(name)' was not checked: \(error.detail)")
        }
        guard !isSaid else { throw Failure(differs, .unauthorized) }
        warn(
            "the passphrase in the environment is not the one of the profile '\(name)'; 'thicket unlock' needs the one that is set"
        )
    }

    private static func warn(_ text: String) { Terminal.writeError("warning: \(text)\n") }
}

/// `thicket unlock`: stores the key again for a user that has the passphrase.
enum UnlockCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, file) = try LockedProfile.find(call)
        let isLocked = try blocking("cannot unlock '\(name)'") { () throws(ClientError) in try file.isLocked }
        guard isLocked else {
            Terminal.write("the profile '\(name)' is not locked\n")
            return
        }
        let passphrase = try await LockedProfile.passphrase(call, isNew: false)
        let rules = CheapPasswords.rules(call)
        let result: Result<Void, ClientError> = await OwnThread.run("wait") {
            Result { () throws(ClientError) in try file.unlock(passphrase: passphrase, rules: rules) }
        }
        try blocking("cannot unlock '\(name)'") { () throws(ClientError) in try result.get() }
        let until =
            file.keepsKeyInMemory
            ? "until 'thicket lock', or until you log out of this machine"
            : "until 'thicket lock'; its key is in \(file.path), as this machine has no XDG_RUNTIME_DIR"
        Terminal.write("unlocked the profile '\(name)' \(until)\n")
    }
}

/// What `lock` and `unlock` share.
private enum LockedProfile {
    static func find(_ call: Call) throws(Failure) -> (String, StoreKeyFile) {
        let name = try Account.profileName(call)
        let home = try ProfileHome(call.environment)
        let file = home.keyFile(name)
        if !file.isThere, let kept = try home.read(name) {
            // Written by a version that did not seal profiles.
            try home.write(kept, name)
        }
        guard file.isThere else {
            throw Failure("there is no profile '\(name)'; 'thicket status' lists them", .notFound)
        }
        return (name, file)
    }

    static func passphrase(_ call: Call, isNew: Bool) async throws(Failure) -> SecureBytes {
        try await Secrets.secret(
            call, "passphrase", label: isNew ? "New passphrase (not shown): " : "Passphrase (not shown): ", isNew: isNew
        )
    }
}
