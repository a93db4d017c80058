/// Hashing of an append-only log, and what a verifier does (RFC 6962, 2.1; RFC 9162, 2.1).
///
/// Leaves and inner nodes are hashed with different first bytes, so none can be taken for the other. The verifiers are
/// loops over numbers of 64 bits: whatever a proof holds, they end after its last hash.
public enum MerkleTree {
    /// The root of a tree without leaves: SHA-256 of nothing.
    public static let emptyRoot: Digest256 = .of([])
    /// Hashes of a proof at most: a tree has no more than 2^64 leaves, and a consistency proof one hash more.
    public static let proofHashesMax = 65

    /// SHA-256(0x00 ‖ data).
    public static func leafHash(_ data: [UInt8]) -> Digest256 { .tagged(0, data) }

    /// SHA-256(0x01 ‖ left ‖ right).
    public static func nodeHash(_ left: Digest256, _ right: Digest256) -> Digest256 { .tagged(1, left, right) }

    /// Whether the leaf stands at `index` in the tree of that size and root (RFC 9162, 2.1.3.2).
    ///
    /// False for an index that is not in the tree, a tree of size 0, and a proof with a hash too many or too few.
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
                // A node without a right neighbour rises until it is one.
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
    /// False when the older tree is empty, as everything begins with nothing and no proof says more; when it is larger
    /// than the newer; and when a proof comes with equal sizes.
    public static func isConsistent(
        oldSize: UInt64, oldRoot: Digest256, newSize: UInt64, newRoot: Digest256, proof: [Digest256]
    ) -> Bool {
        guard oldSize > 0, oldSize <= newSize, proof.count <= proofHashesMax else { return false }
        guard oldSize < newSize else { return proof.isEmpty && oldRoot == newRoot }
        let roots = roots(
            oldSize: oldSize, oldRoot: oldRoot, newSize: newSize, proof: proof)
        return roots.map { $0.old == oldRoot && $0.new == newRoot } ?? false
    }

    /// The roots that a consistency proof leads to (RFC 9162, 2.1.4.2). Where the new one is that of a tree of the
    /// newer size, the old one is that of the tree's beginning, whatever somebody else says of it: each hash of the
    /// proof is then a node of the tree.
    ///
    /// - Parameters:
    ///   - oldRoot: of an older tree of 2^k leaves, which the proof leaves out; of others nothing is taken from it.
    ///   - newSize: more than `oldSize`.
    /// - Returns: nil for sizes that are not in this order, and for a proof with a hash too many or too few.
    public static func roots(
        oldSize: UInt64, oldRoot: Digest256, newSize: UInt64, proof: [Digest256]
    ) -> (old: Digest256, new: Digest256)? {
        guard oldSize > 0, oldSize < newSize, proof.count <= proofHashesMax, let first = proof.first else {
            return nil
        }
        var (place, last) = (oldSize - 1, newSize - 1)
        while place & 1 == 1 { (place, last) = (place >> 1, last >> 1) }
        // An older tree of 2^k leaves is a node of the newer one: the proof leaves out its root, which is known.
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

    /// A proof as it is stored and sent: its hashes one behind the other.
    public static func bytes(of proof: [Digest256]) -> [UInt8] { proof.flatMap(\.bytes) }

    /// Reads what `bytes(of:)` wrote.
    /// - Returns: nil for half a hash, and for more than `proofHashesMax` of them.
    public static func proof(_ bytes: [UInt8]) -> [Digest256]? {
        guard bytes.count % Digest256.byteCount == 0, bytes.count / Digest256.byteCount <= proofHashesMax else {
            return nil
        }
        return stride(from: 0, to: bytes.count, by: Digest256.byteCount).compactMap {
            Digest256(bytes[$0..<$0 + Digest256.byteCount])
        }
    }
}
