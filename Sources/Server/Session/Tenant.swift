import ThicketProtocol

/// What the user of a connection has under way on all of its connections together, so that nobody takes more than a
/// share by opening more of them. Owned by the hub; lives while a connection of the user is open or a change awaits its
/// outcome.
final class Tenant {
    struct Name: Hashable {
        let app: AppID
        let user: UserID
    }

    let name: Name
    /// Its lane in the queues; never 0, which is that of strangers.
    let number: UInt32
    var sessions: [ConnectionID] = []
    /// Channels that are open or being opened.
    var channels: Int = 0
    /// Reads that await their answer.
    var reads: Int = 0
    /// Changes that await their outcome, and their bytes.
    var changes: Int = 0
    var changeBytes: Int = 0
    /// Connections that are not read because of the numbers above.
    var held: [ConnectionID] = []
    /// Nothing is read from it before that time (nanoseconds), because it cost too much.
    var restsUntil: Int64 = .min

    init(_ name: Name, number: UInt32) { (self.name, self.number) = (name, number) }
}

/// What a change that waits for its outcome is counted with.
public struct ChangeTicket: Sendable, Hashable {
    /// Whose it is: `Tenant.number`.
    public var tenant: UInt32 = 0
    /// Bytes of its message.
    public var bytes: Int = 0
    /// When it arrived, nanoseconds.
    public var arrival: Int64 = 0

    public init() {}
}

// Users: who belongs to whom, and what one of them may have under way.
extension Hub {
    /// The queue lane of a connection: its user's number, 0 for a stranger.
    public func lane(of id: ConnectionID) -> UInt32 { session(id)?.tenant?.number ?? 0 }

    /// Counts a connection to the user whose token it has shown. It stays there: the first user of a connection pays for
    /// what others do on it.
    func join(_ session: Session, _ name: Tenant.Name) -> Tenant {
        if let tenant: Tenant = session.tenant { return tenant }
        let tenant: Tenant
        if let known: Tenant = tenants[name] {
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
        return tenant
    }

    /// A connection is over.
    func part(_ session: Session) {
        guard let tenant: Tenant = session.tenant else { return }
        session.tenant = nil
        tenant.sessions.removeAll { $0 == session.id }
        tenant.reads -= session.readsOutstanding
        releaseHeld(tenant)
        forgetIfIdle(tenant)
    }

    private func forgetIfIdle(_ tenant: Tenant) {
        guard tenant.sessions.isEmpty, tenant.changes == 0 else { return }
        tenants[tenant.name] = nil
        tenantsByNumber[tenant.number] = nil
    }

    /// A change of the user goes to the shard.
    func begin(_ session: Session, bytes: Int, now: HubInstant) -> ChangeTicket {
        var ticket: ChangeTicket = .init()
        (ticket.bytes, ticket.arrival) = (bytes, now.monotonic)
        if let tenant: Tenant = session.tenant {
            ticket.tenant = tenant.number
            tenant.changes += 1
            tenant.changeBytes += bytes
        }
        inFlight.add(bytes: bytes)
        if let tenant: Tenant = session.tenant, isCrowded(tenant) { hold(session, of: tenant, .userChanges) }
        return ticket
    }

    /// A change has its outcome.
    func settle(_ ticket: ChangeTicket, now: HubInstant) {
        inFlight.remove(bytes: ticket.bytes)
        metrics.changeSeconds.observe(Int((now.monotonic - ticket.arrival) / 1_000))
        guard let tenant: Tenant = tenantsByNumber[ticket.tenant] else { return }
        tenant.changes -= 1
        tenant.changeBytes -= ticket.bytes
        releaseHeld(tenant)
        forgetIfIdle(tenant)
    }

    func isCrowded(_ tenant: Tenant) -> Bool {
        tenant.changes >= limits.changesPerUserMax || tenant.changeBytes >= limits.changeBytesPerUserMax
            || tenant.reads >= limits.readsPerUserMax
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
        let held: [ConnectionID] = tenant.held
        tenant.held = []
        for id: ConnectionID in held {
            if let session: Session = session(id) { resume(session, .user) }
        }
    }

    /// The user's messages cost the loop more than they may: all of its connections rest.
    /// - Parameter until: nanoseconds.
    public func rest(_ id: ConnectionID, until: Int64) {
        guard let session: Session = session(id) else { return }
        metrics.limitHits.add(1, .costlyMessages)
        for id: ConnectionID in session.tenant?.sessions ?? [id] {
            guard let session: Session = self.session(id) else { continue }
            session.slowUntil = max(session.slowUntil, until)
            if !session.pauses.contains(.rate) { slowed.append(session.id) }
            pause(session, .rate)
        }
    }
}
