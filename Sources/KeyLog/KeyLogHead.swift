public import ThicketCrypto

/// The signed state of the key log at a moment: number of leaves, root over them, root of the map, and time.
///
/// Clients attach the newest head they know to messages to other clients (spec 4.12, gossip): the complete head,
/// because the signature covers all of it.
///
/// Bytes: size (8) ‖ root (32) ‖ map root (32) ‖ time (8) ‖ signature (64).
public struct KeyLogHead: Sendable, Hashable {
    /// Bytes of a head.
    public static let bytesCount = 8 + 32 + 32 + 8 + 64

    /// Number of leaves: two per entry, for at least one entry.
    public let size: UInt64
    /// Root over all leaves (RFC 6962, 2.1).
    public let root: Digest256
    /// Root of the map from users to their newest entries; also the last leaf.
    public let mapRoot: Digest256
    /// Milliseconds since 1970, server clock.
    public let time: UInt64
    /// Ed25519 over `thicket/head/1` ‖ 0 ‖ the four fields, each with its length (spec 3.6).
    public let signature: [UInt8]

    /// Signs a head.
    /// - Throws: `malformed` for numbers beyond 2^53 and for an invalid size.
    init(
        size: UInt64, root: Digest256, mapRoot: Digest256, time: UInt64, key: Ed25519.SigningKey
    ) throws(KeyLogError) {
        let signature: [UInt8]
        do throws(CryptoError) {
            signature = try key.signature(for: .head, Self.fields(size, root, mapRoot, time))
        } catch { throw KeyLogError(.malformed, "a head cannot be signed: \(error)") }
        try self.init(size.octets + root.bytes + mapRoot.bytes + time.octets + signature)
    }

    /// Parses a head; `check` verifies the signature.
    /// - Throws: `malformed`.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        guard bytes.count == Self.bytesCount, let root = Digest256(bytes[8..<40]),
            let mapRoot = Digest256(bytes[40..<72])
        else { throw .malformed("a head has \(Self.bytesCount) bytes, not \(bytes.count)") }
        let number = { bytes[$0].reduce(0) { $0 << 8 | UInt64($1) } }
        (size, self.root, self.mapRoot, time) = (number(0..<8), root, mapRoot, number(72..<80))
        signature = Array(bytes[80...])
        guard size > 0, size % 2 == 0, size < KeyLogLimits.numberBound, time < KeyLogLimits.numberBound else {
            throw .malformed("a head with an invalid size or time")
        }
    }

    /// The encoding for storage and transfer.
    public var bytes: [UInt8] { size.octets + root.bytes + mapRoot.bytes + time.octets + signature }

    /// - Throws: `notSigned` unless the head is signed with the log's key.
    public func check(_ key: Ed25519.VerifyingKey) throws(KeyLogError) {
        guard key.isSignature(signature, for: .head, Self.fields(size, root, mapRoot, time)) else {
            throw KeyLogError(
                .notSigned,
                "the head of the key log is not signed by its key: it was changed or forged")
        }
    }

    /// Whether both heads describe the same log state, regardless of their times.
    public func isSameLog(as other: KeyLogHead) -> Bool {
        size == other.size && root == other.root && mapRoot == other.mapRoot
    }

    private static func fields(
        _ size: UInt64, _ root: Digest256, _ mapRoot: Digest256, _ time: UInt64
    ) -> [[UInt8]] { [size.octets, root.bytes, mapRoot.bytes, time.octets] }

    /// The leaf after each entry: the root of the map including that entry. Its label, and its odd index, distinguish
    /// it from an entry.
    static func mapLeaf(_ mapRoot: Digest256) -> Digest256 {
        var bytes = LabelledBytes("thicket/map-root/1")
        bytes.put(mapRoot.bytes)
        return MerkleTree.leafHash(bytes.octets)
    }
}
