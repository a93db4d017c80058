public import ThicketCrypto
import ThicketProtocol

/// All releases in the order in which they were made: an append-only log (RFC 6962). Its file has one line of JSON per
/// release: the manifest, and the signed head of the log that ends with it. Entries are never removed or changed; a
/// reader that has a copy, or one head, can detect a change.
public struct ReleaseLog: Sendable {
    /// Most bytes of a log file.
    public static let bytesMax = 16 << 20

    /// The manifests in the order of the log.
    public private(set) var manifests: [ReleaseManifest] = []
    /// The head after each manifest.
    public private(set) var heads: [ReleaseHead] = []
    private var tree = MerkleLog()

    /// An empty log.
    public init() {}

    /// Reads a file and checks every head against the manifests before it.
    ///
    /// - Parameter key: must have signed every head; nil: signatures are not checked.
    /// - Throws: `malformed`, `otherLog` when a head does not fit, `otherKey`.
    public init(file: [UInt8], key: Ed25519.VerifyingKey?) throws(ReleaseError) {
        guard file.isEmpty || file.last == 0x0A else {
            throw ReleaseError(.malformed, "the log ends in the middle of a line")
        }
        for line in file.split(separator: 0x0A) {
            guard let value = try? JSONValue(parsing: Array(line)),
                let text = value["manifest"]?.stringValue
            else { throw ReleaseError(.malformed, "line \(manifests.count + 1) of the log is not a release") }
            let head = try ReleaseHead(value["head"])
            append(try ReleaseManifest(text: text))
            guard head.size == UInt64(manifests.count), tree.root() == head.root else {
                throw ReleaseError(
                    .otherLog, "the head behind release \(manifests.count) does not fit the releases before it")
            }
            try key.map { key throws(ReleaseError) in try head.check(key) }
            heads.append(head)
        }
    }

    private mutating func append(_ manifest: ReleaseManifest) {
        manifests.append(manifest)
        tree.append(manifest.leafHash)
    }

    /// Adds a release.
    ///
    /// - Parameter time: milliseconds since 1970.
    /// - Returns: the line for the file, with its line feed.
    /// - Throws: `malformed` when the log already has a release of that version: a version never changes.
    public mutating func append(
        _ manifest: ReleaseManifest, key: Ed25519.SigningKey, time: UInt64
    ) throws(ReleaseError) -> [UInt8] {
        guard index(of: manifest.release) == nil else {
            throw ReleaseError(
                .malformed, "the log has a release \(manifest.release) already: give this one another number")
        }
        var next = self
        next.append(manifest)
        guard let root = next.tree.root() else { preconditionFailure("a log has a root") }
        let head = try ReleaseHead(size: UInt64(next.manifests.count), root: root, time: time, key: key)
        next.heads.append(head)
        self = next
        return JSONValue.object(["manifest": .string(manifest.text), "head": head.json]).serialized() + [0x0A]
    }

    /// The index of a release; nil: the log does not contain it.
    public func index(of release: String) -> Int? {
        manifests.firstIndex { $0.release.utf8.elementsEqual(release.utf8) }
    }

    /// The proof that the present log contains a release, and that this log continues its earlier states.
    /// - Returns: nil for a release that is not in the log.
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
