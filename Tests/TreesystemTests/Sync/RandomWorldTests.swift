import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Trees of several devices", .nonceWatch)
struct RandomWorldTests {
    @Test("two devices: a node created on one appears on the other, and moves and removals follow")
    func oneNode() throws {
        let world = try TreeWorld(seed: 1, devices: 2)
        let (ann, other) = (world.devices[0], world.devices[1])
        let home = TreePath(.home)
        let created = try ann.local(world) { machine throws(TreeError) in
            try machine.create(at: home.appending(NodeName.test("recipes")), content: .none)
        }
        let child = try ann.local(world) { machine throws(TreeError) in
            try machine.create(
                at: home.appending(NodeName.test("recipes")).appending(NodeName.test("soup")),
                content: .held(NodeContent(data: Array("water".utf8))))
        }
        try world.settleDown()
        #expect(try other.skeleton() == [created.id: "home/recipes v1", child.id: "home/recipes/soup v1"])
        #expect(world.server.batches.count == 1)
        _ = try other.local(world) { machine throws(TreeError) in
            try machine.move(child.id, to: home.appending(NodeName.test("broth")))
        }
        try world.settleDown()
        #expect(try ann.skeleton() == [created.id: "home/recipes v1", child.id: "home/broth v2"])
        _ = try ann.local(world) { machine throws(TreeError) in try machine.delete(created.id) }
        try world.settleDown()
        #expect(try other.skeleton() == [child.id: "home/broth v2"])
        #expect(world.server.nodes.count == 1)
    }

    @Test("two devices move two nodes below each other: one move is given up, and no cycle is ever seen")
    func crossedMoves() throws {
        let world = try TreeWorld(seed: 9, devices: 2)
        let (ann, other) = (world.devices[0], world.devices[1])
        let (home, a, b) = (TreePath(.home), NodeName.test("a"), NodeName.test("b"))
        let rows = try [a, b].map { name in
            try ann.local(world) { machine throws(TreeError) in
                try machine.create(at: home.appending(name), content: .none)
            }
        }
        try world.settleDown()
        _ = try ann.local(world) { machine throws(TreeError) in
            try machine.move(rows[0].id, to: home.appending(b).appending(a))
        }
        _ = try other.local(world) { machine throws(TreeError) in
            try machine.move(rows[1].id, to: home.appending(a).appending(b))
        }
        try world.settleDown()
        let server = try ann.serversSkeleton(world.server)
        #expect(server.count == 2)
        #expect(try ann.skeleton() == server && other.skeleton() == server)
        #expect(ann.machine.queue.isEmpty && other.machine.queue.isEmpty)
    }

    @Test("if one operation of a group cannot be made, the server receives none of them, and later all in one request")
    func groupWithDamagedContent() throws {
        let world = try TreeWorld(seed: 11, devices: 1)
        let ann = world.devices[0]
        let content = NodeContent(data: Array("water".utf8))
        try ann.local(world) { machine throws(TreeError) in
            var queueing = TreeMachine.Queueing()
            queueing.group = 1
            for name in ["a", "b"] {
                _ = try machine.create(
                    at: TreePath(.home).appending(.test(name)), content: .held(content), queueing: queueing)
            }
        }
        let damaged = try #require(ann.machine.queue.ids.last)
        try ann.store.setHeldContent(damaged, [1])
        try world.settleDown()
        #expect(world.server.nodes.isEmpty && world.server.batches.isEmpty)
        guard case .failed? = ann.machine.queue[damaged]?.state else {
            Issue.record("the operation has not failed")
            return
        }
        try ann.store.setHeldContent(damaged, HeldContent.octets(content))
        try ann.local(world) { machine throws(TreeError) in try machine.retry(damaged) }
        try world.settleDown()
        #expect(world.server.nodes.count == 2 && world.server.batches.count == 1)
    }

    @Test(
        "random changes on three devices over a hostile network: equal trees at rest, no node lost",
        arguments: TreeWorld.seeds)
    func randomChanges(seed: UInt64) throws {
        let world = try TreeWorld(seed: 39_000 + seed, devices: 4)
        var life = WorldLife()
        for _ in 0..<600 {
            if world.chance(25) { try life.act(world, world.devices[world.roll(3)]) }
            try world.step()
        }
        try life.settle(world)
        try life.check(world)
    }
}

extension NodeName {
    /// A name that a test writes.
    static func test(_ text: String) -> NodeName {
        guard let name = try? NodeName(text) else { preconditionFailure("the test's name is not one") }
        return name
    }
}

/// What people do with their trees, and what must be true afterwards.
struct WorldLife {
    private var created = Set<NodeID>()
    /// Those that were created with content.
    private var filled = Set<NodeID>()
    /// Nodes that a device removed which the server may never have had.
    private var removed = Set<NodeID>()
    private static let names = ["a", "A", "b", "c", "d e", "ä", "long name.txt"]

