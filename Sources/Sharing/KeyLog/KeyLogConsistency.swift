public import ThicketCrypto

/// Shows that the log of one size began with that of another: the answer to who has heard of another head.
///
/// Bytes: `thicket/key-consistency/1` ‖ 0x00 ‖ older size (8) ‖ newer size (8) ‖ the proof's hashes, with 16 bits of
/// length.
public struct KeyLogConsistency: Sendable, Hashable {
    /// Bytes at most.
    public static let bytesMax: Int = 26 + 16 + 2 + 32 * MerkleTree.proofHashesMax

    private static let label: StaticString = "thicket/key-consistency/1"

    /// Leaves.
    public let older: UInt64
    /// Leaves; more than the older.
    public let newer: UInt64
    /// RFC 6962, 2.1.2.
    public let proof: [Digest256]

    init(older: UInt64, newer: UInt64, proof: [Digest256]) {
        (self.older, self.newer, self.proof) = (older, newer, proof)
    }

    /// Reads one.
    /// - Throws: `malformed`, `tooMany`.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        var fields = try KeyLogFields(bytes, label: Self.label, max: Self.bytesMax, what: "a way between heads")
        (older, newer) = (try fields.number(), try fields.number())
        proof = try fields.proof()
        try fields.end()
        guard older > 0, older < newer else { throw .malformed("a way leads from a smaller log to a larger one") }
    }

    /// As it is sent.
    public var bytes: [UInt8] {
        var bytes = LabelledBytes(Self.label)
        bytes.add(bare: older)
        bytes.add(bare: newer)
        bytes.put(MerkleTree.bytes(of: proof))
        return bytes.octets
    }
}
