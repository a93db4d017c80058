import ThicketCrypto
public import ThicketProtocol
public import ThicketTreeShape

/// The content of a record that is made.
public enum DraftContent: Sendable {
    /// No content.
    case none
    /// Content for the record itself: at most `TreeLimits.inlineBytesMax` sealed bytes. It gets a new id and key.
    case inline(NodeContent, padding: ContentPadding = .standard)
    /// Content that was sealed by a plan and uploaded.
    case blob(ContentSpool, BlobID)
}

/// A new node, as an app describes it.
public struct NodeDraft: Sendable {
    /// The name below the parent.
    public var name: NodeName
    /// The content.
    public var content: DraftContent
    /// Milliseconds since 1970 at which the content was last changed; nil: not stated.
    public var modified: Int64?
    /// Pairs of the app, in any order.
    public var appTags: [NodeMetadata.AppTag]
    /// Milliseconds since 1970 at which the server removes the node; nil: never.
    public var burnTime: Int64?

    /// A node; only the name is required.
    public init(
        _ name: NodeName, content: DraftContent = .none, modified: Int64? = nil,
        appTags: [NodeMetadata.AppTag] = [], burnTime: Int64? = nil
    ) {
        (self.name, self.content, self.modified) = (name, content, modified)
        (self.appTags, self.burnTime) = (appTags, burnTime)
    }
}

/// What changes in a node; nil stays as it is.
public struct NodeEdit: Sendable {
    /// When the server removes the node.
    public enum Burn: Sendable, Hashable {
        /// Never.
        case never
        /// At this time, milliseconds since 1970.
        case at(Int64)
    }

    /// Another name.
    public var name: NodeName?
    /// Another content, or none.
    public var content: DraftContent?
    /// Another time of the last change.
    public var modified: Int64?
    /// Other pairs of the app.
    public var appTags: [NodeMetadata.AppTag]?
    /// Another burn time.
    public var burn: Burn?
    /// Whether `content` is the one that the node has, sealed again: for other devices that is no change of it.
    public var isSealedAgain = false

    /// An edit; without arguments it changes nothing.
    public init(
        name: NodeName? = nil, content: DraftContent? = nil, modified: Int64? = nil,
        appTags: [NodeMetadata.AppTag]? = nil, burn: Burn? = nil
    ) {
        (self.name, self.content, self.modified, self.appTags, self.burn) = (name, content, modified, appTags, burn)
    }
}

/// Makes records of one tree.
public struct NodeSealer: Sendable {
    /// The tree.
    public let tree: TreePlace
    let random: TreeRandom

    /// - Parameters:
    ///   - tree: the tree that the records are for.
    ///   - random: makes keys, salts, ids and nonces.
    public init(_ tree: TreePlace, random: TreeRandom = .system) { (self.tree, self.random) = (tree, random) }

    /// The record of a new node, with a new key and a new child salt; a node that is created again keeps both.
    ///
    /// - Parameters:
    ///   - draft: the node.
    ///   - id: its id.
    ///   - parent: the keys of the parent.
    ///   - kept: what is known of the node from before its removal; nil for a node that never was at the server.
    ///   - author: signs the record, in a shared branch.
    /// - Throws: `SealFault`.
    public func create(
        _ draft: NodeDraft, _ id: NodeID, below parent: ParentKeys, again kept: KeptNode? = nil,
        by author: MessageIdentity? = nil
    ) throws(SealFault) -> NodeRecord {
        // Former members of a shared branch may have the key from before the removal.
        let keptKey = parent.epoch == 0 ? kept?.key : nil
        let key = keptKey ?? newKey()
        guard let appTags = NodeMetadata.ordered(draft.appTags) else { throw .badAppTags }
        let content = try sealed(draft.content)
        let metadata = NodeMetadata(
            name: draft.name, childSalt: kept?.metadata.childSalt ?? random.secret(NodeMetadata.saltBytes),
            content: content?.access, modified: draft.modified, appTags: appTags, origin: kept?.metadata.origin,
            earlierKeys: try kept.map { (kept) throws(SealFault) in try kept.earlierKeys(isKept: keptKey != nil) }
                ?? [],
            endedList: kept?.metadata.endedList, format: kept?.metadata.format ?? 1, others: kept?.metadata.others ?? []
        )
        let record = NodeRecord(
            parent: parent.parent, tag: parent.tag(of: draft.name, id), epoch: parent.epoch,
            wraps: [parent.wrap(key, of: id, in: tree, random)], commitment: Self.commitment(key),
            data: content?.data, burnTime: draft.burnTime, base: 0)
        return try sealing(metadata, with: key, in: record, id, by: author)
    }

