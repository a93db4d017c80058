/// What becomes of a user's token.
package enum TokenFate: Sendable {
    /// Connections use this token from now on.
    case adopted(TokenMachine.Token)
    /// The user is signed out: connections end.
    case ended(SignOutReason)
}

/// Holds one user's token: runs `TokenMachine`, calls the token source, and passes new tokens to the live connection.
///
/// The actor runs on the engine's thread, so that a notice from the engine and the reaction to it happen in one turn.
package actor TokenKeeper {
    private let engine: SyncEngine
    private let source: (any TokenSource)?
    private let makeRequest: @Sendable (_ token: String) -> TokenRequest
    private let clock: any SessionClock
    private var random: any RandomNumberGenerator & Sendable
    private var machine: TokenMachine
    private var hub: EventHub<SessionEvent> = EventHub(overrun: nil)
    private var waiters = [Int: CheckedContinuation<TokenMachine.Verdict, Never>]()
    private var waiterCount = 0
    private var renewal: Task<Void, Never>?
    private var isClosed = false
    private var alarm: (moment: Int64, task: Task<Void, Never>)?
    /// Other connections of the user, which are told about the token at the same time as the engine.
    private var followers = [@Sendable (TokenFate) -> Void]()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { engine.executor }

    /// - Parameter makeRequest: makes the request to the source from the old token.
    package init(
        engine: SyncEngine, token: String, source: (any TokenSource)?,
        makeRequest: @escaping @Sendable (_ token: String) -> TokenRequest, clock: any SessionClock,
        random: any RandomNumberGenerator & Sendable
    ) {
        self.engine = engine
        self.source = source
        self.makeRequest = makeRequest
        self.clock = clock
        var random = random
        machine = TokenMachine(
            token: token, lifetime: LoginToken.lifetime(of: token, now: clock.unixSeconds()), hasSource: source != nil,
            now: clock.milliseconds(), random: random.next())
        self.random = random
    }

    deinit {
        renewal?.cancel()
        alarm?.task.cancel()
        hub.finish()
    }

    /// Starts the timer. Call it once.
    package func start() { schedule() }

    // MARK: - Calls

    /// The token for a call; waits while an expired token is being renewed.
    package func token() async throws(ClientError) -> TokenMachine.Token {
        try expectOpen()
        let (verdict, actions) = machine.wanted(
            now: clock.milliseconds())
        perform(actions)
        return try await outcome(verdict)
    }

    /// The token for a repeated call after the token of this number was refused.
    package func token(after number: Int) async throws(ClientError) -> TokenMachine.Token {
        try expectOpen()
        let (verdict, actions) = machine.refused(
            number, now: clock.milliseconds())
        perform(actions)
        return try await outcome(verdict)
    }

    /// Reports that the same call was refused with the new token as well.
    package func refusedAgain(_ number: Int) {
        guard number == machine.token.number else { return }
        perform(machine.refused(number, isSecond: true, now: clock.milliseconds()).1)
    }

    package func worked(_ number: Int) { machine.worked(number) }

    private func outcome(_ verdict: TokenMachine.Verdict) async throws(ClientError) -> TokenMachine.Token {
        switch verdict {
        case .call(let token): return token
        case .failed(let error): throw error
        case .wait: return try await outcome(waitForRenewal())
        }
    }

    private func waitForRenewal() async -> TokenMachine.Verdict {
        guard waiters.count < TokenLimits.waitersMax else {
            return .failed(ClientError(.limit, "more than \(TokenLimits.waitersMax) calls wait for a new token"))
        }
        waiterCount += 1
        let id = waiterCount
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiters[id] = continuation
                if Task.isCancelled { cancelWait(id) }
            }
        } onCancel: {
            Task { await self.cancelWait(id) }
        }
    }

    private func cancelWait(_ id: Int) {
        waiters.removeValue(forKey: id)?.resume(returning: .failed(ClientError(.deadline, "the call was cancelled")))
    }

    // MARK: - The live connection

    /// Handles what the engine reports about the token.
    package func handle(_ notice: TokenNotice) {
        switch notice {
        case .good(let number): machine.worked(number)
        case .ended(let number):
            let current = machine.token
            // The app called `connect` although the user is signed out.
            if let reason = machine.signOut { return perform([.park(reason)]) }
            // The connection still used an older token.
            if number < current.number { return adopt(current) }
            perform(machine.refused(number, now: clock.milliseconds()).1)
        }
    }

    /// Reports what becomes of the token to another connection of the user.
    package func follow(_ follower: @escaping @Sendable (TokenFate) -> Void) { followers.append(follower) }

    private func adopt(_ token: TokenMachine.Token) {
        for follower in followers { follower(.adopted(token)) }
        engine.assumeIsolated { engine in
            try? engine.act { (machine, now) throws(ClientError) in
                ((), machine.adopt(token: token.text, number: token.number, now: now))
            }
        }
    }

    // MARK: - Signing out and in

    package var current: TokenMachine.Token { machine.token }
    package var signOut: SignOutReason? { machine.signOut }

    /// Signs the user out: when this returns, the connection has ended, and no renewal starts any more.
    package func end(_ reason: SignOutReason) { perform(machine.end(reason)) }

    /// Replaces the token by one from a new sign-in.
    package func signIn(_ token: String) throws(ClientError) {
        try expectOpen()
        guard LoginToken.isAcceptable(token) else { throw Self.unusable }
        perform(
            machine.signIn(
                token, lifetime: lifetime(token), now: clock.milliseconds(), random: random.next()))
    }

    /// Runs an operation that yields a new token, such as a change of the password. Meanwhile the source is not asked,
    /// and refused calls wait for the operation's token.
    ///
    /// - Throws: what `body` throws, `unauthorized` when the user is signed out.
    package func replace(_ body: @Sendable () async throws(ClientError) -> String) async throws(ClientError) {
        try expectOpen()
        var number = machine.beginReplacement(now: clock.milliseconds())
        while number == nil {
            if let reason = machine.signOut { throw reason.error }
            // Waits for a renewal that is under way.
            if case .failed(let error) = await waitForRenewal() { throw error }
            number = machine.beginReplacement(now: clock.milliseconds())
        }
        guard let number else { return }
        schedule()
        do throws(ClientError) {
            let token = try await body()
            guard LoginToken.isAcceptable(token) else { throw Self.unusable }
            perform(
                machine.renewed(
                    number, token, lifetime: lifetime(token), now: clock.milliseconds(), random: random.next()))
        } catch {
            perform(machine.replacementFailed(number, now: clock.milliseconds()))
            throw error
        }
    }

    /// Reports events from now on.
    package func listen(_ continuation: AsyncStream<SessionEvent>.Continuation) { hub.add(continuation) }

    /// Stops renewals. Does not sign the user out.
    package func close() {
        isClosed = true
        renewal?.cancel()
        schedule()
        resume(.failed(ClientError(.closed, "the session is closed")))
        followers = []
        hub.finish()
    }

    private func expectOpen() throws(ClientError) {
        if isClosed { throw ClientError(.closed, "the session is closed") }
    }

    private static let unusable = ClientError(
        .invalidOptions, "the token is empty, too long, or contains invalid characters")

    private func lifetime(_ token: String) -> Int64? { LoginToken.lifetime(of: token, now: clock.unixSeconds()) }

    // MARK: - Performing the machine's actions

    private func perform(_ actions: [TokenMachine.Action]) {
        for action in actions {
            switch action {
            case .renew(let number, let old): ask(number, old)
            case .cancel: renewal?.cancel()
            case .resume(let verdict): resume(verdict)
            case .adopt(let token): adopt(token)
            case .park(let reason):
                for follower in followers { follower(.ended(reason)) }
                engine.assumeIsolated { engine in
                    try? engine.act { (machine, now) throws(ClientError) in
                        ((), machine.signOut(reason.text, now: now))
                    }
                }
            case .report(let event): hub.yield(event)
            }
        }
        schedule()
    }

    private func resume(_ verdict: TokenMachine.Verdict) {
        let waiting: [CheckedContinuation<TokenMachine.Verdict, Never>] = Array(waiters.values)
        waiters = [:]
        for waiter in waiting { waiter.resume(returning: verdict) }
    }

    private func ask(_ number: Int, _ old: String) {
        guard let source, !isClosed else { return }
        let request = makeRequest(old)
        renewal = Task { [weak self] in
            let answer: Result<String, any Error>
            do { answer = .success(try await source.token(for: request)) } catch { answer = .failure(error) }
            await self?.answered(number, answer)
        }
    }

    private func answered(_ number: Int, _ answer: Result<String, any Error>) {
        guard !isClosed else { return }
        let now = clock.milliseconds()
        switch answer {
        case .success(let token) where LoginToken.isAcceptable(token):
            perform(
                machine.renewed(number, token, lifetime: lifetime(token), now: now, random: random.next()))
        case .success:
            perform(machine.renewalFailed(number, Self.unusable, denial: nil, now: now, random: random.next()))
        case .failure(let error):
            let denial: SignOutReason? = error is TokenDenied ? .denied : nil
            let reason =
                error as? ClientError ?? ClientError(.unavailable, "a new token was requested but did not arrive")
            perform(machine.renewalFailed(number, reason, denial: denial, now: now, random: random.next()))
        }
    }

    /// Sets the timer to the machine's deadline.
    private func schedule() {
        guard !isClosed, let moment = machine.deadline else {
            alarm?.task.cancel()
            alarm = nil
            return
        }
        guard alarm?.moment != moment else { return }
        alarm?.task.cancel()
        let clock = clock
        alarm = (
            moment,
            Task { [weak self] in
                await clock.sleep(until: moment)
                guard !Task.isCancelled else { return }
                await self?.wake(moment)
            }
        )
    }

    private func wake(_ moment: Int64) {
        guard alarm?.moment == moment else { return }
        alarm = nil
        perform(machine.tick(now: max(moment, clock.milliseconds())))
    }
}
