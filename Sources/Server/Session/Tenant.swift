import ThicketNet
import ThicketProtocol
import ThicketScheduling

/// What a user has in progress on all of its connections together, so that opening more connections does not give
/// it more than its share. Owned by the hub. Exists while a connection of the user is open or a change awaits its
/// outcome, and then until `RecentlyDisconnected.countMax` other users have disconnected.
final class Tenant {
    struct Name: Hashable {
        let app: AppID
        let user: UserID
    }

    let name: Name
    /// Its `TenantID` in the queues; never 0, which is that of unauthenticated connections.
    let id: TenantID
    var sessions = [ConnectionID]()
    /// Channels that are open or being opened.
    var channels = 0
    /// Reads that await their answer.
    var reads = 0
    /// Changes that await their outcome.
    var changes = 0
    /// Bytes of memory that its changes take, including large ones that are being parsed.
    var changeBytes = 0
    /// Connections that are not read because of the bounds on the numbers above.
    var held = [ConnectionID]()
    /// Nothing is read from it before that time (nanoseconds), because it cost too much.
    var throttledUntil = Int64.min
    /// It is among the recently disconnected.
    var isListed = false

    init(_ name: Name, id: TenantID) { (self.name, self.id) = (name, id) }

    /// No connection and no change of it is left.
    var isIdle: Bool { sessions.isEmpty && changes == 0 && changeBytes == 0 }
}

/// The part of its user's quota that a change holds until it has its outcome.
public struct QuotaReservation: Sendable, Hashable {
    /// The author's `Tenant.number`, 0 for an unauthenticated connection.
    public var tenant: TenantID = 0
    /// Bytes that the change takes in memory.
    public var bytes = 0
    /// When it arrived, nanoseconds.
    public var arrival: Int64 = 0

    /// A reservation of nothing, for no tenant.
    public init() {}
}

// Tenants: which connections belong to which user, and what one user may have in progress.
extension Hub {
    /// The tenant of a connection: `Tenant.number`, 0 while unauthenticated.
    public func tenant(of id: ConnectionID) -> TenantID { session(id)?.tenant?.id ?? 0 }

    /// Counts a connection for the user whose token it has shown. This never changes: the first user of a
    /// connection is charged for what other users do on it.
    func join(_ session: Session, _ name: Tenant.Name, now: HubInstant) -> Tenant {
        if let tenant = session.tenant { return tenant }
        let tenant: Tenant
        if let known = tenants[name] {
            tenant = known
        } else {
            lastTenantID = lastTenantID.next
            tenant = Tenant(name, id: lastTenantID)
            tenants[name] = tenant
            tenantsByID[tenant.id] = tenant
        }
        tenant.sessions.append(session.id)
        session.tenant = tenant
        tenant.reads += session.readsOutstanding
        // A user that reconnects stays throttled.
        if tenant.throttledUntil > now.monotonic { slow(session, until: tenant.throttledUntil) }
        // Otherwise each new connection would bring one more change.
        if isFull(tenant), session.exchange == nil { hold(session, of: tenant, .userChanges) }
        return tenant
    }

    /// A connection has closed.
    func part(_ session: Session) {
        guard let tenant = session.tenant else { return }
        session.tenant = nil
        tenant.sessions.removeAll { $0 == session.id }
        if session.pauses.contains(.user) { tenant.held.removeAll { $0 == session.id } }
        tenant.reads -= session.readsOutstanding
        releaseHeld(tenant)
        forgetIfIdle(tenant)
    }

    /// Schedules an idle tenant to be forgotten. It is not forgotten at once, so that a user that soon reconnects
    /// is the same tenant, still throttled if it was, and not a second one in the queues.
    private func forgetIfIdle(_ tenant: Tenant) {
        guard tenant.isIdle, !tenant.isListed else { return }
        tenant.isListed = true
        guard let oldest = recentlyDisconnected.push(tenant) else { return }
        oldest.isListed = false
        guard oldest.isIdle else { return }
        tenants[oldest.name] = nil
        tenantsByID[oldest.id] = nil
    }

    /// Counts a change of the user that goes to the shard.
    func begin(_ session: Session, bytes: Int, now: HubInstant) -> QuotaReservation {
        var reservation = QuotaReservation()
        (reservation.bytes, reservation.arrival) = (bytes, now.monotonic)
        if let tenant = session.tenant {
            reservation.tenant = tenant.id
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
        return reservation
    }

    /// A change has its outcome.
    func release(_ reservation: QuotaReservation, now: HubInstant) {
        inFlight.remove(bytes: reservation.bytes)
        metrics.changesQueued.set(inFlight.count)
        metrics.changesQueuedBytes.set(inFlight.bytes)
        metrics.changeSeconds.observe(Int((now.monotonic - reservation.arrival) / 1_000))
        guard let tenant = tenantsByID[reservation.tenant] else { return }
        tenant.changes -= 1
        tenant.changeBytes -= reservation.bytes
        hasLess(tenant)
    }

    /// The user has less in progress.
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

    /// Whether its changes take at least twice the bound, as much was read from its connections before it was full.
    /// No further change is accepted.
    func isOverfull(_ tenant: Tenant) -> Bool { tenant.changeBytes / 2 >= limits.changeBytesPerUserMax }

    /// Stops reading from all connections of a user whose changes take as much memory as they may: each connection
    /// could bring another large change.
    func holdAllIfFull(_ tenant: Tenant) {
        guard isFull(tenant), tenant.held.count < tenant.sessions.count else { return }
        for id in tenant.sessions {
            guard let session = session(id), session.exchange == nil else { continue }
            hold(session, of: tenant, .userChanges)
        }
    }

    /// Stops reading from a connection until its user has less in progress.
    func hold(_ session: Session, of tenant: Tenant, _ limit: Metrics.LimitName) {
        guard !session.pauses.contains(.user) else { return }
        metrics.limitHits.add(1, limit)
        tenant.held.append(session.id)
        pause(session, .user)
    }

    /// Resumes reading when the user is at half of its bounds.
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

    /// The user's messages cost the loop more than they may: all of its connections are throttled.
    /// - Parameter until: nanoseconds.
    public func throttle(_ id: ConnectionID, until: Int64) {
        guard let session = session(id) else { return }
        metrics.limitHits.add(1, .costlyMessages)
        if let tenant = session.tenant { tenant.throttledUntil = max(tenant.throttledUntil, until) }
        for id in session.tenant?.sessions ?? [id] {
            if let session = self.session(id) { slow(session, until: until) }
        }
    }

    private func slow(_ session: Session, until: Int64) {
        // A request has been read completely.
        guard session.exchange == nil, until > session.slowUntil else { return }
        session.slowUntil = until
        if !session.pauses.contains(.rate) { slowed.append(session.id) }
        pause(session, .rate)
    }
}

/// The users that disconnected last.
struct RecentlyDisconnected {
    /// Users kept, some 200 bytes each.
    static let countMax = 1_024

    private var ring = [Tenant]()
    private var next = 0

    /// - Returns: the user that disconnected first, when the list is full.
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
