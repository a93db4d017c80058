import ThicketProtocol

/// What the user of a connection has under way on all of its connections together, so that nobody takes more than a
/// share by opening more of them. Owned by the hub; lives while a connection of the user is open or a change awaits its
/// outcome, and then until `LeftTenants.countMax` others have left.
final class Tenant {
    struct Name: Hashable {
        let app: AppID
        let user: UserID
    }

    let name: Name
    /// Its lane in the queues; never 0, which is that of strangers.
    let number: UInt32
    var sessions = [ConnectionID]()
    /// Channels that are open or being opened.
    var channels = 0
    /// Reads that await their answer.
    var reads = 0
    /// Changes that await their outcome.
    var changes = 0
    /// What they take in memory, with the large ones that are being read.
    var changeBytes = 0
    /// Connections that are not read because of the numbers above.
    var held = [ConnectionID]()
    /// Nothing is read from it before that time (nanoseconds), because it cost too much.
    var restsUntil = Int64.min
    /// It stands among those that were left last.
    var isListed = false

    init(_ name: Name, number: UInt32) { (self.name, self.number) = (name, number) }

    /// Nothing of it is here.
    var isIdle: Bool { sessions.isEmpty && changes == 0 && changeBytes == 0 }
}

/// What a change that waits for its outcome is counted with.
public struct ChangeTicket: Sendable, Hashable {
    /// Whose it is: `Tenant.number`.
    public var tenant: UInt32 = 0
    /// Bytes that it takes in memory.
    public var bytes: Int = 0
    /// When it arrived, nanoseconds.
    public var arrival: Int64 = 0

    public init() {}
}

// Users: who belongs to whom, and what one of them may have under way.
extension Hub {
    /// The queue lane of a connection: its user's number, 0 for a stranger.
    public func lane(of id: ConnectionID) -> UInt32 { session(id)?.tenant?.number ?? 0 }

    /// Counts a connection to the user whose token it has shown. It stays there: the first user of a connection pays
    /// for what others do on it.
    func join(_ session: Session, _ name: Tenant.Name, now: HubInstant) -> Tenant {
        if let tenant = session.tenant { return tenant }
        let tenant: Tenant
        if let known = tenants[name] {
            tenant = known
        } else {
            lastTenant = lastTenant == .max ? 1 : lastTenant + 1
            tenant = Tenant(name, number: lastTenant)
            tenants[name] = tenant
            tenantsByNumber[tenant.number] = tenant
        }
        tenant.sessions.append(session.id)
        session.tenant = tenant
        tenant.reads += session.readsOutstanding
        // Whoever comes back rests on.
        if tenant.restsUntil > now.monotonic { slow(session, until: tenant.restsUntil) }
        // Else each new connection would bring one more change.
        if isFull(tenant), session.exchange == nil { hold(session, of: tenant, .userChanges) }
        return tenant
    }

    /// A connection is over.
    func part(_ session: Session) {
        guard let tenant = session.tenant else { return }
        session.tenant = nil
        tenant.sessions.removeAll { $0 == session.id }
        if session.pauses.contains(.user) { tenant.held.removeAll { $0 == session.id } }
        tenant.reads -= session.readsOutstanding
        releaseHeld(tenant)
        forgetIfIdle(tenant)
    }

    /// Forgets a user who has nothing here any more; not at once: whoever comes back at once is the same one, with the
    /// rest that it owes, and nobody else beside itself.
    private func forgetIfIdle(_ tenant: Tenant) {
        guard tenant.isIdle, !tenant.isListed else { return }
        tenant.isListed = true
        guard let oldest = left.push(tenant) else { return }
        oldest.isListed = false
        guard oldest.isIdle else { return }
        tenants[oldest.name] = nil
        tenantsByNumber[oldest.number] = nil
    }

    /// A change of the user goes to the shard.
    func begin(_ session: Session, bytes: Int, now: HubInstant) -> ChangeTicket {
        var ticket = ChangeTicket()
        (ticket.bytes, ticket.arrival) = (bytes, now.monotonic)
        if let tenant = session.tenant {
            ticket.tenant = tenant.number
            tenant.changes += 1
            tenant.changeBytes += bytes
        }
        inFlight.add(bytes: bytes)
        metrics.changesQueued.set(inFlight.count)
        metrics.changesQueuedBytes.set(inFlight.bytes)
        if let tenant = session.tenant, isCrowded(tenant) {
            hold(session, of: tenant, .userChanges)
            holdAllIfFull(tenant)
        }
        return ticket
    }

