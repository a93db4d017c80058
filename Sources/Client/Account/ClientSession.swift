import ThicketProtocol

/// One user's access to an app: synced buckets, calls to the server, and the token for both, which the session renews.
///
/// Keep a reference while the user works: buckets continue to sync without the session, but their token is not renewed.
/// End it with `close()`.
public final class ClientSession: Sendable {
    /// The user that the session belongs to.
    public let user: SessionUser
    /// The sync session: buckets, status and connection.
    public let sync: Session
    let keeper: TokenKeeper
    let calls: ServerCalls
    let scheme: any AccountScheme
    let place: SessionPlace
    /// What other libraries run beside the buckets, such as the tree.
    package let parts = SessionParts()

    init(
        user: SessionUser, sync: Session, keeper: TokenKeeper, calls: ServerCalls, scheme: any AccountScheme,
        place: SessionPlace
    ) {
        (self.user, self.sync, self.keeper, self.calls, self.scheme) = (user, sync, keeper, calls, scheme)
        self.place = place
    }

    /// The id of this installation, as login tokens carry it in `device_id`.
    public var deviceId: String { calls.deviceId }

    /// Opens a bucket and keeps it in sync from now on.
    ///
    /// - Throws: as `Session.bucket`.
    public func bucket(_ name: String) async throws(ClientError) -> Bucket { try await sync.bucket(name) }

    /// Opens a bucket in the given mode; a sealed bucket uses the account's keys.
    ///
    /// - Throws: as `Session.bucket(_:sealed:)`; `noKeys` when the session has no keys.
    public func bucket(_ name: String, sealed: Bool) async throws(ClientError) -> Bucket {
        try await sync.bucket(name, sealed: sealed)
    }

    /// Gives the session the keys of its account. Needed when `ThicketApp.resume` did not make the session: for a
    /// partner's user, or for an account that was locked before.
    ///
    /// - Throws: `sealed` for keys of another user or app.
    public func useKeys(of account: OpenAccount) async throws(ClientError) {
        let id =
            switch user {
            case .partner(let entity, _): entity
            case .account(_, let userId): userId
            }
        guard id.utf8.elementsEqual(account.user.utf8) else {
            throw ClientError(.sealed, "these are keys of another user")
        }
        try await sync.useKeys(of: account)
    }

    /// Changes of the user's access from now on. Each reader has its own stream; a slow reader gets only the newest
    /// events.
    public var events: AsyncStream<SessionEvent> {
        get async {
            let (stream, continuation) = AsyncStream.makeStream(
                of: SessionEvent.self, bufferingPolicy: .bufferingNewest(StreamLimits.statusesMax))
            await keeper.listen(continuation)
            return stream
        }
    }

    /// Why the user is signed out; nil while signed in.
    public var signOutReason: SignOutReason? { get async { await keeper.signOut } }

    /// The current token. Store it where no other program can read it; `ThicketApp.createSession` and `resumeSession`
    /// accept it after a restart.
    public var accessToken: String { get async { await keeper.current.text } }

    // MARK: - Calls

    /// Makes a call that needs the user's token, to the Thicket server or to any other server that accepts it.
    ///
    /// When the call is refused because the token has expired, the session requests one new token and repeats the call
    /// once. Other calls that are refused meanwhile wait for the same token. A second refusal signs the user out.
    ///
    /// - Parameter body: receives the token; throws `ClientError(.unauthorized, …, number: 401)` for a 401 answer.
    ///   Every other error, 403 included, is passed on and does not renew the token.
    /// - Throws: what `body` throws; `unauthorized` (401) when the user is signed out; `deadline`, or the token
    ///   source's error, when no new token came.
    public func calling<Value: Sendable>(
        _ body: @Sendable (_ token: String) async throws(ClientError) -> Value
    ) async throws(ClientError) -> Value {
        let first = try await keeper.token()
        do throws(ClientError) {
            return try await attempt(first, body)
        } catch {
            guard error.isTokenOver else { throw error }
        }
        let second = try await keeper.token(after: first.number)
        do throws(ClientError) {
            return try await attempt(second, body)
        } catch {
            if error.isTokenOver { await keeper.refusedAgain(second.number) }
            throw error
        }
    }

    private func attempt<Value: Sendable>(
        _ token: TokenMachine.Token, _ body: @Sendable (_ token: String) async throws(ClientError) -> Value
    ) async throws(ClientError) -> Value {
        let value = try await body(token.text)
        await keeper.worked(token.number)
        return value
    }

    /// GETs a resource of the user from the server of a built-in account.
    ///
    /// - Parameter path: the path after `/1/APP/`; must not need percent-encoding.
    /// - Throws: as `calling`.
    package func look(_ path: String) async throws(ClientError) -> JSONObject {
        let calls = calls
        return try ServerCalls.object(
            try await calling { token throws(ClientError) in
                try await calls.ask("GET", "/1/\(calls.app)/\(path)", fields: calls.accountFields(token))
            })
    }

    // MARK: - Signing out and in

    /// Signs out. Connection, token and renewals end at once on this side, and the server is asked to revoke the token.
    ///
    /// The local copy stays, including unsent edits: they are sent after the next sign-in of the same user.
    ///
    /// - Returns: whether the server revoked the token. If false, the token stays valid on the server until it expires.
    @discardableResult
    public func signOut() async -> Bool {
        let token = await keeper.current.text
        let wasOut = await keeper.signOut != nil
        await keeper.end(.requested)
        if wasOut { return true }
        do throws(ClientError) {
            switch user {
            case .partner:
                _ = try await calls.ask(
                    "POST", "/v1/user/logout", fields: calls.partnerFields(token),
                    timeoutSeconds: ServerCalls.logoutSeconds, isUrgent: true)
            case .account:
                _ = try await calls.ask(
                    "POST", "/1/\(calls.app)/auth/logout", fields: calls.accountFields(token),
                    timeoutSeconds: ServerCalls.logoutSeconds, isUrgent: true)
            }
            return true
        } catch {
            // A refused token was already invalid.
            return error.code == .unauthorized
        }
    }

    /// Continues with a token obtained elsewhere, after a sign-out or in place of the current token. It must belong to
    /// the same user.
    ///
    /// - Throws: `invalidOptions` when the text cannot be a token.
    public func signIn(accessToken: String) async throws(ClientError) { try await keeper.signIn(accessToken) }

    /// Ends the session and releases the local store. Does not sign the user out: the token stays valid.
    public func close() async {
        await parts.close()
        await keeper.close()
        await sync.close()
    }
}

extension ClientError {
    /// The call was refused because its token expired or is unknown to the server: a new token may help.
    var isTokenOver: Bool { code == .unauthorized && number == 401 }
}
