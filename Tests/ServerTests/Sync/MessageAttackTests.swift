import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

@Suite("Messages: attacks by accounts")
struct MessageAttackTests {
    private let people: TestDirectory

    init() throws { people = try TestDirectory(TestShard.ann, "bob", "carol") }

    private func copy(_ number: Int, to receiver: String, by author: String = TestShard.ann) throws -> TreeOperation {
        try people.copy(number, from: author, to: receiver)
    }

    @Test("A8: a forged author, a signature for another receiver and an older key are refused")
    func forgery() throws {
        let shard = try TestShard.tree(.disk)
        let older = try TestDirectory(TestShard.ann, "bob")
        let forged: [TreeOperation] = [
            // Carol's record, sent by ann.
            try copy(2, to: "bob", by: "carol"),
            // An account without keys.
            try copy(2, to: "bob", by: "mallory"),
            // What ann has signed for carol, sent to bob as if it were for him.
            try people.copy(2, from: TestShard.ann, to: "bob", signedFor: "carol"),
            // Signed with keys that are not the newest ones.
            try older.copy(2, from: TestShard.ann, to: "bob"),
        ]
        for (index, operation) in forged.enumerated() {
            let reply = try shard.send(shard.batch(index, [copy(7, to: "bob"), operation], people)).first
            #expect(reply?.reason == .signature && reply?.code == 401 && reply?.operation == 1, "\(index)")
        }
        // Bob passes ann's record on: it is signed by ann, for bob.
        try shard.make(20, people, copy(2, to: "bob"))
        guard case .copy(var stolen) = try copy(2, to: "bob") else { return #expect(Bool(false)) }
        stolen.receiver = try UserID("carol")
        stolen.record.wraps = [RecordWrap(.user(stolen.receiver, keyID: "k"), sealed: stolen.record.wraps[0].sealed)]
        #expect(try shard.make(21, by: "bob", people, .copy(stolen)).reason == .signature)
        #expect(try shard.numbers(of: "bob") == [2] && shard.numbers(of: "carol") == [])
    }

    @Test("A8: a message is not delivered twice, also after its receiver has moved or removed it")
    func twice() throws {
        let shard = try TestShard.tree(.disk)
        try shard.make(1, people, copy(2, to: "bob"))
        let again = try shard.make(2, people, copy(2, to: "bob"))
        #expect(again.reason == .repeated && again.code == 409 && again.refused?.tree?.current == nil)
        try shard.make(3, by: "bob", nil, TestShard.delete(2, sv: 1))
        let later = try shard.make(4, people, copy(2, to: "bob"))
        #expect(
            later.reason == again.reason && later.refused?.detail == again.refused?.detail,
            "the sender does not learn whether the receiver has removed it")
        try shard.makeTree(of: "carol")
        #expect(try shard.make(5, by: "carol", people, copy(2, to: "bob", by: "carol")).reason == .repeated)
    }

    @Test("A9: a stranger writes nowhere but in the inbox, and overwrites nothing there")
    func places() throws {
        let shard = try TestShard.tree(.disk)
        try shard.makeTree(of: "bob")
        try shard.make(1, by: "bob", nil, TestShard.put(50, "bob's"))
        try shard.make(2, people, copy(2, to: "bob"))
        // Below a node that the batch has not copied: the answer is the same whether it exists or not.
        for (index, parent) in [50, 2, 77].enumerated() {
            let operation = try people.copy(5, from: TestShard.ann, to: "bob", below: parent)
            let reply = try shard.make(10 + index, people, operation)
            #expect(reply.reason == .parentMissing && reply.code == 400 && reply.operation == 0, "\(parent)")
        }
        // What was copied into another tree is no parent in this one.
        let other = try shard.make(
            20, people, copy(6, to: "carol"), people.copy(7, from: TestShard.ann, to: "bob", below: 6))
        #expect(other.reason == .parentMissing && other.operation == 1)
        // Bob's own node has the id: not replaced.
        #expect(try shard.make(21, people, copy(50, to: "bob")).reason == .repeated)
        let tag = try people.copy(8, from: TestShard.ann, to: "bob") { $0.tag = try NodeTag(of: [1], salt: []) }
        #expect(try shard.make(22, people, tag).reason == .badRecord)
        #expect(try shard.numbers(of: "bob") == [2] && shard.numbers(of: "bob", below: .trunk(.home)) == [50])
        #expect(try shard.record(2, of: "bob")?.base == 0)
    }

