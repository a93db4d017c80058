import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// Accounts with keys, as a key log would have them.
struct TestDirectory: KeyDirectory {
    private let signing: [UserID: Ed25519.SigningKey]
    private let keys: [UserID: PublicKeys]
    static let app = "app"

    init(_ names: String...) throws {
        var (signing, keys) = ([UserID: Ed25519.SigningKey](), [UserID: PublicKeys]())
        for name in names {
            let (user, key) = (try UserID(name), Ed25519.SigningKey.random())
            signing[user] = key
            keys[user] = try PublicKeys(
                user: name, identity: key.verifyingKey, encryption: X25519.PrivateKey.random().publicKey)
        }
        (self.signing, self.keys) = (signing, keys)
    }

    func newestKeys(of user: UserID, in app: AppID) -> PublicKeys? { app.text == Self.app ? keys[user] : nil }

    func keys(of user: UserID, id: String, in app: AppID) -> PublicKeys? {
        newestKeys(of: user, in: app).flatMap { $0.id == id ? $0 : nil }
    }

    func key(of name: String) throws -> Ed25519.SigningKey? { signing[try UserID(name)] }

    /// A copy for a receiver, signed by its author. The sealed parts have only the form.
    ///
    /// - Parameter parent: nil for the inbox.
    func copy(
        _ number: Int, from author: String, to receiver: String, below parent: Int? = nil, source: CopySource? = nil,
        signedFor other: String? = nil, _ change: (inout NodeRecord) throws -> Void = { _ in }
    ) throws -> TreeOperation {
        let (node, user) = (NodeText.id(number), try UserID(receiver))
        var record = try NodeText.record(parent.map { .child($0) } ?? .trunk(.inbox), "n\(number)")
        if parent == nil {
            record.tag = NodeTag(inInbox: node)
            let sealed = [1] + [UInt8](repeating: 3, count: KeyWrap.bytesCount - 1)
            record.wraps = [RecordWrap(.user(user, keyID: "k"), sealed: sealed)]
        }
        try change(&record)
        let id = keys[try UserID(author)]?.id ?? "none"
        record.signature = try RecordSignature(pending: UserID(author), keyID: id)
        if let key = try key(of: author) {
            let tree = TreePlace(app: try AppID(Self.app), owner: try UserID(other ?? receiver))
            try RecordSignature.sign(&record, node, in: tree, with: key)
        }
        return .copy(TreeCopy(node, to: user, source: source, record))
    }
}

/// Batches over the trees of several accounts.
extension TestShard {
    static let ann = "ann@example.com"

    func tree(of name: String) throws -> BucketID {
        BucketID(app: bucket.app, user: try UserID(name), name: bucket.name)
    }

    /// A batch whose signatures are verified as the server does it before the shard decides.
    func batch(
        _ id: Int, by name: String = ann, _ operations: [TreeOperation], _ directory: TestDirectory?, now: Int64? = nil
    ) throws -> SubmittedChange {
        let batch = TreeBatch(id: BatchID(UInt128(id)), operations)
        let request = try TreeBatchRequest(parsing: JSONValue.object(batch.object).serialized())
        let bucket = try tree(of: name)
        let check = CopyCheck(
            request: request, caller: bucket.user, owner: bucket.user, app: bucket.app, directory: directory)
        return SubmittedChange(
            origin: ChangeOrigin(connection: 2, channel: 0), bucket: bucket, clientID: try ClientID("web"),
            library: .other, canWrite: true,
            request: ChangeRequest(key: batch.id.text, ccid: batch.id.text, operation: .modify),
            now: now ?? 5_000 + Int64(id), batch: request.isReady ? request : check.checked())
    }

    /// Sends one batch; the reply is its answer.
    @discardableResult
    func make(
        _ id: Int, by name: String = ann, _ directory: TestDirectory?, now: Int64? = nil, _ operations: TreeOperation...
    ) throws -> BatchReply {
        try send(batch(id, by: name, operations, directory, now: now)).first ?? BatchReply()
    }

    @discardableResult
    func set(_ policy: InboxPolicy, of name: String) throws -> String? {
        let change = SubmittedChange(
            origin: ChangeOrigin(connection: 3, channel: 0), bucket: try tree(of: name), clientID: try ClientID("web"),
            library: .other, canWrite: true, request: ChangeRequest(key: "inbox", ccid: "", operation: .modify),
            now: 4_000, policy: policy)
        return try send(change).first?.text
    }

    /// Makes the tree of another account, as an `init` does.
    func makeTree(of name: String) throws {
        _ = core.receive(.chooseMode(ModeRequest(.tree, of: try tree(of: name), tenant: 1)))
        _ = core.commit()
    }

    /// The numbers of the nodes directly below a parent of an account's tree.
    func numbers(of name: String, below parent: NodeParent = .trunk(.inbox)) throws -> Set<Int> {
        let reader = try store.makeReader()
        guard let row = try reader.bucket(try tree(of: name))?.row else { return [] }
        return Set(try reader.children(of: parent, in: row, limit: 10_000).map { Int($0.value) })
    }

    /// The stored record of a node of an account, with stamps.
    func record(_ number: Int, of name: String) throws -> NodeRecord? {
        let reader = try store.makeReader()
        guard let row = try reader.bucket(try tree(of: name))?.row,
            let body = try reader.head(of: EntityKey(NodeText.key(number)), in: row)?.body
        else { return nil }
        return try NodeRecord(parsing: body, from: .server)
    }

    /// The marks in the log of an account's tree, in order.
    func marks(of name: String) throws -> [BatchMark?] {
        let reader = try store.makeReader()
        guard let bucket = try reader.bucket(try tree(of: name)), bucket.head > 0 else { return [] }
        let page = try reader.changes(
            in: bucket.row, after: 0, upTo: bucket.head, limit: 1_000, byteLimit: 1 << 20)
        return page?.changes.map { BatchMark(ccid: $0.changeID.text) } ?? []
    }
}
