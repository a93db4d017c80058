import ThicketCrypto
public import ThicketKeyLog
public import ThicketProtocol
public import ThicketTreeShape

/// A node of a message as it is sealed for a receiver: what of it is the same for all of them.
public struct MessagePart: Sendable {
    /// The node's id, which is the same in all trees.
    public let id: NodeID
    let name: NodeName
    let content: ContentAccess?
    let data: RecordData?
    let modified: Int64?
    let appTags: [NodeMetadata.AppTag]

    /// A copy of a node. Content and its key stay as they are; the receiver gets another node key.
    public init(copying node: OpenedNode) {
        (id, name, content, data) = (node.id, node.metadata.name, node.metadata.content, node.record.data)
        (modified, appTags) = (node.metadata.modified, node.metadata.appTags)
    }

    /// A node that is in no tree of its author.
    ///
    /// - Throws: `contentTooLarge` for content that does not fit into a record.
    public init(
        _ id: NodeID, signalling content: NodeContent, modified: Int64?, random: TreeRandom
    ) throws(SealFault) {
        guard let name = try? NodeName(id.text) else { preconditionFailure("an id is a name") }
        guard let spool = try? ContentSpool(content, random: random), spool.isInline,
            let sealed = try? spool.seal(content)
        else { throw .contentTooLarge }
        (self.id, self.name, self.content, data) = (id, name, spool.access, .inline(spool.id, sealed: sealed))
        (self.modified, appTags) = (modified, [])
    }

    /// The content in a blob, whose digest the statement needs; nil for other contents.
    public var blob: DataID? {
        if case .blob(let id, _, _)? = data { return id }
        return nil
    }

    /// The node in a statement.
    ///
    /// - Parameter digest: of a content in a blob.
    /// - Returns: nil for a content in a blob without `digest`.
    public func originNode(_ digest: Digest256?) -> OriginNode? {
        guard let data else { return OriginNode(id, nil) }
        return ContentDigest(data, digest: digest).map { OriginNode(id, $0) }
    }
}

/// Makes the records of messages for one receiver. Each record gets a key of its own, so that receivers of one message
/// cannot change each other's.
public struct MessageSealer: Sendable {
    private let sealer: NodeSealer
    private let identity: MessageIdentity
    private let receiver: PublicKeys

    /// - Parameters:
    ///   - app: the app of both trees.
    ///   - identity: the author.
    ///   - receiver: the verified keys of the receiver.
    ///   - random: makes keys, salts and nonces.
    /// - Throws: `outOfBounds` for keys whose account is not a user id.
    public init(
        _ app: AppID, from identity: MessageIdentity, to receiver: PublicKeys, random: TreeRandom
    ) throws(SealFault) {
        guard let user = try? UserID(receiver.user) else { throw .outOfBounds }
        (self.identity, self.receiver) = (identity, receiver)
        sealer = NodeSealer(TreePlace(app: app, owner: user), random: random)
    }

    /// The record of a message in the receiver's inbox.
    ///
    /// - Returns: it, and what makes the records of its attachments.
    /// - Throws: `SealFault`.
    public func message(
        _ part: MessagePart, _ statement: OriginStatement
    ) throws(SealFault) -> (record: NodeRecord, childKeys: ParentKeys) {
        let key = sealer.newKey()
        let context = KeyWrap(
            of: part.id, in: sealer.tree, epoch: 0, for: sealer.tree.owner, keyID: receiver.id)
        guard let sealed = try? context.seal(key.secret, to: receiver.encryption) else { throw .unusableKey }
        let wrap = RecordWrap(.user(sealer.tree.owner, keyID: receiver.id), sealed: sealed)
        return try record(part, key, .trunk(.inbox), NodeTag(inInbox: part.id), wrap, statement.octets)
    }

    /// The record of an attachment.
    ///
    /// - Parameters:
    ///   - part: the attachment.
    ///   - parent: what `message` has returned.
    /// - Throws: `SealFault`.
    public func attachment(_ part: MessagePart, below parent: ParentKeys) throws(SealFault) -> NodeRecord {
        let key = sealer.newKey()
        let wrap = parent.wrap(key, of: part.id, in: sealer.tree, sealer.random)
        return try record(part, key, parent.parent, parent.tag(of: part.name, part.id), wrap, nil).record
    }

    private func record(
        _ part: MessagePart, _ key: NodeKey, _ parent: NodeParent, _ tag: NodeTag, _ wrap: RecordWrap,
        _ origin: [UInt8]?
    ) throws(SealFault) -> (record: NodeRecord, childKeys: ParentKeys) {
        let metadata = NodeMetadata(
            name: part.name, childSalt: sealer.random.secret(NodeMetadata.saltBytes), content: part.content,
            modified: part.modified, appTags: part.appTags, origin: origin)
        let bare = NodeRecord(
            parent: parent, tag: tag, epoch: 0, wraps: [wrap], commitment: NodeSealer.commitment(key),
            data: part.data, base: 0)
        let record = try sealer.sealing(metadata, with: key, in: bare, part.id, by: identity)
        let secrets = ChildSecrets(node: part.id, epoch: 0, key: key, childSalt: metadata.childSalt)
        return (record, secrets.keys)
    }
}

extension OriginStatement {
    /// Signs fields for the account of an identity.
    ///
    /// - Throws: `outOfBounds`, `tooLarge`.
    public init(_ fields: Fields, from identity: MessageIdentity) throws(OriginFault) {
        try self.init(fields, signedBy: identity.signing)
    }
}
