/// A proof of a `SparseMerkleMap` for one key: the nodes beside its path, and the node at the path's end.
public struct SparseMerkleProof: Sendable, Hashable {
    /// The node at the end of the key's path.
    enum End: Sendable, Hashable {
        /// No key has this prefix.
        case nothing
        /// The key, with the value that the verifier expects.
        case key
        /// Another key, the only one with this prefix.
        case other(key: Digest256, value: Digest256)
    }

    /// Bytes of a proof at most: kind, depth, 256 bits, 256 hashes, another key and its value.
    public static let bytesMax = 3 + 32 + 256 * 32 + 64

    /// Hashes beside the path, from the root down.
    let siblings: [Digest256]
    let end: End

    init(siblings: [Digest256], end: End) { (self.siblings, self.end) = (siblings, end) }

    /// Whether the map with this root gives the key that value, or none if `value` is nil.
    public func proves(_ key: Digest256, _ value: Digest256?, root: Digest256) -> Bool {
        guard siblings.count <= SparseMerkleMap.depthMax else { return false }
        var hash: Digest256
        switch (end, value) {
        case (.nothing, nil): hash = .zero
        case (.key, let value?): hash = SparseMerkleMap.leafHash(key, value)
        case (.other(let other, let itsValue), nil):
            guard other != key, (0..<siblings.count).allSatisfy({ other.bit($0) == key.bit($0) }) else { return false }
            hash = SparseMerkleMap.leafHash(other, itsValue)
        default: return false
        }
        for (depth, sibling) in siblings.enumerated().reversed() {
            hash = key.bit(depth) ? SparseMerkleMap.nodeHash(sibling, hash) : SparseMerkleMap.nodeHash(hash, sibling)
        }
        return hash == root
    }
}

/// The encoding: kind (0 empty, 1 the key, 2 another key) ‖ depth (2) ‖ one bit for each sibling, from the root down,
/// set if it is not empty (padded with zero bits to whole bytes) ‖ the hashes of those siblings ‖ for kind 2 the other
/// key and its value. Each proof has exactly one encoding.
extension SparseMerkleProof {
    /// The stored form, also on the wire.
    public var bytes: [UInt8] {
        var map = [UInt8](repeating: 0, count: (siblings.count + 7) / 8)
        for (index, sibling) in siblings.enumerated() where sibling != .zero {
            map[index >> 3] |= 0x80 >> UInt8(index & 7)
        }
        let depth = [UInt8(siblings.count >> 8), UInt8(siblings.count & 255)]
        let hashes = siblings.filter { $0 != .zero }.flatMap(\.bytes)
        switch end {
        case .nothing: return [0] + depth + map + hashes
        case .key: return [1] + depth + map + hashes
        case .other(let key, let value): return [2] + depth + map + hashes + key.bytes + value.bytes
        }
    }

    /// Reads the form that `bytes` gave.
    ///
    /// - Returns: nil for anything that `bytes` would not have written.
    public init?(_ bytes: [UInt8]) {
        guard bytes.count >= 3, bytes.count <= Self.bytesMax, bytes[0] <= 2 else { return nil }
        let depth = Int(bytes[1]) << 8 | Int(bytes[2])
        let mapBytes = (depth + 7) / 8
        guard depth <= SparseMerkleMap.depthMax, bytes.count >= 3 + mapBytes else { return nil }
        let isSet = { bytes[3 + $0 >> 3] << UInt8($0 & 7) & 0x80 != 0 }
        guard (depth..<mapBytes * 8).allSatisfy({ !isSet($0) }) else { return nil }
        var rest = bytes[(3 + mapBytes)...]
        func next() -> Digest256? {
            defer { rest = rest.dropFirst(Digest256.byteCount) }
            return Digest256(rest.prefix(Digest256.byteCount))
        }
        var siblings = [Digest256]()
        for index in 0..<depth {
            guard isSet(index) else {
                siblings.append(.zero)
                continue
            }
            guard let hash = next(), hash != .zero else { return nil }
            siblings.append(hash)
        }
        var end: End = bytes[0] == 0 ? .nothing : .key
        if bytes[0] == 2 {
            guard let key = next(), let value = next() else { return nil }
            end = .other(key: key, value: value)
        }
        guard rest.isEmpty else { return nil }
        self.init(siblings: siblings, end: end)
    }
}
