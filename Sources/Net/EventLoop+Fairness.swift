internal import CThicketNet
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// The connections that share one part of the loop: those of one user, or all unauthenticated ones.
final class LoopTenant {
    /// The delegate's number for the tenant; 0: unauthenticated.
    let id: TenantID
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
    var account = CPUBudget()
    /// Nanoseconds of the monotonic clock until which the tenant is not served.
    var throttledUntil = Int64.min
    /// Its connections to read after a throttle, or within its share of a later turn.
    let row = ReadyQueue()
    /// Its connections to write to after a throttle. They are separate from `row`, so that input cannot delay answers.
    var throttled = [Connection]()
    /// In the loop's list of tenants to continue with.
    var isDue = false

    init(id: TenantID) { self.id = id }
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
    static let debtMax: Int64 = 1_000_000
    /// Nanoseconds of a piece of work above which the processor time is read, because reading it is a system call.
    static let longPiece: Int64 = 200_000
    /// Bytes written to one connection in one turn.
    static let writtenPerTurn = 256 << 10

    /// Reads for a connection within its tenant's time.
    /// - Returns: false when the tenant is throttled, has used its share or has a queue; the connection then waits.
    func reads(_ connection: Connection, _ body: () -> Void) -> Bool {
        // An authenticated connection must not wait among the unauthenticated ones.
        sort(connection)
        let tenant = begin(connection)
        guard tenant.throttledUntil <= now, tenant.row.isEmpty || tenant === served, hasTime(tenant) else {
            waits(connection, tenant)
            return false
        }
        tenant.reading += timed(tenant, body)
        return true
    }

    /// Writes for a connection within its tenant's time.
    /// - Returns: false when the tenant is throttled or has used its share of this turn; nothing was done then.
    func writes(_ connection: Connection, _ body: () -> Void) -> Bool {
        // A client that sent one message and has only received since then is also assigned to its tenant here.
        sort(connection)
        let tenant = begin(connection)
        guard !isThrottled(connection, tenant) else { return false }
        guard tenant.writing < part(of: tenant) else { return false }
        tenant.writing += timed(tenant, body)
        return true
    }

    /// Does work and charges it to a tenant.
    /// - Parameter isWanted: whether the tenant asked for the work. Ending a connection is not asked for, so it does
    ///   not make other tenants share the loop with this one.
    /// - Returns: nanoseconds used of the loop.
    @discardableResult
    func timed(_ tenant: LoopTenant, isWanted: Bool = true, _ body: () -> Void) -> Int64 {
        let begun = thicket_monotonic_ns()
        body()
        let end = thicket_monotonic_ns()
        let used = usedTime(in: end - begun)
        if isWanted { wants(tenant, at: end) }
        charge(tenant, used, at: end)
        return used
    }

    /// Does work for several tenants and charges each by its number of pieces. A tenant that has left is not charged.
    /// - Parameter numbers: the tenant of each piece; best with the pieces of one tenant side by side.
    package func timed(_ numbers: some Collection<TenantID>, _ body: () -> Void) {
        let begun = thicket_monotonic_ns()
        body()
        let end = thicket_monotonic_ns()
        let used = usedTime(in: end - begun)
        let part = used / Int64(max(1, numbers.count))
        var (last, pieces): (TenantID, Int64) = (0, 0)
        for number in numbers {
            if number != last { chargeIfThere(last, part * pieces, at: end) }
            (last, pieces) = number == last ? (last, pieces + 1) : (number, 1)
        }
        chargeIfThere(last, part * pieces, at: end)
    }

    private func chargeIfThere(_ number: TenantID, _ used: Int64, at time: Int64) {
        guard used > 0, let tenant = number == 0 ? unauthenticated : tenants[number] else { return }
        wants(tenant, at: time)
        charge(tenant, used, at: time)
    }

