import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Nodes that are shown again, and edits that a restored server lacks", .nonceWatch)
struct ShownAgainTests {
    private let world: TreeWorld
    private let x: NodeID

    init() throws {
        world = try TreeWorld(seed: 84, devices: 2, pageNodes: 100)
        world.isHostile = false
        try world.ann.create("a", in: world)
        x = try world.ann.create("x", "old", in: world)
        try world.settleDown()
    }

    /// `x` moves below `a`, which is removed: both changes wait.
    private func removeWithMoved() throws -> Int {
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush() }
        try world.ann.move("x", to: "a/x", in: world)
        try world.ann.remove("a", in: world)
        #expect(try world.ann.paths().isEmpty)
        return world.ann.events.count
    }

    private func wasDiscovered(_ id: NodeID, since count: Int) -> Bool {
        world.ann.events.dropFirst(count).contains {
            if case .discovered(let node, _) = $0 { node.id == id } else { false }
        }
    }

    @Test("a node whose move into a removed branch is refused is shown again, and reported")
    func refusedMove() throws {
        let before = try removeWithMoved()
        world.server.isReadOnly = true
        try world.ann.local(world) { machine throws(TreeError) in machine.resumePush() }
        try world.settleDown()
        #expect(try world.ann.paths() == ["home/x"])
        #expect(wasDiscovered(x, since: before))
    }

    @Test("a node that was moved into a removed branch, which another device removed first, is shown and reported")
    func removedFirst() throws {
        let before = try removeWithMoved()
        try world.other.remove("a", in: world)
        try world.other.run(world)
        try world.ann.run(world)
        #expect(try world.ann.paths() == ["home/x"])
        #expect(wasDiscovered(x, since: before))
    }

    @Test("a removal that the server does not make of a changed node shows it again with what is below, each once")
    func keptByServer() throws {
        let below = try world.ann.create("a/below", in: world)
        let deep = try world.ann.create("a/below/deep", in: world)
        try world.settleDown()
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush() }
        let (id, before) = (try world.ann.id("a"), world.ann.events.count)
        try world.other.write("a/below/deep", "theirs", in: world)
        try world.other.run(world)
        try world.ann.local(world) { machine throws(TreeError) in
            _ = try machine.delete(id, outdated: false)
            machine.resumePush()
        }
        try world.settleDown()
        #expect(try world.ann.paths() == ["home/a", "home/a/below", "home/a/below/deep", "home/x"])
        for node in [id, below, deep] {
            let count = world.ann.events.dropFirst(before).count {
                if case .discovered(let found, _) = $0 { found.id == node } else { false }
            }
            #expect(count == 1)
        }
    }

    @Test("a restored server has a node below one that it lists later: the newer content and place here are held")
    func parentListedLater() throws {
        let world = try TreeWorld(seed: 88, devices: 1, pageNodes: 100)
        world.isHostile = false
        let x = try world.ann.create("x", "old", in: world)
        try world.settleDown()
        let copy = world.server
        try world.ann.write("x", "new", in: world)
        try world.settleDown()
        // Another history of the server: the node is below a new one, which comes after it in the order of ids.
        let past = try TreeWorld(seed: 85, devices: 1, pageNodes: 100)
        past.isHostile = false
        past.server = copy
        try past.settleDown()
        var name = 0
        while try past.ann.create("p\(name)", in: past).text < x.text { name += 1 }
        try past.ann.move("x", to: "p\(name)/x", in: past)
        try past.settleDown()
        world.server = past.server
        world.server.store = "store-2"
        try world.ann.restart(world)
        try world.settleDown()
        #expect(try world.ann.paths().contains("home/x"))
        #expect(world.ann.holds == [.held(.data)])
        let operation = try #require(world.ann.machine.queue.operations(of: x).first)
        #expect(operation.fields.isSuperset(of: [.place, .content]))
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(world.server.nodes[x]?.record.parent == .trunk(.home))
        #expect(try world.ann.content("x") == "new" && world.ann.machine.queue.isEmpty)
    }
}
