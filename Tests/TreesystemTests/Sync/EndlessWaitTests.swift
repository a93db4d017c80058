import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Operations that could wait for ever", .nonceWatch)
struct EndlessWaitTests {
    private let world: TreeWorld

    init() throws {
        world = try TreeWorld(seed: 83, devices: 3)
        world.isHostile = false
        try world.ann.create("a", "old", in: world)
        try world.settleDown()
    }

    /// The only operation of a node waits for a version.
    private func wait(for version: Version, _ path: String) throws {
        let id = try world.ann.id(path)
        try world.ann.local(world) { machine throws(TreeError) in
            guard var operation = machine.queue.operations(of: id).last else { return }
            operation.waitsFor = version
            try machine.skeleton.write(operation)
        }
    }

    private func pause(_ device: WorldDevice, _ isPaused: Bool = true) throws {
        try device.local(world) { machine throws(TreeError) in
            if isPaused { machine.pausePush() } else { machine.resumePush() }
        }
    }

    @Test("a change that waits for a version is sent when that version does not open, and repairs the record")
    func forgedVersion() throws {
        let id = try world.ann.id("a")
        try pause(world.ann)
        try world.ann.write("a", "mine", in: world)
        try wait(for: 2, "a")
        var forged = try #require(world.server.nodes[id]).record
        forged.tag = try NodeTag(of: Array("other".utf8), salt: [UInt8](repeating: 7, count: 32))
        world.server.forge(id, forged)
        try pause(world.ann, false)
        try world.settleDown()
        #expect(world.ann.machine.queue.isEmpty)
        #expect(try world.other.content("a") == "mine" && world.ann.store.faults().isEmpty)
    }

    @Test("a reading of all nodes ends the wait for a version that the server has no more")
    func lostVersion() throws {
        let id = try world.ann.id("a")
        try pause(world.ann)
        try world.ann.write("a", "mine", in: world)
        try wait(for: 99, "a")
        _ = try world.other.local(world) { machine throws(TreeError) in try machine.setBurnTime(of: id, 1 << 41) }
        try world.other.run(world)
        try world.ann.forgetPosition(world)
        try world.settleDown()
        #expect(world.ann.machine.queue.isEmpty)
        #expect(try world.other.content("a") == "mine")
    }

    @Test("a new node whose content is to be asked for, and whose hidden parent is gone, is created at the top")
    func lostParent() throws {
        try pause(world.ann)
        let id = try world.ann.local(world) { machine throws(TreeError) in
            try machine.create(at: WorldDevice.path("a/new"), content: .ask).id
        }
        // The parent went below a node that this device does not know, and is gone.
        let gone = NodeParent.node(NodeID(99))
        try world.ann.local(world) { machine throws(TreeError) in
            guard var row = try machine.store.row(id), var operation = machine.queue.operations(of: id).last,
                let name = row.name
            else { return }
            (row.parent, row.state) = (gone, .unopened)
            operation.target = Place(gone, name)
            try machine.skeleton.write(row)
            try machine.skeleton.write(operation)
        }
        try pause(world.ann, false)
        try world.settleDown()
        #expect(world.ann.machine.queue.isEmpty)
        #expect(try world.ann.paths() == ["home/a", "home/new"] && world.other.id("new") == id)
    }

    @Test("a node that is kept leaves its group: the other operations of the group are sent")
    func groupOfKept() throws {
        let id = try world.ann.id("a")
        try pause(world.ann)
        try world.ann.local(world) { machine throws(TreeError) in
            var queueing = TreeMachine.Queueing()
            queueing.group = 1
            let content = NodeContent(data: Array("mine".utf8))
            _ = try machine.setContent(of: id, .held(content), queueing: queueing)
            _ = try machine.create(at: WorldDevice.path("new"), content: .none, queueing: queueing)
        }
        try world.other.remove("a", in: world)
        try world.other.run(world)
        try world.ann.run(world)
        try pause(world.ann, false)
        try world.settleDown()
        #expect(world.ann.holds == [.held(.removed)])
        #expect(try world.other.paths() == ["home/new"])
    }

    @Test("a changed node in a branch that is removed here is kept when a restored server lacks it")
    func concealedAndUnlisted() throws {
        let copy = world.server
        let x = try world.ann.create("x", "old", in: world)
        try world.settleDown()
        try pause(world.ann)
        try world.ann.write("x", "mine", in: world)
        try world.ann.remove("a", in: world)
        try world.other.move("x", to: "a/x", in: world)
        try world.other.run(world)
        try world.ann.run(world)
        #expect(try world.ann.store.row(x)?.state == .covered)
        world.server = copy
        world.server.store = "store-2"
        for device in world.devices { try device.restart(world) }
        try world.settleDown()
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(world.server.nodes[x] != nil && world.ann.machine.queue.isEmpty)
        let path = try #require(try world.ann.store.path(of: .node(x)))
        #expect(try world.ann.content(path.names.map(\.text).joined(separator: "/")) == "mine")
    }

    @Test("two devices create a removed node again with two contents: the later one is a conflict, and none is lost")
    func createdTwice() throws {
        let (ann, other, third) = (world.devices[0], world.devices[1], world.devices[2])
        for (device, content) in [(ann, "mine"), (other, "theirs")] {
            try pause(device)
            try device.write("a", content, in: world)
        }
        try third.remove("a", in: world)
        try third.run(world)
        for device in [ann, other] {
            try device.run(world)
            #expect(device.holds == [.held(.removed)])
            try device.retryAll(world)
        }
        try pause(ann, false)
        try ann.run(world)
        try other.run(world)
        #expect(other.holds == [.held(.data)])
        #expect(other.events.contains { if case .conflict(.data) = $0 { true } else { false } })
        #expect(try other.store.row(ann.id("a"))?.version == ann.store.row(ann.id("a"))?.version)
        try pause(other, false)
        try world.settleDown()
        #expect(try third.content("a") == "mine")
        try other.retryAll(world)
        try world.settleDown()
        #expect(try third.content("a") == "theirs" && other.machine.queue.isEmpty)
    }
}