    @Test("A9: ordinary operations of a stranger reach only its own tree")
    func ownTree() throws {
        let shard = try TestShard.tree(.disk)
        try shard.make(1, people, copy(2, to: "bob"))
        #expect(try shard.make(2, TestShard.delete(2, sv: 1)).reason == .nodeMissing)
        #expect(try shard.make(3, TestShard.deleteTree(2, sv: 1)).reason == .nodeMissing)
        #expect(try shard.make(4, TestShard.put(2, "x", sv: 1)).reason == .nodeMissing)
        #expect(try shard.numbers(of: "bob") == [2])
    }

    @Test("A22: a copy names a blob that its author has uploaded or refers to, and that of its source")
    func blobs() throws {
        let store = MemoryStore()
        let shard = try TestShard.tree(.warm, store: store)
        let ledger = try store.makeBlobLedger()
        func upload(_ name: String) throws -> BlobID {
            let id = BlobID.random()
            let upload = BlobUpload(
                id: id, app: shard.bucket.app, user: try UserID(name), length: ModelTree.blobLength, partBytes: 1 << 20,
                begun: 1)
            let quota = BlobQuota(userBytesMax: 1 << 40, appBytesMax: 1 << 40, uploadsMax: 9)
            #expect(try ledger.begin(upload, within: quota) == .accepted)
            #expect(try ledger.complete(id, proof: [1], now: 1))
            return id
        }
        let (mine, other, foreign) = (try upload(TestShard.ann), try upload(TestShard.ann), try upload("carol"))
        func copy(_ number: Int, _ blob: BlobID, from source: CopySource? = nil) throws -> TreeOperation {
            try people.copy(number, from: TestShard.ann, to: "bob", source: source) {
                $0.data = .blob(DataID(7), length: UInt64(ModelTree.blobLength), blob: blob)
            }
        }
        try shard.make(1, TestShard.put(1, "a", blob: mine))
        let source = CopySource(NodeText.id(1), version: 1)
        #expect(try shard.make(2, people, copy(2, foreign)).reason == .blobMissing)
        #expect(try shard.make(3, people, copy(2, BlobID.random())).reason == .blobMissing)
        #expect(try shard.make(4, people, copy(2, other, from: source)).reason == .blobMissing)
        let stale = try shard.make(5, people, copy(2, mine, from: CopySource(NodeText.id(1), version: 2)))
        #expect(stale.reason == .stale && stale.refused?.tree?.current == 1)
        #expect(
            try shard.make(6, people, copy(2, mine, from: CopySource(NodeText.id(9), version: 1))).reason
                == .nodeMissing)
        #expect(try shard.make(7, people, copy(2, mine, from: source)).results == [.version(1)])
        #expect(try shard.make(8, people, copy(3, other)).results == [.version(1)])
        // The receiver reads through its own node, nobody else's.
        let (app, bob) = (shard.bucket.app, try UserID("bob"))
        #expect(try ledger.length(of: mine, in: NodeText.id(2), of: app, bob) == ModelTree.blobLength)
        #expect(try ledger.length(of: mine, in: NodeText.id(2), of: app, shard.bucket.user) == nil)
        #expect(try ledger.length(of: mine, in: NodeText.id(2), of: app, try UserID("carol")) == nil)
        // The sender's node goes: the blob stays while the receiver refers to it.
        try shard.make(9, TestShard.delete(1, sv: 1))
        // The foreign one, to which nothing refers, goes; this one stays.
        #expect(try ledger.collect(until: 1 << 40, limit: 10) == 1)
        #expect(try ledger.length(of: mine, in: NodeText.id(2), of: app, bob) == ModelTree.blobLength)
        try shard.make(10, by: "bob", nil, TestShard.delete(2, sv: 1))
        #expect(try ledger.collect(until: 1 << 40, limit: 10) == 1)
    }

    @Test("a server without a key log refuses copies for now, and says nothing about receivers")
    func noDirectory() throws {
        let shard = try TestShard.tree(.disk)
        let reply = try shard.make(1, nil, copy(2, to: "bob"))
        #expect(reply.code == 503 && reply.reason == nil)
        #expect(try shard.make(2, TestShard.put(1, "a")).results == [.version(1)])
    }
}