    /// The time used of the loop in a span that has just passed. For a long span it is processor time: while other
    /// threads had the core, the loop did not run, and the tenant being served would be throttled four times as long
    /// for it. Processor time used earlier in the turn and not read yet is included, up to the length of the span, so
    /// that no piece costs more than its elapsed time.
    private func usedTime(in passed: Int64) -> Int64 {
        guard passed >= Self.longPiece else { return passed }
        let processor = SystemClock.threadTime()
        defer { processorTime = processor }
        return min(passed, processor - processorTime)
    }

    /// Nanoseconds of a turn for a tenant's input, and the same again for its output.
    func part(of tenant: LoopTenant) -> Int64 {
        tenant === unauthenticated ? max(1, settings.turnNanosecondsPerTenant / 4) : settings.turnNanosecondsPerTenant
    }

    /// Whether the tenant's connections may be read further in this turn.
    private func hasTime(_ tenant: LoopTenant) -> Bool {
        guard tenant.reading >= part(of: tenant) else { return true }
        if tenant.reading < .max / 2 {
            // Counted once per turn.
            tenant.reading = .max / 2
            metrics.limitHit(.turn)
        }
        return false
    }

    /// Sets aside a connection to write to while its tenant is throttled. The connection is still read: of a thousand
    /// receivers of one change, most send nothing.
    private func isThrottled(_ connection: Connection, _ tenant: LoopTenant) -> Bool {
        guard tenant.throttledUntil > now else { return false }
        if !connection.isTenantThrottled {
            connection.isTenantThrottled = true
            tenant.throttled.append(connection)
        }
        return true
    }

    /// Sets a connection aside until its tenant's throttle ends, or until the tenant's share of a later turn. Epoll
    /// stops reporting its input: of thousands of ready connections it would report all in each turn, for one or two
    /// that can be read.
    private func waits(_ connection: Connection, _ tenant: LoopTenant) {
        if !connection.isQueued { tenant.row.append(connection) }
        watch(connection)
        // The connections of a throttled tenant are resumed by its timer.
        if tenant.throttledUntil <= now { makeDue(tenant) }
    }

    private func makeDue(_ tenant: LoopTenant) {
        guard !tenant.isDue else { return }
        tenant.isDue = true
        due.append(tenant)
    }

    /// Continues with waiting connections, before any with new events.
    func serveRows() {
        let batch = due
        due = []
        for tenant in batch {
            tenant.isDue = false
            serveRow(of: tenant)
        }
    }

    private func serveRow(of tenant: LoopTenant) {
        served = tenant
        defer { served = nil }
        begin(tenant)
        // At most as many as epoll reports in a turn: connections that are not read use none of the tenant's time.
        for _ in 0..<Poller.eventsMax {
            guard tenant.throttledUntil <= now, !tenant.row.isEmpty, hasTime(tenant),
                let connection = tenant.row.popFirst()
            else { break }
            serve(connection)
        }
        if !tenant.row.isEmpty && tenant.throttledUntil <= now { makeDue(tenant) }
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
        let tenant = connection.tenant
        tenant.reading += timed(tenant, isWanted: false) { expired(connection) }
    }

    private func wants(_ tenant: LoopTenant, at time: Int64) {
        if tenant === unauthenticated {
            unauthenticatedWantedAt = time
        } else {
            recentTenants.record(tenant.id, now: time)
        }
    }

    /// Charges time of the loop to a tenant. A tenant that exceeds its share while other tenants want theirs is
    /// throttled.
    func charge(_ tenant: LoopTenant, _ used: Int64, at time: Int64) {
        let until = tenant.account.charge(
            used, percent: settings.percentPerTenant, free: Self.debtMax,
            mustShare: isWanted(beside: tenant, at: time), now: time)
        guard let until else { return }
        let isTenantThrottled = tenant.throttledUntil > time
        tenant.throttledUntil = until
        guard !isTenantThrottled else { return }
        metrics.limitHit(.loopShare)
        _ = timers.schedule(at: until) { [unowned self] in wake(tenant) }
    }