    mutating func act(_ world: TreeWorld, _ device: WorldDevice) throws {
        let nodes = try device.skeleton().keys.sorted()
        let name = NodeName.test(world.pick(Self.names) ?? "a")
        let parent: NodeParent = world.chance(30) ? .trunk(.home) : world.pick(nodes).map { .node($0) } ?? .trunk(.home)
        guard let path = try device.store.path(of: parent)?.appending(name) else { return }
        do throws(TreeError) {
            switch world.roll(12) {
            case 0...4:
                let hasContent = world.chance(50)
                let row = try device.local(world) { machine throws(TreeError) in
                    try machine.create(at: path, content: hasContent ? .ask : .none)
                }
                created.insert(row.id)
                if hasContent { filled.insert(row.id) }
            case 5...7:
                guard let node = world.pick(nodes) else { return }
                _ = try device.local(world) { machine throws(TreeError) in try machine.move(node, to: path) }
            case 8:
                guard let node = world.pick(nodes) else { return }
                let content = NodeContent(data: Array("\(device.number) \(world.now)".utf8))
                _ = try device.local(world) { machine throws(TreeError) in
                    try machine.setContent(of: node, .held(content))
                }
            case 9:
                guard let node = world.pick(nodes), world.chance(50) else { return }
                let branch = try device.store.branch(of: node)
                let (outdated, unknown) = (world.chance(50), world.chance(50))
                _ = try device.local(world) { machine throws(TreeError) in
                    try machine.delete(node, outdated: outdated, unknown: unknown)
                }
                removed.formUnion(branch)
            case 10: try actOnQueue(world, device)
            default: try batch(world, device, path)
            }
        } catch {
            let expected: [TreeError.Code] = [.nameTaken, .parentMissing, .cycle, .depth, .notFound, .limit]
            if world.hasFailingDisks, error.code == .store { return }
            if !expected.contains(error.code) { Issue.record("\(error)") }
        }
    }

    private mutating func batch(_ world: TreeWorld, _ device: WorldDevice, _ path: TreePath) throws(TreeError) {
        let rows = try device.local(world) { machine throws(TreeError) in
            var queueing = TreeMachine.Queueing()
            queueing.group = try machine.store.nextOperation().number
            let parent = try machine.create(at: path, content: .none, queueing: queueing)
            let child = try machine.create(at: path.appending(.test("part")), queueing: queueing)
            return [parent, child]
        }
        created.formUnion(rows.map(\.id))
    }

    private mutating func actOnQueue(_ world: TreeWorld, _ device: WorldDevice) throws(TreeError) {
        guard let id = world.pick(device.machine.queue.ids), let operation = device.machine.queue[id] else { return }
        if world.chance(70) {
            try device.local(world) { machine throws(TreeError) in try machine.retry(id) }
        } else {
            let branch = try device.store.branch(of: operation.node)
            try device.local(world) { machine throws(TreeError) in try machine.discard(id) }
            removed.formUnion(branch)
        }
    }

    /// Lets everything arrive; what waits for the app is sent again, as long as that changes anything.
    mutating func settle(_ world: TreeWorld) throws {
        for _ in 0..<30 {
            try world.settleDown()
            var isQuiet = true
            for device in world.devices {
                for id in device.machine.queue.ids {
                    isQuiet = false
                    _ = try? device.local(world) { machine throws(TreeError) in try machine.retry(id) }
                }
            }
            if isQuiet { return }
        }
        Issue.record("operations stay in the queue: \(world.devices.map(\.summary))")
    }

    func check(_ world: TreeWorld) throws {
        let server = try world.devices[0].serversSkeleton(world.server)
        #expect(server.count == world.server.nodes.count)
        #expect(world.server.changedBatches == 0, "a request was repeated with other bytes")
        for device in world.devices {
            let difference = Self.difference(try device.skeleton(), server)
            let rows = difference.isEmpty ? "" : try device.describe(Set(server.keys))
            #expect(difference.isEmpty, "device \(device.number) \(rows)")
            #expect(try device.store.faults().isEmpty)
            #expect(!device.events.contains { if case .integrity = $0 { true } else { false } })
            #expect(try device.store.orphans().isEmpty && device.store.stranded().isEmpty)
            #expect(try device.store.unsent().isEmpty)
        }
        let adopted = Set(world.devices.flatMap(\.adopted))
        #expect(adopted.isDisjoint(with: filled), "a node with content was given up")
        for id in created.subtracting(adopted) where world.server.nodes[id] == nil {
            #expect(world.server.removed.contains(id) || removed.contains(id), "\(id) is lost")
        }
        // The last device only watches: its index was made by the delegate alone.
        guard let watcher = world.devices.last else { return }
        let (index, places) = (try IndexApp.index(watcher.store), try watcher.places())
        let other = Set(index.keys).union(places.keys).filter { index[$0] != places[$0] }
        #expect(other.isEmpty, "\(other.map { "\($0) \(index[$0] ?? "-") \(places[$0] ?? "-")" })")
        #expect(!watcher.events.contains { if case .conflict = $0 { true } else { false } })
    }

    /// What two trees do not have in common.
    private static func difference(_ left: [NodeID: String], _ right: [NodeID: String]) -> [String] {
        Set(left.keys).union(right.keys).filter { left[$0] != right[$0] }.sorted().map {
            "\($0.text.prefix(4)): \(left[$0] ?? "-") | \(right[$0] ?? "-")"
        }
    }
}
