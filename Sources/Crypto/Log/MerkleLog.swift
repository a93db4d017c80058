/// An append-only log with proofs of its content (RFC 6962, 2.1).
///
/// Stores the hash of each complete subtree, about two hashes per leaf. Appending computes one more hash on average; a
/// root or a proof, for the current or any earlier size, takes a number of hashes that grows with the square of the
/// tree's height.
public struct MerkleLog: Sendable {
    /// `levels[h][i]` is the hash of the complete subtree over the leaves i·2^h ..< (i+1)·2^h.
    private var levels: [[Digest256]] = [[]]

    /// A log without leaves.
    public init() {}

    /// Number of leaves.
    public var count: Int { levels[0].count }

    /// Appends a leaf.
    ///
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

    /// The root of the log at that number of leaves; without a size, the current root.
    ///
    /// - Returns: nil for a size that the log has not reached.
    public func root(size: Int? = nil) -> Digest256? {
        let size = size ?? count
        guard (0...count).contains(size) else { return nil }
        return size == 0 ? MerkleTree.emptyRoot : hash(0..<size)
    }

    /// Proves that a leaf is in the log (RFC 6962, 2.1.1).
    ///
    /// - Parameters:
    ///   - index: place of the leaf, from 0.
    ///   - size: number of leaves of the tree for which the proof is made; nil for all.
    /// - Returns: nil when the leaf or the size does not exist.
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

    /// Proves that the log begins with its content at an earlier size (RFC 6962, 2.1.2).
    ///
    /// - Parameters:
    ///   - oldSize: the earlier size, at least 1.
    ///   - newSize: the later size; nil for all leaves.
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
        // The remaining range ends where the old tree does. It is the whole old tree only if that was on the left at
        // every level.
        if range.lowerBound > 0 { proof.append(hash(range)) }
        return proof.reversed()
    }

    /// Splits at the largest power of two that is smaller than the number of leaves.
    private func split(_ range: Range<Int>) -> (left: Range<Int>, right: Range<Int>) {
        let half = 1 << (Int.bitWidth - 1 - (range.count - 1).leadingZeroBitCount)
        let middle = range.lowerBound + half
        return (range.lowerBound..<middle, middle..<range.upperBound)
    }

    /// Hash of the leaves of a range from `split`; the recursion is bounded by the tree's height.
    private func hash(_ range: Range<Int>) -> Digest256 {
        let height = range.count.trailingZeroBitCount
        // A range of 2^h leaves begins at a multiple of its length, because `split` cuts only there, and is stored as
        // one node.
        if range.count == 1 << height { return levels[height][range.lowerBound >> height] }
        let (left, right) = split(range)
        return MerkleTree.nodeHash(hash(left), hash(right))
    }
}
