internal import CThicketNet
import ThicketProtocol

/// The connections that share one part of the loop: those of one user, or all that belong to nobody yet.
final class LoopGroup {
    /// As the delegate calls it; 0: strangers.
    let number: UInt32
    var members = 0
    /// The turn for which `reading` and `writing` count.
    var turn: UInt64 = 0
    /// Nanoseconds that the group has had of it: what comes in must not keep answers from leaving.
    var reading: Int64 = 0
    var writing: Int64 = 0
    /// Bytes queued for its connections.
    var pending = 0
    /// Bytes of its unfinished requests and messages.
    var gathered = 0
    /// What it took of the loop, reading and writing.
    var account = ShareAccount()
    /// Nanoseconds of the monotonic clock until which nothing is done for it.
    var restsUntil = Int64.min
    /// Its connections to read when it has rested, or in its part of a later turn.
    let row = ConnectionRow()
    /// Its connections to write to when it has rested. Not in the row: what comes in must not keep answers from
    /// leaving.
    var resting = [Connection]()
    /// In the loop's list of groups to go on with.
    var isDue = false

    init(number: UInt32) { self.number = number }
}

// Fairness: one turn gives each group a bounded time, and each connection a bounded number of messages and bytes, so
// that a turn is short whatever one of them sends.
extension EventLoop {
    /// Messages of one connection that are handled in one turn.
    static let messagesPerTurn = 32
    /// Messages as which a plain HTTP request counts: the page of metrics takes a tenth of a millisecond.
    static let requestMessages = 8
    /// Nanoseconds that a group may owe the loop before it rests: a change to some hundred receivers, or what a client
    /// missed in a while, is not a flood. It comes in turns as short as ever.
    static let owedFree: Int64 = 1_000_000
    /// Nanoseconds of a piece of work from which on the processor's time is asked for: that is a call to the kernel.
    static let longPiece: Int64 = 200_000
    /// Bytes written to one connection in one turn.
    static let writtenPerTurn = 256 << 10

    /// Reads for a connection in the time of its group.
    /// - Returns: false when the group has had its share of this turn and nothing was done.
    func reads(_ connection: Connection, _ body: () -> Void) -> Bool {
        // Whoever has shown who it is does not wait with the strangers.
        sort(connection)
        let group = begin(connection)
        guard group.restsUntil <= now, group.row.isEmpty || group === served, hasTime(group) else {
            waits(connection, group)
            return false
        }
        group.reading += timed(group, body)
        return true
    }

    /// The same for writing.
    func writes(_ connection: Connection, _ body: () -> Void) -> Bool {
        // Whoever has said one thing only, and listens since then, is no stranger.
        sort(connection)
        let group = begin(connection)
        guard !rests(connection, group) else { return false }
        guard group.writing < part(of: group) else { return false }
        group.writing += timed(group, body)
        return true
    }

    /// Does something on a group's account.
    /// - Parameter isWanted: whether the group wanted it; who is ended did not, and others do not share with it for
    ///   that.
    /// - Returns: nanoseconds that it took of the loop.
    @discardableResult
    func timed(_ group: LoopGroup, isWanted: Bool = true, _ body: () -> Void) -> Int64 {
        let begun = thicket_monotonic_ns()
        body()
        let end = thicket_monotonic_ns()
        let used = taken(in: end - begun)
        if isWanted { wants(group, at: end) }
        charge(group, used, at: end)
        return used
    }

    /// Does something for several groups: each is charged by the number of its pieces. One that is gone pays nothing.
    /// - Parameter numbers: whose each piece is, those of one group best side by side.
    func timed(_ numbers: some Collection<UInt32>, _ body: () -> Void) {
        let begun = thicket_monotonic_ns()
        body()
        let end = thicket_monotonic_ns()
        let used = taken(in: end - begun)
        let part = used / Int64(max(1, numbers.count))
        var (last, pieces): (UInt32, Int64) = (0, 0)
        for number in numbers {
            if number != last { chargeIfThere(last, part * pieces, at: end) }
            (last, pieces) = number == last ? (last, pieces + 1) : (number, 1)
        }
        chargeIfThere(last, part * pieces, at: end)
    }

