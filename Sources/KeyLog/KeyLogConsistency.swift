public import ThicketCrypto

/// Proves that the log of one size is a prefix of the log of another size: the answer to a device that has received
/// another head.
///
/// Bytes: `thicket/key-consistency/1` ‖ 0x00 ‖ older size (8) ‖ newer size (8) ‖ the hashes of the proof, with 16 bits
/// of length.
public struct KeyLogConsistency: Sendable, Hashable {
    /// Maximum bytes.
    public static let bytesMax: Int = 26 + 16 + 2 + 32 * MerkleTree.proofHashesMax

    private static let label: StaticString = "thicket/key-consistency/1"

    /// Number of leaves of the older log.
    public let older: UInt64
    /// Number of leaves of the newer log; greater than `older`.
    public let newer: UInt64
    /// Consistency proof by RFC 6962, 2.1.2.
    public let proof: [Digest256]

    init(older: UInt64, newer: UInt64, proof: [Digest256]) {
        (self.older, self.newer, self.proof) = (older, newer, proof)
    }

    /// Parses a proof.
    /// - Throws: `malformed`, `tooMany`.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        var fields = try KeyLogFields(bytes, label: Self.label, max: Self.bytesMax, what: "a consistency proof")
        (older, newer) = (try fields.number(), try fields.number())
        proof = try fields.proof()
        try fields.end()
        guard older > 0, older < newer else {
            throw .malformed("a consistency proof leads from a smaller log to a larger one")
        }
    }

    /// The encoding on the wire.
    public var bytes: [UInt8] {
        var bytes = LabelledBytes(Self.label)
        bytes.add(bare: older)
        bytes.add(bare: newer)
        bytes.put(MerkleTree.bytes(of: proof))
        return bytes.octets
    }
}
