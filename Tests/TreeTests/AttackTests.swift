import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

/// A server that changes what it stores. Nothing of it may open as genuine.
@Suite("Attacks on records", .nonceWatch)
struct AttackTests {
    /// Two records of one parent, each member different in both, and a third elsewhere.
    private struct Scene {
        let trees: TreeCase
        let folder: OpenedNode
        let (first, second): (NodeID, NodeID)
        let (one, two): (NodeRecord, NodeRecord)
        var parent: ParentKeys { folder.childKeys }

        init(seed: UInt64) throws {
            trees = try TreeCase(seed: seed)
            folder = try trees.node("folder", below: trees.home)
            (first, second) = (trees.newID(), trees.newID())
            one = try Self.record("one", first, 5, 1_000_000, trees, folder.childKeys)
            two = try Self.record("two", second, 6, 2_000_000, trees, folder.childKeys)
        }

        private static func record(
            _ name: String, _ id: NodeID, _ base: Version, _ burn: Int64, _ trees: TreeCase, _ parent: ParentKeys
        ) throws -> NodeRecord {
            let draft = NodeDraft(
                try NodeName(name), content: .inline(NodeContent(data: Array(name.utf8))), burnTime: burn)
            let new = try trees.sealer.create(draft, id, below: parent)
            let node = try trees.opener.open(new, id, below: parent)
            return try trees.sealer.edit(node, below: parent, replacing: base)
        }

        func fault(_ record: NodeRecord, _ id: NodeID? = nil, below keys: ParentKeys? = nil) -> NodeFault? {
            TreeTests.fault(record, id ?? first, below: keys ?? parent, trees.opener)
        }
    }

    @Test("A1: each flipped bit of a record's text is refused, by the parser or by a seal")
    func everyBit() throws {
        let scene = try Scene(seed: 51)
        let text = scene.one.object.serialized()
        #expect(scene.fault(try scene.one.sent()) == nil)
        var (parsed, opened) = (0, 0)
        for place in text.indices {
            for bit: UInt8 in 0..<8 {
                var changed = text
                changed[place] ^= 1 << bit
                guard let record = try? NodeRecord(parsing: changed, from: .server) else { continue }
                parsed += 1
                if scene.fault(record) == nil { opened += 1 }
            }
        }
        #expect(opened == 0 && parsed > 1_000, "\(opened) of \(parsed)")
    }

