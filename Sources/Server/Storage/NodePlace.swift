import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

/// Where a node is in its tree: below a parent, under a tag. At most one node of a tree has a place.
public struct NodePlace: Hashable, Sendable {
    /// The trunk or node below which the node is.
    public let parent: NodeParent
    /// The tag of its name there.
    public let tag: NodeTag

    /// A place.
    public init(parent: NodeParent, tag: NodeTag) { (self.parent, self.tag) = (parent, tag) }

    /// The place that a stored record names.
    ///
    /// - Returns: nil for an object that is not a record.
    init?(of record: JSONObject) {
        guard let parent = record[RecordKey.parent.rawValue]?.stringValue.flatMap(NodeParent.init(text:)),
            let tag = record[RecordKey.tag.rawValue]?.stringValue.flatMap(NodeTag.init(text:))
        else { return nil }
        self.init(parent: parent, tag: tag)
    }
}

/// The row of a node in the table `node`.
public struct NodeRow: Hashable, Sendable {
    /// Where it is.
    public let place: NodePlace
    /// Its newest change.
    public let gid: GlobalID
    /// The stamp of that change, milliseconds since 1970.
    public let changed: Int64
    /// Milliseconds since 1970 from which it is removed; nil: never.
    public let burnTime: Int64?
    /// The blob that its record refers to; nil: none.
    public let blob: BlobID?
    /// Bytes of its record in the written form.
    public let bytes: Int
    /// The account that has put it directly into the inbox; nil for the owner, and elsewhere.
    public let sender: UserID?
    /// The account that has created it below a node, if it is not the owner; nil elsewhere.
    public let member: UserID?
    /// The accounts that its list permits to read; nil without a list. A node with one is the root of a shared branch.
    public let readers: [UserID]?

    /// A row.
    public init(
        place: NodePlace, gid: GlobalID, changed: Int64, burnTime: Int64?, blob: BlobID?, bytes: Int,
        sender: UserID? = nil, member: UserID? = nil, readers: [UserID]? = nil
    ) {
        (self.place, self.gid, self.changed, self.burnTime) = (place, gid, changed, burnTime)
        (self.blob, self.bytes, self.sender) = (blob, bytes, sender)
        (self.member, self.readers) = (member, readers)
    }

    /// The row of a stored record.
    ///
    /// - Returns: nil for an object that is not a record.
    init?(of record: JSONObject, bytes: Int, gid: GlobalID) {
        guard let place = NodePlace(of: record) else { return nil }
        self.init(
            place: place, gid: gid, changed: record[RecordKey.changed.rawValue]?.intValue ?? 0,
            burnTime: record[RecordKey.burnTime.rawValue]?.intValue, blob: BlobReference(of: record)?.blob,
            bytes: bytes, sender: place.parent == .trunk(.inbox) ? Self.sender(of: record) : nil,
            member: Self.member(of: record, below: place.parent),
            readers: record[RecordKey.shareList.rawValue].map { Self.readers(of: $0) })
    }
}

extension NodeRow {
    /// The accounts that a list permits to read. It was read before it was stored.
    static func readers(of list: JSONValue) -> [UserID] {
        guard let list = try? ShareList(list) else { return [] }
        return list.members.filter { $0.permissions.contains(.read) }.map(\.user)
    }

    /// The form in the table `node`: an array of strings.
    var storedReaders: [UInt8]? { readers.map { JSONValue.array($0.map { .string($0.text) }).serialized() } }

    /// - Returns: nil for bytes that `storedReaders` does not give.
    static func readers(stored: [UInt8]) -> [UserID]? {
        guard case .array(let names)? = try? JSONValue(parsing: stored) else { return nil }
        let readers = names.compactMap { $0.stringValue.flatMap { try? UserID($0) } }
        return readers.count == names.count ? readers : nil
    }

    private static func member(of record: JSONObject, below parent: NodeParent) -> UserID? {
        if case .node = parent { sender(of: record) } else { nil }
    }

    private static func sender(of record: JSONObject) -> UserID? {
        record[RecordKey.sender.rawValue]?.stringValue.flatMap { try? UserID($0) }
    }
}

extension NodeParent {
    /// The form in the table `node`: 16 bytes of an id, or the name of a trunk, which is shorter.
    var stored: [UInt8] {
        switch self {
        case .trunk(let trunk): Array(trunk.rawValue.utf8)
        case .node(let node): node.octets
        }
    }

    /// - Returns: nil for bytes that are neither.
    init?(stored: [UInt8]) {
        if let node = NodeID(octets: stored) {
            self = .node(node)
        } else if let trunk = Trunk(rawValue: String(decoding: stored, as: UTF8.self)) {
            self = .trunk(trunk)
        } else {
            return nil
        }
    }
}

extension NodeTag {
    /// The form in the table `node`: the 20 bytes that the letters encode.
    var stored: [UInt8] { Base32.decode(text.utf8) ?? [] }

    /// - Returns: nil for bytes that are not a tag.
    init?(stored: [UInt8]) { self.init(text: Base32.encode(stored)) }
}
