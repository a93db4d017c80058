/// The hashing of an append-only log, and its verifiers (RFC 6962, 2.1; RFC 9162, 2.1).
///
/// Leaves and inner nodes are hashed with different first bytes, so that one cannot be taken for the other. The
/// verifiers are loops over 64-bit numbers; for any proof they end after its last hash.
public enum MerkleTree {
    /// The root of a tree without leaves: SHA-256 of the empty input.
    public static let emptyRoot: Digest256 = .of([])
    /// Hashes of a proof at most: a tree has at most 2^64 leaves, and a consistency proof one more hash.
    public static let proofHashesMax = 65

    /// The hash of a leaf: SHA-256(0x00 ‖ data).
    public static func leafHash(_ data: [UInt8]) -> Digest256 { .tagged(0, data) }

    /// The hash of an inner node: SHA-256(0x01 ‖ left ‖ right).
    public static func nodeHash(_ left: Digest256, _ right: Digest256) -> Digest256 { .tagged(1, left, right) }

    /// Whether the leaf is at `index` in the tree with that size and root (RFC 9162, 2.1.3.2).
    ///
    /// False for an index outside the tree, a tree of size 0, and a proof with a hash too many or too few.
    public static func isIncluded(
        _ leaf: Digest256, index: UInt64, size: UInt64, root: Digest256, proof: [Digest256]
    ) -> Bool {
        guard index < size, proof.count <= proofHashesMax else { return false }
        var (place, last) = (index, size - 1)
        var hash = leaf
        for sibling in proof {
            guard last > 0 else { return false }
            if place & 1 == 1 || place == last {
                hash = nodeHash(sibling, hash)
                // A node without a right sibling moves up until it is a right child.
                skipZeros(&place, &last)
            } else {
                hash = nodeHash(hash, sibling)
            }
            (place, last) = (place >> 1, last >> 1)
        }
        return last == 0 && hash == root
    }

    /// Whether the newer tree begins with all leaves of the older one (RFC 9162, 2.1.4.2).
    ///
    /// False when the older tree is empty, because the proof would be without meaning; when it is larger than the newer
    /// one; and when a proof is given for equal sizes.
    public static func isConsistent(
        oldSize: UInt64, oldRoot: Digest256, newSize: UInt64, newRoot: Digest256, proof: [Digest256]
    ) -> Bool {
        guard oldSize > 0, oldSize <= newSize, proof.count <= proofHashesMax else { return false }
        guard oldSize < newSize else { return proof.isEmpty && oldRoot == newRoot }
        let roots = roots(
            oldSize: oldSize, oldRoot: oldRoot, newSize: newSize, proof: proof)
        return roots.map { $0.old == oldRoot && $0.new == newRoot } ?? false
    }

    /// The roots that a consistency proof leads to (RFC 9162, 2.1.4.2). If the new root is that of a tree of the newer
    /// size, the old root is that of the tree's beginning, independent of any other claim about it, because each hash
    /// of the proof is then a node of the tree.
    ///
    /// - Parameters:
    ///   - oldSize: number of leaves of the older tree, at least 1.
    ///   - oldRoot: the root of the older tree. It is used only for a tree of 2^k leaves, whose root the proof leaves
    ///     out.
    ///   - newSize: more than `oldSize`.
    ///   - proof: the hashes of the consistency proof.
    /// - Returns: nil for sizes that are not in this order, and for a proof with a hash too many or too few.
    public static func roots(
        oldSize: UInt64, oldRoot: Digest256, newSize: UInt64, proof: [Digest256]
    ) -> (old: Digest256, new: Digest256)? {
        guard oldSize > 0, oldSize < newSize, proof.count <= proofHashesMax, let first = proof.first else {
            return nil
        }
        var (place, last) = (oldSize - 1, newSize - 1)
        while place & 1 == 1 { (place, last) = (place >> 1, last >> 1) }
        // An older tree of 2^k leaves is a node of the newer one; the proof leaves out its root, which is known.
        let isNode = oldSize & (oldSize - 1) == 0
        var (old, new) = isNode ? (oldRoot, oldRoot) : (first, first)
        for sibling in isNode ? proof[...] : proof.dropFirst() {
            guard last > 0 else { return nil }
            if place & 1 == 1 || place == last {
                (old, new) = (nodeHash(sibling, old), nodeHash(sibling, new))
                skipZeros(&place, &last)
            } else {
                new = nodeHash(new, sibling)
            }
            (place, last) = (place >> 1, last >> 1)
        }
        return last == 0 ? (old, new) : nil
    }

    private static func skipZeros(_ place: inout UInt64, _ last: inout UInt64) {
        while place & 1 == 0, place != 0 { (place, last) = (place >> 1, last >> 1) }
    }

    /// The stored form of a proof, also on the wire: its hashes one after another.
    public static func bytes(of proof: [Digest256]) -> [UInt8] { proof.flatMap(\.bytes) }

    /// Reads the form that `bytes(of:)` wrote.
    ///
    /// - Returns: nil for an incomplete hash, and for more than `proofHashesMax` hashes.
    public static func proof(_ bytes: [UInt8]) -> [Digest256]? {
        guard bytes.count % Digest256.byteCount == 0, bytes.count / Digest256.byteCount <= proofHashesMax else {
            return nil
        }
        return stride(from: 0, to: bytes.count, by: Digest256.byteCount).compactMap {
            Digest256(bytes[$0..<$0 + Digest256.byteCount])
        }
    }
}
