public import ThicketCrypto

/// The answer to a look-up of a user's keys: the user's entries, with proofs that the last one is the newest or that
/// the user has none, and that all of it is contained in the log of the signed head.
///
/// Bytes: `thicket/key-lookup/1` ‖ 0x00 ‖ head (144) ‖ known size (8) ‖ consistency proof ‖ inclusion proof of the map
/// root ‖ map proof ‖ number of entries (8); if it is not 0: index of the last entry (8) ‖ its inclusion proof ‖ the
/// entries. All parts except numbers have 16 bits of length.
public struct KeyLogLookup: Sendable, Hashable {
    private static let label: StaticString = "thicket/key-lookup/1"

    /// Head of the log at the time of the answer.
    public let head: KeyLogHead
    /// Log size that the asking device had seen; 0: none.
    public let known: UInt64
    /// Proof that the log of size `known` is a prefix of this log.
    public let consistency: [Digest256]
    /// Proof that the head's map root is the log's last leaf.
    public let mapRootProof: [Digest256]
    /// Proof of the map's value for the user.
    public let mapProof: SparseMerkleProof
    /// The user's entries from the requested one on; empty when the user has none.
    public let chain: [KeyLogEntry]
    /// Leaf index of the last of them.
    public let index: UInt64
    /// Proof that this leaf is in the log.
    public let inclusion: [Digest256]

    init(
        head: KeyLogHead, known: UInt64, consistency: [Digest256], mapRootProof: [Digest256],
        mapProof: SparseMerkleProof, chain: [KeyLogEntry], index: UInt64, inclusion: [Digest256]
    ) {
        (self.head, self.known, self.consistency) = (head, known, consistency)
        (self.mapRootProof, self.mapProof) = (mapRootProof, mapProof)
        (self.chain, self.index, self.inclusion) = (chain, index, inclusion)
    }

    /// Parses an answer. Its statements are verified by `KeyLogReader`.
    /// - Throws: `malformed`, `tooMany`.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        var fields = try KeyLogFields(
            bytes, label: Self.label, max: KeyLogLimits.lookupBytesMax, what: "a look-up")
        head = try KeyLogHead(try fields.field(KeyLogHead.bytesCount))
        known = try fields.number()
        (consistency, mapRootProof) = (try fields.proof(), try fields.proof())
        guard let proof = SparseMerkleProof(Array(try fields.field())) else {
            throw .malformed("the proof of the map cannot be read")
        }
        mapProof = proof
        let count = try fields.number()
        guard count <= UInt64(KeyLogLimits.entriesMax) else {
            throw KeyLogError(
                .tooMany, "key log: \(count) entries of one user; the maximum is \(KeyLogLimits.entriesMax)")
        }
        var chain = [KeyLogEntry]()
        if count > 0 {
            (index, inclusion) = (try fields.number(), try fields.proof())
            for _ in 0..<count { chain.append(try KeyLogEntry(Array(try fields.field()))) }
        } else {
            (index, inclusion) = (0, [])
        }
        try fields.end()
        self.chain = chain
    }

    /// The encoding on the wire.
    public var bytes: [UInt8] {
        var bytes = LabelledBytes(Self.label)
        bytes.put(head.bytes)
        bytes.add(bare: known)
        bytes.put(MerkleTree.bytes(of: consistency))
        bytes.put(MerkleTree.bytes(of: mapRootProof))
        bytes.put(mapProof.bytes)
        bytes.add(bare: UInt64(chain.count))
        guard !chain.isEmpty else { return bytes.octets }
        bytes.add(bare: index)
        bytes.put(MerkleTree.bytes(of: inclusion))
        for entry in chain { bytes.put(entry.bytes) }
        return bytes.octets
    }
}
