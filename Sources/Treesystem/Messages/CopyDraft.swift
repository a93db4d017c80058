import ThicketCrypto
internal import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// A message that is made for a batch: its nodes and its statement, which are the same for all receivers.
struct CopyDraft {
    let statement: OriginStatement
    private let parts: [MessagePart]
    private let identity: MessageIdentity
    private let app: AppID

    /// Records of one message, for all receivers together, at most.
    static let recordsMax = 700

    /// - Parameters:
    ///   - operation: of one of its receivers. The others are those of its group.
    ///   - next: the message's number in its conversation, and the hash of the statement before it.
    ///   - known: records that are in the batch.
    /// - Throws: `content`, `limit`, `quarantined`, `noKeys`, `store`.
    init(
        _ operation: PendingOperation, _ next: (counter: UInt64, previous: Digest256), _ skeleton: inout TreeSkeleton,
        _ known: [NodeID: NodeRecord]
    ) throws(TreeError) {
        guard let identity = skeleton.messages.identity, case .copy(let receiver, let conversation) = operation.kind
        else { throw TreeError(.noKeys, "the session has no keys for messages") }
        (self.identity, app) = (identity, skeleton.keyring.keys.tree.app)
        parts = try Self.parts(operation, &skeleton, known)
        let group = skeleton.queue.operations(of: operation.node).filter {
            $0.isCopy && $0.group != nil && $0.group == operation.group
        }
        let recipients = Set(group.compactMap(\.receiver) + [receiver])
        guard recipients.count * parts.count <= Self.recordsMax else { throw Self.tooLarge }
        var nodes = [OriginNode]()
        for part in parts {
            let digest = try part.blob.flatMap { id throws(TreeError) in try skeleton.store.digest(id) }
            guard let node = part.originNode(digest) else {
                throw TreeError(
                    .content, "the digest of a content is not known on this device", reason: ContentDigests.missing)
            }
            nodes.append(node)
        }
        let fields = OriginStatement.Fields(
            app: app, author: identity.user, keyID: identity.keys.id, device: try Self.device(skeleton),
            recipients: recipients, conversation: conversation, counter: next.counter, previous: next.previous,
            sent: skeleton.time.unix, message: nodes[0], attachments: Array(nodes.dropFirst()),
            head: skeleton.messages.head, name: skeleton.messages.name)
        do throws(OriginFault) { statement = try OriginStatement(fields, from: identity) } catch {
            throw TreeError(.limit, error.description)
        }
    }

    private static let tooLarge = TreeError(
        .limit, "a message has at most \(recordsMax) records: its nodes times its receivers")

    /// The message and what is below it; of a signal, which is in no tree, its content.
    private static func parts(
        _ operation: PendingOperation, _ skeleton: inout TreeSkeleton, _ known: [NodeID: NodeRecord]
    ) throws(TreeError) -> [MessagePart] {
        let id = operation.node
        guard try skeleton.store.row(id) != nil else {
            guard let content = try skeleton.store.heldContent(operation.id).flatMap(HeldContent.content),
                let part = try? MessagePart(
                    id, signalling: content, modified: skeleton.time.unix, random: skeleton.keyring.random)
            else { throw TreeError(.content, "the content of the signal is damaged") }
            return [part]
        }
        var parts = [MessagePart(copying: try opened(id, &skeleton, known))]
        for row in try skeleton.store.allChildren(of: .node(id)) {
            // A child without a record was made after the message.
            guard row.state == .open || row.state == .leaving, row.record != nil || known[row.id] != nil else {
                continue
            }
            parts.append(MessagePart(copying: try opened(row.id, &skeleton, known)))
        }
        guard parts.count <= OriginStatement.nodesMax else {
            throw TreeError(.limit, "a message has at most \(OriginStatement.nodesMax - 1) attachments")
        }
        return parts
    }

    private static func opened(
        _ id: NodeID, _ skeleton: inout TreeSkeleton, _ known: [NodeID: NodeRecord]
    ) throws(TreeError) -> OpenedNode {
        let store = skeleton.store
        let record = { (id: NodeID) throws(TreeError) -> NodeRecord? in
            if let made = known[id] { return made }
            guard let text = try store.row(id)?.record else { return nil }
            return try? NodeRecord(parsing: text, from: .server)
        }
        guard let own = try record(id),
            let parent = try skeleton.keyring.keys(
                of: own.parent, keeps: false,
                { id throws(TreeError) in try record(id).map { TreeKeyring.KnownNode.record($0) } }),
            let node = try? skeleton.keyring.opener.open(own, id, below: parent)
        else { throw TreeError(.quarantined, "the record of the node does not open") }
        if case .withheld? = own.data { throw TreeError(.content, "the content of the node is not on this device") }
        return node
    }

    /// The random number of this device as an author.
    private static func device(_ skeleton: TreeSkeleton) throws(TreeError) -> UInt64 {
        let name = "origin-device"
        if let known = try skeleton.store.namedValue(name).flatMap({ UInt64($0, radix: 16) }) { return known }
        let fresh = skeleton.keyring.random.bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
        try skeleton.store.setNamedValue(name, String(fresh, radix: 16))
        return fresh
    }

    /// The records for one receiver.
    ///
    /// - Throws: `keys`, `content`.
    func copies(to receiver: UserID, _ skeleton: TreeSkeleton) throws(TreeError) -> [TreeCopy] {
        guard let keys = skeleton.messages.keys[KeyQuestion(receiver)] else {
            throw TreeError(.keys, "the keys of the receiver are not known", reason: KeyTrouble.absent.rawValue)
        }
        do throws(SealFault) {
            let sealer = try MessageSealer(app, from: identity, to: keys, random: skeleton.keyring.random)
            let (record, childKeys) = try sealer.message(parts[0], statement)
            var copies = [TreeCopy(parts[0].id, to: receiver, record)]
            for part in parts.dropFirst() {
                copies.append(TreeCopy(part.id, to: receiver, try sealer.attachment(part, below: childKeys)))
            }
            return copies
        } catch { throw TreeError(.content, "the message could not be sealed: \(error)") }
    }

    // MARK: - Answered

    /// The server has put the message into the receiver's inbox, or has removed it there.
    static func delivered(_ operation: PendingOperation, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        try skeleton.drop(operation)
        guard operation.isCopy, let receiver = operation.receiver else { return }
        try skeleton.store.setDelivered(operation.node, to: receiver, at: skeleton.time.unix)
        skeleton.events.append(.delivered(operation.node, to: receiver))
    }
}
