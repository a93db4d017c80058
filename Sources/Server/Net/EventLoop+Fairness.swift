internal import CThicketNet
import ThicketProtocol

/// The connections that share one part of the loop: those of one user, or all that belong to nobody yet.
final class LoopGroup {
    /// As the delegate calls it; 0: strangers.
    let number: UInt32
    var members: Int = 0
    /// The turn for which `reading` and `writing` count.
    var turn: UInt64 = 0
    /// Nanoseconds that the group has had of it: what comes in must not keep answers from leaving.
    var reading: Int64 = 0
    var writing: Int64 = 0
    /// Bytes queued for its connections.
    var pending: Int = 0
    /// Bytes of its unfinished requests and messages.
    var gathered: Int = 0
    /// What it took of the loop, reading and writing.
    var account: ShareAccount = .init()
    /// Nanoseconds of the monotonic clock until which nothing is done for it.
    var restsUntil: Int64 = .min
    /// Its connections with something to do when it has rested.
    var resting: [Connection] = []

    init(number: UInt32) { self.number = number }
}

// Fairness: one turn gives each group a bounded time, and each connection a bounded number of messages and bytes, so that
// a turn is short whatever one of them sends.
extension EventLoop {
    /// Messages of one connection that are handled in one turn.
    static let messagesPerTurn: Int = 32
    /// Messages as which a plain HTTP request counts: the page of metrics takes a tenth of a millisecond.
    static let requestMessages: Int = 8
    /// Nanoseconds that a group may owe the loop before it rests: a change to some hundred receivers, or what a client
    /// missed in a while, is not a flood. It comes in turns as short as ever.
    static let owedFree: Int64 = 1_000_000
    /// Bytes written to one connection in one turn.
    static let writtenPerTurn: Int = 256 << 10

    /// Reads for a connection in the time of its group.
    /// - Returns: false when the group has had its share of this turn and nothing was done.
    func reads(_ connection: Connection, _ body: () -> Void) -> Bool {
        let group: LoopGroup = begin(connection)
        guard !rests(connection, group) else { return false }
        guard group.reading < settings.turnNanosecondsPerGroup else {
            if group.reading < .max / 2 {
                // Counted once a turn.
                group.reading = .max / 2
                metrics.limitHits.add(1, .turn)
            }
            return false
        }
        let begun: Int64 = thicket_monotonic_ns()
        body()
        let end: Int64 = thicket_monotonic_ns()
        group.reading += end - begun
        charge(group, end - begun, at: end)
        return true
    }

    /// The same for writing.
    func writes(_ connection: Connection, _ body: () -> Void) -> Bool {
        // Whoever has said one thing only, and listens since then, is no stranger.
        sort(connection)
        let group: LoopGroup = begin(connection)
        guard !rests(connection, group, hasInput: false) else { return false }
        guard group.writing < settings.turnNanosecondsPerGroup else { return false }
        let begun: Int64 = thicket_monotonic_ns()
        body()
        let end: Int64 = thicket_monotonic_ns()
        group.writing += end - begun
        charge(group, end - begun, at: end)
        return true
    }

    /// Puts a connection aside while its group rests.
    /// - Parameter hasInput: it is not listened to until then. The kernel is told that of those only that have something to
    ///   say: of a thousand receivers of one change nobody has.
    private func rests(_ connection: Connection, _ group: LoopGroup, hasInput: Bool = true) -> Bool {
        guard group.restsUntil > now else { return false }
        if !connection.isResting {
            connection.isResting = true
            group.resting.append(connection)
        }
        if hasInput { watch(connection) }
        return true
    }

