public import ThicketCrypto

/// Two heads, both signed with the log's key, that contradict each other or that have not been proven consistent: the
/// evidence that a user keeps and passes on when the server shows two logs.
///
/// Bytes: `thicket/key-fork/1` ‖ 0x00 ‖ older head (144) ‖ newer head (144) ‖ the server's consistency proof, each with
/// 16 bits of length.
public struct KeyLogFork: Sendable, Hashable {
    /// Maximum bytes.
    public static let bytesMax: Int = 19 + 2 * (2 + KeyLogHead.bytesCount) + 2 + 32 * MerkleTree.proofHashesMax

    private static let label: StaticString = "thicket/key-fork/1"

    /// The strength of the evidence.
    public enum Strength: Sendable, Equatable {
        /// The log's key has signed a contradiction, which the server cannot explain any more.
        case proven
        /// Both heads are signed, and no valid consistency proof from the older to the newer one is known yet. The
        /// server can resolve this with a proof; if it cannot, these are two logs.
        case unexplained
    }

    /// The head of the smaller log.
    public let older: KeyLogHead
    /// The head of the larger log; for equal sizes, the one whose bytes are greater.
    public let newer: KeyLogHead
    /// The consistency proof that the server gave; may be empty.
    public let proof: [Digest256]

    /// Sorts the two heads.
    /// - Parameter proof: as the server gave it; at most `MerkleTree.proofHashesMax` hashes are kept.
    public init(_ one: KeyLogHead, _ other: KeyLogHead, proof: [Digest256] = []) {
        // A fixed order makes the encoding of one contradiction unique.
        let isInOrder =
            one.size == other.size ? one.bytes.lexicographicallyPrecedes(other.bytes) : one.size < other.size
        (older, newer) = isInOrder ? (one, other) : (other, one)
        self.proof = one.size == other.size ? [] : Array(proof.prefix(MerkleTree.proofHashesMax))
    }

    /// Parses the evidence.
    /// - Throws: `malformed`, `tooMany`.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        var fields = try KeyLogFields(bytes, label: Self.label, max: Self.bytesMax, what: "a fork")
        let (older, newer) = (
            try KeyLogHead(try fields.field(KeyLogHead.bytesCount)),
            try KeyLogHead(try fields.field(KeyLogHead.bytesCount))
        )
        self.init(older, newer, proof: try fields.proof())
        try fields.end()
        guard self.bytes == bytes else { throw .malformed("a fork is not in its unique encoding") }
    }

    /// The encoding for storage and transfer.
    public var bytes: [UInt8] {
        var bytes = LabelledBytes(Self.label)
        bytes.put(older.bytes)
        bytes.put(newer.bytes)
        bytes.put(MerkleTree.bytes(of: proof))
        return bytes.octets
    }

    /// The strength of the evidence for a verifier that knows only the log's key.
    ///
    /// - Throws: `notSigned`; `noFork` when the heads are equal, or the proof shows that they are consistent.
    public func check(_ key: Ed25519.VerifyingKey) throws(KeyLogError) -> Strength {
        try older.check(key)
        try newer.check(key)
        guard older.size < newer.size else {
            guard !older.isSameLog(as: newer) else { throw Self.noFork }
            return .proven
        }
        // A proof that ends at the newer head's root can begin only at the true older root: if that differs from the
        // older head's root, the server has proven the contradiction itself.
        guard
            let roots = MerkleTree.roots(
                oldSize: older.size, oldRoot: older.root, newSize: newer.size, proof: proof),
            roots.new == newer.root
        else { return .unexplained }
        guard roots.old != older.root else { throw Self.noFork }
        return .proven
    }

    /// Whether this proof shows that the heads are consistent, so that there was no fork.
    public func isExplained(by way: KeyLogConsistency) -> Bool {
        // Two different heads of one size contradict each other regardless of any proof.
        older.size < newer.size && way.older == older.size && way.newer == newer.size
            && MerkleTree.isConsistent(
                oldSize: older.size, oldRoot: older.root, newSize: newer.size, newRoot: newer.root, proof: way.proof)
    }

    private static let noFork = KeyLogError(.noFork, "the two heads are of one log")
}
