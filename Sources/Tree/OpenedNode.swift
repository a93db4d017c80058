public import ThicketCrypto
public import ThicketTreeShape

/// A record that was opened and is genuine.
public struct OpenedNode: Sendable {
    /// The tree.
    public let tree: TreePlace
    /// The node.
    public let id: NodeID
    /// The record as it was opened.
    public let record: NodeRecord
    /// What only devices know.
    public let metadata: NodeMetadata
    /// The node's key.
    let key: NodeKey
    /// How the key was opened.
    let access: Access

    /// What opened the key of a node.
    enum Access: Sendable, Hashable {
        /// The newest key of the parent, or the wrap of a message for its receiver.
        case parent
        /// An earlier key of the parent: the node needs another one when it is written (decision 0067).
        case earlierKey
        /// The wrap for a reader of a shared branch, of which the node is the root.
        case member
    }

    init(
        tree: TreePlace, id: NodeID, record: NodeRecord, metadata: NodeMetadata, key: NodeKey, access: Access = .parent
    ) {
        (self.tree, self.id, self.record, self.metadata, self.key) = (tree, id, record, metadata, key)
        self.access = access
    }

    /// The place at which the node is shown: of the root of another account's branch the trunk `home`.
    public var parent: NodeParent { access == .member ? .trunk(.home) : record.parent }

    /// Whether the node's key, or that of its parent, is not the newest one: it gets another one when it is written.
    public var hangsOnEarlierKey: Bool { access == .earlierKey }

    /// Whether another account has written the record: then it proves nothing before `MessageCheck` has verified it.
    public var isFromOthers: Bool {
        let isSigned = record.signature.map { $0.author != tree.owner } ?? false
        return isSigned || !record.wraps.contains { $0.reader == .parent }
    }

    /// The name below the parent: in the inbox the node's id, elsewhere the name in the metadata. A deposit in a drop
    /// box has the beginning of its id in its name, because its author does not know which names are taken.
    public var name: NodeName {
        if record.isDeposit(id) { return metadata.name.marked(id) }
        guard record.parent == .trunk(.inbox) else { return metadata.name }
        guard let name = try? NodeName(id.text) else { preconditionFailure("an id is a name") }
        return name
    }

    /// What makes, opens and names the nodes directly below.
    public var childKeys: ParentKeys { childSecrets.keys }

    /// What `childKeys` are derived from.
    public var childSecrets: ChildSecrets {
        ChildSecrets(
            node: id, epoch: record.epoch, key: key, childSalt: metadata.childSalt, earlier: metadata.earlierKeys)
    }

    /// Opens the content in the record.
    ///
    /// - Returns: nil for a node without content.
    /// - Throws: `notInline` for content in a blob; `content` if it does not open or has another form than the metadata
    ///   says.
    public func inlineContent() throws(NodeFault) -> NodeContent? {
        guard let data = record.data, let access = metadata.content else { return nil }
        guard case .inline(let id, let sealed) = data else { throw .notInline }
        guard let key = try? access.contentKey(id),
            let stream = try? ContentOpener.open(sealed, key, length: data.plainLength)
        else { throw .content(.damaged) }
        do throws(ContentFault) {
            return try NodeContent(stream: stream, sizes: access.sizes)
        } catch { throw .content(error) }
    }

    /// Where the sections of the content are, and what opens them; for content in a blob.
    ///
    /// - Returns: nil for a node without content.
    /// - Throws: `content(.damaged)` if the sections are longer than the content.
    public func contentMap() throws(NodeFault) -> (key: ContentKey, map: SectionMap)? {
        guard let data = record.data, let access = metadata.content else { return nil }
        guard let key = try? access.contentKey(data.id) else { throw .content(.damaged) }
        do throws(ContentFault) {
            return (key, try SectionMap(access.sizes, plainLength: data.plainLength))
        } catch { throw .content(error) }
    }
}

/// What the keys for the nodes below a node are derived from. Most nodes have none below them, and deriving takes a
/// tenth of the time of opening a node.
public struct ChildSecrets: Sendable {
    let node: NodeID
    let epoch: UInt32
    let key: NodeKey
    let childSalt: SecureBytes
    /// The node's keys of earlier epochs, the newest first.
    var earlier: [EarlierKey] = []

    /// The derived keys.
    public var keys: ParentKeys {
        ParentKeys(.node(node), epoch: epoch, key: key, childSalt: childSalt, earlier: earlier)
    }
}

extension OpenedNode: CustomStringConvertible, CustomReflectable {
    /// The id alone: names and keys never reach a log.
    public var description: String { id.text }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
