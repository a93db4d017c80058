internal import CThicketNet
import ThicketProtocol

/// The connections that share one part of the loop: those of one user, or all unauthenticated ones.
final class LoopGroup {
    /// The delegate's number for the tenant; 0: unauthenticated.
    let number: UInt32
    var members = 0
    /// The turn to which `reading` and `writing` refer.
    var turn: UInt64 = 0
    /// Nanoseconds used in that turn, counted separately, so that input cannot delay answers.
    var reading: Int64 = 0
    var writing: Int64 = 0
    /// Bytes queued for its connections.
    var pending = 0
    /// Bytes of its unfinished requests and messages.
    var gathered = 0
    /// The time it used of the loop, reading and writing.
    var account = ShareAccount()
    /// Nanoseconds of the monotonic clock until which the tenant is not served.
    var restsUntil = Int64.min
    /// Its connections to read after a throttle, or within its share of a later turn.
    let row = ConnectionRow()
    /// Its connections to write to after a throttle. They are separate from `row`, so that input cannot delay answers.
    var resting = [Connection]()
    /// In the loop's list of tenants to continue with.
    var isDue = false

    init(number: UInt32) { self.number = number }
}

// Fairness: one turn gives each tenant a bounded time, and each connection a bounded number of messages and bytes, so
// that a turn is short whatever one of them sends.
extension EventLoop {
    /// Messages of one connection that are handled in one turn.
    static let messagesPerTurn = 32
    /// Number of messages that a plain HTTP request counts as: the metrics page takes a tenth of a millisecond.
    static let requestMessages = 8
    /// Nanoseconds of debt that a tenant may have before it is throttled: a change to some hundred receivers, or
    /// catching up after a while, is not a flood. The work is still split into short turns.
    static let owedFree: Int64 = 1_000_000
    /// Nanoseconds of a piece of work above which the processor time is read, because reading it is a system call.
    static let longPiece: Int64 = 200_000
    /// Bytes written to one connection in one turn.
    static let writtenPerTurn = 256 << 10

    /// Reads for a connection within its tenant's time.
    /// - Returns: false when the tenant has used its share of this turn; nothing was done then.
    func reads(_ connection: Connection, _ body: () -> Void) -> Bool {
        // An authenticated connection must not wait among the unauthenticated ones.
        sort(connection)
        let group = begin(connection)
        guard group.restsUntil <= now, group.row.isEmpty || group === served, hasTime(group) else {
            waits(connection, group)
            return false
        }
        group.reading += timed(group, body)
        return true
    }

    /// Writes for a connection within its tenant's time.
    /// - Returns: false when the tenant is throttled or has used its share of this turn; nothing was done then.
    func writes(_ connection: Connection, _ body: () -> Void) -> Bool {
        // A client that sent one message and has only received since then is also assigned to its tenant here.
        sort(connection)
        let group = begin(connection)
        guard !rests(connection, group) else { return false }
        guard group.writing < part(of: group) else { return false }
        group.writing += timed(group, body)
        return true
    }

    /// Does work and charges it to a tenant.
    /// - Parameter isWanted: whether the tenant asked for the work. Ending a connection is not asked for, so it does
    ///   not make other tenants share the loop with this one.
    /// - Returns: nanoseconds used of the loop.
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

    /// Does work for several tenants and charges each by its number of pieces. A tenant that has left is not charged.
    /// - Parameter numbers: the tenant of each piece; best with the pieces of one tenant side by side.
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

    /// The time used of the loop in a span that has just passed. For a long span it is processor time: while other
    /// threads had the core, the loop did not run, and the tenant being served would be throttled four times as long
    /// for it. Processor time used earlier in the turn and not read yet is included, up to the length of the span, so
    /// that no piece costs more than its elapsed time.
    private func taken(in passed: Int64) -> Int64 {
        guard passed >= Self.longPiece else { return passed }
        let processor = SystemClock.threadTime()
        defer { processorTime = processor }
        return min(passed, processor - processorTime)
    }

