/// The state of one user's token on this device: when it is renewed, which calls wait for the renewal, and when the
/// user loses access.
///
/// Pure: times (milliseconds of a monotonic clock), randomness and the results of renewals are passed in; actions are
/// returned. The rules: at most one renewal runs at a time, shared by all callers; a refused call is repeated once with
/// the next token, and a second refusal signs the user out; after a sign-out no renewal starts, and the result of one
/// under way is ignored.
package struct TokenMachine: Sendable {
    /// A token with its number, so that a late report about one token is never applied to another.
    package struct Token: Sendable, Equatable {
        package let text: String
        package let number: Int
        package init(text: String, number: Int) { (self.text, self.number) = (text, number) }
    }

    /// What a caller does next.
    package enum Verdict: Sendable, Equatable {
        /// Call with this token.
        case call(Token)
        /// Wait for `Action.resume`.
        case wait
        case failed(ClientError)
    }

    package enum Action: Sendable, Equatable {
        /// Request a new token in place of this one; report `renewed` or `renewalFailed` under this number.
        case renew(Int, old: String)
        /// The renewal is not needed any more; its result is ignored.
        case cancel(Int)
        /// Waiting callers continue with this.
        case resume(Verdict)
        /// The live connection uses this token from now on.
        case adopt(Token)
        /// The live connection ends.
        case park(SignOutReason)
        case report(SessionEvent)
    }

    private enum Phase: Equatable {
        case good
        /// A new token has been requested.
        case renewing(Int, since: Int64, isOverdue: Bool)
        /// The last attempt failed: the next one starts at this time; until then calls fail with this error.
        case pausing(until: Int64, ClientError)
        case signedOut(SignOutReason)
    }

    /// Whether a token source exists.
    private let hasSource: Bool
    package private(set) var token: Token
    private var phase = Phase.good
    /// The server reported the token as expired: calls must not use it.
    private var isOver = false
    /// The token came from a renewal, and no call has succeeded with it yet.
    private var isFresh = false
    private var gotAt: Int64
    /// When to request the next token, ahead of this one's expiry.
    private var renewAt: Int64?
    private var renewals = 0
    private var backoff = Backoff(
        shortest: TokenLimits.pauseMinMilliseconds, longest: TokenLimits.pauseMaxMilliseconds)

    /// - Parameters:
    ///   - lifetime: milliseconds until the token expires; nil when unknown.
    ///   - random: jitter for the time of the next renewal.
    package init(token: String, lifetime: Int64?, hasSource: Bool, now: Int64, random: UInt64) {
        self.hasSource = hasSource
        self.token = Token(text: token, number: 1)
        gotAt = now
        plan(lifetime, now, random)
    }

    package var signOut: SignOutReason? {
        if case .signedOut(let reason) = phase { return reason }
        return nil
    }

    package var isRenewing: Bool {
        if case .renewing = phase { return true }
        return false
    }

    // MARK: - Calls

    /// A caller wants the token.
    package mutating func wanted(now: Int64) -> (Verdict, [Action]) {
        if case .signedOut(let reason) = phase { return (.failed(reason.error), []) }
        return isOver ? another(now) : (.call(token), [])
    }

    /// A call, or the live connection, was refused (401) with the token of this number.
    ///
    /// - Parameter isSecond: the same call was refused with the previous token as well.
    package mutating func refused(_ number: Int, isSecond: Bool = false, now: Int64) -> (Verdict, [Action]) {
        if case .signedOut(let reason) = phase { return (.failed(reason.error), []) }
        guard number == token.number else { return wanted(now: now) }
        // The renewed token is refused as well: the user has lost access.
        if isSecond || (isFresh && now - gotAt < TokenLimits.freshMilliseconds) {
            let actions = end(.refused)
            return (.failed(SignOutReason.refused.error), actions)
        }
        var actions = [Action]()
        if !isOver {
            isOver = true
            actions.append(.report(.expired))
        }
        guard hasSource || isRenewing else {
            actions += end(.expired)
            return (.failed(SignOutReason.expired.error), actions)
        }
        let (verdict, more) = another(now)
        return (verdict, actions + more)
    }

    /// The server accepted the token of this number.
    package mutating func worked(_ number: Int) {
        if number == token.number { isFresh = false }
    }

    private mutating func another(_ now: Int64) -> (Verdict, [Action]) {
        switch phase {
        case .good: return (.wait, [begin(now)])
        case .renewing(_, _, let isOverdue): return (isOverdue ? .failed(Self.overdue) : .wait, [])
        case .pausing(let until, let error): return until <= now ? (.wait, [begin(now)]) : (.failed(error), [])
        case .signedOut(let reason): return (.failed(reason.error), [])
        }
    }

    // MARK: - Renewals

    private mutating func begin(_ now: Int64) -> Action {
        renewals += 1
        renewAt = nil
        phase = .renewing(renewals, since: now, isOverdue: false)
        return .renew(renewals, old: token.text)
    }

    /// Starts a replacement of the token by other means than the source (a password change brings a new token); nil
    /// when a renewal is under way or the user is signed out.
    package mutating func beginReplacement(now: Int64) -> Int? {
        switch phase {
        case .renewing, .signedOut: return nil
        case .good, .pausing:
            _ = begin(now)
            return renewals
        }
    }

    /// The renewal of this number brought a token.
    package mutating func renewed(
        _ renewal: Int, _ text: String, lifetime: Int64?, now: Int64, random: UInt64
    ) -> [Action] {
        guard case .renewing(renewal, _, _) = phase else { return [] }
        backoff.reset()
        isFresh = true
        return adopt(text, lifetime, now, random) + [.report(.renewed)]
    }

    /// The renewal of this number failed.
    ///
    /// - Parameter denial: the user has lost access; nil: the renewal may be tried again.
    package mutating func renewalFailed(
        _ renewal: Int, _ error: ClientError, denial: SignOutReason?, now: Int64, random: UInt64
    ) -> [Action] {
        guard case .renewing(renewal, _, _) = phase else { return [] }
        if let denial { return end(denial) }
        phase = .pausing(until: now + backoff.next(random), error)
        return [.resume(.failed(error))]
    }

    /// The replacement (`beginReplacement`) ended without a new token.
    package mutating func replacementFailed(_ renewal: Int, now: Int64) -> [Action] {
        guard case .renewing(renewal, _, _) = phase else { return [] }
        phase = .good
        guard isOver else { return [.resume(.call(token))] }
        guard hasSource else { return end(.expired) }
        return [begin(now)]
    }

    private mutating func adopt(_ text: String, _ lifetime: Int64?, _ now: Int64, _ random: UInt64) -> [Action] {
        token = Token(text: text, number: token.number + 1)
        phase = .good
        isOver = false
        gotAt = now
        plan(lifetime, now, random)
        return [.adopt(token), .resume(.call(token))]
    }

    /// Renews ahead of the expiry by a tenth of the lifetime, at most a minute, with a jitter of ±50 %, because many
    /// clients got their tokens at the same moment. Tokens that live for seconds are renewed when they are refused.
    private mutating func plan(_ lifetime: Int64?, _ now: Int64, _ random: UInt64) {
        renewAt = nil
        guard hasSource, let lifetime, lifetime >= TokenLimits.lifetimeMinMilliseconds else { return }
        let cappedLifetime = min(lifetime, TokenLimits.lifetimeMaxMilliseconds)
        let ahead = min(cappedLifetime / 10, TokenLimits.aheadMaxMilliseconds)
        renewAt = now + cappedLifetime - ahead / 2 - Int64(random % UInt64(ahead + 1))
    }

    // MARK: - Time

    /// The time at which `tick` has something to do; nil: never.
    package var deadline: Int64? {
        switch phase {
        case .good: renewAt
        case .renewing(_, let since, let isOverdue): isOverdue ? nil : since + TokenLimits.renewalMaxMilliseconds
        case .pausing(let until, _): until
        case .signedOut: nil
        }
    }

    /// Advances the time. Call it at `deadline` at the latest.
    package mutating func tick(now: Int64) -> [Action] {
        guard let deadline, deadline <= now else { return [] }
        switch phase {
        case .good, .pausing: return [begin(now)]
        case .renewing(let number, let since, _):
            // Callers stop waiting. No second renewal starts while this one is under way.
            phase = .renewing(number, since: since, isOverdue: true)
            return [.resume(.failed(Self.overdue))]
        case .signedOut: return []
        }
    }

    // MARK: - Signing out and in

    /// Signs the user out: no renewal starts any more, and the result of one under way is ignored.
    package mutating func end(_ reason: SignOutReason) -> [Action] {
        if case .signedOut = phase { return [] }
        var actions = [Action]()
        if case .renewing(let number, _, _) = phase { actions.append(.cancel(number)) }
        phase = .signedOut(reason)
        isOver = true
        renewAt = nil
        return actions + [.resume(.failed(reason.error)), .park(reason), .report(.signedOut(reason))]
    }

    /// A new sign-in brought this token; it may replace a valid one.
    package mutating func signIn(_ text: String, lifetime: Int64?, now: Int64, random: UInt64) -> [Action] {
        var actions = [Action]()
        if case .renewing(let number, _, _) = phase { actions.append(.cancel(number)) }
        backoff.reset()
        isFresh = false
        return actions + adopt(text, lifetime, now, random)
    }

    private static let overdue = ClientError(
        .deadline,
        "a new token was requested but did not arrive within \(TokenLimits.renewalMaxMilliseconds / 1_000) s")
}

