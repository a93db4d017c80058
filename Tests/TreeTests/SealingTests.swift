import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

@Suite("Keys of a tree", .noncesGiven)
struct TreeKeyTests {
    /// Computed by another program from the table of `TreeKeys`: the secret is 00…1F, the app `notes`.
    @Test(
        "each trunk has the published children key and tags with the published salt",
        arguments: [
            (.home, "3sj6intrqirxoqiqzt23ksnct5sz3egy"), (.prefs, "ivvld2bsqtwklgwfm4eiz5wnkhl5enxb"),
            (.inbox, "porqyt5sy25smaycgtfaayiguwn4bl5o"), (.outbox, "tpfqpwwj4bqctkixqfpd2bg3gvzbdqzn"),
        ] as [(Trunk, String)])
    func published(trunk: Trunk, tag: String) throws {
        let keys = try TreeCase(seed: 1).keys.parent(trunk)
        let node = NodeID(0x0001_0203_0405_0607_0809_0A0B_0C0D_0E0F)
        #expect(keys.parent == .trunk(trunk) && keys.epoch == 0)
        #expect(try keys.tag(of: NodeName("foo"), node).text == tag)
        let children = [
            Trunk.home: "21794f6d559ae44299b3b8f2bf55fd8785d19e7f33bac1422b56a25b24a2960d",
            .prefs: "8eb2d6b7773e3ea6e50c33e23bc22a7e7adcd67644945138e681c87103fd3ce3",
            .inbox: "cfb639cfcd418e71d610798e24ce7a2318b9616b8f3fc8f944290d5064f44d8f",
            .outbox: "d6574f9382e2fc2875206ed8aa8671d0bedbf741cd26a017ade5b9c9d698d710",
        ]
        // The wrap of a node opens with the published key and the published context.
        let key = NodeKey.random()
        let wrap = keys.wrap(key, of: node, in: try TreeCase(seed: 1).tree, .system)
        let fields = ["ann", "notes", node.text, trunk.rawValue].flatMap {
            UInt16($0.utf8.count).octets + Array($0.utf8)
        }
        let data = Array("thicket/node-wrap/1".utf8) + [0] + fields + [0, 4, 0, 0, 0, 0]
        let secret = SecureBytes(copying: try #require(children[trunk].flatMap { Hex.decode($0) }))
        #expect(try SealedMessage.openSecret(wrap.sealed, key: secret, data: data) == key.secret)
    }

    @Test("another app, account secret or epoch gives other keys; the epoch leaves tags as they are")
    func separate() throws {
        let trees = try TreeCase(seed: 2)
        let (name, node) = (try NodeName("foo"), trees.newID())
        let tag = trees.home.tag(of: name, node)
        #expect(try TreeCase(seed: 2, app: "other").home.tag(of: name, node) != tag)
        let other = TreeKeys(secret: SecureBytes(copying: [UInt8](repeating: 9, count: 32)), tree: trees.tree)
        #expect(other.parent(.home).tag(of: name, node) != tag)
        let next = trees.keys.parent(.home, epoch: 1)
        #expect(next.tag(of: name, node) == tag)
        let wrap = trees.home.wrap(.random(), of: node, in: trees.tree, trees.random)
        #expect(trees.home.unwrap(wrap, of: node, in: trees.tree) != nil)
        for keys in [next, other.parent(.home), trees.keys.parent(.prefs)] {
            #expect(keys.unwrap(wrap, of: node, in: trees.tree) == nil)
        }
    }

    @Test(
        "a record commits to its key as published",
        .enabled(if: Vectors.has("container/node-keys.json"), "needs the container vectors"))
    func commitments() throws {
        let cases = try #require(try Vectors.json("container/node-keys.json")["cases"]?.arrayValue)
        for each in cases {
            let bytes = try #require(each["node_key"]?.stringValue.flatMap { Hex.decode($0) })
            let source = SeededSource(seed: 3)
            let random = TreeRandom(
                secret: { $0 == 32 ? SecureBytes(copying: bytes) : SecureBytes(copying: source.bytes($0)) },
                bytes: { source.bytes($0) })
            let trees = try TreeCase(seed: 3)
            let sealer = NodeSealer(trees.tree, random: random)
            let record = try sealer.create(NodeDraft(NodeName("a")), trees.newID(), below: trees.home)
            #expect(Hex.encode(record.commitment) == each["commit"]?.stringValue)
        }
        #expect(cases.count == 4)
    }
}

@Suite("Records are sealed and opened", .nonceWatch)
struct SealingTests {
    @Test("a node opens again with its name, times, pairs and content, through JSON")
    func roundTrip() throws {
        let trees = try TreeCase(seed: 21)
        var random = SeededRandom(seed: 21)
        for round in 0..<200 {
            let content = NodeContent(
                metadata: trees.random.bytes(Int(random.next() % 40)),
                thumbnail: trees.random.bytes(Int(random.next() % 600)),
                data: trees.random.bytes(Int(random.next() % 3_000)))
            let name = try NodeName("name/\(round) " + String(repeating: "é", count: Int(random.next() % 100)))
            let tag = try #require(NodeMetadata.AppTag("é\(round)", [1, 2]))
            let other = try #require(NodeMetadata.AppTag("a", []))
            let draft = NodeDraft(
                name, content: .inline(content), modified: Int64(round) - 100, appTags: [tag, other],
                burnTime: 1_800_000_000_000 + Int64(round))
            let id = trees.newID()
            let record = try trees.sealer.create(draft, id, below: trees.home)
            let node = try trees.opener.open(record.sent(), id, below: trees.home)
            #expect(node.name == name && node.metadata.modified == Int64(round) - 100)
            #expect(node.metadata.appTags == [other, tag] && node.record.burnTime == draft.burnTime)
            #expect(try node.inlineContent() == content)
            #expect(record.base == 0 && record.epoch == 0 && record.wraps.map(\.reader) == [.parent])
            #expect(record.metadata.count % 64 == 29 && record.signature == nil)
        }
    }

