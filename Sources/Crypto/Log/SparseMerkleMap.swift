/// A map from 32-byte keys to 32-byte values with a root that commits to all of it, and with proofs of the value of any
/// key, or of its absence.
///
/// Made for the key log (spec 4.12): the key is SHA-256 of a user's handle, the value the hash of the user's latest
/// entry. A key is at the end of its shortest bit prefix that no other key shares, so a proof has about log2(keys)
/// hashes instead of 256. Leaf = SHA-256(0x02 ‖ key ‖ value), inner node = SHA-256(0x03 ‖ left ‖ right), empty = 32
/// zero bytes; the first bytes differ from those of the log (`MerkleTree`), so that a node of one is never a node of
/// the other.
///
/// Copies are cheap and share equal parts: an older state can be proven for as long as a copy of it is kept.
public struct SparseMerkleMap: Sendable {
    /// Bits of a key: the longest path.
    static let depthMax = 256

    indirect enum Node: Sendable {
        case empty
        case leaf(key: Digest256, value: Digest256, hash: Digest256)
        case inner(left: Node, right: Node, hash: Digest256)

        var hash: Digest256 {
            switch self {
            case .empty: .zero
            case .leaf(_, _, let hash), .inner(_, _, let hash): hash
            }
        }
    }

    private var top = Node.empty
    /// Number of keys in the map.
    public private(set) var count = 0

    /// A map without keys; its root is 32 zero bytes.
    public init() {}

    /// The hash that commits to all keys and values.
    public var root: Digest256 { top.hash }

    /// Sets the value of a new or an existing key.
    public mutating func set(_ key: Digest256, to value: Digest256) {
        if self[key] == nil { count += 1 }
        top = Self.setting(Self.leaf(key, value), key, in: top, depth: 0)
    }

    /// Removes a key: map and root are those of a map that never had it. The key log, which only grows, does not use
    /// it.
    ///
    /// - Returns: the value of the key; nil when it had none.
    @discardableResult
    public mutating func remove(_ key: Digest256) -> Digest256? {
        guard let value = self[key] else { return nil }
        count -= 1
        top = Self.removing(key, from: top, depth: 0)
        return value
    }

    /// The value of a key; nil when it has none.
    public subscript(key: Digest256) -> Digest256? {
        var node = top
        var depth = 0
        while case .inner(let left, let right, _) = node {
            node = key.bit(depth) ? right : left
            depth += 1
        }
        guard case .leaf(key, let value, _) = node else { return nil }
        return value
    }

    /// Proves the value of a key, or that it has none.
    public func proof(of key: Digest256) -> SparseMerkleProof {
        var siblings = [Digest256]()
        var node = top
        while case .inner(let left, let right, _) = node {
            let isRight = key.bit(siblings.count)
            siblings.append(isRight ? left.hash : right.hash)
            node = isRight ? right : left
        }
        guard case .leaf(let found, let value, _) = node else { return .init(siblings: siblings, end: .nothing) }
        return .init(siblings: siblings, end: found == key ? .key : .other(key: found, value: value))
    }

    static func leafHash(_ key: Digest256, _ value: Digest256) -> Digest256 { .tagged(2, key, value) }
    static func nodeHash(_ left: Digest256, _ right: Digest256) -> Digest256 { .tagged(3, left, right) }

    private static func leaf(_ key: Digest256, _ value: Digest256) -> Node {
        .leaf(key: key, value: value, hash: leafHash(key, value))
    }

    private static func inner(_ left: Node, _ right: Node) -> Node {
        .inner(left: left, right: right, hash: nodeHash(left.hash, right.hash))
    }

    /// The recursion is bounded by the bits of a key.
    private static func setting(_ leaf: Node, _ key: Digest256, in node: Node, depth: Int) -> Node {
        switch node {
        case .empty: return leaf
        case .leaf(key, _, _): return leaf
        case .leaf(let other, _, _):
            // Both keys go one level down, together or apart.
            return setting(leaf, key, in: under(node, isRight: other.bit(depth)), depth: depth)
        case .inner(let left, let right, _):
            return key.bit(depth)
                ? inner(left, setting(leaf, key, in: right, depth: depth + 1))
                : inner(setting(leaf, key, in: left, depth: depth + 1), right)
        }
    }

    /// - Parameter node: a node that contains the key.
    private static func removing(_ key: Digest256, from node: Node, depth: Int) -> Node {
        guard case .inner(let left, let right, _) = node else { return .empty }
        return key.bit(depth)
            ? joined(left, removing(key, from: right, depth: depth + 1))
            : joined(removing(key, from: left, depth: depth + 1), right)
    }

    /// A leaf without a sibling moves up as far as possible.
    private static func joined(_ left: Node, _ right: Node) -> Node {
        switch (left, right) {
        case (.leaf, .empty): left
        case (.empty, .leaf): right
        default: inner(left, right)
        }
    }

    private static func under(_ node: Node, isRight: Bool) -> Node {
        // Its hash is computed in the step that adds the new leaf.
        isRight
            ? .inner(left: .empty, right: node, hash: .zero) : .inner(left: node, right: .empty, hash: .zero)
    }
}
