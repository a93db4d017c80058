import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Keys of nodes, from the trunks down", .nonceWatch)
struct TreeKeyringTests {
    private var ring: TreeKeyring
    private let folder: NodeID
    private let record: NodeRecord
    private let opened: OpenedNode

    init() throws {
        let tree = TreePlace(app: try AppID("notes"), owner: try UserID("user-1"))
        let seeds = SeededSource(seed: 3)
        let random = TreeRandom(secret: { SecureBytes(copying: seeds.bytes($0)) }, bytes: { seeds.bytes($0) })
        let keys = TreeKeys(secret: SecureBytes(copying: seeds.bytes(32)), tree: tree)
        ring = TreeKeyring(keys, random: random)
        folder = NodeID.random(random.bytes)
        record = try ring.sealer.create(NodeDraft(NodeName("folder")), folder, below: keys.parent(.home))
        opened = try ring.opener.open(record, folder, below: keys.parent(.home))
    }

    private func child(_ name: String) throws -> (NodeID, NodeRecord) {
        let id = NodeID.random(ring.random.bytes)
        return (id, try ring.sealer.create(NodeDraft(NodeName(name)), id, below: opened.childKeys))
    }

    @Test("what is below a node opens by the node's record, by what is kept of the node, and by its secrets alone")
    mutating func opens() throws {
        let (id, text) = try child("recipe")
        let kept = try #require(KeptNode(octets: opened.kept.octets))
        let record = record
        for known in [TreeKeyring.KnownNode.record(record), .kept(kept)] {
            ring.forgetAll()
            let keys = try #require(try ring.keys(of: .node(folder)) { _ in known })
            #expect(try ring.opener.open(text, id, below: keys).name.text == "recipe")
        }
        ring.forgetAll()
        ring.keep(opened.childSecrets, of: folder)
        for _ in 0..<2 {
            let keys = try #require(try ring.keys(of: .node(folder)) { _ in nil })
            #expect(try ring.opener.open(text, id, below: keys).name.text == "recipe")
        }
    }

    @Test("an unknown node, and one above it, have no keys")
    mutating func unknown() throws {
        let none = try ring.keys(of: .node(folder)) { _ in nil }
        #expect(none == nil)
        let (id, text) = try child("recipe")
        let folder = folder
        let below = try ring.keys(of: .node(id)) { $0 == folder ? nil : .record(text) }
        #expect(below == nil)
    }
}