    @Test("a node without content has none, and empty content is content")
    func empty() throws {
        let trees = try TreeCase(seed: 22)
        let none = try trees.node("a", below: trees.home)
        #expect(try none.record.data == nil && none.metadata.content == nil && none.inlineContent() == nil)
        #expect(try none.contentMap() == nil)
        let empty = try trees.node("b", below: trees.home, content: .inline(NodeContent()))
        #expect(try empty.inlineContent() == NodeContent())
        guard case .inline(_, let sealed)? = empty.record.data else { return #expect(Bool(false)) }
        #expect(sealed.count == 80)
    }

    @Test("sealing the same node twice gives nothing in common but what the parent decides")
    func fresh() throws {
        let trees = try TreeCase(seed: 23)
        let id = trees.newID()
        let draft = NodeDraft(try NodeName("foo"), content: .inline(NodeContent(data: [1])))
        let first = try trees.sealer.create(draft, id, below: trees.home)
        let second = try trees.sealer.create(draft, id, below: trees.home)
        #expect(first.tag == second.tag && first.commitment != second.commitment && first.metadata != second.metadata)
        #expect(first.wraps != second.wraps && first.data?.id != second.data?.id)
    }

    @Test("a node that is created again opens what is below it, and keeps its key and the fields of newer versions")
    func again() throws {
        let trees = try TreeCase(seed: 25)
        let folder = try trees.node("folder", below: trees.home)
        let child = try trees.node("child", below: folder.childKeys)
        let kept = try #require(KeptNode(octets: folder.kept.octets))
        let made = try trees.sealer.create(NodeDraft(NodeName("other")), folder.id, below: trees.home, again: kept)
        #expect(made.base == 0 && made.commitment == folder.record.commitment)
        #expect(made.metadata != folder.record.metadata)
        let opened = try trees.opener.open(made.sent(), folder.id, below: trees.home)
        #expect(opened.name.text == "other" && opened.metadata.childSalt == folder.metadata.childSalt)
        #expect(try trees.opener.open(child.record.sent(), child.id, below: opened.childKeys).name.text == "child")
        let other = try trees.sealer.create(NodeDraft(NodeName("folder")), folder.id, below: trees.home)
        let stranger = try trees.opener.open(other.sent(), folder.id, below: trees.home)
        #expect(throws: NodeFault.self) {
            _ = try trees.opener.open(child.record.sent(), child.id, below: stranger.childKeys)
        }
        #expect(KeptNode(octets: SecureBytes(copying: [UInt8](repeating: 1, count: 40))) == nil)
    }

