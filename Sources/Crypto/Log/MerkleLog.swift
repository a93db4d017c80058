/// An append-only log that proves what it says (RFC 6962, 2.1).
///
/// Keeps the hash of each complete subtree: about two hashes a leaf. Appending makes one hash more on average; a root
/// or a proof, of the log now or of any earlier size, takes a number of hashes that grows with the square of its
/// height.
public struct MerkleLog: Sendable {
    /// `levels[h][i]` is the hash of the complete subtree over the leaves i·2^h ..< (i+1)·2^h.
    private var levels: [[Digest256]] = [[]]

    /// A log without leaves.
    public init() {}

    /// Leaves in the log.
    public var count: Int { levels[0].count }

    /// Appends a leaf.
    /// - Parameter leaf: `MerkleTree.leafHash` of its data.
    public mutating func append(_ leaf: Digest256) {
        levels[0].append(leaf)
        var level = 0
        while levels[level].count % 2 == 0 {
            let nodes = levels[level]
            let parent = MerkleTree.nodeHash(nodes[nodes.count - 2], nodes[nodes.count - 1])
            level += 1
            if level == levels.count { levels.append([]) }
            levels[level].append(parent)
        }
    }

    /// The root of the log when it had that many leaves; without a size, now.
    /// - Returns: nil for a size that it has not reached.
    public func root(size: Int? = nil) -> Digest256? {
        let size = size ?? count
        guard (0...count).contains(size) else { return nil }
        return size == 0 ? MerkleTree.emptyRoot : hash(0..<size)
    }

    /// Proves that a leaf stands in the log (RFC 6962, 2.1.1).
    /// - Parameters:
    ///   - index: place of the leaf, from 0.
    ///   - size: leaves of the tree that the proof is for; without it, all.
    /// - Returns: nil when there is no such leaf or size.
    public func inclusionProof(index: Int, size: Int? = nil) -> [Digest256]? {
        let size = size ?? count
        guard index >= 0, index < size, size <= count else { return nil }
        var range = 0..<size
        var proof = [Digest256]()
        while range.count > 1 {
            let (left, right) = split(range)
            let isLeft = index < left.upperBound
            proof.append(hash(isLeft ? right : left))
            range = isLeft ? left : right
        }
        return proof.reversed()
    }

    /// Proves that the log began with what it was at an earlier size (RFC 6962, 2.1.2).
    /// - Parameters:
    ///   - oldSize: at least 1.
    ///   - newSize: without it, all.
    /// - Returns: nil for sizes that are not in this order or that the log has not reached.
    public func consistencyProof(oldSize: Int, newSize: Int? = nil) -> [Digest256]? {
        let newSize = newSize ?? count
        guard oldSize > 0, oldSize <= newSize, newSize <= count else { return nil }
        var range = 0..<newSize
        var proof = [Digest256]()
        while range.upperBound > oldSize {
            let (left, right) = split(range)
            let isLeft = oldSize <= left.upperBound
            proof.append(hash(isLeft ? right : left))
            range = isLeft ? left : right
        }
        // What is left ends where the old tree does. It is the whole old tree only if that was on the left all the way.
        if range.lowerBound > 0 { proof.append(hash(range)) }
        return proof.reversed()
    }

    /// At the largest power of two that is smaller than the number of leaves.
    private func split(_ range: Range<Int>) -> (left: Range<Int>, right: Range<Int>) {
        let half = 1 << (Int.bitWidth - 1 - (range.count - 1).leadingZeroBitCount)
        let middle = range.lowerBound + half
        return (range.lowerBound..<middle, middle..<range.upperBound)
    }

    /// Hash of the leaves of a range that `split` gave; its height bounds the depth.
    private func hash(_ range: Range<Int>) -> Digest256 {
        let height = range.count.trailingZeroBitCount
        // A power of two of leaves, which `split` only cuts at multiples of itself: kept as one node.
        if range.count == 1 << height { return levels[height][range.lowerBound >> height] }
        let (left, right) = split(range)
        return MerkleTree.nodeHash(hash(left), hash(right))
    }
}