    private func chargeIfThere(_ number: UInt32, _ used: Int64, at time: Int64) {
        guard used > 0, let group = number == 0 ? strangers : groups[number] else { return }
        wants(group, at: time)
        charge(group, used, at: time)
    }

    /// What was taken of the loop in a time that has just passed. Of a long one the processor's: while others had the
    /// core, nobody had the loop, and whoever was about to be served would rest four times as long for it. What was
    /// computed in the turn before it and not asked for counts with it, up to the time that has passed: no piece costs
    /// more than before.
    private func taken(in passed: Int64) -> Int64 {
        guard passed >= Self.longPiece else { return passed }
        let processor = SystemClock.threadTime()
        defer { processorTime = processor }
        return min(passed, processor - processorTime)
    }

    /// Nanoseconds of a turn for what the group says, and as many for what it is told.
    func part(of group: LoopGroup) -> Int64 {
        group === strangers ? max(1, settings.turnNanosecondsPerGroup / 4) : settings.turnNanosecondsPerGroup
    }

    /// Whether the group's connections may be read on in this turn.
    private func hasTime(_ group: LoopGroup) -> Bool {
        guard group.reading >= part(of: group) else { return true }
        if group.reading < .max / 2 {
            // Counted once a turn.
            group.reading = .max / 2
            metrics.limitHits.add(1, .turn)
        }
        return false
    }

    /// Puts a connection that is written to aside while its group rests. It is listened to: of a thousand receivers of
    /// one change nobody has anything to say.
    private func rests(_ connection: Connection, _ group: LoopGroup) -> Bool {
        guard group.restsUntil > now else { return false }
        if !connection.isResting {
            connection.isResting = true
            group.resting.append(connection)
        }
        return true
    }

    /// Puts a connection aside until its group has rested, or until its part of a later turn. Epoll says no more of
    /// what it sent: of thousands that are ready it would tell in each turn, for one or two that can be read in it.
    private func waits(_ connection: Connection, _ group: LoopGroup) {
        if !connection.isQueued { group.row.append(connection) }
        watch(connection)
        // One that rests comes back by its timer.
        if group.restsUntil <= now { makeDue(group) }
    }

    private func makeDue(_ group: LoopGroup) {
        guard !group.isDue else { return }
        group.isDue = true
        due.append(group)
    }

    /// Reads on with connections that wait, before any that come now.
    func serveRows() {
        let batch = due
        due = []
        for group in batch {
            group.isDue = false
            serveRow(of: group)
        }
    }

    private func serveRow(of group: LoopGroup) {
        served = group
        defer { served = nil }
        begin(group)
        // No more than epoll tells of in a turn: those of whom nothing is read now take none of the group's time.
        for _ in 0..<Poller.eventsMax {
            guard group.restsUntil <= now, !group.row.isEmpty, hasTime(group),
                let connection = group.row.popFirst()
            else { break }
            serve(connection)
        }
        if !group.row.isEmpty && group.restsUntil <= now { makeDue(group) }
    }

    private func serve(_ connection: Connection) {
        let wasDeaf = !connection.watchesReads
        watch(connection)
        if connection.hasUnread {
            if connection.mayConsume { _ = reads(connection) { readOn(connection) } }
        } else if wasDeaf && connection.watchesReads {
            _ = reads(connection) { readable(connection) }
        }
        // Its time may have run out while it waited.
        guard connection.phase != .dead && deadlines[Int(connection.id.slot)] <= now else { return }
        let group = connection.group
        group.reading += timed(group, isWanted: false) { expired(connection) }
    }

    private func wants(_ group: LoopGroup, at time: Int64) {
        if group === strangers {
            strangersWantedAt = time
        } else {
            recentGroups.note(group.number, now: time)
        }
    }

