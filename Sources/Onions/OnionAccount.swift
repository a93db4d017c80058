import ThicketClient
import ThicketCrypto
import ThicketProtocol

/// Access to the accounts of the old notes app: values derived from user name and password are sent, never the two
/// themselves.
///
/// ```swift
/// let account = try OnionAccount(server: "https://sync.example.com", app: "onions", apiKey: apiKey)
/// let vault = try await account.signIn(username: name, password: password)
/// ```
public struct OnionAccount: Sendable {
    let app: ThicketApp
    private let name: String
    let patience: Duration
    /// A cheaper derivation than the real one, for tests.
    var stretch: AccountAPIClient.Stretch?
    /// Transforms each answer on its way; tests drop some.
    var line: @Sendable (_ path: String, Result<JSONObject, ClientError>) -> Result<JSONObject, ClientError> = { $1 }

    /// - Parameters:
    ///   - server: `https://host[:port][/path]`, or `http://` where the network is trusted.
    ///   - app: an app that accepts logins of the old notes app (`thicketd app passwords APP notes`).
    ///   - apiKey: names the app and is not a secret.
    ///   - patience: longest wait for the server.
    /// - Throws: `client` for invalid values.
    public init(
        server: String, app name: String, apiKey: String, options: SessionOptions = SessionOptions(),
        patience: Duration = Vault.patience
    ) throws(OnionError) {
        do throws(ClientError) {
            // Nothing is stored on a disk: the copy and the device's name are in memory.
            app = try ThicketApp(server: server, app: name, apiKey: apiKey, store: .memory, options: options)
        } catch {
            throw .client(error)
        }
        (self.name, self.patience) = (name, patience)
    }

    /// Creates an account and logs in.
    /// - Throws: `refused` when the name is taken or the app accepts no such accounts; `client`; `keys` with `unknown`
    ///   when it is not known whether the account was created: a login shows it.
    public func signUp(username: SecureBytes, password: SecureBytes) async throws(OnionError) -> Vault {
        let answer: JSONObject
        do throws(OnionError) { answer = try await ask("create/", username, password) } catch {
            guard let lost = error.lost else { throw error }
            // A login with these words succeeds only for the user that created the account with them.
            answer = try await determineOutcome(lost, ifNot: .client(lost)) { () throws(OnionError) in
                try await ask("authorize/", username, password)
            }
        }
        return try await open(answer, password)
    }

    /// Logs in.
    /// - Throws: `wrongLogin`, `refused` when the app accepts no such logins, `client`.
    public func signIn(username: SecureBytes, password: SecureBytes) async throws(OnionError) -> Vault {
        try await open(try await ask("authorize/", username, password), password)
    }

    private func open(_ answer: JSONObject, _ password: SecureBytes) async throws(OnionError) -> Vault {
        let session: ClientSession
        let user: String
        do throws(ClientError) {
            let token = try ServerCalls.text("access_token", in: answer)
            user = try ServerCalls.text("userid", in: answer)
            // The derived name is a secret and is not needed any more.
            session = try await app.resumeSession(accessToken: token, username: "", userId: user)
        } catch {
            throw .client(error)
        }
        return try await Vault(session, keys: NoteKeys(user: user, password: password), patience: patience)
    }

    /// Determines the outcome of a request whose answer was lost.
    /// - Parameter refusal: what a wrong login means in this case.
    private func determineOutcome(
        _ lost: ClientError, ifNot refusal: OnionError, _ look: () async throws(OnionError) -> JSONObject
    ) async throws(OnionError) -> JSONObject {
        do throws(OnionError) { return try await look() } catch {
            throw error == .wrongLogin ? refusal : .keys(.unknown(lost))
        }
    }

    /// Deletes all notes, then the account, then ends the session; if some notes remain, nothing else happens.
    /// - Throws: `wrongLogin`, before anything is deleted, when this is not the vault's account; as `Vault.remove`;
    ///   `keys` with `unknown` when it is not known whether the account is deleted. The notes are deleted then.
    public func delete(_ vault: Vault, username: SecureBytes, password: SecureBytes) async throws(OnionError) {
        // Verifies, before anything is deleted, that it is the right account.
        let answer = try await ask("authorize/", username, password)
        guard answer["userid"]?.stringValue.map({ $0.utf8.elementsEqual(vault.user.utf8) }) ?? false else {
            throw .wrongLogin
        }
        try await vault.removeAll()
        do throws(OnionError) { _ = try await ask("delete/", username, password) } catch {
            guard let lost = error.lost else { throw error }
            do throws(OnionError) {
                _ = try await determineOutcome(lost, ifNot: .wrongLogin) { () throws(OnionError) in
                    try await ask("delete/", username, password)
                }
            } catch {
                // The login was valid before: it was deleted with the account.
                guard error == .wrongLogin else { throw error }
            }
        }
        await vault.end()
    }

    /// POSTs the values derived from name and password.
    func ask(
        _ path: String, _ username: SecureBytes, _ password: SecureBytes
    ) async throws(OnionError) -> JSONObject {
        guard username.count > 0, password.count > 0 else { throw .wrongLogin }
        let body = await NoteWorkers(count: 1).run { Self.body(username, password) }
        guard let body else { throw .wrongLogin }
        do throws(ClientError) {
            return try line(path, await answer("/1/\(name)/\(path)", body)).get()
        } catch {
            throw Self.meaning(of: error)
        }
    }

    private func answer(_ path: String, _ body: SecureBytes) async -> Result<JSONObject, ClientError> {
        do throws(ClientError) { return .success(try await app.calls.ask(path, secret: body)) } catch {
            return .failure(error)
        }
    }

    private static func body(_ username: SecureBytes, _ password: SecureBytes) -> SecureBytes? {
        guard let stretched: StretchedCredentials = try? .init(username: username, password: password) else {
            return nil
        }
        // Letters of base64 need no escape in JSON.
        func plain(_ text: StaticString) -> SecureBytes {
            SecureBytes(copying: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        }
        return .joined([
            plain(#"{"username":""#), stretched.username, plain(#"","password":""#), stretched.password, plain(#""}"#),
        ])
    }

    private static func meaning(of error: ClientError) -> OnionError {
        switch error.number {
        case 401 where !error.detail.contains("API key"): .wrongLogin
        case 409: .refused("the user name is taken")
        case 403: .refused(error.detail)
        default: .client(error)
        }
    }

    // MARK: - New versions

    /// The newest version for a platform according to the server's operator, if it differs from this one.
    /// - Throws: `client`.
    public func newerVersion(platform: String = "linux", than own: String = Thicket.version) async throws(OnionError)
        -> String?
    {
        do throws(ClientError) {
            let newest = try await app.calls.look("/version")[platform]?.stringValue
            guard let newest, !newest.utf8.elementsEqual(own.utf8) else { return nil }
            return newest
        } catch {
            throw .client(error)
        }
    }
}

extension OnionError {
    /// Why an answer did not arrive, if the server may have carried out the request.
    fileprivate var lost: ClientError? {
        if case .client(let error) = self, error.leavesItOpen { return error }
        return nil
    }
}
