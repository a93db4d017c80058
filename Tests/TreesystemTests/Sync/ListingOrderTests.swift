import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Nodes that arrive in any order", .nonceWatch)
struct ListingOrderTests {
    @Test("a node that is listed below one that was below it is shown when that one arrives, with all events")
    func cycleInListing() throws {
        let world = try TreeWorld(seed: 7, devices: 2, pageNodes: 1)
        world.isHostile = false
        for (number, path) in ["a", "a/b", "a/c"].enumerated() {
            try world.ann.local(world) { machine throws(TreeError) in
                _ = try machine.create(at: WorldDevice.path(path), id: NodeID(UInt128(number + 1)), content: .none)
            }
        }
        try world.settleDown()
        try world.ann.move("a/b", to: "b", in: world)
        try world.ann.move("a", to: "b/a", in: world)
        try world.ann.run(world)
        try world.other.forgetPosition(world)
        try world.settleDown()
        #expect(try world.other.paths() == ["home/b", "home/b/a", "home/b/a/c"])
        #expect(try IndexApp.index(world.other.store) == world.other.places())
    }

    @Test("a node below one whose record does not open is not shown, and is when that record is repaired")
    func quarantinedParent() throws {
        let world = try TreeWorld(seed: 7, devices: 1)
        world.isHostile = false
        let parent = try world.ann.create("a", in: world)
        let child = try world.ann.create("a/b", in: world)
        try world.settleDown()
        var entries = [IndexPage.Entry]()
        let tag = try #require(world.server.nodes[child]?.record.object["n"])
        for id in [parent, child] {
            var object = try #require(world.server.nodes[id]?.record.object)
            if id == parent { object["n"] = tag }
            entries.append(IndexPage.Entry(key: try EntityKey(id.text), version: 1, data: .value(.object(object))))
        }
        let device = try SingleDevice()
        var writer = JSONWriter(reservingBytes: 1_024)
        IndexPage(current: ModelServer.position(2), entries: entries).write(to: &writer)
        device.receive(Array("0:i:".utf8) + writer.bytes)
        #expect(try device.store.faults().map(\.node) == [parent])
        #expect(try device.store.shownCount() == 0)
        try world.ann.move("a", to: "repaired", in: world)
        try world.ann.run(world)
        device.receive("0:" + world.server.changes(from: 2))
        // What the change is based on may not be what the server has: the whole record is requested.
        #expect(device.machine.channel.wanted == [parent: 2])
        var isLive = true
        for answer in world.server.answers(to: "e:\(parent.text).2", pageNodes: 1, isLive: &isLive) {
            device.receive("0:" + answer)
        }
        #expect(try device.store.faults().isEmpty)
        #expect(try device.store.shownCount() == 2 && device.store.orphans().isEmpty)
        let shown = device.actions.compactMap { if case .event(.discovered(let node, _)) = $0 { node.id } else { nil } }
        #expect(shown == [parent, child])
    }

    @Test("a local node that comes back with the one above it is reported, as its disappearance was")
    func localNode() throws {
        let world = try TreeWorld(seed: 7, devices: 2)
        world.isHostile = false
        for path in ["a", "x"] { try world.ann.create(path, in: world) }
        try world.settleDown()
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush() }
        let new = try world.ann.create("a/new", in: world)
        try world.ann.remove("x", in: world)
        for target in ["x/a", "b"] {
            try world.other.move(target == "b" ? "x/a" : "a", to: target, in: world)
            try world.other.run(world)
            try world.ann.run(world)
        }
        #expect(try world.ann.paths() == ["home/b", "home/b/new"])
        let events = world.ann.events.compactMap { event -> String? in
            switch event {
            case .deleted(let node, let path) where node.id == new: "- \(path)"
            case .discovered(let node, let path) where node.id == new: "+ \(path)"
            default: nil
            }
        }
        #expect(events == ["- home/x/a/new", "+ home/b/new"])
    }
}
