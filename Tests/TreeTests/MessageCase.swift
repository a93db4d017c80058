import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol

@testable import ThicketTree
@testable import ThicketTreeShape

/// Ann, who writes to Bob, with keys from a seed.
struct MessageCase {
    let ann: TreeCase
    let bob: TreeCase
    let author: MessageIdentity
    let receiver: MessageIdentity
    let opener: NodeOpener

    init(seed: UInt64) throws {
        (ann, bob) = (try TreeCase(seed: seed, owner: "ann"), try TreeCase(seed: seed + 1_000, owner: "bob"))
        (author, receiver) = (try Self.identity("ann", seed: 1), try Self.identity("bob", seed: 2))
        opener = NodeOpener(bob.tree, identity: receiver)
    }

    static func identity(_ user: String, seed: UInt8) throws -> MessageIdentity {
        MessageIdentity(
            user: try UserID(user),
            signing: try Ed25519.SigningKey(seed: SecureBytes(copying: [UInt8](repeating: seed, count: 32))),
            exchange: try X25519.PrivateKey(SecureBytes(copying: [UInt8](repeating: seed + 100, count: 32))))
    }

    var app: AppID { ann.tree.app }
    var inbox: ParentKeys { bob.keys.parent(.inbox) }
    var conversation: ConversationID { ConversationID(app: app, participants: [author.user, receiver.user]) }

    func fields(
        counter: UInt64 = 1, previous: Digest256 = .zero, message: OriginNode? = nil, attachments: [OriginNode] = [],
        to users: Set<UserID>? = nil
    ) -> OriginStatement.Fields {
        OriginStatement.Fields(
            app: app, author: author.user, keyID: author.keys.id, device: 7, recipients: users ?? [receiver.user],
            conversation: conversation, counter: counter, previous: previous, sent: 1_700_000_000_000,
            message: message ?? OriginNode(ann.newID(), nil), attachments: attachments, head: nil)
    }

    func statement(counter: UInt64, previous: Digest256) throws -> OriginStatement {
        try OriginStatement(fields(counter: counter, previous: previous), from: author)
    }

    /// A message of Ann's tree with attachments, as Bob gets it.
    struct Sent {
        let message: OpenedNode
        let statement: OriginStatement
        var record: NodeRecord
        var attachments: [(id: NodeID, record: NodeRecord)]
    }

    func send(
        _ text: String, attachments: [String] = [], to receiver: MessageIdentity? = nil, listing: Bool = true
    ) throws -> Sent {
        let message = try ann.node("message", below: ann.home, content: .inline(NodeContent(data: Array(text.utf8))))
        let below = try attachments.map {
            try ann.node($0, below: message.childKeys, content: .inline(NodeContent(data: Array($0.utf8))))
        }
        let parts = ([message] + below).map { MessagePart(copying: $0) }
        let nodes = parts.compactMap { $0.originNode(nil) }
        let statement = try OriginStatement(
            fields(message: nodes[0], attachments: listing ? Array(nodes.dropFirst()) : []), from: author)
        let sealer = try MessageSealer(
            app, from: author, to: (receiver ?? self.receiver).keys, random: ann.random)
        let (record, keys) = try sealer.message(parts[0], statement)
        return Sent(
            message: message, statement: statement, record: record,
            attachments: try parts.dropFirst().map { ($0.id, try sealer.attachment($0, below: keys)) })
    }

    /// What opening and verifying a message throws.
    func fault(_ record: NodeRecord, _ id: NodeID, _ keys: PublicKeys? = nil) -> (any Error)? {
        do {
            let node = try opener.open(record, id, below: inbox)
            try MessageCheck.verify(node, MessageCheck.statement(of: node), keys ?? author.keys)
            _ = try node.inlineContent()
            return nil
        } catch { return error }
    }
}
