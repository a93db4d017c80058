package import ThicketProtocol
import ThicketSQLite
package import ThicketTree
package import ThicketTreeShape

/// A node in the store.
package struct NodeRow: Sendable {
    package enum State: Int64, Sendable {
        /// Shown.
        case open
        /// The parent is not known yet, so the record cannot be opened.
        case unopened
        /// The record does not open. A last good one stays shown, then the state is `open`.
        case quarantined
        /// Removed here; the log has not brought it yet.
        case leaving
        /// Another device moved the node, or one above it, into a branch that is removed here. Local changes of it are
        /// kept.
        case covered
        /// A message, or an attachment, that is not shown: keys of its author are not known yet.
        case awaiting

        /// Whether the node is in a branch that is removed here.
        var isConcealed: Bool { self == .leaving || self == .covered }
    }

    package let id: NodeID
    package var parent: NodeParent
    /// nil while the record has not been opened.
    package var name: NodeName?
    package var state: State
    /// The version that the server has; 0: none.
    package var version: Version
    /// What the server has, as JSON; nil when `version` is 0.
    package var record: [UInt8]?
    package var changed: Int64?
    package var modified: Int64?
    package var burnTime: Int64?
    package var tags: [NodeMetadata.AppTag] = []
    package var content: Node.ContentInfo?
    /// The number of the last full listing that had the node.
    package var scan: Int64 = 0
    /// Of a message; not always verified.
    package var origin: MessageOrigin?

    package init(
        _ id: NodeID, parent: NodeParent, name: NodeName?, state: State, version: Version = 0, record: [UInt8]? = nil
    ) {
        (self.id, self.parent, self.name, self.state) = (id, parent, name, state)
        (self.version, self.record) = (version, record)
    }

    /// The node as the app sees it; nil for one that is not shown.
    package func node(isPending: Bool) -> Node? {
        guard state == .open, let name else { return nil }
        return Node(
            id: id, parent: parent, name: name, version: version, content: content, modified: modified,
            changed: changed, burnTime: burnTime, tags: tags, isPending: isPending,
            origin: origin?.isVerified == true ? origin : nil)
    }

    /// The place that the node has; nil while its name is unknown.
    package var place: Place? {
        name.map { Place(parent, $0) }
    }

    /// Whether a record of the server is the one that this row has. Versions do not decide: a node may have been
    /// removed and created again. The metadata's nonce is random, so equal metadata are the same record.
    func hasMetadata(of object: JSONObject) -> Bool {
        guard let text = record, let known = (try? JSONValue(parsing: text))?.objectValue else { return false }
        return known[RecordKey.metadata.rawValue] == object[RecordKey.metadata.rawValue]
    }

    static let columns = """
        id, parent, name, state, version, record, changed, modified, burn, tags, data, blob, metadata_size,
        thumbnail_size, data_size, stored, scan, origin
        """

    /// - Returns: nil for a row that is not valid.
    init?(_ row: Statement) {
        guard let id = NodeID(octets: row.bytes(0)), let parent = NodeParent(stored: row.bytes(1)),
            let state = State(rawValue: row.integer(3))
        else { return nil }
        let name = row.isNull(2) ? nil : try? NodeName(row.text(2))
        self.init(id, parent: parent, name: name, state: state, version: row.integer(4), record: row.optionalBytes(5))
        (changed, modified, burnTime) = (row.optionalInteger(6), row.optionalInteger(7), row.optionalInteger(8))
        tags = Self.tags(row.optionalBytes(9) ?? [])
        scan = row.integer(16)
        origin = row.optionalBytes(17).flatMap(MessageOrigin.init(octets:))
        guard let data = row.optionalBytes(10).flatMap(DataID.init(octets:)),
            let sizes = try? SectionSizes(
                metadata: UInt64(row.integer(12)), thumbnail: UInt64(row.integer(13)), data: UInt64(row.integer(14)))
        else { return }
        content = Node.ContentInfo(
            id: data, sizes: sizes, storedBytes: UInt64(row.integer(15)),
            blob: row.optionalBytes(11).flatMap(BlobID.init(octets:)))
    }

    func bind(to statement: Statement) {
        statement.bind(1, id.octets).bind(2, parent.stored).bind(3, name?.text).bind(4, state.rawValue)
            .bind(5, version).bind(6, record).bind(7, changed).bind(8, modified).bind(9, burnTime)
            .bind(10, tags.isEmpty ? nil : Self.octets(tags)).bind(11, content?.id.octets)
            .bind(12, content?.blob?.octets)
            .bind(13, content.map { Int64($0.sizes.metadata) }).bind(14, content.map { Int64($0.sizes.thumbnail) })
            .bind(15, content.map { Int64($0.sizes.data) }).bind(16, content.map { Int64($0.storedBytes) })
            .bind(17, scan).bind(18, origin?.octets).bind(19, name?.folded)
    }

    // MARK: - Pairs of the app: for each one byte and two bytes of length, the key, the value

    private static func octets(_ tags: [NodeMetadata.AppTag]) -> [UInt8] {
        var bytes = [UInt8]()
        for tag in tags {
            let key = Array(tag.key.utf8)
            bytes += [UInt8(key.count), UInt8(tag.value.count >> 8), UInt8(tag.value.count & 0xFF)] + key + tag.value
        }
        return bytes
    }

    private static func tags(_ bytes: [UInt8]) -> [NodeMetadata.AppTag] {
        var (tags, place) = ([NodeMetadata.AppTag](), 0)
        while place + 3 <= bytes.count {
            let (key, value) = (Int(bytes[place]), Int(bytes[place + 1]) << 8 | Int(bytes[place + 2]))
            let end = place + 3 + key + value
            guard end <= bytes.count,
                let tag = NodeMetadata.AppTag(
                    String(decoding: bytes[place + 3..<place + 3 + key], as: UTF8.self),
                    Array(bytes[place + 3 + key..<end]))
            else { break }
            tags.append(tag)
            place = end
        }
        return tags
    }
}
