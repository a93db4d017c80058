import Glibc
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("The first skeleton of a device", .nonceWatch)
struct FirstSkeletonTests {
    /// Nodes of the tree; `THICKET_TREE_NODES` names another number, for measurements.
    private static var nodes: Int { getenv("THICKET_TREE_NODES").flatMap { Int(String(cString: $0)) } ?? 2_000 }

    @Test("a listing of nodes in a random order is shown whole, with few statements for each node")
    func listing() throws {
        let listing = try ListedTree(nodes: Self.nodes)
        let device = try SingleDevice()
        var statements = 0
        device.store.beforeStatement = { statements += 1 }
        let start = clock()
        for page in listing.pages { device.receive(page) }
        if Self.nodes > 2_000 {
            print("\(Self.nodes) nodes: \((clock() - start) / 1_000) ms, \(statements) statements")
        }
        #expect(try device.store.shownCount() == Self.nodes)
        #expect(statements < Self.nodes * 9)
    }

    @Test("a server whose pages of all nodes lead in a circle is left, and nothing counts as removed")
    func circle() throws {
        let listing = try ListedTree(nodes: 300)
        let device = try SingleDevice()
        device.receive(listing.pages[0])
        device.receive(listing.pages[1])
        let shown = try device.store.shownCount()
        #expect(shown > 0 && !device.actions.contains(.disconnect))
        // The mark of the first page again.
        device.receive(listing.pages[0])
        #expect(device.actions.contains(.disconnect))
        #expect(try device.store.shownCount() == shown && device.machine.channel.position == nil)
    }
}

/// A tree as a server lists it: containers of 100 nodes each, in the order of random ids.
struct ListedTree {
    private(set) var pages = [[UInt8]]()

    init(nodes count: Int, perPage: Int = 100, perContainer: Int = 100) throws {
        let seeds = SeededSource(seed: 7)
        let random = TreeRandom(secret: { SecureBytes(copying: seeds.bytes($0)) }, bytes: { seeds.bytes($0) })
        let keys = try SingleDevice.keys()
        let (sealer, opener) = (NodeSealer(keys.tree, random: random), NodeOpener(keys.tree))
        var listed = [(id: NodeID, record: NodeRecord)]()
        var parent = keys.parent(.home)
        for number in 0..<count {
            let isContainer = number % perContainer == 0
            let id = NodeID.random(seeds.bytes)
            let draft = NodeDraft(
                .test("node \(number)"), content: .inline(NodeContent(data: Array("content \(number)".utf8))),
                modified: 1_700_000_000_000, appTags: [], burnTime: nil)
            let above = isContainer ? keys.parent(.home) : parent
            var record = try sealer.create(draft, id, below: above)
            record.stamps = RecordStamps(changed: 1_700_000_000_000, created: 1_700_000_000_000)
            if isContainer { parent = try opener.open(record, id, below: above).childKeys }
            listed.append((id, record))
        }
        listed.sort { $0.id < $1.id }
        for start in stride(from: 0, to: listed.count, by: perPage) {
            let chosen = listed[start..<min(start + perPage, listed.count)]
            let entries = try chosen.map { id, record in
                IndexPage.Entry(key: try EntityKey(id.text), version: 1, data: .value(.object(record.object)))
            }
            let isLast = start + perPage >= listed.count
            let page = IndexPage(
                current: ModelServer.position(count), entries: entries, mark: isLast ? nil : "\(start + perPage)")
            var writer = JSONWriter(reservingBytes: 1 << 16)
            page.write(to: &writer)
            pages.append(Array("0:i:".utf8) + writer.bytes)
        }
    }
}

/// A machine whose connection a test drives by hand.
final class SingleDevice {
    let store: TreeStore
    var machine: TreeMachine
    private(set) var actions = [TreeAction]()
    var now: Int64 = 1_000

    static func keys() throws -> TreeKeys {
        TreeKeys(
            secret: SecureBytes(copying: (0..<32).map { UInt8($0) }),
            tree: TreePlace(app: try AppID("notes"), owner: try UserID("user-1")))
    }

    /// A device whose channel has just been opened.
    init() throws {
        store = try TreeStore()
        let keys = try Self.keys()
        let seeds = SeededSource(seed: 3)
        let random = TreeRandom(secret: { SecureBytes(copying: seeds.bytes($0)) }, bytes: { seeds.bytes($0) })
        machine = try TreeMachine(
            store: store, keys: keys, options: TreeOptions(SyncOptions(app: keys.tree.app, token: "token")),
            treeRandom: random, random: SeededRandom(seed: 5), delegate: IndexApp())
        outside { machine throws(TreeError) in machine.goOnline() }
        outside { machine throws(TreeError) in machine.tick() }
        outside { machine throws(TreeError) in try machine.opened() }
        receive("0:auth:user-1")
        receive("0:o:{\"mode\":\"tree\",\"store\":\"store-1\"}")
    }

    var time: TreeTime { TreeTime(monotonic: now, unix: 1_700_000_000_000 + now) }

    func outside(_ body: (inout TreeMachine) throws(TreeError) -> Void) {
        actions += machine.quietTurn(time, body)
    }

    func receive(_ text: String) { receive(Array(text.utf8)) }

    func receive(_ text: [UInt8]) {
        outside { machine throws(TreeError) in try machine.received(ServerBatch([text])) }
    }
}
