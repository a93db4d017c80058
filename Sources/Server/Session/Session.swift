import ThicketProtocol

/// One connection as the hub sees it: its channels, its rates and why it is not read at the moment.
final class Session {
    /// Reasons to read nothing more for now.
    struct Pauses: OptionSet {
        let rawValue: UInt8
        /// It sends faster than it may.
        static let rate: Pauses = .init(rawValue: 1)
        /// Too many of its reads await their answer, or of all reads.
        static let reads: Pauses = .init(rawValue: 2)
        /// Too many changes of all connections await their outcome.
        static let queue: Pauses = .init(rawValue: 4)
    }

    let id: ConnectionID
    /// The app of the path; nil when the path names none that is valid.
    let app: AppID?
    var channels: [Channel] = []
    var messages: RateMeter
    var changes: RateMeter
    var readsOutstanding: Int = 0
    var pauses: Pauses = []
    /// When `Pauses.rate` ends, nanoseconds.
    var slowUntil: Int64 = 0
    /// A close was asked for: nothing more is taken from it or sent to it.
    var isClosing: Bool = false

    init(id: ConnectionID, app: AppID?, limits: ServerLimits) {
        self.id = id
        self.app = app
        messages = RateMeter(perSecond: limits.messagesPerSecond, burst: limits.messagesBurst)
        changes = RateMeter(perSecond: limits.changesPerSecond, burst: limits.changesBurst)
    }

    /// Clients number their channels 0, 1, 2 …, so the place is tried first.
    func channel(_ number: ChannelNumber) -> Channel? {
        let place: Int = Int(number)
        if place < channels.count, channels[place].number == number { return channels[place] }
        return channels.first { $0.number == number }
    }
}
