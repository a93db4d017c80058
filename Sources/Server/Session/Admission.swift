import ThicketAuth
import ThicketPlatform
import ThicketProtocol
import ThicketTreeShape

/// A question about the token of an `init`: the store does not have it, and it has the form of a partner's token.
public struct AdmissionRequest: Sendable {
    /// The channel that showed the token; the answer goes to it.
    public let origin: ReadOrigin
    /// The app of the connection's path.
    public let app: AppID
    /// The token as the client sent it.
    public let token: String
    /// `device_id` of the `init`; nil when absent.
    public let device: String?
}

/// The result of checking a partner's token.
public enum AdmissionAnswer: Sendable {
    /// The token is good; the user is the entity of the pass.
    case admitted(PartnerPass)
    /// The token is not good.
    case refused(TokenRefusal)
    /// Too many failed tokens of this app came from this address. The token was not checked, and none is checked
    /// for so many seconds.
    case tooMany(seconds: Int)
    /// The queue of tokens to be checked is full.
    case busy
    /// The directory could not be read.
    case unavailable
}

/// The user that a channel belongs to, its rights, and when they end.
struct Admission {
    let user: UserID
    /// The user's name as reported to clients.
    let name: UserID
    let canWrite: Bool
    /// When the token ends, milliseconds since 1970, rounded up; nil: never.
    let ends: Int64?
    /// nil for tokens that no partner has signed.
    let pass: PartnerPass?
    /// The token was a key of the app's administrators.
    let isAdministrator: Bool
    /// The rights of a guest; nil for any other user.
    let guest: GuestGrant?

    init(_ grant: TokenGrant, isAdministrator: Bool = false) {
        self.isAdministrator = isAdministrator
        (user, name, canWrite) = (grant.user, grant.name, !grant.isReadOnly)
        (ends, pass, guest) = (grant.expires, nil, grant.guest)
    }

    init(_ pass: PartnerPass, user: UserID) {
        (isAdministrator, guest) = (false, nil)
        (self.user, name, canWrite, self.pass) = (user, user, true, pass)
        ends = Int64(max(-1e15, min(1e15, (pass.ends * 1_000).rounded(.up))))
    }
}

extension Admission {
    /// Whether a channel or request may be the user's: a guest has the branch that it was made for, and blobs for
    /// it.
    func permits(_ branch: BranchName?, _ call: RESTCall.Operation?) -> Bool {
        guard !isAdministrator, let guest else { return isAdministrator || !user.isGuest }
        let place = BranchName(of: guest.owner, root: guest.root)
        if case .blob(let call)? = call { return call.branch.map { $0 == place } ?? true }
        return branch == place
    }
}

/// Schedules the ends of tokens on two clocks. Owned by the hub.
///
/// A token ends by wall-clock time, as its partner set it. That clock may jump: a jump forward ends tokens at
/// once, and a jump back does not prolong any, because each end is also kept on the monotonic clock.
struct TokenEnds {
    /// One scheduled end, which the channel keeps.
    struct Ticket {
        let timer: TimerID
        /// When it comes at the latest, nanoseconds of the monotonic clock.
        let deadline: Int64
    }

    private var queue = TimerQueue()
    /// Milliseconds by which the wall clock was ahead of the monotonic clock: the smallest difference seen when the
    /// ends that now wait were scheduled.
    private var ahead = Int64.max

    /// Milliseconds of a jump that are ignored: a clock that is slewed gains this much within hours.
    private static let jump: Int64 = 1_000
    /// Milliseconds: a century, so that no sum overflows.
    private static let farthest: Int64 = 3_155_760_000_000

    var isEmpty: Bool { queue.count == 0 }

    /// - Parameters:
    ///   - end: milliseconds since 1970.
    ///   - latest: upper bound, nanoseconds of the monotonic clock, when the end was scheduled before.
    ///   - action: `takeDue` returns it once the end has come.
    mutating func schedule(
        at end: Int64, latest: Int64 = .max, now: HubInstant, _ action: @escaping () -> Void
    ) -> Ticket {
        ahead = min(ahead, Self.offset(now))
        let left = max(0, min(Self.farthest, end - now.unix))
        let deadline = min(latest, now.monotonic + left * 1_000_000)
        return Ticket(timer: queue.schedule(at: deadline, action), deadline: deadline)
    }

    mutating func cancel(_ ticket: Ticket) {
        queue.cancel(ticket.timer)
        if isEmpty { ahead = .max }
    }

    /// Removes the next end that has come; returns its action, which the caller runs.
    mutating func takeDue(_ now: HubInstant) -> (() -> Void)? { queue.takeDue(now.monotonic) }

    /// Whether the wall clock has jumped forward since; every end must then be scheduled again.
    mutating func hasJumped(_ now: HubInstant) -> Bool {
        let offset = Self.offset(now)
        guard ahead < .max, offset > ahead + Self.jump else { return false }
        ahead = offset
        return true
    }

    private static func offset(_ now: HubInstant) -> Int64 { now.unix - now.monotonic / 1_000_000 }
}