    @Test("a chain of 64 nodes opens from the tree secret down")
    func chain() throws {
        let trees = try TreeCase(seed: 24)
        var parent = trees.home
        for level in 0..<64 {
            let node = try trees.node("level \(level % 2)", below: parent)
            parent = node.childKeys
            #expect(parent.parent == .node(node.id))
        }
    }

    @Test("a move wraps the node's key for the new parent and leaves content, key and salt as they are")
    func move() throws {
        let trees = try TreeCase(seed: 25)
        let (from, to) = (try trees.node("from", below: trees.home), try trees.node("to", below: trees.home))
        let content = NodeContent(thumbnail: [9], data: [UInt8](repeating: 1, count: 5_000))
        let node = try trees.node("a.txt", below: from.childKeys, content: .inline(content))
        let child = try trees.node("child", below: node.childKeys)
        let record = try trees.sealer.move(node, below: to.childKeys, named: NodeName("b.txt"), replacing: 7)
        #expect(record.parent == .node(to.id) && record.base == 7 && record.data == node.record.data)
        #expect(record.commitment == node.record.commitment && record.wraps != node.record.wraps)
        let moved = try trees.opener.open(record.sent(), node.id, below: to.childKeys)
        #expect(try moved.inlineContent() == content && moved.name == NodeName("b.txt"))
        #expect(throws: NodeFault.self) { try trees.opener.open(record, node.id, below: from.childKeys) }
        // What is below needs no new record.
        #expect(try trees.opener.open(child.record, child.id, below: moved.childKeys).name == NodeName("child"))
        let renamed = try trees.sealer.edit(
            moved, NodeEdit(name: NodeName("B.TXT")), below: to.childKeys, replacing: 8)
        #expect(renamed.tag == record.tag)
    }

    @Test("an edit replaces what it names, keeps the rest and the wraps of other readers, and drops the old signature")
    func edit() throws {
        let trees = try TreeCase(seed: 26)
        let id = trees.newID()
        let tag = try #require(NodeMetadata.AppTag("k", [1]))
        let draft = NodeDraft(
            try NodeName("a"), content: .inline(NodeContent(data: [1])), modified: 5, appTags: [tag], burnTime: 100)
        let record = try trees.sealer.create(draft, id, below: trees.home)
        let opened = try trees.opener.open(record, id, below: trees.home)
        let other = RecordWrap(.user(try UserID("bob"), keyID: "k"), sealed: [1] + [UInt8](repeating: 0, count: 80))
        var shared = record
        shared.wraps.append(other)
        shared.signature = try RecordSignature(
            author: UserID("ann"), keyID: "k", octets: [UInt8](repeating: 0, count: 64))
        let node = OpenedNode(
            tree: trees.tree, id: id, record: shared, metadata: opened.metadata, key: opened.key)
        func edited(_ edit: NodeEdit) throws -> OpenedNode {
            let record = try trees.sealer.edit(node, edit, below: trees.home, replacing: 3)
            #expect(record.wraps.contains(other) && record.wraps.count == 2 && record.signature == nil)
            return try trees.opener.open(record.sent(), id, below: trees.home)
        }
        let same = try edited(NodeEdit())
        #expect(same.metadata == node.metadata && same.record.data == record.data && same.record.burnTime == 100)
        let content = try edited(NodeEdit(content: .inline(NodeContent(data: [2])), modified: 6))
        #expect(try content.inlineContent()?.data == [2] && content.metadata.modified == 6)
        #expect(content.record.data?.id != record.data?.id && content.metadata.appTags == [tag])
        #expect(content.metadata.content?.key != node.metadata.content?.key)
        let gone = try edited(NodeEdit(content: DraftContent.none, appTags: [], burn: .never))
        #expect(gone.record.data == nil && gone.metadata.appTags.isEmpty && gone.record.burnTime == nil)
        #expect(try edited(NodeEdit(burn: .at(200))).record.burnTime == 200)
    }

