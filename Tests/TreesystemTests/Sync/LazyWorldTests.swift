import Testing
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Trees with a lazy skeleton", .nonceWatch)
struct LazyWorldTests {
    /// A tree that one device has made before the lazy one connects for the first time.
    private func world(_ paths: [String]) throws -> TreeWorld {
        let world = try TreeWorld(seed: 31, devices: 2, pageNodes: 100, lazy: [1])
        world.isHostile = false
        world.ann.goOnline(world)
        for path in paths { try world.ann.create(path, path, in: world) }
        try world.ann.run(world)
        #expect(world.server.nodes.count == paths.count)
        try world.settleDown()
        return world
    }

    @Test("the first screen of a large tree takes one request, and what is opened one more each")
    func requests() throws {
        let world = try world((0..<20).flatMap { ["\($0)", "\($0)/below", "\($0)/below/deep"] })
        #expect(world.other.queriesMade == 1)
        #expect(try world.other.paths() == (0..<20).map { "home/\($0)" }.sorted())
        let opened = try world.other.id("7")
        try world.other.load("7", in: world)
        #expect(world.other.queriesMade == 2)
        #expect(try world.other.machine.isListed(.node(opened)))
        #expect(try world.other.paths().filter { $0.hasPrefix("home/7/") } == ["home/7/below"])
        try world.other.load("7", in: world)
        #expect(world.other.queriesMade == 2)
    }

    @Test("changes in unknown parts store nothing and report nothing, and are there when the part is opened")
    func unknownParts() throws {
        let world = try world(["a", "a/b", "a/b/c"])
        let (rows, events) = (try world.other.store.dump().count { $0.hasPrefix("node") }, world.other.events.count)
        try world.ann.write("a/b/c", "new", in: world)
        try world.ann.create("a/b/d", in: world)
        try world.settleDown()
        #expect(try world.other.store.dump().count { $0.hasPrefix("node") } == rows)
        #expect(world.other.events.count == events)
        try world.other.openAll(world)
        #expect(try world.other.paths() == ["home/a", "home/a/b", "home/a/b/c", "home/a/b/d"])
        #expect(try world.other.content("a/b/c") == "new")
    }

    @Test("moves into an unknown part hide a branch with its changes, and moves out of it show it")
    func moves() throws {
        let world = try world(["a", "a/b", "a/b/deep", "x", "x/y"])
        try world.other.load("x", in: world)
        try world.ann.move("x", to: "a/b/deep/x", in: world)
        try world.settleDown()
        #expect(try world.other.paths() == ["home/a"])
        #expect(try IndexApp.index(world.other.store) == world.other.places())
        try world.ann.move("a/b/deep/x", to: "x", in: world)
        try world.ann.move("a/b", to: "b", in: world)
        try world.settleDown()
        #expect(try world.other.paths() == ["home/a", "home/b", "home/x", "home/x/y"])
        try world.other.openAll(world)
        #expect(try world.other.paths() == world.ann.paths())
        #expect(try IndexApp.index(world.other.store) == world.other.places())
    }

    @Test("a removal removes unknown parts too, and a local node below an unlisted one reaches the server")
    func removalsAndCreations() throws {
        let world = try world(["a", "a/b", "a/b/c", "d", "d/taken"])
        try world.other.remove("a", in: world)
        try world.other.create("d/new", in: world)
        // The name is taken by a node that this device does not know.
        try world.other.create("d/taken", in: world)
        try world.settleDown()
        try world.other.openAll(world)
        for device in world.devices {
            let paths = try device.paths()
            #expect(paths == ["home/d", "home/d/new", "home/d/taken", "home/d/taken 2"])
        }
        #expect(world.server.nodes.count == 4)
    }

    @Test("a lost position reads again the lists that are known, and no others")
    func lostPosition() throws {
        let world = try world(["a", "a/b", "a/b/c", "d", "d/e"])
        try world.other.load("a", in: world)
        try world.ann.remove("a/b", in: world)
        try world.ann.create("a/new", in: world)
        try world.ann.run(world)
        let before = world.other.queriesMade
        try world.other.forgetPosition(world)
        try world.settleDown()
        #expect(world.other.queriesMade == before + 1)
        #expect(try world.other.paths() == ["home/a", "home/a/new", "home/d"])
        #expect(try IndexApp.index(world.other.store) == world.other.places())
    }

    @Test("a lazy device that is opened as a full one reads all nodes, and one that was full stays full")
    func otherPolicy() throws {
        let world = try world(["a", "a/b", "a/b/c"])
        #expect(try world.other.paths() == ["home/a"])
        world.other.options.skeleton = .full
        try world.other.restart(world)
        try world.settleDown()
        #expect(try world.other.paths() == ["home/a", "home/a/b", "home/a/b/c"])
        world.other.options.skeleton = .lazy(depth: 1)
        try world.other.restart(world)
        try world.ann.create("a/b/new", in: world)
        try world.settleDown()
        #expect(try world.other.paths() == world.ann.paths())
        #expect(try world.other.machine.isListed(.node(world.other.id("a/b"))))
    }

    @Test(
        "random changes with lazy devices: after everything is opened they show what the others show",
        arguments: TreeWorld.seeds)
    func randomLazy(seed: UInt64) throws {
        let world = try TreeWorld(seed: 91_000 + seed, devices: 4, pageNodes: 3, lazy: [2, 3])
        var life = WorldLife()
        for _ in 0..<600 {
            if world.chance(25) { try life.act(world, world.devices[world.roll(3)]) }
            for device in world.devices[2...] where world.chance(4) {
                guard let id = world.pick(try device.skeleton().keys.sorted()) else { continue }
                try device.local(world) { machine throws(TreeError) in try machine.load([.node(id)]) }
            }
            try world.step()
        }
        try world.settleDown()
        for _ in 0..<3 {
            for device in world.devices { try device.openAll(world) }
            try life.settle(world)
        }
        try life.check(world)
    }
}

extension WorldDevice {
    func load(_ path: String, in world: TreeWorld) throws {
        let id = try id(path)
        try local(world) { machine throws(TreeError) in try machine.load([.node(id)]) }
        try world.settleDown()
    }
}
