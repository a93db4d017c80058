import ThicketProtocol

/// How a user of a built-in account authenticates. An account keeps one scheme for good (docs/AUTH.md, "Accounts").
///
/// `PasswordScheme` is the only scheme. Accounts whose password stays on the device do not use it: see `Accounts`.
package protocol AccountScheme: Sendable {
    /// Makes an account and logs in.
    func signUp(_ login: AccountLogin, _ calls: ServerCalls) async throws(ClientError) -> AccountGrant
    /// Logs in.
    func signIn(_ login: AccountLogin, _ calls: ServerCalls) async throws(ClientError) -> AccountGrant
    /// Sets another password and logs in with it. The server revokes all earlier tokens.
    func changePassword(
        _ login: AccountLogin, to new: String, _ calls: ServerCalls
    ) async throws(ClientError) -> AccountGrant
    /// Deletes the account and all its data.
    func deleteAccount(_ login: AccountLogin, _ calls: ServerCalls) async throws(ClientError)
}

/// A name and a password as typed in. The server compares names case-insensitively.
package struct AccountLogin: Sendable {
    package let name: String
    package let password: String
    package init(name: String, password: String) { (self.name, self.password) = (name, password) }
}

/// The result of a login.
package struct AccountGrant: Sendable {
    /// The name in the server's spelling.
    package let name: String
    package let userId: String
    package let accessToken: String
}

/// Sends the password to the server, as Simperium's clients do (`create/`, `authorize/`, `update/`, `delete/`).
package struct PasswordScheme: AccountScheme {
    package init() {}

    package func signUp(_ login: AccountLogin, _ calls: ServerCalls) async throws(ClientError) -> AccountGrant {
        try await grant("create/", login, calls)
    }

    package func signIn(_ login: AccountLogin, _ calls: ServerCalls) async throws(ClientError) -> AccountGrant {
        try await grant("authorize/", login, calls)
    }

    package func changePassword(
        _ login: AccountLogin, to new: String, _ calls: ServerCalls
    ) async throws(ClientError) -> AccountGrant {
        var body = Self.body(login)
        body["new_password"] = .string(new)
        _ = try await calls.ask("POST", "/1/\(calls.app)/update/", body, fields: calls.appFields)
        return try await signIn(AccountLogin(name: login.name, password: new), calls)
    }

    package func deleteAccount(_ login: AccountLogin, _ calls: ServerCalls) async throws(ClientError) {
        _ = try await calls.ask("POST", "/1/\(calls.app)/delete/", Self.body(login), fields: calls.appFields)
    }

    private func grant(
        _ path: String, _ login: AccountLogin, _ calls: ServerCalls
    ) async throws(ClientError) -> AccountGrant {
        let answer = try ServerCalls.object(
            try await calls.ask("POST", "/1/\(calls.app)/\(path)", Self.body(login), fields: calls.appFields))
        let token = try ServerCalls.text("access_token", in: answer)
        guard LoginToken.isAcceptable(token) else {
            throw ClientError(.protocolViolation, "the server gave a token that cannot be used")
        }
        return AccountGrant(
            name: try ServerCalls.text("username", in: answer), userId: try ServerCalls.text("userid", in: answer),
            accessToken: token)
    }

    private static func body(_ login: AccountLogin) -> JSONObject {
        ["username": .string(login.name), "password": .string(login.password)]
    }
}