    /// Whether another tenant has wanted the loop recently or waits for an answer. Unauthenticated connections count
    /// only while they exist and stay unauthenticated: one that has ended, or has proved to be of this tenant, waits
    /// for nothing.
    func isWanted(beside tenant: LoopTenant, at time: Int64) -> Bool {
        if recentTenants.hasOther(than: tenant.id, now: time) { return true }
        if tenant !== unauthenticated && unauthenticated.members > 0
            && time - unauthenticatedWantedAt < RecentUsers.memory
        {
            return true
        }
        return delegate?.othersWait(than: tenant.id) == true
    }

    /// Ends a throttle: the tenant's connections are written to in this turn and read in the next.
    func wake(_ tenant: LoopTenant) {
        // The tenant used more time after the throttle was set.
        if tenant.throttledUntil > now {
            _ = timers.schedule(at: tenant.throttledUntil) { [unowned self] in wake(tenant) }
            return
        }
        let batch = tenant.throttled
        tenant.throttled = []
        for connection in batch where connection.phase != .dead {
            connection.isTenantThrottled = false
            if connection.hasOutput { markDirty(connection) }
            watch(connection)
        }
        if !tenant.row.isEmpty { makeDue(tenant) }
    }

    /// Forgets tenants without connections. Not at once: a user must not clear its debt by reconnecting.
    func forgetTenants() {
        emptied.removeAll { number in
            guard let tenant = tenants[number], tenant.members == 0 else { return true }
            guard tenant.throttledUntil <= now else { return false }
            tenants[number] = nil
            return true
        }
    }

    private func begin(_ connection: Connection) -> LoopTenant {
        begin(connection.tenant)
        return connection.tenant
    }

    private func begin(_ tenant: LoopTenant) {
        if tenant.turn != turnNumber { (tenant.turn, tenant.reading, tenant.writing) = (turnNumber, 0, 0) }
    }

    /// Whether the connection's user has more than half of its allowed bytes queued.
    package func isCrowded(_ id: ConnectionID) -> Bool {
        guard let connection = lookup(id) else { return false }
        return connection.tenant.pending > settings.pendingBytesPerTenantMax / 2
    }

    /// Whether another user has wanted the loop recently.
    package func isShared(_ id: ConnectionID) -> Bool {
        guard let connection = lookup(id) else { return true }
        return isWanted(beside: connection.tenant, at: now)
    }

    /// Asks the delegate for the connection's tenant, until the delegate knows it.
    func sort(_ connection: Connection) {
        guard connection.tenant.id == 0, connection.phase == .open || connection.exchange?.stream != nil else {
            return
        }
        let number = delegate?.tenant(behind: connection.id) ?? 0
        guard number != 0 else { return }
        sort(connection, into: number)
    }

    /// Assigns a connection to the user that a request on it has authenticated.
    /// - Parameter tenant: the delegate's tenant ID; 0 for unauthenticated.
    public func count(_ id: ConnectionID, to tenant: TenantID) {
        checkThread()
        guard let connection = lookup(id), connection.phase == .http else { return }
        if tenant != 0 { return sort(connection, into: tenant) }
        if connection.tenant !== unauthenticated { move(connection, to: unauthenticated) }
    }

    /// Assigns a connection to a tenant.
    func sort(_ connection: Connection, into number: TenantID) {
        guard connection.tenant.id != number else { return }
        let tenant = tenants[number] ?? LoopTenant(id: number)
        tenants[number] = tenant
        move(connection, to: tenant)
    }

    func move(_ connection: Connection, to tenant: LoopTenant) {
        let old = connection.tenant
        old.members -= 1
        old.pending -= connection.outbox.count
        old.gathered -= connection.gathered
        if old.members == 0, old.id != 0 { emptied.append(old.id) }
        connection.tenant = tenant
        tenant.members += 1
        tenant.pending += connection.outbox.count
        tenant.gathered += connection.gathered
        // It waits with its new tenant, at the end of that queue.
        guard connection.isQueued, connection.phase != .dead else { return }
        connection.row?.remove(connection)
        waits(connection, tenant)
    }
}
