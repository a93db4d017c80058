/// The life of one user's token on this device: when another one is asked for, by whom it is waited for, and when
/// nobody has one any more.
///
/// Pure: moments (milliseconds of a clock that never goes back), randomness and what came out of a renewal are passed
/// in, and what to do comes out as actions. The rules: one renewal at a time, whoever wants it; a call that is refused
/// is made once more with the next token, and when that is refused too, the user is signed out; after a sign-out no
/// renewal begins and none that is under way counts.
package struct TokenMachine: Sendable {
    /// A token with its number: what is said of one is never taken for another.
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
        /// Ask for another token in place of this one, and answer with `renewed` or `renewalFailed` under this number.
        case renew(Int, old: String)
        /// Nobody wants the renewal any more; its answer does not count.
        case cancel(Int)
        /// Whoever waits goes on with this.
        case resume(Verdict)
        /// The live connection uses this token from now on.
        case adopt(Token)
        /// The live connection ends.
        case park(SignOutReason)
        case tell(SessionEvent)
    }

    private enum Phase: Equatable {
        case good
        /// Another token is asked for.
        case renewing(Int, since: Int64, isOverdue: Bool)
        /// The last attempt failed: the next one is at this moment, and until then this is the answer.
        case pausing(until: Int64, ClientError)
        case signedOut(SignOutReason)
    }

    /// Somebody can be asked for another token.
    private let hasSource: Bool
    package private(set) var token: Token
    private var phase = Phase.good
    /// The server has said that the token is over: it is of no use for calls.
    private var isOver = false
    /// The token came by a renewal, and nothing has shown yet that the server takes it.
    private var isFresh = false
    private var gotAt: Int64
    /// When to ask for the next token before this one ends.
    private var renewAt: Int64?
    private var renewals = 0
    private var backoff = Backoff(
        shortest: TokenLimits.pauseMinMilliseconds, longest: TokenLimits.pauseMaxMilliseconds)

    /// - Parameters:
    ///   - lifetime: milliseconds that the token is good, as far as one can see; nil: not known.
    ///   - random: decides how long before the end the next token is asked for.
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

    /// Somebody wants to call with the token.
    package mutating func wanted(now: Int64) -> (Verdict, [Action]) {
        if case .signedOut(let reason) = phase { return (.failed(reason.error), []) }
        return isOver ? another(now) : (.call(token), [])
    }

    /// A call, or the live connection, was refused (401) with the token of this number.
    ///
    /// - Parameter isSecond: the same call was refused with the token before, too.
    package mutating func refused(_ number: Int, isSecond: Bool = false, now: Int64) -> (Verdict, [Action]) {
        if case .signedOut(let reason) = phase { return (.failed(reason.error), []) }
        guard number == token.number else { return wanted(now: now) }
        // The renewal brought nothing better: the user has no access any more.
        if isSecond || (isFresh && now - gotAt < TokenLimits.freshMilliseconds) {
            let actions = end(.refused)
            return (.failed(SignOutReason.refused.error), actions)
        }
        var actions = [Action]()
        if !isOver {
            isOver = true
            actions.append(.tell(.expired))
        }
        guard hasSource || isRenewing else {
            actions += end(.expired)
            return (.failed(SignOutReason.expired.error), actions)
        }
        let (verdict, more) = another(now)
        return (verdict, actions + more)
    }

    /// The server took the token of this number.
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

    /// Asks for another token on behalf of somebody who gets it elsewhere (another password brings another token); nil
    /// when one is under way or the user is signed out.
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
        return take(text, lifetime, now, random) + [.tell(.renewed)]
    }

    /// The renewal of this number brought none.
    ///
    /// - Parameter denial: the user has no access any more; nil: it may be tried again.
    package mutating func renewalFailed(
        _ renewal: Int, _ error: ClientError, denial: SignOutReason?, now: Int64, random: UInt64
    ) -> [Action] {
        guard case .renewing(renewal, _, _) = phase else { return [] }
        if let denial { return end(denial) }
        phase = .pausing(until: now + backoff.next(random), error)
        return [.resume(.failed(error))]
    }

    /// Who replaced the token (`beginReplacement`) has left it as it was.
    package mutating func replacementFailed(_ renewal: Int, now: Int64) -> [Action] {
        guard case .renewing(renewal, _, _) = phase else { return [] }
        phase = .good
        guard isOver else { return [.resume(.call(token))] }
        guard hasSource else { return end(.expired) }
        return [begin(now)]
    }

    private mutating func take(_ text: String, _ lifetime: Int64?, _ now: Int64, _ random: UInt64) -> [Action] {
        token = Token(text: text, number: token.number + 1)
        phase = .good
        isOver = false
        gotAt = now
        plan(lifetime, now, random)
        return [.adopt(token), .resume(.call(token))]
    }

    /// Asks ahead of the end, by a tenth of the lifetime and at most a minute, less or more by half: many clients got
    /// theirs at the same moment. Tokens that live for seconds are renewed when they are refused.
    private mutating func plan(_ lifetime: Int64?, _ now: Int64, _ random: UInt64) {
        renewAt = nil
        guard hasSource, let lifetime, lifetime >= TokenLimits.lifetimeMinMilliseconds else { return }
        let life = min(lifetime, TokenLimits.lifetimeMaxMilliseconds)
        let ahead = min(life / 10, TokenLimits.aheadMaxMilliseconds)
        renewAt = now + life - ahead / 2 - Int64(random % UInt64(ahead + 1))
    }

    // MARK: - Time

    /// The moment at which `tick` has something to do; nil: never.
    package var deadline: Int64? {
        switch phase {
        case .good: renewAt
        case .renewing(_, let since, let isOverdue): isOverdue ? nil : since + TokenLimits.renewalMaxMilliseconds
        case .pausing(let until, _): until
        case .signedOut: nil
        }
    }

    /// Time passed. Call it at `deadline` at the latest.
    package mutating func tick(now: Int64) -> [Action] {
        guard let deadline, deadline <= now else { return [] }
        switch phase {
        case .good, .pausing: return [begin(now)]
        case .renewing(let number, let since, _):
            // Whoever waits has waited enough. No second one is begun while this one goes on.
            phase = .renewing(number, since: since, isOverdue: true)
            return [.resume(.failed(Self.overdue))]
        case .signedOut: return []
        }
    }

    // MARK: - Signing out and in

    /// The user is signed out: no renewal begins any more, and one that is under way does not count.
    package mutating func end(_ reason: SignOutReason) -> [Action] {
        if case .signedOut = phase { return [] }
        var actions = [Action]()
        if case .renewing(let number, _, _) = phase { actions.append(.cancel(number)) }
        phase = .signedOut(reason)
        isOver = true
        renewAt = nil
        return actions + [.resume(.failed(reason.error)), .park(reason), .tell(.signedOut(reason))]
    }

    /// Somebody signed in with this token; also over an older one.
    package mutating func signIn(_ text: String, lifetime: Int64?, now: Int64, random: UInt64) -> [Action] {
        var actions = [Action]()
        if case .renewing(let number, _, _) = phase { actions.append(.cancel(number)) }
        backoff.reset()
        isFresh = false
        return actions + take(text, lifetime, now, random)
    }

    private static let overdue = ClientError(
        .deadline, "another token was asked for, and none came within \(TokenLimits.renewalMaxMilliseconds / 1_000) s")
}

/// Bounds of the token's life on this side.
package enum TokenLimits {
    /// Milliseconds that callers wait for one renewal.
    package static let renewalMaxMilliseconds: Int64 = 30_000
    /// Shortest pause after a renewal that failed; it doubles with each.
    package static let pauseMinMilliseconds: Int64 = 1_000
    /// Longest pause after a renewal that failed.
    package static let pauseMaxMilliseconds: Int64 = 60_000
    /// A token that a renewal brought and that is refused, unused, within this time: there is no better one.
    package static let freshMilliseconds: Int64 = 60_000
    /// Tokens that live shorter are not renewed ahead of their end.
    package static let lifetimeMinMilliseconds: Int64 = 20_000
    /// Tokens that live longer are renewed this often all the same.
    package static let lifetimeMaxMilliseconds: Int64 = 86_400_000
    /// Longest time before the end at which the next token is asked for, jitter aside.
    package static let aheadMaxMilliseconds: Int64 = 60_000
    /// Calls that wait for one renewal.
    package static let waitersMax = 1_024
    /// Bytes of a token (part 4 of the partner scheme: 8 KiB).
    package static let tokenBytesMax = 8_192
}