    /// The record that replaces one: an edit, a move, or both. The node keeps its key, its salt and its other wraps, so
    /// that nothing below it changes; without another content, the content is untouched. A signature is dropped: it was
    /// of the replaced record. So is the wrap of a received message for its receiver, whose parent's key opens it now.
    ///
    /// A node that hangs on an earlier key of its parent gets another key, and so does one with `renewing`. What is
    /// below it hangs on its earlier key, which its metadata keeps, until that is written too (decision 0067).
    ///
    /// - Parameters:
    ///   - node: the node as it was opened.
    ///   - edit: what changes.
    ///   - parent: the keys of the parent that the node has or gets.
    ///   - base: the version of the node's record that is replaced.
    ///   - author: signs the record, in a shared branch.
    ///   - renewing: whether the node gets another key because it leaves an audience.
    /// - Throws: `SealFault`.
    public func edit(
        _ node: OpenedNode, _ edit: NodeEdit = NodeEdit(), below parent: ParentKeys, replacing base: Version,
        by author: MessageIdentity? = nil, renewing: Bool = false
    ) throws(SealFault) -> NodeRecord {
        precondition(node.tree == tree, "a node is edited in its own tree")
        var (metadata, record) = try edited(node, edit, replacing: base)
        var key = node.key
        // The key of a shared branch's root belongs to its list.
        if record.shareList == nil, renewing || node.hangsOnEarlierKey || record.epoch != parent.epoch {
            (key, metadata.earlierKeys) = (newKey(), try EarlierKey.list(of: node))
            (record.epoch, record.commitment) = (parent.epoch, Self.commitment(key))
        }
        record.parent = parent.parent
        record.tag = parent.tag(of: metadata.name, node.id)
        record.wraps =
            record.wraps.filter { $0.reader != .parent && !$0.isWrap(for: tree.owner) } + [
                parent.wrap(key, of: node.id, epoch: record.epoch, in: tree, random)
            ]
        return try sealing(metadata, with: key, in: record, node.id, by: author)
    }

    /// Metadata and record with an edit that needs no key.
    func edited(
        _ node: OpenedNode, _ edit: NodeEdit, replacing base: Version
    ) throws(SealFault) -> (NodeMetadata, NodeRecord) {
        var (metadata, record) = (node.metadata, node.record)
        (record.signature, record.stamps, record.base) = (nil, RecordStamps(), base)
        metadata.name = edit.name ?? metadata.name
        metadata.modified = edit.modified ?? metadata.modified
        if let tags = edit.appTags, !metadata.setAppTags(tags) { throw .badAppTags }
        if let draft = edit.content {
            let content = try sealed(draft)
            let before = edit.isSealedAgain ? [node.record.data?.id].compactMap(\.self) + metadata.sealedBefore : []
            metadata.sealedBefore = Array(before.prefix(NodeMetadata.sealedBeforeMax))
            (metadata.content, record.data) = (content?.access, content?.data)
        }
        switch edit.burn {
        case .never: record.burnTime = nil
        case .at(let time): record.burnTime = time
        case nil: break
        }
        return (metadata, record)
    }

    /// The record that moves a node, and renames it if a name is given.
    ///
    /// - Throws: `SealFault`.
    public func move(
        _ node: OpenedNode, below parent: ParentKeys, named name: NodeName? = nil, replacing base: Version
    ) throws(SealFault) -> NodeRecord {
        try edit(node, NodeEdit(name: name), below: parent, replacing: base)
    }

    func newKey() -> NodeKey {
        guard let key = try? NodeKey(random.secret(NodeKey.bytesCount)) else {
            preconditionFailure("32 random bytes are a node key")
        }
        return key
    }

    static func commitment(_ key: NodeKey) -> [UInt8] {
        guard let commitment = try? key.commitment() else { preconditionFailure("a node key has a commitment") }
        return commitment
    }

    func sealed(
        _ content: DraftContent
    ) throws(SealFault) -> (access: ContentAccess, data: RecordData)? {
        switch content {
        case .none: return nil
        case .inline(let content, let padding):
            guard let spool = try? ContentSpool(content, padding: padding, random: random), spool.isInline,
                let sealed = try? spool.seal(content)
            else { throw .contentTooLarge }
            return (spool.access, .inline(spool.id, sealed: sealed))
        case .blob(let spool, let blob):
            guard !spool.isInline else { throw .contentTooSmall }
            return (spool.access, .blob(spool.id, length: spool.map.layout.sealedLength, blob: blob))
        }
    }

    /// Seals the metadata into a record whose other members are final, and signs it for its author.
    func sealing(
        _ metadata: NodeMetadata, with key: NodeKey, in record: NodeRecord, _ id: NodeID,
        by author: MessageIdentity? = nil
    ) throws(SealFault) -> NodeRecord {
        let times = 1...TreeLimits.timeMax
        guard record.burnTime.map(times.contains) ?? true, (0...TreeLimits.versionMax).contains(record.base) else {
            throw .outOfBounds
        }
        guard let padded = NodeMetadata.padding.pad(metadata.octets), padded.count <= TreeLimits.metadataBytesMax else {
            throw .metadataTooLarge
        }
        var record = record
        do throws(RecordFault) {
            // Author and key are in the form that the seal is over.
            if let author { record.signature = try RecordSignature(pending: author.user, keyID: author.keys.id) }
        } catch { throw .outOfBounds }
        let data = CanonicalForm.sealing.bytes(of: record, id, in: tree)
        guard let subkey = try? key.subkey(.meta),
            let sealed = try? SealedMessage.seal(padded, key: subkey, data: data, nonce: random.nonce)
        else { preconditionFailure("a subkey has the length of a key") }
        record.metadata = sealed
        do throws(RecordFault) {
            if let author { try RecordSignature.sign(&record, id, in: tree, with: author.signing) }
        } catch { throw .outOfBounds }
        guard record.object.serializedSize <= TreeLimits.recordBytesMax else { throw .recordTooLarge }
        return record
    }
}
