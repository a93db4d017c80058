import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape
@testable import ThicketTreesystem

/// A server that writes records itself, before a device that knows the tree and before one that reads it first.
@Suite("Trees of a server that forges records", .nonceWatch)
struct ForgedRecordTests {
    private let world: TreeWorld
    /// The nodes by their paths.
    private let ids: [String: NodeID]

    private static let shown = [
        "home/a", "home/a/one", "home/a/one/below", "home/a/two", "home/b", "home/b/one", "home/c",
    ]

    init() throws {
        // Two devices know the tree; the third one reads it when the server has forged it.
        let world = try TreeWorld(seed: 71, devices: 2)
        world.isHostile = false
        let ann = world.devices[0]
        for path in ["a", "b", "c", "a/one", "a/two", "b/one", "a/one/below"] { try ann.create(path, path, in: world) }
        try world.settleDown()
        var ids = [String: NodeID]()
        for path in Self.shown { ids[path] = try ann.id(String(path.dropFirst(5))) }
        (self.world, self.ids) = (world, ids)
    }

    private func id(_ path: String) -> NodeID { ids["home/" + path] ?? NodeID(0) }
    private func record(_ path: String) throws -> NodeRecord {
        try #require(world.server.nodes[id(path)]).record
    }

    /// The server swaps members of two records.
    private func swapped(
        _ first: String, _ second: String, _ swap: (inout NodeRecord, inout NodeRecord) -> Void
    ) throws -> [NodeID: NodeRecord] {
        var (one, two) = (try record(first), try record(second))
        swap(&one, &two)
        return [id(first): one, id(second): two]
    }

    private func changed(_ path: String, _ change: (inout NodeRecord) -> Void) throws -> [NodeID: NodeRecord] {
        var record = try record(path)
        change(&record)
        return [id(path): record]
    }

    private static func tag(_ text: String) throws -> NodeTag {
        try NodeTag(of: Array(text.utf8), salt: [UInt8](repeating: 7, count: 32))
    }

    /// Everything that a server can write about places and names.
    private func attacks() throws -> [(name: String, forged: [NodeID: NodeRecord])] {
        [
            ("two parents swapped", try swapped("a/one", "b/one") { swap(&$0.parent, &$1.parent) }),
            (
                "two places swapped",
                try swapped("a/one", "b/one") {
                    swap(&$0.parent, &$1.parent)
                    swap(&$0.tag, &$1.tag)
                }
            ),
            ("two names swapped", try swapped("a/one", "a/two") { swap(&$0.tag, &$1.tag) }),
            ("two records swapped", try swapped("a/one", "a/two") { swap(&$0, &$1) }),
            (
                "two nodes' sealed parts swapped",
                try swapped("a/one", "a/two") {
                    swap(&$0.metadata, &$1.metadata)
                    swap(&$0.wraps, &$1.wraps)
                    swap(&$0.commitment, &$1.commitment)
                }
            ),
            ("two contents swapped", try swapped("a/one", "a/two") { swap(&$0.data, &$1.data) }),
            ("a node renamed", try changed("a/one") { $0.tag = (try? Self.tag("other")) ?? $0.tag }),
            ("a node moved", try changed("a/one") { $0.parent = .node(id("b")) }),
            ("a node moved to the top", try changed("a/one") { $0.parent = .trunk(.home) }),
            ("a node moved to another trunk", try changed("c") { $0.parent = .trunk(.outbox) }),
            ("a node below itself", try changed("a") { $0.parent = .node(id("a/one")) }),
            ("a content removed", try changed("a/one") { $0.data = nil }),
            ("a burn time", try changed("a/one") { $0.burnTime = 1 }),
        ]
    }

    /// A device that reads the forged tree first.
    private func newDevice(lazy: Bool = false) throws -> TreeWorld {
        let other = try TreeWorld(seed: 72, devices: 1, lazy: lazy ? [0] : [])
        other.isHostile = false
        other.server = world.server
        try other.settleDown()
        if lazy { try other.devices[0].openAll(other) }
        return other
    }

    private static func quarantine(_ device: WorldDevice) throws -> Set<NodeID> {
        Set(try device.store.faults().map(\.node))
    }

    @Test("A7: what a server writes about parents, names and contents is quarantined where the tree is known")
    func known() throws {
        let ann = world.devices[0]
        for (name, forged) in try attacks() {
            let genuine = world.server.nodes
            let before = ann.events.count
            for (id, record) in forged.sorted(by: { $0.key < $1.key }) { world.server.forge(id, record) }
            try world.settleDown()
            #expect(try ann.paths() == Self.shown, "\(name)")
            #expect(try Self.quarantine(ann) == Set(forged.keys), "\(name)")
            #expect(try ann.content("a/one") == "a/one", "\(name)")
            let reported = ann.events[before...].filter { if case .integrity = $0 { true } else { false } }
            #expect(reported.count == forged.count, "\(name): \(reported)")
            #expect(ann.events.count == before + reported.count, "\(name): \(ann.events[before...])")
            // The genuine records again: nothing was lost, and nothing is reported any more.
            for id in forged.keys.sorted() { if let held = genuine[id] { world.server.forge(id, held.record) } }
            try world.settleDown()
            #expect(try ann.paths() == Self.shown && Self.quarantine(ann).isEmpty, "\(name)")
        }
    }

