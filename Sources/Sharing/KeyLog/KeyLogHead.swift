public import ThicketCrypto

/// What the key log was at a moment, signed: how many leaves, the root over them, the root of the map, and when.
///
/// Whoever speaks to others sends the newest head they know along (spec 4.12, gossip): all of it, since the signature
/// covers all.
///
/// Bytes: size (8) ‖ root (32) ‖ map root (32) ‖ time (8) ‖ signature (64).
public struct KeyLogHead: Sendable, Hashable {
    /// Bytes of a head.
    public static let bytesCount = 8 + 32 + 32 + 8 + 64

    /// Leaves in the log: two for each entry, and one entry at least.
    public let size: UInt64
    /// Over all leaves (RFC 6962, 2.1).
    public let root: Digest256
    /// Of the map from users to their newest entries; it is also the last leaf.
    public let mapRoot: Digest256
    /// Milliseconds since 1970, as the server's clock had it.
    public let time: UInt64
    /// Ed25519 over `thicket/head/1` ‖ 0 ‖ the four, each with its length (spec 3.6).
    public let signature: [UInt8]

    /// Signs a head.
    /// - Throws: `malformed` for numbers beyond 2^53 and for a size that no log has.
    init(
        size: UInt64, root: Digest256, mapRoot: Digest256, time: UInt64, key: Ed25519.SigningKey
    ) throws(KeyLogError) {
        let signature: [UInt8]
        do throws(CryptoError) {
            signature = try key.signature(for: .head, Self.fields(size, root, mapRoot, time))
        } catch { throw KeyLogError(.malformed, "a head cannot be signed: \(error)") }
        try self.init(size.octets + root.bytes + mapRoot.bytes + time.octets + signature)
    }

    /// Reads one. The signature is looked at by `check`.
    /// - Throws: `malformed`.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        guard bytes.count == Self.bytesCount, let root = Digest256(bytes[8..<40]),
            let mapRoot = Digest256(bytes[40..<72])
        else { throw .malformed("a head has \(Self.bytesCount) bytes, not \(bytes.count)") }
        let number = { bytes[$0].reduce(0) { $0 << 8 | UInt64($1) } }
        (size, self.root, self.mapRoot, time) = (number(0..<8), root, mapRoot, number(72..<80))
        signature = Array(bytes[80...])
        guard size > 0, size % 2 == 0, size < KeyLogLimits.numberBound, time < KeyLogLimits.numberBound else {
            throw .malformed("a head of a size or time that no log has")
        }
    }

    /// As it is stored and sent.
    public var bytes: [UInt8] { size.octets + root.bytes + mapRoot.bytes + time.octets + signature }

    /// - Throws: `notSigned` unless the log's key has signed it.
    public func check(_ key: Ed25519.VerifyingKey) throws(KeyLogError) {
        guard key.isSignature(signature, for: .head, Self.fields(size, root, mapRoot, time)) else {
            throw KeyLogError(
                .notSigned,
                "the head of the key log is not signed by its key: it was changed, or somebody else made it")
        }
    }

    /// Whether both say the same of the log, whenever they were signed.
    public func isSameLog(as other: KeyLogHead) -> Bool {
        size == other.size && root == other.root && mapRoot == other.mapRoot
    }

    private static func fields(
        _ size: UInt64, _ root: Digest256, _ mapRoot: Digest256, _ time: UInt64
    ) -> [[UInt8]] { [size.octets, root.bytes, mapRoot.bytes, time.octets] }

    /// Data of the leaf behind each entry: the root of the map with that entry in it. Its label keeps it from being an
    /// entry, and an entry from being one; so does its place, which is odd.
    static func mapLeaf(_ mapRoot: Digest256) -> Digest256 {
        var bytes = LabelledBytes("thicket/map-root/1")
        bytes.put(mapRoot.bytes)
        return MerkleTree.leafHash(bytes.octets)
    }
}
