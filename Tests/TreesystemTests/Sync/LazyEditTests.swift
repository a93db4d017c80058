import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Edits of a device with a lazy skeleton", .nonceWatch)
struct LazyEditTests {
    private let world: TreeWorld
    private let lazy: WorldDevice

    init() throws {
        world = try TreeWorld(seed: 86, devices: 2, pageNodes: 100, lazy: [1])
        world.isHostile = false
        lazy = world.other
        world.ann.goOnline(world)
        for path in ["a", "a/b", "a/b/deep", "g", "x"] { try world.ann.create(path, path, in: world) }
        try world.ann.run(world)
        try world.settleDown()
        #expect(try lazy.paths() == ["home/a", "home/g", "home/x"])
        try lazy.local(world) { machine throws(TreeError) in machine.pausePush() }
    }

    @Test("a node that another device removed is gone after a lost position, although a move to an unread list waits")
    func movedAndRemoved() throws {
        let x = try lazy.id("x")
        try lazy.move("x", to: "a/x", in: world)
        try world.ann.remove("x", in: world)
        try world.ann.run(world)
        try lazy.forgetPosition(world)
        try world.settleDown()
        #expect(lazy.machine.queue.isEmpty)
        #expect(try lazy.store.row(x) == nil && lazy.paths() == ["home/a", "home/g"])
    }

    @Test("a node that waits to be moved below a removed one is not removed with it after a lost position")
    func movedBelowRemoved() throws {
        let x = try lazy.id("x")
        try lazy.move("x", to: "g/x", in: world)
        try world.ann.remove("g", in: world)
        try world.ann.run(world)
        try lazy.forgetPosition(world)
        try world.settleDown()
        #expect(try lazy.skeleton()[x] != nil && world.server.nodes[x] != nil)
        try lazy.discardAll(world)
        try world.settleDown()
        #expect(try lazy.paths() == ["home/a", "home/x"])
    }

    @Test("a changed node that was moved into an unknown part and then removed is kept at the top, and retry sends it")
    func removedInUnknownPart() throws {
        try lazy.write("x", "mine", in: world)
        let x = try lazy.id("x")
        try world.ann.move("x", to: "a/b/x", in: world)
        try world.settleDown()
        #expect(try lazy.paths() == ["home/a", "home/g"])
        try world.ann.remove("a/b/x", in: world)
        try world.settleDown()
        #expect(lazy.holds == [.held(.removed)])
        #expect(try lazy.skeleton()[x] != nil)
        try lazy.local(world) { machine throws(TreeError) in machine.resumePush() }
        try lazy.retryAll(world)
        try world.settleDown()
        let path = try #require(try world.ann.store.path(of: .node(x)))
        #expect(path.depth == 1 && lazy.machine.queue.isEmpty)
    }

    @Test("a requested record of a node that is kept here counts, also below a place that was not read")
    func requestedRecord() throws {
        try lazy.write("x", "mine", in: world)
        let x = try lazy.id("x")
        try world.ann.remove("x", in: world)
        try world.settleDown()
        #expect(try lazy.store.row(x)?.version == 0)
        try lazy.local(world) { machine throws(TreeError) in try machine.want(x, 9) }
        let record = try #require(world.server.nodes[world.ann.id("a/b/deep")]).record
        let data: JSONObject = ["data": .object(record.object)]
        lazy.receive(Array("0:e:\(x.text).9\n".utf8) + data.serialized(), world)
        #expect(try lazy.store.row(x)?.version == 9)
        #expect(lazy.machine.channel.wanted.isEmpty)
    }

    @Test("a reading of all lists ends the wait for a record that was requested before")
    func lostRecord() throws {
        try lazy.local(world) { machine throws(TreeError) in try machine.want(NodeID(77), 5) }
        lazy.receive(Array("0:cv:?".utf8), world)
        try world.settleDown()
        #expect(lazy.machine.channel.wanted.isEmpty)
        #expect(try lazy.store.namedValue("wanted") == nil)
    }

    @Test("a list that the app has asked for is read, although the position is lost meanwhile")
    func requestedList() throws {
        let a = try lazy.id("a")
        try lazy.local(world) { machine throws(TreeError) in try machine.load([.node(a)]) }
        lazy.receive(Array("0:cv:?".utf8), world)
        try world.settleDown()
        #expect(try lazy.machine.isListed(.node(a)) && lazy.paths().contains("home/a/b"))
    }

    @Test("one record of a page that is malformed or does not open is quarantined alone, and the paging goes on")
    func malformedRecord() throws {
        let world = try TreeWorld(seed: 87, devices: 2, pageNodes: 2, lazy: [1])
        world.isHostile = false
        let lazy = world.other
        world.ann.goOnline(world)
        for path in ["a", "b", "c", "d", "e"] { try world.ann.create(path, path, in: world) }
        try world.ann.run(world)
        let ids = try ["b", "c", "d"].map { try world.ann.id($0) }
        var forged = try #require(world.server.nodes[ids[1]]).record
        forged.data = nil
        world.server.forge(ids[1], forged)
        // No version, no parent.
        lazy.listedObjects = [ids[0]: ["x": "y"], ids[2]: ["v": 99, "p": "home"]]
        try world.settleDown()
        #expect(try lazy.paths() == ["home/a", "home/e"])
        #expect(try Set(lazy.store.faults().map(\.node)) == Set(ids))
        let reported = lazy.events.compactMap { if case .integrity(let fault) = $0 { fault.node } else { nil } }
        #expect(Set(reported) == Set(ids) && reported.count == 3)
        #expect(try lazy.machine.isListed(.trunk(.home)))
        // With their records, the nodes are shown.
        lazy.listedObjects = [:]
        for text in ["b", "c", "d"] { try world.ann.write(text, text + "2", in: world) }
        try world.settleDown()
        #expect(try lazy.paths() == ["home/a", "home/b", "home/c", "home/d", "home/e"])
        #expect(try lazy.store.faults().isEmpty && lazy.content("b") == "b2")
    }
}
