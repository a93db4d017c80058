import ThicketProtocol

/// Bounds how many reads of each user the reader threads have at a time: answers return to the loop as fast as the
/// readers find them, and one turn must receive only a few, however much a user asks for.
struct ReadWindow {
    /// Reads of one user that the readers have at a time, reads with large answers not counted.
    static let smallMax = 32
    /// Reads with large answers that the readers have at a time for one user: the bounds on queued bytes do not cover
    /// the memory of these answers.
    static let largeMax = 4

    private var small = RoundRobinQueue<ReadRequest>()
    private var large = RoundRobinQueue<ReadRequest>()

    mutating func append(_ request: ReadRequest, of tenant: TenantID) {
        if request.question.hasLargeAnswer {
            large.append(request, of: tenant)
        } else {
            small.append(request, of: tenant)
        }
    }

    /// The next read that a reader may start; nil when every waiting user has reached its bound.
    mutating func takeOne() -> (tenant: TenantID, work: ReadRequest)? {
        small.takeOne(atOnce: Self.smallMax) ?? large.takeOne(atOnce: Self.largeMax)
    }

    /// Records that a read was answered or waits again.
    mutating func done(_ request: ReadRequest, of tenant: TenantID) {
        if request.question.hasLargeAnswer { large.done(tenant) } else { small.done(tenant) }
    }
}
