/// Bounds how many reads of each user the reader threads have at a time: answers return to the loop as fast as the
/// readers find them, and one turn must receive only a few, however much a user asks for.
public struct ReadWindow<Request> {
    /// Reads of one user that the readers have at a time, reads with large answers not counted.
    @inlinable public static var smallMax: Int { 32 }
    /// Reads with large answers that the readers have at a time for one user: the bounds on queued bytes do not cover
    /// the memory of these answers.
    @inlinable public static var largeMax: Int { 4 }

    /// Whether a read has a large answer.
    @usableFromInline let isLarge: (Request) -> Bool
    @usableFromInline var small = RoundRobinQueue<Request>()
    @usableFromInline var large = RoundRobinQueue<Request>()

    @inlinable public init(isLarge: @escaping (Request) -> Bool) { self.isLarge = isLarge }

    @inlinable public mutating func append(_ request: Request, of tenant: TenantID) {
        if isLarge(request) {
            large.append(request, of: tenant)
        } else {
            small.append(request, of: tenant)
        }
    }

    /// The next read that a reader may start; nil when every waiting user has reached its bound.
    @inlinable public mutating func takeOne() -> (tenant: TenantID, work: Request)? {
        small.takeOne(atOnce: Self.smallMax) ?? large.takeOne(atOnce: Self.largeMax)
    }

    /// Records that a read was answered or waits again.
    @inlinable public mutating func done(_ request: Request, of tenant: TenantID) {
        if isLarge(request) { large.done(tenant) } else { small.done(tenant) }
    }
}
