import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Trees whose position in the log is lost", .nonceWatch)
struct LostPositionTests {
    private let world: TreeWorld

    init() throws {
        world = try TreeWorld(seed: 12, devices: 2, pageNodes: 3)
        world.isHostile = false
    }

    @Test("a listing without a branch keeps the nodes that have new local ones below them, and removes the others")
    func localChildren() throws {
        for path in ["a", "a/b", "a/b/c", "a/other"] { try world.ann.create(path, in: world) }
        try world.settleDown()
        try world.other.remove("a", in: world)
        try world.other.run(world)
        try world.ann.create("a/b/new", "mine", in: world)
        try world.ann.forgetPosition(world)
        try world.ann.run(world)
        #expect(try world.ann.paths() == ["home/a", "home/a/b", "home/a/b/new"])
        #expect(try world.ann.store.orphans().isEmpty)
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(try world.other.paths() == ["home/a", "home/a/b", "home/a/b/new"])
        #expect(try world.other.content("a/b/new") == "mine")
        #expect(world.ann.machine.queue.isEmpty)
    }

    @Test("a node that is confirmed while all nodes are read stays shown", arguments: 0..<30 as Range<UInt64>)
    func confirmedWhileListing(seed: UInt64) throws {
        let world = try TreeWorld(seed: seed, devices: 1, pageNodes: 3)
        world.isHostile = false
        for number in 0..<8 { try world.ann.create("\(number)", in: world) }
        try world.settleDown()
        let before = world.ann.events.count
        try world.ann.create("new", in: world)
        // The batch is on its way while the connection is made again, without a position.
        try world.ann.loseConnection(world)
        world.ann.machine.channel.position = nil
        world.ann.goOnline(world)
        try world.settleDown()
        #expect(try world.ann.paths().count == 9)
        let deleted = world.ann.events.dropFirst(before).contains { if case .deleted = $0 { true } else { false } }
        #expect(!deleted)
    }

    @Test("an older copy of the server: unlisted nodes are held, and retry creates them again with their contents")
    func unlisted() throws {
        try world.ann.create("kept", "old", in: world)
        try world.settleDown()
        let copy = world.server
        try world.ann.create("folder", in: world)
        try world.ann.create("folder/later", "new", in: world)
        try world.settleDown()
        try restore(copy)
        for device in world.devices {
            #expect(try device.paths() == ["home/folder", "home/folder/later", "home/kept"])
            #expect(device.holds == [.held(.removed), .held(.removed)])
        }
        #expect(world.server.nodes.count == 1)
        // Both devices send them; each is made once.
        for device in world.devices { try device.retryAll(world) }
        try world.settleDown()
        for device in world.devices {
            try device.retryAll(world)
            try world.settleDown()
            #expect(try device.paths() == ["home/folder", "home/folder/later", "home/kept"])
            #expect(try device.content("folder/later") == "new")
            #expect(device.machine.queue.isEmpty)
        }
        #expect(world.server.nodes.count == 3)
    }

    @Test("an older copy of the server: newer contents and places stay here as held changes, and retry sends them")
    func older() throws {
        try world.ann.create("a", "old", in: world)
        try world.ann.create("b", in: world)
        try world.ann.create("same", "same", in: world)
        try world.settleDown()
        let copy = world.server
        try world.ann.write("a", "new", in: world)
        try world.ann.move("a", to: "b/a", in: world)
        try world.settleDown()
        try restore(copy)
        #expect(try world.ann.paths() == ["home/b", "home/b/a", "home/same"])
        #expect(world.ann.holds == [.held(.data)])
        let conflicts = world.ann.events.filter { if case .conflict(.data) = $0 { true } else { false } }
        #expect(!conflicts.isEmpty)
        // The other device accepts the server's state.
        try world.other.discardAll(world)
        #expect(try world.other.paths() == ["home/a", "home/b", "home/same"])
        #expect(try world.other.content("a") == "old")
        try world.ann.retryAll(world)
        try world.settleDown()
        for device in world.devices {
            #expect(try device.paths() == ["home/b", "home/b/a", "home/same"])
            #expect(try device.content("b/a") == "new")
            #expect(device.machine.queue.isEmpty)
        }
    }

    @Test("an older copy of the server: a kept node gives the keys of one that waits to be moved out of it")
    func movedOutOfKept() throws {
        try world.settleDown()
        let (copy, content) = (world.server, NodeContent(data: Array("content".utf8)))
        // In the order of ids, the upper node is kept first.
        for (number, path) in ["p", "p/c"].enumerated() {
            try world.ann.local(world) { machine throws(TreeError) in
                let id = NodeID(UInt128(number + 1))
                _ = try machine.create(at: WorldDevice.path(path), id: id, content: .held(content))
            }
        }
        try world.settleDown()
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush() }
        try world.ann.move("p/c", to: "c", in: world)
        try restore(copy)
        try world.other.discardAll(world)
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(try world.ann.content("c") == "content" && world.ann.content("p") == "content")
        #expect(try world.ann.paths() == ["home/c", "home/p"])
    }

    /// The server continues from an earlier state, under another identity.
    private func restore(_ copy: ModelServer) throws {
        world.server = copy
        world.server.store = "store-2"
        for device in world.devices { try device.restart(world) }
        try world.settleDown()
    }
}