    /// A change has its outcome.
    func settle(_ ticket: ChangeTicket, now: HubInstant) {
        inFlight.remove(bytes: ticket.bytes)
        metrics.changesQueued.set(inFlight.count)
        metrics.changesQueuedBytes.set(inFlight.bytes)
        metrics.changeSeconds.observe(Int((now.monotonic - ticket.arrival) / 1_000))
        guard let tenant = tenantsByNumber[ticket.tenant] else { return }
        tenant.changes -= 1
        tenant.changeBytes -= ticket.bytes
        hasLess(tenant)
    }

    /// The user has less under way.
    func hasLess(_ tenant: Tenant) {
        releaseHeld(tenant)
        forgetIfIdle(tenant)
    }

    func isCrowded(_ tenant: Tenant) -> Bool {
        tenant.changes >= limits.changesPerUserMax || tenant.changeBytes >= limits.changeBytesPerUserMax
            || tenant.reads >= limits.readsPerUserMax
    }

    /// Its changes take as much memory as they may.
    func isFull(_ tenant: Tenant) -> Bool { tenant.changeBytes >= limits.changeBytesPerUserMax }

    /// They take twice as much: what had been read of many connections when it became full. Nothing more is taken.
    func isOverfull(_ tenant: Tenant) -> Bool { tenant.changeBytes / 2 >= limits.changeBytesPerUserMax }

    /// Reads nothing more from any connection of a user whose changes take as much memory as they may: each could bring
    /// another large one.
    func holdAllIfFull(_ tenant: Tenant) {
        guard isFull(tenant), tenant.held.count < tenant.sessions.count else { return }
        for id in tenant.sessions {
            guard let session = session(id), session.exchange == nil else { continue }
            hold(session, of: tenant, .userChanges)
        }
    }

    /// Reads nothing more from a connection until its user has less under way.
    func hold(_ session: Session, of tenant: Tenant, _ limit: Metrics.LimitName) {
        guard !session.pauses.contains(.user) else { return }
        metrics.limitHits.add(1, limit)
        tenant.held.append(session.id)
        pause(session, .user)
    }

    /// Reads on when the user is at half of its bounds.
    func releaseHeld(_ tenant: Tenant) {
        guard !tenant.held.isEmpty, tenant.changes * 2 <= limits.changesPerUserMax,
            tenant.changeBytes * 2 <= limits.changeBytesPerUserMax, tenant.reads * 2 <= limits.readsPerUserMax
        else { return }
        let held = tenant.held
        tenant.held = []
        for id in held {
            if let session = session(id) { resume(session, .user) }
        }
    }

    /// The user's messages cost the loop more than they may: all of its connections rest.
    /// - Parameter until: nanoseconds.
    public func rest(_ id: ConnectionID, until: Int64) {
        guard let session = session(id) else { return }
        metrics.limitHits.add(1, .costlyMessages)
        if let tenant = session.tenant { tenant.restsUntil = max(tenant.restsUntil, until) }
        for id in session.tenant?.sessions ?? [id] {
            if let session = self.session(id) { slow(session, until: until) }
        }
    }

    private func slow(_ session: Session, until: Int64) {
        // A request has been read whole.
        guard session.exchange == nil, until > session.slowUntil else { return }
        session.slowUntil = until
        if !session.pauses.contains(.rate) { slowed.append(session.id) }
        pause(session, .rate)
    }
}

/// Users who have left, the last ones of them.
struct LeftTenants {
    /// So many are kept, some 200 bytes each.
    static let countMax = 1_024

    private var ring = [Tenant]()
    private var next = 0

    /// - Returns: the one that has been there longest, when there is no room.
    mutating func push(_ tenant: Tenant) -> Tenant? {
        guard ring.count == Self.countMax else {
            ring.append(tenant)
            return nil
        }
        let oldest = ring[next]
        ring[next] = tenant
        next = (next + 1) % Self.countMax
        return oldest
    }
}
