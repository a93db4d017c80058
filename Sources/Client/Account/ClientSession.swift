import ThicketProtocol

/// One user's access to an app: buckets in sync, calls to the server, and the token behind both, which renews itself.
///
/// Hold it as long as the user is at work: buckets alone go on, but nobody renews their token. Ends with `close()`.
public final class ClientSession: Sendable {
    public let user: SessionUser
    /// Buckets, status and connection.
    public let sync: Session
    let keeper: TokenKeeper
    let calls: ServerCalls
    let scheme: any AccountScheme

    init(user: SessionUser, sync: Session, keeper: TokenKeeper, calls: ServerCalls, scheme: any AccountScheme) {
        (self.user, self.sync, self.keeper, self.calls, self.scheme) = (user, sync, keeper, calls, scheme)
    }

    /// This installation, as login tokens name it.
    public var deviceId: String { calls.deviceId }

    /// Opens a bucket: from now on it is kept in sync.
    ///
    /// - Throws: as `Session.bucket`.
    public func bucket(_ name: String) async throws(ClientError) -> Bucket { try await sync.bucket(name) }

    /// Opens a bucket in the mode that is asked for: a sealed one with the account's keys.
    ///
    /// - Throws: as `Session.bucket(_:sealed:)`; `noKeys` when the session has none.
    public func bucket(_ name: String, sealed: Bool) async throws(ClientError) -> Bucket {
        try await sync.bucket(name, sealed: sealed)
    }

    /// Gives the session the keys of its account, where it was not made by `ThicketApp.resume`: a partner's user's, or
    /// an account's that was locked before.
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

    /// What happens to the user's access from now on. Each reader has its own stream; a slow one sees the newest.
    public var events: AsyncStream<SessionEvent> {
        get async {
            let (stream, continuation) = AsyncStream.makeStream(
                of: SessionEvent.self, bufferingPolicy: .bufferingNewest(StreamLimits.statusesMax))
            await keeper.listen(continuation)
            return stream
        }
    }

    /// Why the user is signed out; nil: is not.
    public var signOutReason: SignOutReason? { get async { await keeper.signOut } }

    /// The token at this moment, to be kept where nobody else reads it; `ThicketApp.createSession` and `resumeSession`
    /// take it after a restart.
    public var accessToken: String { get async { await keeper.current.text } }

    // MARK: - Calls

    /// Makes a call that needs the user's token, to the Thicket server or to any other that takes it.
    ///
    /// When the call is refused because the token has ended, another token is asked for, once, and the call is made
    /// once more. Calls that are refused meanwhile wait for the same token. Refused again, the user is signed out.
    ///
    /// - Parameter body: gets the token; throws `ClientError(.unauthorized, …, number: 401)` for an answer of 401.
    ///   Every other error, a 403 too, is passed on and renews nothing.
    /// - Throws: what `body` throws, `unauthorized` (401) when the user is signed out, `deadline` or what the token
    ///   source failed with when no token came.
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

    /// GETs something of the user's from the server of a built-in account.
    ///
    /// - Parameter path: behind `/1/APP/`; holds nothing that needs coding.
    /// - Throws: as `calling`.
    package func look(_ path: String) async throws(ClientError) -> JSONObject {
        let calls = calls
        return try ServerCalls.object(
            try await calling { token throws(ClientError) in
                try await calls.ask("GET", "/1/\(calls.app)/\(path)", fields: calls.accountFields(token))
            })
    }

    // MARK: - Signing out and in

    /// Signs out: connection, token and renewals end at once on this side, and the server is told, so that it takes the
    /// token from nobody else.
    ///
    /// The local copy stays, with edits that were not sent: they go out after the next sign-in of the same user.
    ///
    /// - Returns: whether the server has heard of it. If not, the token stays good there until its own end.
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
            // Refused: it was no longer good anyway.
            return error.code == .unauthorized
        }
    }

    /// Goes on with a token from elsewhere, after a sign-out or in place of the last one. It must be the same user's.
    ///
    /// - Throws: `invalidOptions` for what is no token.
    public func signIn(accessToken: String) async throws(ClientError) { try await keeper.signIn(accessToken) }

    /// Ends the session and frees the local store. The user is not signed out: the token stays good.
    public func close() async {
        await keeper.close()
        await sync.close()
    }
}

extension ClientError {
    /// The call was refused for the time of its token, or because nobody knows the token any more: another may help.
    var isTokenOver: Bool { code == .unauthorized && number == 401 }
}
