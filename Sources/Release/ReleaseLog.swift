public import ThicketCrypto
import ThicketProtocol

/// All releases, in the order in which they were made: an append-only log (RFC 6962). Its file has a line of JSON for
/// each: the manifest, and the signed head of the log that ends with it. Nothing is ever taken out or changed; whoever
/// keeps a copy, or one head, notices.
public struct ReleaseLog: Sendable {
    /// Bytes of a log's file at most.
    public static let bytesMax = 16 << 20

    public private(set) var manifests: [ReleaseManifest] = []
    /// The head behind each manifest.
    public private(set) var heads: [ReleaseHead] = []
    private var tree = MerkleLog()

    /// An empty one.
    public init() {}

    /// Reads a file and checks every head against the manifests before it.
    ///
    /// - Parameter key: who must have signed; nil: signatures are not looked at.
    /// - Throws: `malformed`, `otherLog` when a head does not fit, `otherKey`.
    public init(file: [UInt8], key: Ed25519.VerifyingKey?) throws(ReleaseError) {
        guard file.isEmpty || file.last == 0x0A else {
            throw ReleaseError(.malformed, "the log ends in the middle of a line")
        }
        for line in file.split(separator: 0x0A) {
            guard let value = try? JSONValue(parsing: Array(line)),
                let text = value["manifest"]?.stringValue
            else { throw ReleaseError(.malformed, "line \(manifests.count + 1) of the log is no release") }
            let head = try ReleaseHead(value["head"])
            take(try ReleaseManifest(text: text))
            guard head.size == UInt64(manifests.count), tree.root() == head.root else {
                throw ReleaseError(
                    .otherLog, "the head behind release \(manifests.count) is not that of what stands before it")
            }
            try key.map { key throws(ReleaseError) in try head.check(key) }
            heads.append(head)
        }
    }

    private mutating func take(_ manifest: ReleaseManifest) {
        manifests.append(manifest)
        tree.append(manifest.leafHash)
    }

    /// Adds a release.
    ///
    /// - Parameter time: milliseconds since 1970.
    /// - Returns: the line for the file, with its end.
    /// - Throws: `malformed` when a release of that version stands in the log: a version is one thing for ever.
    public mutating func append(
        _ manifest: ReleaseManifest, key: Ed25519.SigningKey, time: UInt64
    ) throws(ReleaseError) -> [UInt8] {
        guard index(of: manifest.release) == nil else {
            throw ReleaseError(
                .malformed, "the log has a release \(manifest.release) already: give this one another number")
        }
        var next = self
        next.take(manifest)
        guard let root = next.tree.root() else { preconditionFailure("a log has a root") }
        let head = try ReleaseHead(size: UInt64(next.manifests.count), root: root, time: time, key: key)
        next.heads.append(head)
        self = next
        return JSONValue.object(["manifest": .string(manifest.text), "head": head.json]).serialized() + [0x0A]
    }

    /// The place of a release; nil: it is not there.
    public func index(of release: String) -> Int? {
        manifests.firstIndex { $0.release.utf8.elementsEqual(release.utf8) }
    }

    /// What shows that a release stands in the log as it is now, and that this log goes on from its earlier ones.
    /// - Returns: nil for a release that is not there.
    public func proof(of release: String) -> ReleaseProof? {
        guard let index = index(of: release), let head = heads.last,
            let inclusion = tree.inclusionProof(index: index)
        else { return nil }
        var consistency = [UInt64: [Digest256]]()
        for size in manifests.indices.suffix(ReleaseProof.headsMax) where size > 0 {
            consistency[UInt64(size)] = tree.consistencyProof(oldSize: size)
        }
        return ReleaseProof(
            manifest: manifests[index], index: UInt64(index), inclusion: inclusion, head: head, consistency: consistency
        )
    }
}
