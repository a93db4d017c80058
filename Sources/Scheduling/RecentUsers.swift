/// Which users wanted a thread recently. The last two suffice to know whether a user was alone.
package struct RecentUsers {
    private var last: (user: TenantID, time: Int64)?
    private var other: (user: TenantID, time: Int64)?

    /// Nanoseconds after which a user is not counted any more.
    package static let memory: Int64 = 1_000_000_000

    package init() {}

    package mutating func record(_ user: TenantID, now: Int64) {
        if last?.user != user { other = last }
        last = (user, now)
    }

    /// Whether more than one user wanted the thread recently.
    package func isShared(now: Int64) -> Bool { last.map { hasOther(than: $0.user, now: now) } ?? false }

    /// Whether any user except `user` wanted the thread recently.
    package func hasOther(than user: TenantID, now: Int64) -> Bool {
        let found = last?.user == user ? other : last
        guard let found else { return false }
        return now - found.time < Self.memory
    }
}