    @Test("A7: a new device shows nothing of forged records, keeps and reports them, and shows all others")
    func unknown() throws {
        for (name, forged) in try attacks() {
            let genuine = world.server
            for (id, record) in forged.sorted(by: { $0.key < $1.key }) { world.server.forge(id, record) }
            for lazy in [false, true] {
                let other = try newDevice(lazy: lazy)
                let device = other.devices[0]
                let paths = Set(try device.paths())
                let hidden = Self.shown.filter { path in
                    forged.keys.contains { id in
                        ids.contains { $0.value == id && (path == $0.key || path.hasPrefix($0.key + "/")) }
                    }
                }
                #expect(paths.isSubset(of: Self.shown) && paths.isDisjoint(with: hidden), "\(name): \(paths)")
                #expect(paths == Set(Self.shown).subtracting(hidden), "\(name), lazy: \(lazy)")
                // A lazy skeleton asks for the lists of what it shows: a node below itself is in none of them.
                if lazy, name == "a node below itself" { continue }
                for id in forged.keys { #expect(try device.store.row(id) != nil, "\(name): a record was dropped") }
                // Of a circle, nothing says which record is forged.
                let circle = name == "a node below itself" ? [id("a"), id("a/one")] : []
                #expect(try Self.quarantine(device) == Set(forged.keys).union(circle), "\(name)")
            }
            world.server = genuine
        }
        let control = try newDevice()
        #expect(try control.devices[0].paths() == Self.shown)
    }

    @Test("A7: a parent that does not exist: the node stays or is reported, and is shown with its record or its parent")
    func missingParent() throws {
        let ann = world.devices[0]
        func faults() throws -> [NodeID: IntegrityFault.Kind] {
            Dictionary(uniqueKeysWithValues: try ann.store.faults().map { ($0.node, $0.kind) })
        }
        func reported(since count: Int) -> [NodeID] {
            ann.events.dropFirst(count).compactMap { if case .integrity(let fault) = $0 { fault.node } else { nil } }
        }
        // A node that the device shows.
        let (known, genuine) = (id("a/one"), try record("a/one"))
        var before = ann.events.count
        world.server.forge(known, try #require(changed("a/one") { $0.parent = .node(NodeID(999)) }[known]))
        try world.settleDown()
        #expect(try ann.paths() == Self.shown && faults() == [known: .parentMissing])
        #expect(reported(since: before) == [known] && ann.events.count == before + 1)
        world.server.forge(known, genuine)
        try world.settleDown()
        #expect(try ann.paths() == Self.shown && faults().isEmpty)
        // New nodes, as another device has made them.
        let other = try newDevice()
        var made = [(id: NodeID, record: NodeRecord)]()
        for path in ["a/new", "p", "p/child"] {
            let id = try other.devices[0].create(path, path, in: other)
            try other.settleDown()
            made.append((id, try #require(other.server.nodes[id]).record))
        }
        var forged = made[0].record
        forged.parent = .node(NodeID(999))
        before = ann.events.count
        world.server.forge(made[0].id, forged)
        // The server withholds the parent of this one.
        world.server.forge(made[2].id, made[2].record)
        try world.settleDown()
        #expect(try ann.paths() == Self.shown)
        #expect(try faults() == [made[0].id: .parentMissing, made[2].id: .parentMissing])
        #expect(Set(reported(since: before)) == [made[0].id, made[2].id] && ann.events.count == before + 2)
        let late = try newDevice()
        #expect(try Self.quarantine(late.devices[0]) == [made[0].id, made[2].id])
        #expect(try late.devices[0].paths() == Self.shown)
        world.server.forge(made[0].id, made[0].record)
        world.server.forge(made[1].id, made[1].record)
        try world.settleDown()
        #expect(try Set(ann.paths()) == Set(Self.shown).union(["home/a/new", "home/p", "home/p/child"]))
        #expect(try faults().isEmpty && IndexApp.index(ann.store)[made[0].id.text] != nil)
    }

    @Test("A7: a name that does not give its tag is reported as such; the node is not found by path, its content opens")
    func otherName() throws {
        let ann = world.devices[0]
        // Only a device with the keys can write that.
        let keys = TreeKeys(secret: SecureBytes(copying: (0..<32).map { UInt8($0) }), tree: ann.machine.tree)
        let opener = NodeOpener(keys.tree)
        let above = try opener.open(record("a"), id("a"), below: keys.parent(.home))
        let node = try opener.open(record("a/two"), id("a/two"), below: above.childKeys)
        let salt = SecureBytes(copying: [UInt8](repeating: 1, count: 32))
        let wrong = ParentKeys(.node(above.id), epoch: 0, key: above.key, childSalt: salt)
        let sealer = NodeSealer(keys.tree, random: .system)
        let version = try #require(world.server.nodes[id("a/two")]).version
        let edit = NodeEdit(name: try NodeName("d"))
        world.server.forge(id("a/two"), try sealer.edit(node, edit, below: wrong, replacing: version))
        try world.settleDown()
        #expect(try ann.store.faults().map(\.kind) == [.nameMismatch])
        #expect(try ann.paths() == Self.shown, "what was shown stays")
        let other = try newDevice()
        #expect(try other.devices[0].store.faults().map(\.kind) == [.nameMismatch])
        #expect(try other.devices[0].paths() == Self.shown.filter { $0 != "home/a/two" })
    }
}