    /// Counts what a group took of the loop. A group that takes more than its part while others want theirs rests.
    func charge(_ group: LoopGroup, _ used: Int64, at time: Int64) {
        if group === strangers {
            strangersWantedAt = time
        } else {
            recentGroups.note(group.number, now: time)
        }
        let rest: Int64? = group.account.take(
            used, percent: settings.percentPerGroup, free: Self.owedFree,
            mustShare: isWanted(beside: group, at: time), now: time)
        guard let rest: Int64 else { return }
        let isResting: Bool = group.restsUntil > time
        group.restsUntil = rest
        guard !isResting else { return }
        metrics.limitHits.add(1, .loopShare)
        _ = timers.schedule(at: rest) { [unowned self] in wake(group) }
    }

    /// Whether anybody but the group has wanted the loop of late. Strangers count while they are there: one that has gone,
    /// or has shown since that it is of the group itself, waits for nothing.
    func isWanted(beside group: LoopGroup, at time: Int64) -> Bool {
        if recentGroups.hasOther(than: group.number, now: time) { return true }
        return group !== strangers && strangers.members > 0 && time - strangersWantedAt < RecentUsers.memory
    }

    /// The group has rested: its connections are looked at again.
    func wake(_ group: LoopGroup) {
        // It took more after the rest had been set.
        if group.restsUntil > now {
            _ = timers.schedule(at: group.restsUntil) { [unowned self] in wake(group) }
            return
        }
        let batch: [Connection] = group.resting
        group.resting = []
        for connection: Connection in batch where connection.phase != .dead {
            connection.isResting = false
            if !connection.outbox.isEmpty { markDirty(connection) }
            if !connection.backlog.isEmpty || connection.tls?.hasMore == true { resume(connection) }
            watch(connection)
        }
    }

    /// Forgets groups that nobody is in any more. Not at once: what a user owes the loop is not paid by coming back on
    /// another connection.
    func forgetGroups() {
        emptied.removeAll { number in
            guard let group: LoopGroup = groups[number], group.members == 0 else { return true }
            guard group.restsUntil <= now else { return false }
            groups[number] = nil
            return true
        }
    }

    private func begin(_ connection: Connection) -> LoopGroup {
        let group: LoopGroup = connection.group
        if group.turn != turnNumber { (group.turn, group.reading, group.writing) = (turnNumber, 0, 0) }
        return group
    }

    /// Whether the connection's user has half of what it may have queued.
    func isCrowded(_ id: ConnectionID) -> Bool {
        guard let connection: Connection = lookup(id) else { return false }
        return connection.group.pending > settings.pendingBytesPerGroupMax / 2
    }

    /// Whether anybody but the connection's user has wanted the loop of late.
    func isShared(_ id: ConnectionID) -> Bool {
        guard let connection: Connection = lookup(id) else { return true }
        return isWanted(beside: connection.group, at: now)
    }

    /// Asks the delegate whose connection it is, until it knows.
    func sort(_ connection: Connection) {
        guard connection.group.number == 0, connection.phase == .open || connection.exchange?.stream != nil else {
            return
        }
        let number: UInt32 = delegate?.group(of: connection.id) ?? 0
        guard number != 0 else { return }
        sort(connection, into: number)
    }

    /// Counts a connection to a user: a request that came on it shows whose it is.
    /// - Parameter group: as the delegate numbers users; 0 for nobody.
    public func count(_ id: ConnectionID, to group: UInt32) {
        checkThread()
        guard let connection: Connection = lookup(id), connection.phase == .http else { return }
        if group != 0 { return sort(connection, into: group) }
        if connection.group !== strangers { move(connection, to: strangers) }
    }

    /// Counts a connection to a group.
    func sort(_ connection: Connection, into number: UInt32) {
        guard connection.group.number != number else { return }
        let group: LoopGroup = groups[number] ?? LoopGroup(number: number)
        groups[number] = group
        move(connection, to: group)
    }

    func move(_ connection: Connection, to group: LoopGroup) {
        let old: LoopGroup = connection.group
        old.members -= 1
        old.pending -= connection.outbox.count
        old.gathered -= connection.gathered
        if old.members == 0, old.number != 0 { emptied.append(old.number) }
        connection.group = group
        group.members += 1
        group.pending += connection.outbox.count
        group.gathered += connection.gathered
    }
}