    @Test("A1: each changed byte of each binary value is refused, with the fault of that value")
    func everyByte() throws {
        let scene = try Scene(seed: 52)
        let record = scene.one
        func expect(_ name: String, _ kinds: [NodeFault], _ change: (inout NodeRecord) -> Void) {
            var changed = record
            change(&changed)
            let fault = scene.fault(changed).map(kind)
            #expect(kinds.map(kind).contains(fault ?? "none"), "\(name): \(fault ?? "opened")")
        }
        for place in record.commitment.indices {
            expect("q \(place)", [.otherCommitment]) { $0.commitment[place] ^= 0x10 }
        }
        for place in record.metadata.indices {
            expect("m \(place)", [.metadataDamaged]) { $0.metadata[place] ^= 0x10 }
        }
        for place in record.wraps[0].sealed.indices {
            expect("w \(place)", [.wrapDamaged]) { record in
                var sealed = record.wraps[0].sealed
                sealed[place] ^= 0x10
                record.wraps[0] = RecordWrap(.parent, sealed: sealed)
            }
        }
        guard case .inline(let id, let sealed)? = record.data else { return #expect(Bool(false)) }
        for place in sealed.indices {
            expect("i \(place)", [.metadataDamaged]) { record in
                var changed = sealed
                changed[place] ^= 0x10
                record.data = .inline(id, sealed: changed)
            }
        }
        for bit in 0..<128 {
            expect("id \(bit)", [.metadataDamaged]) {
                $0.data = .inline(DataID(id.value ^ UInt128(1) << UInt128(bit)), sealed: sealed)
            }
        }
    }

    @Test("A7: each set of members taken from a sibling is refused, whatever the rest")
    func mixed() throws {
        let scene = try Scene(seed: 53)
        let keys: [RecordKey] = [.tag, .wraps, .commitment, .metadata, .data, .burnTime, .base]
        let (one, two) = (scene.one.object, scene.two.object)
        for mask in 1..<(1 << keys.count) {
            var object = one
            for (place, key) in keys.enumerated() where mask >> place & 1 == 1 {
                object[key.rawValue] = two[key.rawValue]
            }
            let record = try NodeRecord(object, from: .server)
            #expect(scene.fault(record) != nil, "mask \(mask)")
        }
        // Also with all of them: the sibling's record is not a record of this node.
        #expect(scene.fault(scene.two).map(kind) == kind(of: .wrapDamaged))
        #expect(scene.fault(scene.two, scene.second) == nil)
    }

    @Test("A7: a record below another parent, with either parent's keys, does not open")
    func parents() throws {
        let scene = try Scene(seed: 54)
        let other = try scene.trees.node("other", below: scene.trees.home)
        var moved = scene.one
        moved.parent = .node(other.id)
        #expect(scene.fault(moved).map(kind) == kind(of: .otherParent))
        #expect(scene.fault(moved, below: other.childKeys).map(kind) == kind(of: .wrapDamaged))
        #expect(scene.fault(scene.one, below: other.childKeys).map(kind) == kind(of: .otherParent))
        moved.parent = .trunk(.home)
        #expect(scene.fault(moved, below: scene.trees.home).map(kind) == kind(of: .wrapDamaged))
        // The server also takes a real record of the other parent's child for its wrap.
        let child = try scene.trees.node("child", below: other.childKeys)
        moved.parent = .node(other.id)
        moved.wraps = child.record.wraps
        #expect(scene.fault(moved, below: other.childKeys).map(kind) == kind(of: .wrapDamaged))
    }

    @Test("A4: a record does not open as another node, in another app or for another owner")
    func places() throws {
        let scene = try Scene(seed: 55)
        for (app, owner) in [("other", "ann"), ("notes", "bob"), ("notes", "Ann")] {
            let opener = NodeOpener(TreePlace(app: try AppID(app), owner: try UserID(owner)))
            let found = TreeTests.fault(scene.one, scene.first, below: scene.parent, opener)
            #expect(found.map(kind) == kind(of: .wrapDamaged))
        }
        #expect(scene.fault(scene.one, NodeID(1)).map(kind) == kind(of: .wrapDamaged))
        #expect(scene.fault(scene.one, scene.second).map(kind) == kind(of: .wrapDamaged))
    }

    @Test("A4: a record names the version that it replaces: an older one cannot be shown as a newer one")
    func versions() throws {
        let scene = try Scene(seed: 56)
        for base: Version in [0, 4, 6, 7, 1 << 40] {
            var record = scene.one
            record.base = base
            #expect(scene.fault(record).map(kind) == kind(of: .metadataDamaged))
        }
    }

    @Test("A3: older content of the same node, and content of another node, do not open under a newer record")
    func contents() throws {
        let scene = try Scene(seed: 57)
        let node = try scene.trees.opener.open(scene.one, scene.first, below: scene.parent)
        let edit = NodeEdit(content: .inline(NodeContent(data: Array("new".utf8))))
        let newer = try scene.trees.sealer.edit(node, edit, below: scene.parent, replacing: 6)
        for data in [scene.one.data, scene.two.data, nil] {
            var record = newer
            record.data = data
            #expect(scene.fault(record).map(kind) == kind(of: .metadataDamaged))
        }
        // Without the record's protection: the content's own seal is bound to its id and key.
        guard case .inline(let id, let sealed)? = newer.data, case .inline(_, let old)? = scene.one.data else {
            return #expect(Bool(false))
        }
        for (id, sealed) in [(id, old), (DataID(1), sealed)] {
            var record = newer
            record.data = .inline(id, sealed: sealed)
            let opened = try scene.trees.opener.open(newer, scene.first, below: scene.parent)
            let forged = OpenedNode(
                tree: scene.trees.tree, id: scene.first, record: record, metadata: opened.metadata, key: opened.key)
            #expect(throws: NodeFault.self) { try forged.inlineContent() }
        }
    }

    @Test("A20: a record that commits to another key than the wrapped one is refused, even with matching metadata")
    func commitments() throws {
        let scene = try Scene(seed: 58)
        let node = try scene.trees.opener.open(scene.one, scene.first, below: scene.parent)
        // A device of the owner would have to seal this: the commitment is a part of what the metadata authenticates.
        var record = scene.one
        record.commitment = scene.two.commitment
        let forged = OpenedNode(
            tree: scene.trees.tree, id: scene.first, record: record, metadata: node.metadata, key: node.key)
        let sealed = try scene.trees.sealer.edit(forged, below: scene.parent, replacing: 9)
        #expect(scene.fault(sealed).map(kind) == kind(of: .otherCommitment))
        // And the wrap of another key for this very node.
        record = scene.one
        record.wraps = [scene.parent.wrap(.random(), of: scene.first, in: scene.trees.tree, scene.trees.random)]
        #expect(scene.fault(record).map(kind) == kind(of: .otherCommitment))
    }

    @Test("A7: a tag that the name does not give is its own fault, which still gives the node")
    func names() throws {
        let scene = try Scene(seed: 59)
        let salt = SecureBytes(copying: [UInt8](repeating: 1, count: 32))
        let wrong = ParentKeys(.node(scene.folder.id), epoch: 0, key: scene.folder.key, childSalt: salt)
        let draft = NodeDraft(try NodeName("a"), content: .inline(NodeContent(data: [7])))
        let record = try scene.trees.sealer.create(draft, scene.first, below: wrong)
        #expect(scene.fault(record, below: wrong) == nil)
        do throws(NodeFault) {
            _ = try scene.trees.opener.open(record, scene.first, below: scene.parent)
            Issue.record("a name that does not give the tag was accepted")
        } catch {
            guard case .nameMismatch(let node) = error else { return #expect(Bool(false), "\(error)") }
            #expect(try node.name == NodeName("a") && node.inlineContent()?.data == [7])
            // Its children open, and a move puts it right.
            let moved = try scene.trees.sealer.move(node, below: scene.parent, replacing: 1)
            #expect(scene.fault(moved) == nil)
        }
        // In the inbox the tag is that of the id.
        let inbox = scene.trees.keys.parent(.inbox)
        var message = try scene.trees.node("m", below: inbox)
        let other = try scene.trees.sealer.create(NodeDraft(NodeName("m")), NodeID(5), below: inbox)
        #expect(scene.fault(other, NodeID(5), below: inbox) == nil)
        message = try scene.trees.node("m", below: inbox)
        var renamed = message.record
        renamed.tag = other.tag
        #expect(scene.fault(renamed, message.id, below: inbox).map(kind) == kind(of: .metadataDamaged))
    }

    @Test("A10, A14: added and removed wraps, another epoch, another suite and a forged author are refused")
    func members() throws {
        let scene = try Scene(seed: 60)
        let user = RecordWrap(.user(try UserID("eve"), keyID: "k"), sealed: [1] + [UInt8](repeating: 0, count: 80))
        let signature = try RecordSignature(
            author: UserID("eve"), keyID: "k", octets: [UInt8](repeating: 0, count: 64))
        let cases: [(String, NodeFault, (inout NodeRecord) -> Void)] = [
            ("added reader", .metadataDamaged, { $0.wraps.append(user) }),
            ("only a user's wrap", .noWrap, { $0.wraps = [user] }),
            ("epoch", .otherEpoch, { $0.epoch = 1 }),
            ("author", .metadataDamaged, { $0.signature = signature }),
            ("never removed", .metadataDamaged, { $0.burnTime = nil }),
            ("removed sooner", .metadataDamaged, { $0.burnTime = 1 }),
            ("other suite of the metadata", .metadataDamaged, { $0.metadata[0] = 2 }),
            (
                "other suite of the wrap", .wrapDamaged,
                { $0.wraps = [RecordWrap(.parent, sealed: [2] + $0.wraps[0].sealed.dropFirst())] }
            ),
            ("cut metadata", .metadataDamaged, { $0.metadata.removeLast(64) }),
            ("no metadata", .metadataDamaged, { $0.metadata = [] }),
            ("no wraps", .noWrap, { $0.wraps = [] }),
        ]
        for (name, expected, change) in cases {
            var record = scene.one
            change(&record)
            #expect(scene.fault(record).map(kind) == kind(of: expected), "\(name)")
        }
        // With the keys of another epoch the epoch matches, and the wrap does not.
        var record = scene.one
        record.epoch = 1
        let later = ParentKeys(
            .node(scene.folder.id), epoch: 1, key: scene.folder.key, childSalt: scene.folder.metadata.childSalt)
        #expect(scene.fault(record, below: later).map(kind) == kind(of: .wrapDamaged))
    }

    @Test("a signature is kept and not verified: the seal of the metadata says that the owner's devices wrote the rest")
    func signatures() throws {
        let scene = try Scene(seed: 61)
        let node = try scene.trees.opener.open(scene.one, scene.first, below: scene.parent)
        var record = scene.one
        record.signature = try RecordSignature(
            author: UserID("ann"), keyID: "k", octets: [UInt8](repeating: 3, count: 64))
        // A device that signs seals the author and the id of the key with the metadata.
        let data = CanonicalForm.sealing.bytes(of: record, scene.first, in: scene.trees.tree)
        let padded = try #require(NodeMetadata.padding.pad(node.metadata.octets))
        record.metadata = try SealedMessage.seal(padded, key: node.key.subkey(.meta), data: data)
        #expect(scene.fault(try record.sent()) == nil)
        var other = record
        other.signature = try RecordSignature(
            author: UserID("ann"), keyID: "k", octets: [UInt8](repeating: 4, count: 64))
        #expect(scene.fault(other) == nil)
        other.signature = nil
        #expect(scene.fault(other).map(kind) == kind(of: .metadataDamaged))
        other.signature = try RecordSignature(
            author: UserID("eve"), keyID: "k", octets: [UInt8](repeating: 3, count: 64))
        #expect(scene.fault(other).map(kind) == kind(of: .metadataDamaged))
    }

    @Test("A17: without the salt no name of a list gives a tag of the tree")
    func dictionary() throws {
        let trees = try TreeCase(seed: 62)
        let names = (0..<300).map { "document \($0).txt" }
        let tags = Set(try names.map { try trees.node($0, below: trees.home).record.tag })
        #expect(tags.count == names.count)
        for salt in [[], Trunk.inboxSalt, [UInt8](repeating: 0, count: 32)] {
            for name in names { #expect(try !tags.contains(NodeTag(of: Array(name.utf8), salt: salt))) }
        }
    }

    @Test("A21: name and content of a node do not appear in its record")
    func canary() throws {
        let trees = try TreeCase(seed: 63)
        let node = try trees.node(
            "canary-name", below: trees.home, content: .inline(NodeContent(data: Array("canary-data".utf8))))
        let text = String(decoding: node.record.object.serialized(), as: UTF8.self)
        #expect(!text.contains("canary"))
        for word in ["canary-name", "canary-data"] {
            #expect(!text.contains(Base64.encodeURL(Array(word.utf8)).dropLast(2)))
        }
    }
}
