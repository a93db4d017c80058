import ThicketProtocol

/// Whether the network loop may commit what one turn brought itself instead of waking the shard's thread for it.
///
/// That saves two hand-overs between threads, which on a fast disk take as long as the commit; its price is that the
/// loop stands still for one commit. So it is for few small changes, where commits have been quick and groups small of
/// late: many changes are better decided while others are being received. Pure: it only counts.
struct InlineGate {
    /// Changes that one turn may bring, at most.
    static let changesMax = 4
    /// Bytes of their messages in all, at most.
    static let bytesMax = 16 << 10
    /// How many times the limit a single slow commit counts at most: one alone does not shut the gate, two do.
    private static let outlier: Int64 = 4
    /// Of each new figure a part in so many goes into the mean.
    private static let weight: Int64 = 8

    /// Longest mean time of a group, nanoseconds; 0 keeps the gate shut.
    private let limit: Int64
    /// Mean nanoseconds from a group's first decision to its commit, and mean changes of a group, each times `weight`.
    private var time: Int64
    private var changes = weight

    /// Shut until some groups were quick.
    init(_ limits: ServerLimits) {
        limit = Int64(limits.inlineCommitMicroseconds) * 1_000
        time = 2 * limit * Self.weight
    }

    /// A group was committed, here or by the thread.
    /// - Parameter nanoseconds: from its first decision to the end of its commit.
    mutating func note(changes count: Int, nanoseconds: Int64) {
        time += min(nanoseconds, Self.outlier * limit) - time / Self.weight
        changes += Int64(count) - changes / Self.weight
    }

    /// Whether groups have been quick and small of late.
    var isOpen: Bool {
        limit > 0 && time <= limit * Self.weight && changes <= Int64(Self.changesMax) * Self.weight
    }

    /// Whether these are few, small and of the kind that takes little.
    static func admits(_ requests: [ShardRequest]) -> Bool {
        guard (1...changesMax).contains(requests.count) else { return false }
        var bytes = 0
        for request in requests {
            // `EMPTY` removes many objects; to forget a bucket is nobody's hurry.
            guard case .change(let submitted) = request else { return false }
            if case .empty = submitted.request.operation { return false }
            bytes += submitted.ticket.bytes
        }
        return bytes <= bytesMax
    }
}
