import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

@Suite("Copies into other trees: form and signature", .noncesGiven)
struct CopyTests {
    private let trees: TreeCase
    private let key = Ed25519.SigningKey.random()
    private let receiver: UserID
    private let node: NodeID
    private let record: NodeRecord

    init() throws {
        trees = try TreeCase(seed: 11)
        receiver = try UserID("bob")
        node = trees.newID()
        var record = try trees.sealer.create(NodeDraft(NodeName("hello")), node, below: trees.home)
        record.parent = .trunk(.inbox)
        record.tag = NodeTag(inInbox: node)
        record.wraps = [Self.wrap(.user(receiver, keyID: "kb"))]
        record.signature = try RecordSignature(pending: trees.tree.owner, keyID: "ka")
        try RecordSignature.sign(
            &record, node, in: TreePlace(app: trees.tree.app, owner: receiver), with: key)
        self.record = record
    }

    private static func wrap(_ reader: RecordWrap.Reader) -> RecordWrap {
        let count = reader == .parent ? TreeLimits.parentWrapBytes : KeyWrap.bytesCount
        return RecordWrap(reader, sealed: [UInt8](repeating: 1, count: count))
    }

    private var place: TreePlace { TreePlace(app: trees.tree.app, owner: receiver) }

    private func fault(_ copy: TreeCopy) -> RefusalReason? {
        let text = JSONValue.object(TreeBatch(id: BatchID(1), [.copy(copy)]).object).serialized()
        do throws(BatchFault) {
            _ = try TreeBatch(parsing: text)
            return nil
        } catch { return error.reason }
    }

    @Test("a copy and a burn have one written form, with and without a source")
    func form() throws {
        let text = JSONValue.object(record.object).serializedText
        let cases: [(TreeOperation, String)] = [
            (
                .copy(TreeCopy(node, to: receiver, record)),
                "{\"op\":\"copy\",\"id\":\"\(node.text)\",\"to\":\"bob\",\"record\":\(text)}"
            ),
            (
                .copy(TreeCopy(node, to: receiver, source: CopySource(NodeID(1), version: 7), record)),
                """
                {"op":"copy","id":"\(node.text)","to":"bob","source":{"id":"\(NodeID(1).text)","sv":7},\
                "record":\(text)}
                """
            ),
            (.burn(node, to: receiver), "{\"op\":\"burn\",\"id\":\"\(node.text)\",\"to\":\"bob\"}"),
        ]
        for (operation, written) in cases {
            #expect(operation.json.serializedText == written)
            #expect(try TreeOperation(parsing: Array(written.utf8)) == operation)
            #expect(operation.receiver == receiver && operation.node == node)
        }
    }

    @Test("a copy is new, signed, and in the inbox or below a node, with one wrapped key for that place")
    func placesAndReaders() throws {
        #expect(fault(TreeCopy(node, to: receiver, record)) == nil)
        func changed(_ change: (inout NodeRecord) -> Void) -> RefusalReason? {
            var other = record
            change(&other)
            return fault(TreeCopy(node, to: receiver, other))
        }
        #expect(changed { $0.base = 1 } == .badRecord)
        #expect(changed { $0.signature = nil } == .badRecord)
        #expect(changed { $0.parent = .trunk(.home) } == .parentMissing)
        #expect(changed { $0.parent = .trunk(.outbox) } == .parentMissing)
        #expect(changed { $0.wraps = [Self.wrap(.parent)] } == .badRecord)
        #expect(changed { $0.wraps.append(Self.wrap(.parent)) } == .badRecord)
        #expect(changed { $0.parent = .node(NodeID(3)) } == .badRecord)
        #expect(
            changed {
                ($0.parent, $0.wraps) = (.node(NodeID(3)), [Self.wrap(.parent)])
            } == nil)
        let stranger = try UserID("carol")
        #expect(changed { $0.wraps = [Self.wrap(.user(stranger, keyID: "kc"))] } == .badRecord)
        #expect(fault(TreeCopy(node, to: stranger, record)) == .badRecord)
        #expect(changed { $0.stamps.sender = receiver } == .badRecord)
    }

    @Test("A8: a signature holds for one record, one id, one receiver, one app and one author only")
    func signature() throws {
        #expect(RecordSignature.verify(record, node, in: place, with: key.verifyingKey))
        let (app, other) = (try AppID("other"), try UserID("carol"))
        for tree in [TreePlace(app: place.app, owner: other), TreePlace(app: app, owner: receiver), trees.tree] {
            #expect(!RecordSignature.verify(record, node, in: tree, with: key.verifyingKey))
        }
        #expect(!RecordSignature.verify(record, NodeID(5), in: place, with: key.verifyingKey))
        #expect(!RecordSignature.verify(record, node, in: place, with: Ed25519.SigningKey.random().verifyingKey))
        let octets = try #require(record.signature?.octets)
        let changes: [(inout NodeRecord) throws -> Void] = [
            { $0.burnTime = 5 }, { $0.metadata[20] ^= 1 }, { $0.parent = .node(NodeID(1)) }, { $0.epoch = 1 },
            { $0.signature = try RecordSignature(author: other, keyID: "ka", octets: octets) },
            { $0.signature = try RecordSignature(author: $0.signature!.author, keyID: "kx", octets: octets) },
            { $0.signature = nil },
        ]
        for change in changes {
            var changed = record
            try change(&changed)
            #expect(!RecordSignature.verify(changed, node, in: place, with: key.verifyingKey))
        }
        var stamped = record
        stamped.stamps = RecordStamps(changed: 1, created: 1, sender: trees.tree.owner)
        #expect(RecordSignature.verify(stamped, node, in: place, with: key.verifyingKey))
        #expect(throws: RecordFault.unsigned) {
            var bare = record
            bare.signature = nil
            try RecordSignature.sign(&bare, node, in: place, with: key)
        }
    }
}