/// Bounds of token renewal on the client.
package enum TokenLimits {
    /// Longest wait of callers for one renewal, in milliseconds.
    package static let renewalMaxMilliseconds: Int64 = 30_000
    /// Shortest pause after a failed renewal, in milliseconds; it doubles with each failure.
    package static let pauseMinMilliseconds: Int64 = 1_000
    /// Longest pause after a failed renewal, in milliseconds.
    package static let pauseMaxMilliseconds: Int64 = 60_000
    /// A renewed token that is refused, unused, within this many milliseconds signs the user out: a newer one would not
    /// help.
    package static let freshMilliseconds: Int64 = 60_000
    /// Tokens with a shorter lifetime, in milliseconds, are not renewed ahead of their expiry.
    package static let lifetimeMinMilliseconds: Int64 = 20_000
    /// Tokens with a longer lifetime, in milliseconds, are renewed after this time all the same.
    package static let lifetimeMaxMilliseconds: Int64 = 86_400_000
    /// Longest time before the expiry at which the next token is requested, in milliseconds, jitter aside.
    package static let aheadMaxMilliseconds: Int64 = 60_000
    /// Most calls that wait for one renewal.
    package static let waitersMax = 1_024
    /// Largest token in bytes (part 4 of the partner scheme: 8 KiB).
    package static let tokenBytesMax = 8_192
}
