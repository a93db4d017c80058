/// Decides whether the network loop may commit the changes of one turn itself instead of waking the shard's thread.
///
/// This saves two hand-overs between threads, which on a fast disk take as long as the commit. In return the loop is
/// blocked for one commit. So it is limited to a few small changes, while recent commits have been quick and recent
/// groups small: many changes are better decided while others are being received. Pure: it only counts.
package struct InlineGate {
    /// Most changes in one turn.
    package static let changesMax = 4
    /// Most bytes of their messages together.
    package static let bytesMax = 16 << 10
    /// A slow commit counts at most as this multiple of the limit: one slow commit does not close the gate, two do.
    private static let outlier: Int64 = 4
    /// Each new value enters the running mean with a weight of one part in this number.
    private static let weight: Int64 = 8

    /// Longest mean time of a group in nanoseconds; 0 keeps the gate closed.
    private let limit: Int64
    /// Running means, each multiplied by `weight`: nanoseconds from a group's first decision to its commit, and changes
    /// per group.
    private var time: Int64
    private var changes = weight

    /// The gate is closed until some groups were quick.
    ///
    /// - Parameter microseconds: longest mean time of a group; 0 keeps the gate closed.
    package init(microseconds: Int) {
        limit = Int64(microseconds) * 1_000
        time = 2 * limit * Self.weight
    }

    /// Records a committed group, whichever thread committed it.
    /// - Parameter nanoseconds: from the group's first decision to the end of its commit.
    package mutating func record(changes count: Int, nanoseconds: Int64) {
        time += min(nanoseconds, Self.outlier * limit) - time / Self.weight
        changes += Int64(count) - changes / Self.weight
    }

    /// Whether recent groups were quick and small.
    package var isOpen: Bool {
        limit > 0 && time <= limit * Self.weight && changes <= Int64(Self.changesMax) * Self.weight
    }
}
