public import ThicketCrypto

/// The answer to "which keys has this user": the user's entries, that the last of them is the newest or that there is
/// none, and that all of it stands in the log whose signed head it begins with.
///
/// Bytes: `thicket/key-lookup/1` ‖ 0x00 ‖ head (144) ‖ known size (8) ‖ way from there ‖ way to the map's root ‖ proof
/// of the map ‖ number of entries (8); if there are some: place of the last (8) ‖ way to it ‖ the entries. All but
/// numbers with 16 bits of length.
public struct KeyLogLookup: Sendable, Hashable {
    private static let label: StaticString = "thicket/key-lookup/1"

    /// Of the log as it was when it answered.
    public let head: KeyLogHead
    /// Size of the log that whoever asked had seen; 0: none.
    public let known: UInt64
    /// That the log begins with what it was at that size.
    public let consistency: [Digest256]
    /// That the head's map root is the log's last leaf.
    public let mapRootProof: [Digest256]
    /// What the map has under the user.
    public let mapProof: SparseMerkleProof
    /// The user's entries from the one that was asked for; empty: there is none at all.
    public let chain: [KeyLogEntry]
    /// Place of the last of them in the log.
    public let index: UInt64
    /// That it stands there.
    public let inclusion: [Digest256]

    init(
        head: KeyLogHead, known: UInt64, consistency: [Digest256], mapRootProof: [Digest256],
        mapProof: SparseMerkleProof, chain: [KeyLogEntry], index: UInt64, inclusion: [Digest256]
    ) {
        (self.head, self.known, self.consistency) = (head, known, consistency)
        (self.mapRootProof, self.mapProof) = (mapRootProof, mapProof)
        (self.chain, self.index, self.inclusion) = (chain, index, inclusion)
    }

    /// Reads one. Nothing that it says is looked at here: `KeyLogReader` does.
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
            throw KeyLogError(.tooMany, "key log: \(count) entries of one user; the most is \(KeyLogLimits.entriesMax)")
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

    /// As it is sent.
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
