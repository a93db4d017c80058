public import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The file that is published beside the programs of a release (`release.json`): its manifest, the inclusion proof up
/// to the signed head of the log, and consistency proofs from earlier heads to that head.
public struct ReleaseProof: Sendable, Equatable {
    /// The newest earlier heads from which a proof leads to this one: at most so many.
    public static let headsMax = 256
    /// Most bytes of a proof file.
    public static let bytesMax = 4 << 20
    private static let format: Int64 = 1

    /// The manifest of the release.
    public let manifest: ReleaseManifest
    /// Index in the log, from 0.
    public let index: UInt64
    /// The inclusion proof of the manifest (RFC 6962, 2.1.1).
    public let inclusion: [Digest256]
    /// The signed head to which all proofs lead.
    public let head: ReleaseHead
    /// Consistency proofs (RFC 6962, 2.1.2) by the size of the earlier log.
    public let consistency: [UInt64: [Digest256]]

    /// - Parameters:
    ///   - index: index of the manifest in the log, from 0.
    ///   - consistency: proofs by the size of the earlier log.
    public init(
        manifest: ReleaseManifest, index: UInt64, inclusion: [Digest256], head: ReleaseHead,
        consistency: [UInt64: [Digest256]]
    ) {
        (self.manifest, self.index, self.inclusion) = (manifest, index, inclusion)
        (self.head, self.consistency) = (head, consistency)
    }

    /// Reads what `file` writes.
    /// - Throws: `malformed`.
    public init(file: [UInt8]) throws(ReleaseError) {
        guard file.count <= Self.bytesMax, let value = try? JSONValue(parsing: file),
            value["format"]?.intValue == Self.format, let text = value["manifest"]?.stringValue,
            let index = value["index"]?.intValue, index >= 0,
            let inclusion = value["inclusion"]?.stringValue.flatMap(Self.hashes),
            let ways = value["consistency"]?.objectValue
        else {
            throw ReleaseError(
                .malformed, "this is not a proof of a release, or one of a form that this version does not know")
        }
        var consistency = [UInt64: [Digest256]]()
        for (size, hashes) in ways.pairs {
            guard let number = UInt64(size), let way = hashes.stringValue.flatMap(Self.hashes)
            else {
                throw ReleaseError(.malformed, "the proof's way from a log of '\(size)' releases cannot be read")
            }
            consistency[number] = way
        }
        self.init(
            manifest: try ReleaseManifest(text: text), index: UInt64(index), inclusion: inclusion,
            head: try ReleaseHead(value["head"]), consistency: consistency)
    }

    private static func hashes(_ text: String) -> [Digest256]? {
        guard text.utf8.count <= 2 * Digest256.byteCount * MerkleTree.proofHashesMax else { return nil }
        return Hex.decode(text).flatMap(MerkleTree.proof)
    }

    /// The content of the file.
    public var file: [UInt8] {
        var ways: JSONObject = [:]
        for (size, way) in consistency.sorted(by: { $0.key < $1.key }) {
            ways["\(size)"] = .string(Hex.encode(MerkleTree.bytes(of: way)))
        }
        let object: JSONObject = [
            "format": .number(JSONNumber(Self.format)), "manifest": .string(manifest.text),
            "index": .number(JSONNumber(Int64(index))),
            "inclusion": .string(Hex.encode(MerkleTree.bytes(of: inclusion))), "head": head.json,
            "consistency": .object(ways),
        ]
        return JSONValue.object(object).serialized() + [0x0A]
    }

    /// Checks everything except the program: the signature, that the log contains the manifest, and that the log
    /// continues the one that was seen before.
    ///
    /// - Parameters:
    ///   - key: the trusted key, known from another source.
    ///   - seen: the newest head that was checked before; nil: this is the first.
    /// - Throws: `otherKey`, `notIncluded`, `olderHead`, `otherLog`, `noConsistencyProof`.
    public func check(_ key: Ed25519.VerifyingKey, seen: ReleaseHead?) throws(ReleaseError) {
        try head.check(key)
        guard
            MerkleTree.isIncluded(
                manifest.leafHash, index: index, size: head.size, root: head.root, proof: inclusion)
        else {
            throw ReleaseError(
                .notIncluded,
                "the log that the key has signed does not hold this manifest, as far as its proof shows: the manifest was "
                    + "changed, or the proof is of another one, or incomplete")
        }
        if let seen { try check(seen) }
    }

    private func check(_ seen: ReleaseHead) throws(ReleaseError) {
        guard head.size >= seen.size else {
            throw ReleaseError(
                .olderHead,
                "this proof ends at a log of \(head.size) releases, and one of \(seen.size) was seen here before. Get a newer "
                    + "proof of the same release: an old one may hide that something was taken out of the log")
        }
        if head.size == seen.size, head.root == seen.root { return }
        guard head.size > seen.size else { throw Self.otherLog(seen) }
        guard let way = consistency[seen.size] else {
            throw ReleaseError(
                .noConsistencyProof,
                "the proof does not lead here from the log of \(seen.size) releases that was seen before. Get one that does: "
                    + "those of our releases go back \(Self.headsMax) releases")
        }
        guard
            MerkleTree.isConsistent(
                oldSize: seen.size, oldRoot: seen.root, newSize: head.size, newRoot: head.root, proof: way)
        else { throw Self.otherLog(seen) }
    }

    private static func otherLog(_ seen: ReleaseHead) -> ReleaseError {
        ReleaseError(
            .otherLog,
            "this log does not go on from the one of \(seen.size) releases that was seen here before. It was rewritten, "
                + "or another log is shown to you than to others: do not run the program, and warn its other users")
    }
}