    /// Counts what a group took of the loop. A group that takes more than its part while others want theirs rests.
    func charge(_ group: LoopGroup, _ used: Int64, at time: Int64) {
        let rest = group.account.take(
            used, percent: settings.percentPerGroup, free: Self.owedFree,
            mustShare: isWanted(beside: group, at: time), now: time)
        guard let rest else { return }
        let isResting = group.restsUntil > time
        group.restsUntil = rest
        guard !isResting else { return }
        metrics.limitHits.add(1, .loopShare)
        _ = timers.schedule(at: rest) { [unowned self] in wake(group) }
    }

    /// Whether anybody but the group has wanted the loop of late, or waits for an answer. Strangers count while they
    /// are there: one that has gone, or has shown since that it is of the group itself, waits for nothing.
    func isWanted(beside group: LoopGroup, at time: Int64) -> Bool {
        if recentGroups.hasOther(than: group.number, now: time) { return true }
        if group !== strangers && strangers.members > 0 && time - strangersWantedAt < RecentUsers.memory { return true }
        return delegate?.othersWait(than: group.number) == true
    }

    /// The group has rested: its connections are written to in this turn, and read in the next.
    func wake(_ group: LoopGroup) {
        // It took more after the rest had been set.
        if group.restsUntil > now {
            _ = timers.schedule(at: group.restsUntil) { [unowned self] in wake(group) }
            return
        }
        let batch = group.resting
        group.resting = []
        for connection in batch where connection.phase != .dead {
            connection.isResting = false
            if !connection.outbox.isEmpty { markDirty(connection) }
            watch(connection)
        }
        if !group.row.isEmpty { makeDue(group) }
    }

    /// Forgets groups that nobody is in any more. Not at once: what a user owes the loop is not paid by coming back on
    /// another connection.
    func forgetGroups() {
        emptied.removeAll { number in
            guard let group = groups[number], group.members == 0 else { return true }
            guard group.restsUntil <= now else { return false }
            groups[number] = nil
            return true
        }
    }

    private func begin(_ connection: Connection) -> LoopGroup {
        begin(connection.group)
        return connection.group
    }

    private func begin(_ group: LoopGroup) {
        if group.turn != turnNumber { (group.turn, group.reading, group.writing) = (turnNumber, 0, 0) }
    }

    /// Whether the connection's user has half of what it may have queued.
    func isCrowded(_ id: ConnectionID) -> Bool {
        guard let connection = lookup(id) else { return false }
        return connection.group.pending > settings.pendingBytesPerGroupMax / 2
    }

    /// Whether anybody but the connection's user has wanted the loop of late.
    func isShared(_ id: ConnectionID) -> Bool {
        guard let connection = lookup(id) else { return true }
        return isWanted(beside: connection.group, at: now)
    }

    /// Asks the delegate whose connection it is, until it knows.
    func sort(_ connection: Connection) {
        guard connection.group.number == 0, connection.phase == .open || connection.exchange?.stream != nil else {
            return
        }
        let number = delegate?.group(of: connection.id) ?? 0
        guard number != 0 else { return }
        sort(connection, into: number)
    }

    /// Counts a connection to a user: a request that came on it shows whose it is.
    /// - Parameter group: as the delegate numbers users; 0 for nobody.
    public func count(_ id: ConnectionID, to group: UInt32) {
        checkThread()
        guard let connection = lookup(id), connection.phase == .http else { return }
        if group != 0 { return sort(connection, into: group) }
        if connection.group !== strangers { move(connection, to: strangers) }
    }

    /// Counts a connection to a group.
    func sort(_ connection: Connection, into number: UInt32) {
        guard connection.group.number != number else { return }
        let group = groups[number] ?? LoopGroup(number: number)
        groups[number] = group
        move(connection, to: group)
    }

    func move(_ connection: Connection, to group: LoopGroup) {
        let old = connection.group
        old.members -= 1
        old.pending -= connection.outbox.count
        old.gathered -= connection.gathered
        if old.members == 0, old.number != 0 { emptied.append(old.number) }
        connection.group = group
        group.members += 1
        group.pending += connection.outbox.count
        group.gathered += connection.gathered
        // It waits with its new group, behind those that wait there.
        guard connection.isQueued, connection.phase != .dead else { return }
        connection.row?.remove(connection)
        waits(connection, group)
    }
}
