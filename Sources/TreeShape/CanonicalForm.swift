public import ThicketProtocol
import ThicketCrypto

/// A tree: the account that owns it, in one app.
public struct TreePlace: Sendable, Hashable {
    /// The app.
    public let app: AppID
    /// The account.
    public let owner: UserID

    /// A tree of this account in this app.
    public init(app: AppID, owner: UserID) { (self.app, self.owner) = (app, owner) }
}

/// The bytes that a signature or a seal of a record authenticates (treesystem 4.3).
///
/// `thicket/record/1` ‖ 0x00, and for each part its tag (one byte), its length (four bytes, big-endian) and its bytes.
/// Parts are in the order of their tags, and an absent member is left out:
///
/// | tag | part | bytes |
/// | --- | --- | --- |
/// | 1, 2, 3 | app id, owner, node id | UTF-8 |
/// | 4 | `v` | 8, big-endian |
/// | 5, 6 | `p`, `n` | UTF-8 |
/// | 7 | `e` | 4, big-endian |
/// | 8 | `w` | for each wrap, in the order of the bytes of `t`: lp(t) ‖ lp(k) ‖ lp(c), lengths of 16 bits |
/// | 9, 10 | `q`, `m` | the decoded bytes |
/// | 11 | `d` | 1 ‖ id ‖ length (8) ‖ SHA-256 of the sealed content, or 2 ‖ id ‖ length (8) ‖ blob id |
/// | 12 | `l` | SHA-256 of the list's form with its signature (`ShareList.digest`) |
/// | 13, 14 | `x`, `s` | 8, big-endian |
/// | 15, 16 | `by`, `k` | UTF-8 |
///
/// `sig` and the server's stamps are outside.
public enum CanonicalForm: Sendable {
    /// For a signature: everything.
    case signing
    /// For the seal of `m`, which cannot contain itself: everything but `m`.
    case sealing

    private static let label: [UInt8] = Array("thicket/record/1".utf8) + [0]
    /// Tags of app id, owner and node id; members follow in the order of `RecordKey`.
    private static let firstMember = 4

    /// The bytes of a record.
    ///
    /// - Parameters:
    ///   - record: a record whose values are within `TreeLimits`.
    ///   - node: the node's id, which is the key of the record in its bucket.
    ///   - tree: the tree that the node belongs to.
    public func bytes(of record: NodeRecord, _ node: NodeID, in tree: TreePlace) -> [UInt8] {
        var bytes = Self.label
        bytes.reserveCapacity(512 + record.metadata.count)
        Self.add(1, Array(tree.app.text.utf8), to: &bytes)
        Self.add(2, Array(tree.owner.text.utf8), to: &bytes)
        Self.add(3, Array(node.text.utf8), to: &bytes)
        for (place, key) in RecordKey.allCases.enumerated() {
            if self == .sealing, key == .metadata { continue }
            guard let part = Self.part(key, of: record, node, tree) else { continue }
            Self.add(UInt8(Self.firstMember + place), part, to: &bytes)
        }
        return bytes
    }

    private static func add(_ tag: UInt8, _ part: [UInt8], to bytes: inout [UInt8]) {
        bytes.append(tag)
        bytes += UInt32(part.count).octets
        bytes += part
    }

    private static func part(
        _ key: RecordKey, of record: NodeRecord, _ node: NodeID, _ tree: TreePlace
    ) -> [UInt8]? {
        switch key {
        case .format: NodeRecord.format.octets
        case .parent: Array(record.parent.text.utf8)
        case .tag: Array(record.tag.text.utf8)
        case .epoch: record.epoch.octets
        case .wraps: record.wraps.flatMap(\.canonical)
        case .commitment: record.commitment
        case .metadata: record.metadata
        case .data: record.data?.canonical
        case .shareList: record.shareList?.digest(at: ShareList.Place(tree, root: node))
        case .burnTime: record.burnTime?.octets
        case .base: record.base.octets
        case .author: (record.signature?.author.text.utf8).map { Array($0) }
        case .signingKey: (record.signature?.keyID.utf8).map { Array($0) }
        case .signature, .changed, .created, .sender: nil
        }
    }
}