    @Test("a node in the inbox is named by its id, and keeps its name for the time after")
    func inbox() throws {
        let trees = try TreeCase(seed: 27)
        let inbox = trees.keys.parent(.inbox)
        let (first, second) = (try trees.node("hello", below: inbox), try trees.node("hello", below: inbox))
        #expect(first.record.tag != second.record.tag && first.name.text == first.id.text)
        #expect(first.record.tag == NodeTag(inInbox: first.id))
        let record = try trees.sealer.move(first, below: trees.home, replacing: 1)
        #expect(try trees.opener.open(record, first.id, below: trees.home).name == NodeName("hello"))
        #expect(try record.tag == trees.home.tag(of: NodeName("HELLO"), first.id))
    }

    @Test("what does not fit a record is refused before anything is sealed for it")
    func refused() throws {
        let trees = try TreeCase(seed: 28)
        let (id, name) = (trees.newID(), try NodeName("a"))
        func fault(_ draft: NodeDraft) -> SealFault? {
            do throws(SealFault) {
                _ = try trees.sealer.create(draft, id, below: trees.home)
                return nil
            } catch { return error }
        }
        let large = NodeContent(data: [UInt8](repeating: 0, count: 9_000))
        let (plan, small) = (
            try ContentSpool(large, random: trees.random), try ContentSpool(NodeContent(), random: trees.random)
        )
        #expect(fault(NodeDraft(name, content: .inline(large))) == .contentTooLarge)
        #expect(fault(NodeDraft(name, content: .blob(small, BlobID(1)))) == .contentTooSmall)
        #expect(fault(NodeDraft(name, content: .blob(plan, BlobID(1)))) == nil)
        #expect(fault(NodeDraft(name, burnTime: 0)) == .outOfBounds)
        #expect(fault(NodeDraft(name, burnTime: .max)) == .outOfBounds)
        let tags = (0..<64).compactMap { NodeMetadata.AppTag("\($0)", [UInt8](repeating: 0, count: 300)) }
        #expect(fault(NodeDraft(name, appTags: tags)) == .metadataTooLarge)
        #expect(fault(NodeDraft(name, appTags: tags + tags)) == .badAppTags)
        #expect(fault(NodeDraft(name, appTags: [tags[0], tags[0]])) == .badAppTags)
        #expect(NodeMetadata.AppTag("", []) == nil && NodeMetadata.AppTag(String(repeating: "k", count: 65), []) == nil)
        #expect(NodeMetadata.AppTag("k", [UInt8](repeating: 0, count: 1_025)) == nil)
        let node = try trees.node("b", below: trees.home)
        #expect(throws: SealFault.outOfBounds) { try trees.sealer.edit(node, below: trees.home, replacing: -1) }
        var crowded = node.record
        crowded.wraps += try (0..<250).map { number in
            let user = try UserID("\(number)" + String(repeating: "x", count: 200))
            return RecordWrap(.user(user, keyID: "k"), sealed: [1] + [UInt8](repeating: 0, count: 80))
        }
        let full = OpenedNode(
            tree: trees.tree, id: node.id, record: crowded, metadata: node.metadata, key: node.key)
        #expect(throws: SealFault.recordTooLarge) { try trees.sealer.edit(full, below: trees.home, replacing: 1) }
    }

    @Test("neither name nor key appears in a description")
    func descriptions() throws {
        let trees = try TreeCase(seed: 29)
        let node = try trees.node("canary", below: trees.home)
        var text = ""
        dump(node, to: &text)
        text += "\(node)\(node.metadata)\(String(reflecting: node.metadata))\(NodeFault.nameMismatch(node))"
        #expect(!text.contains("canary") && String(describing: node) == node.id.text)
    }
}