    /// Nanoseconds of a turn for a tenant's input, and the same again for its output.
    func part(of group: LoopGroup) -> Int64 {
        group === strangers ? max(1, settings.turnNanosecondsPerGroup / 4) : settings.turnNanosecondsPerGroup
    }

    /// Whether the tenant's connections may be read further in this turn.
    private func hasTime(_ group: LoopGroup) -> Bool {
        guard group.reading >= part(of: group) else { return true }
        if group.reading < .max / 2 {
            // Counted once per turn.
            group.reading = .max / 2
            metrics.limitHits.add(1, .turn)
        }
        return false
    }

    /// Sets aside a connection to write to while its tenant is throttled. The connection is still read: of a thousand
    /// receivers of one change, most send nothing.
    private func rests(_ connection: Connection, _ group: LoopGroup) -> Bool {
        guard group.restsUntil > now else { return false }
        if !connection.isResting {
            connection.isResting = true
            group.resting.append(connection)
        }
        return true
    }

    /// Sets a connection aside until its tenant's throttle ends, or until the tenant's share of a later turn. Epoll
    /// stops reporting its input: of thousands of ready connections it would report all in each turn, for one or two
    /// that can be read.
    private func waits(_ connection: Connection, _ group: LoopGroup) {
        if !connection.isQueued { group.row.append(connection) }
        watch(connection)
        // The connections of a throttled tenant are resumed by its timer.
        if group.restsUntil <= now { makeDue(group) }
    }

    private func makeDue(_ group: LoopGroup) {
        guard !group.isDue else { return }
        group.isDue = true
        due.append(group)
    }

    /// Continues with waiting connections, before any with new events.
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
        // At most as many as epoll reports in a turn: connections that are not read use none of the tenant's time.
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
        // Its deadline may have passed while it waited.
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

    /// Charges time of the loop to a tenant. A tenant that exceeds its share while other tenants want theirs is
    /// throttled.
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

    /// Whether another tenant has wanted the loop recently or waits for an answer. Unauthenticated connections count
    /// only while they exist and stay unauthenticated: one that has ended, or has proved to be of this tenant, waits
    /// for nothing.
    func isWanted(beside group: LoopGroup, at time: Int64) -> Bool {
        if recentGroups.hasOther(than: group.number, now: time) { return true }
        if group !== strangers && strangers.members > 0 && time - strangersWantedAt < RecentUsers.memory { return true }
        return delegate?.othersWait(than: group.number) == true
    }

    /// Ends a throttle: the tenant's connections are written to in this turn and read in the next.
    func wake(_ group: LoopGroup) {
        // The tenant used more time after the throttle was set.
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

    /// Forgets tenants without connections. Not at once: a user must not clear its debt by reconnecting.
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

    /// Whether the connection's user has more than half of its allowed bytes queued.
    func isCrowded(_ id: ConnectionID) -> Bool {
        guard let connection = lookup(id) else { return false }
        return connection.group.pending > settings.pendingBytesPerGroupMax / 2
    }

    /// Whether another user has wanted the loop recently.
    func isShared(_ id: ConnectionID) -> Bool {
        guard let connection = lookup(id) else { return true }
        return isWanted(beside: connection.group, at: now)
    }

    /// Asks the delegate for the connection's tenant, until the delegate knows it.
    func sort(_ connection: Connection) {
        guard connection.group.number == 0, connection.phase == .open || connection.exchange?.stream != nil else {
            return
        }
        let number = delegate?.group(of: connection.id) ?? 0
        guard number != 0 else { return }
        sort(connection, into: number)
    }

    /// Assigns a connection to the user that a request on it has authenticated.
    /// - Parameter tenant: the delegate's tenant ID; 0 for unauthenticated.
    public func count(_ id: ConnectionID, to group: UInt32) {
        checkThread()
        guard let connection = lookup(id), connection.phase == .http else { return }
        if group != 0 { return sort(connection, into: group) }
        if connection.group !== strangers { move(connection, to: strangers) }
    }

    /// Assigns a connection to a tenant.
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
        // It waits with its new tenant, at the end of that queue.
        guard connection.isQueued, connection.phase != .dead else { return }
        connection.row?.remove(connection)
        waits(connection, group)
    }
}
