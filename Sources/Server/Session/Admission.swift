import ThicketAuth
import ThicketProtocol

/// A token of an `init` that no operator made and that looks like one a partner has signed: who may come in by it?
public struct AdmissionRequest: Sendable {
    public let origin: ReadOrigin
    public let app: AppID
    public let token: String
    /// `device_id` of the `init`.
    public let device: String?
}

/// What was found about such a token.
public enum AdmissionAnswer: Sendable {
    /// The user is the entity of the pass.
    case admitted(PartnerPass)
    case refused(TokenRefusal)
    /// Too many failed tokens of this app from this address; it was not looked at, and none will be for so many
    /// seconds.
    case tooMany(seconds: Int)
    /// Too many wait to be looked at.
    case busy
    /// The directory could not be asked.
    case unavailable
}

/// Whom a channel belongs to, and until when.
struct Admission {
    let user: UserID
    /// What clients are told the user is called.
    let name: UserID
    let canWrite: Bool
    /// When the token ends, milliseconds since 1970, rounded up; nil: never.
    let ends: Int64?
    /// nil for tokens that no partner has signed.
    let pass: PartnerPass?
    /// Shown was a key of the app's administrators.
    let isAdministrator: Bool

    init(_ grant: TokenGrant, isAdministrator: Bool = false) {
        self.isAdministrator = isAdministrator
        (user, name, canWrite) = (grant.user, grant.name, !grant.isReadOnly)
        (ends, pass) = (grant.expires, nil)
    }

    init(_ pass: PartnerPass, user: UserID) {
        isAdministrator = false
        (self.user, name, canWrite, self.pass) = (user, user, true, pass)
        ends = Int64(max(-1e15, min(1e15, (pass.ends * 1_000).rounded(.up))))
    }
}

/// Ends of tokens: whose, and on which of the two clocks they come. Owned by the hub.
///
/// A token ends by the clock of days, as its partner meant it. That clock may jump: forward ends tokens at once, and
/// back gives none of them a second life, because each end is also kept on the clock that never goes back.
struct TokenEnds {
    /// One end, for the channel to keep.
    struct Ticket {
        let timer: TimerID
        /// When it comes at the latest, nanoseconds of the clock that never goes back.
        let deadline: Int64
    }

    private var queue = TimerQueue()
    /// Milliseconds by which the clock of days was ahead of the other one, where it was least, when the ends were
    /// scheduled that wait now.
    private var ahead = Int64.max

    /// Milliseconds of a jump that are overlooked: clocks that are slewed gain so much in hours.
    private static let jump: Int64 = 1_000
    /// Milliseconds: a century, so that no sum overflows.
    private static let farthest: Int64 = 3_155_760_000_000

    var isEmpty: Bool { queue.count == 0 }

    /// - Parameters:
    ///   - end: milliseconds since 1970.
    ///   - latest: nanoseconds of the other clock, where it has been scheduled before.
    ///   - action: called by `takeDue` once it has come.
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

    /// The next end that has come: its action, to be called.
    mutating func takeDue(_ now: HubInstant) -> (() -> Void)? { queue.takeDue(now.monotonic) }

    /// Whether the clock of days has jumped forward since: then every end is to be scheduled anew.
    mutating func hasJumped(_ now: HubInstant) -> Bool {
        let offset = Self.offset(now)
        guard ahead < .max, offset > ahead + Self.jump else { return false }
        ahead = offset
        return true
    }

    private static func offset(_ now: HubInstant) -> Int64 { now.unix - now.monotonic / 1_000_000 }
}
