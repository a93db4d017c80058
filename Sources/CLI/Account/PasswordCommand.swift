import ThicketClient
import ThicketCommandLine

/// Sets another password for an account whose password is sent to the server.
enum PasswordCommand {
    static func run(_ call: Call) async throws(Failure) {
        let account = try AccountCall.builtIn(call, "the password was not changed")
        let old = try await Secrets.password(call, label: "Password now: ", isNew: false)
        if Secrets.isTyped(call, "new-password") { try await prove(old, account) }
        let new = try await Secrets.password(call, "new-password", label: "New password: ", isNew: true)
        let token = try await AccountCall.proved(
            account, "the password was not changed", lost: "whether the password was changed. \(Failure.lostLogin)"
        ) { session throws(ClientError) in
            try await session.changePassword(from: old, to: new)
            return await session.accessToken
        }
        do throws(Failure) {
            try account.home?.renew(account.profileName, from: account.profile, to: token)
        } catch {
            throw Failure(
                "the password is changed, and the new login could not be kept: \(error.text). 'thicket login' with the new "
                    + "password makes another.", error.code)
        }
        Terminal.write("the password is changed; other machines are signed out\n")
    }

    /// Checks the present password by a login that ends at once, so that a wrong one is reported before the user types
    /// a new one twice.
    private static func prove(_ password: String, _ account: Account) async throws(Failure) {
        let what = "the password was not changed"
        do throws(ClientError) {
            let login = try await account.app(store: .memory, isOnline: false).signIn(
                username: account.profile.user ?? "", password: password)
            await login.signOut()
            await login.close()
        } catch {
            guard error.code == .unauthorized, error.detail.contains("login") else { throw Failure(what, error) }
            throw Failure("\(what): the password is wrong", .unauthorized)
        }
    }
}

/// `thicket account delete`: deletes the account.
enum AccountDeleteCommand {
    static func run(_ call: Call) async throws(Failure) {
        if try Account(call).profile.kind == .keys { return try await KeyedDelete.run(call) }
        let account = try AccountCall.builtIn(call, "nothing was deleted")
        let password = try await Secrets.password(
            call, label: "Password, to delete \(Screen.safe(account.profile.user ?? "the account")) and all its data: ",
            isNew: false)
        try await AccountCall.proved(
            account, "nothing was deleted", lost: "whether the account was deleted. \(Failure.lostDeletion)"
        ) { session throws(ClientError) in
            try await session.deleteAccount(password: password)
        }
        Terminal.write("the account is deleted. 'thicket logout' removes the copies on this machine.\n")
    }
}

extension AccountCall {
    /// The account of a call, if the server itself manages it.
    static func builtIn(_ call: Call, _ what: String) throws(Failure) -> Account {
        let account = try Account(call)
        try account.expectProfile(what)
        guard account.profile.kind == .account else {
            throw Failure("\(what): this login is not one to an account of the server itself", .usage)
        }
        return account
    }

    /// Runs a call that sends the password as proof.
    ///
    /// - Parameters:
    ///   - what: that it was not done, as the beginning of a sentence.
    ///   - lost: what is not known when the answer was lost, and how to find out.
    static func proved<Value: Sendable>(
        _ account: Account, _ what: String, lost: String,
        _ body: (ClientSession) async throws(ClientError) -> Value
    ) async throws(Failure) -> Value {
        do throws(ClientError) {
            return try await with(account, body)
        } catch {
            switch error.code {
            case .unauthorized where error.detail.contains("login"):
                throw Failure("\(what): the password is wrong", .unauthorized)
            case _ where error.leavesItOpen:
                throw Failure(
                    "the server's answer did not come (\(error.detail)), so it is not known \(lost)",
                    Failure.code(error))
            default: throw Failure(what, error)
            }
        }
    }

    /// Runs `body` with the account's session.
    static func with<Value: Sendable>(
        _ account: Account, _ body: (ClientSession) async throws(ClientError) -> Value
    ) async throws(ClientError) -> Value {
        let session = try await account.session(store: .memory, isOnline: false)
        do throws(ClientError) {
            let value = try await body(session)
            await session.close()
            return value
        } catch {
            await session.close()
            throw error
        }
    }
}
