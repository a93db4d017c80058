import ThicketClient
import ThicketCommandLine
import ThicketCrypto

/// `thicket lock`: the login and the local copies of a profile, closed until its passphrase is given.
enum LockCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, file): (String, StoreKeyFile) = try LockedProfile.find(call)
        let (isLocked, hasPassphrase): (Bool, Bool) = try blocking("cannot lock '\(name)'") { () throws(ClientError) in
            (try file.isLocked, try file.hasPassphrase)
        }
        guard !isLocked else {
            guard !call.flag("new-passphrase") else {
                throw Failure("the profile '\(name)' is locked: 'thicket unlock' first, then set another one", .locked)
            }
            Terminal.write("the profile '\(name)' is locked already\n")
            return
        }
        if hasPassphrase, !call.flag("new-passphrase") {
            try await expectSame(call, file, name)
            try blocking("cannot lock '\(name)'") { () throws(ClientError) in try file.lock() }
        } else {
            let passphrase: SecureBytes = try await LockedProfile.passphrase(call, isNew: true)
            let cost: PasswordCost = LockedProfile.cost(call)
            // About a second of one processor: not where others wait.
            let result: Result<Void, ClientError> = await onOwnThread {
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
    /// A passphrase that is given is the one that is set: else `unlock` would want another than whoever locked believes.
    private static func expectSame(_ call: Call, _ file: StoreKeyFile, _ name: String) async throws(Failure) {
        guard !Secrets.isTyped(call, "passphrase") else { return }
        let passphrase: SecureBytes = try await LockedProfile.passphrase(call, isNew: false)
        let rules: PasswordRules = LockedProfile.rules(call)
        let result: Result<Void, ClientError> = await onOwnThread {
            Result { () throws(ClientError) in try file.check(passphrase: passphrase, rules: rules) }
        }
        guard case .failure(let error) = result else { return }
        guard error.code == .unauthorized else { throw Failure("cannot lock '\(name)'", error) }
        throw Failure(
            "nothing was locked: this is not the passphrase of the profile '\(name)'. --new-passphrase sets it in the place of "
                + "the other one; without a passphrase the one that is set stays.", .unauthorized)
    }
}

/// `thicket unlock`: gives the key back to whoever has the passphrase.
enum UnlockCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, file): (String, StoreKeyFile) = try LockedProfile.find(call)
        let isLocked: Bool = try blocking("cannot unlock '\(name)'") { () throws(ClientError) in try file.isLocked }
        guard isLocked else {
            Terminal.write("the profile '\(name)' is not locked\n")
            return
        }
        let passphrase: SecureBytes = try await LockedProfile.passphrase(call, isNew: false)
        let rules: PasswordRules = LockedProfile.rules(call)
        let result: Result<Void, ClientError> = await onOwnThread {
            Result { () throws(ClientError) in try file.unlock(passphrase: passphrase, rules: rules) }
        }
        try blocking("cannot unlock '\(name)'") { () throws(ClientError) in try result.get() }
        let until: String =
            file.keepsKeyInMemory
            ? "until 'thicket lock', or until you log out of this machine"
            : "until 'thicket lock'; its key lies in \(file.path), as this machine has no XDG_RUNTIME_DIR"
        Terminal.write("unlocked the profile '\(name)' \(until)\n")
    }
}

/// What both need.
private enum LockedProfile {
    static func find(_ call: Call) throws(Failure) -> (String, StoreKeyFile) {
        let name: String = try Account.profileName(call)
        let home: ProfileHome = try ProfileHome(call.environment)
        let file: StoreKeyFile = home.keyFile(name)
        if !file.isThere, let kept: Profile = try home.read(name) {
            // Of a version that did not seal.
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

    #if DEBUG
        /// Tests lock often: their programs may be told to make it cheap. Release builds have nothing of it.
        static func rules(_ call: Call) -> PasswordRules { isCheap(call) ? .tests : .product }
        static func cost(_ call: Call) -> PasswordCost {
            let cheap: PasswordCost? = try? PasswordRules.tests.cost(
                kdf: PasswordRules.scryptNumber, log2N: 14, r: 8, p: 1)
            return isCheap(call) ? cheap ?? .standard : .standard
        }
        private static func isCheap(_ call: Call) -> Bool { call.environment["THICKET_CHEAP_PASSPHRASES"] != nil }
    #else
        static func rules(_ call: Call) -> PasswordRules { .product }
        static func cost(_ call: Call) -> PasswordCost { .standard }
    #endif
}
