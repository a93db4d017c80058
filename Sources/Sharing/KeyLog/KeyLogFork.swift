public import ThicketCrypto

/// Two heads that the log's key has signed and that cannot both be of one log, or that nobody has shown to be: what a
/// user keeps and hands on when the server shows two logs.
///
/// Bytes: `thicket/key-fork/1` ‖ 0x00 ‖ older head (144) ‖ newer head (144) ‖ the server's way between them, each with
/// 16 bits of length.
public struct KeyLogFork: Sendable, Hashable {
    /// Bytes at most.
    public static let bytesMax: Int = 19 + 2 * (2 + KeyLogHead.bytesCount) + 2 + 32 * MerkleTree.proofHashesMax

    private static let label: StaticString = "thicket/key-fork/1"

    /// How much it shows.
    public enum Strength: Sendable, Equatable {
        /// The log's key has signed a contradiction; nothing that the server may say takes it back.
        case proven
        /// Both heads are signed, and no way leads from the older to the newer one so far. The server can end the
        /// matter by showing one; if it cannot, these are two logs.
        case unexplained
    }

    /// Of the smaller log.
    public let older: KeyLogHead
    public let newer: KeyLogHead
    /// What the server gave as the way between them; may be nothing.
    public let proof: [Digest256]

    /// - Parameter proof: as the server gave it, at most `MerkleTree.proofHashesMax` hashes.
    public init(_ one: KeyLogHead, _ other: KeyLogHead, proof: [Digest256] = []) {
        // One order, so that one contradiction is one piece of evidence.
        let isInOrder =
            one.size == other.size ? one.bytes.lexicographicallyPrecedes(other.bytes) : one.size < other.size
        (older, newer) = isInOrder ? (one, other) : (other, one)
        self.proof = one.size == other.size ? [] : Array(proof.prefix(MerkleTree.proofHashesMax))
    }

    /// Reads one.
    /// - Throws: `malformed`, `tooMany`.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        var fields = try KeyLogFields(bytes, label: Self.label, max: Self.bytesMax, what: "a fork")
        let (older, newer) = (
            try KeyLogHead(try fields.field(KeyLogHead.bytesCount)),
            try KeyLogHead(try fields.field(KeyLogHead.bytesCount))
        )
        self.init(older, newer, proof: try fields.proof())
        try fields.end()
        guard self.bytes == bytes else { throw .malformed("a fork is not written in its one form") }
    }

    /// As it is kept and handed on.
    public var bytes: [UInt8] {
        var bytes = LabelledBytes(Self.label)
        bytes.put(older.bytes)
        bytes.put(newer.bytes)
        bytes.put(MerkleTree.bytes(of: proof))
        return bytes.octets
    }

    /// What it shows to somebody who knows the log's key and nothing else.
    ///
    /// - Throws: `notSigned`; `noFork` when the heads say the same, or the way leads from one to the other.
    public func check(_ key: Ed25519.VerifyingKey) throws(KeyLogError) -> Strength {
        try older.check(key)
        try newer.check(key)
        guard older.size < newer.size else {
            guard !older.isSameLog(as: newer) else { throw Self.noFork }
            return .proven
        }
        // Where the way ends at the newer head's root it can begin only at the log's true beginning: if that is not the
        // older head's root, the server has shown the contradiction itself.
        guard
            let roots = MerkleTree.roots(
                oldSize: older.size, oldRoot: older.root, newSize: newer.size, proof: proof),
            roots.new == newer.root
        else { return .unexplained }
        guard roots.old != older.root else { throw Self.noFork }
        return .proven
    }

    /// Whether this way leads from the older head to the newer one: then there was no fork.
    public func isExplained(by way: KeyLogConsistency) -> Bool {
        // Two heads of one size contradict each other whatever is shown.
        older.size < newer.size && way.older == older.size && way.newer == newer.size
            && MerkleTree.isConsistent(
                oldSize: older.size, oldRoot: older.root, newSize: newer.size, newRoot: newer.root, proof: way.proof)
    }

    private static let noFork = KeyLogError(.noFork, "the two heads are of one log")
}
