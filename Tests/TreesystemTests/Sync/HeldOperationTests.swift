import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Operations that wait for the app", .nonceWatch)
struct HeldOperationTests {
    private let world: TreeWorld

    init() throws {
        world = try TreeWorld(seed: 21, devices: 2)
        world.isHostile = false
        try world.ann.create("a", "old", in: world)
        try world.settleDown()
    }

    @Test("two devices change one content: this device's waits, retry sends it over the other one")
    func retry() throws {
        try conflict()
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(try world.ann.content("a") == "mine" && world.other.content("a") == "mine")
        #expect(world.ann.machine.queue.isEmpty)
    }

    @Test("two devices change one content: discard shows the other one")
    func discard() throws {
        try conflict()
        try world.ann.discardAll(world)
        try world.settleDown()
        #expect(try world.ann.content("a") == "theirs" && world.other.content("a") == "theirs")
    }

    /// Both devices write `a`; the other one's content arrives first.
    private func conflict() throws {
        try world.other.write("a", "theirs", in: world)
        try world.other.run(world)
        try world.ann.write("a", "mine", in: world)
        try world.settleDown()
        #expect(world.ann.holds == [.held(.data)])
        #expect(try world.other.content("a") == "theirs")
        let conflicts = world.ann.events.filter { if case .conflict(.data) = $0 { true } else { false } }
        #expect(conflicts.count == 1)
    }

    @Test("a local node that goes with its branch, and frees a name for another one, is nowhere afterwards")
    func neededInBranch() throws {
        try world.ann.local(world) { machine throws(TreeError) in
            machine.pausePush()
            var queueing = TreeMachine.Queueing()
            queueing.isKept = true
            _ = try machine.create(at: WorldDevice.path("c"), content: .none, queueing: queueing)
        }
        try world.ann.create("x", in: world)
        try world.ann.move("c", to: "x/c", in: world)
        let second = try world.ann.create("c", in: world)
        try world.ann.remove("x", in: world)
        #expect(try world.ann.paths() == ["home/a", "home/c"] && world.ann.store.orphans().isEmpty)
        try world.ann.local(world) { machine throws(TreeError) in machine.resumePush() }
        try world.settleDown()
        #expect(try world.ann.paths() == ["home/a", "home/c"] && world.other.id("c") == second)
        #expect(world.server.nodes.count == 2)
        #expect(world.ann.machine.queue.isEmpty)
    }

    @Test("a local node below one that is hidden and then removed keeps that one, and is sent with it")
    func hiddenParent() throws {
        try world.ann.create("b", in: world)
        try world.settleDown()
        let (a, b) = (try world.ann.id("a"), try world.ann.id("b"))
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush() }
        try world.ann.create("a/new", "mine", in: world)
        // The row of a node that went below one that this device does not know yet.
        for id in [a, try world.ann.id("a/new")] {
            guard var row = try world.ann.store.row(id) else { continue }
            row.state = .unopened
            if id == a { row.parent = .node(NodeID(99)) }
            try world.ann.store.write(row)
        }
        try world.other.remove("a", in: world)
        try world.other.run(world)
        try world.ann.run(world)
        try world.ann.local(world) { machine throws(TreeError) in machine.resumePush() }
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(try world.other.skeleton().count == 3 && world.other.skeleton()[b] != nil)
        #expect(world.ann.machine.queue.isEmpty)
    }

    @Test("a removed node is created again below one that had been below it, in an order that can be sent")
    func createdBelow() throws {
        try world.ann.create("v", in: world)
        try world.settleDown()
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush() }
        try world.ann.move("v", to: "a/v", in: world)
        try world.ann.create("a/v/u", in: world)
        try world.ann.move("a/v", to: "w", in: world)
        try world.ann.move("a", to: "w/u/a", in: world)
        try world.ann.write("w/u/a", "mine", in: world)
        try world.other.remove("a", in: world)
        try world.other.run(world)
        try world.ann.run(world)
        #expect(world.ann.holds == [.held(.removed)])
        try world.ann.local(world) { machine throws(TreeError) in machine.resumePush() }
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(world.ann.machine.queue.isEmpty)
        #expect(try world.other.paths() == ["home/w", "home/w/u", "home/w/u/a"])
        #expect(try world.other.content("w/u/a") == "mine")
    }

    @Test("a burn time that one device sets, changes and clears is what another one shows")
    func burnTime() throws {
        let id = try world.ann.id("a")
        for time in [1_800_000_000_000, 1_900_000_000_000, nil] as [Int64?] {
            try world.ann.local(world) { machine throws(TreeError) in _ = try machine.setBurnTime(of: id, time) }
            #expect(try world.ann.store.row(id)?.burnTime == time)
            try world.settleDown()
            #expect(try world.other.store.row(id)?.burnTime == time)
            #expect(world.server.nodes[id]?.record.burnTime == time)
        }
        let changes = world.other.events.compactMap { event -> Node? in
            if case .modified(let node, .burnTime, _) = event { node } else { nil }
        }
        #expect(changes.map(\.burnTime) == [1_800_000_000_000, 1_900_000_000_000, nil])
        #expect(try world.other.content("a") == "old")
    }

    @Test(
        "an aborted request stays sent, is repeated unchanged after the pause, and is made once",
        arguments: [true, false])
    func abort(arrives: Bool) throws {
        try world.ann.create("new", "x", in: world)
        if arrives { try world.ann.deliverToServer(world) }
        let before = try world.ann.store.sent()
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush(abort: true) }
        if !arrives { world.ann.loseRequests() }
        try world.ann.local(world) { machine throws(TreeError) in _ = try machine.create(at: WorldDevice.path("b")) }
        try world.ann.run(world)
        #expect(try world.ann.store.sent()?.operations == (arrives ? nil : before?.operations))
        #expect(world.server.nodes.count == (arrives ? 2 : 1))
        try world.ann.local(world) { machine throws(TreeError) in machine.resumePush() }
        try world.settleDown()
        #expect(try world.other.paths() == ["home/a", "home/b", "home/new"])
        #expect(world.server.received == world.server.batches.count)
    }

    @Test("nodes with waiting changes are syncing, with all above them, until they are confirmed")
    func syncingNodes() throws {
        let (a, b) = (try world.ann.id("a"), try world.ann.create("a/b", in: world))
        let c = try world.ann.create("a/b/c", in: world)
        let other = try world.ann.create("other", in: world)
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush() }
        #expect(try world.ann.machine.syncingNodes() == [a, b, c, other])
        try world.ann.local(world) { machine throws(TreeError) in machine.resumePush() }
        try world.settleDown()
        #expect(try world.ann.machine.syncingNodes().isEmpty)
    }

    @Test("why the last attempt was not accepted is stored with the operation, and goes when the next one is")
    func trouble() throws {
        try world.ann.create("new", "x", in: world)
        func answer(_ reply: BatchReply) throws -> [String?] {
            let id = try #require(world.ann.machine.push.inFlight?.id)
            world.ann.loseRequests()
            try world.ann.local(world) { machine throws(TreeError) in try machine.batchAnswered(id, reply) }
            return try world.ann.store.operations().map(\.trouble)
        }
        #expect(try answer(.unknown("the disk is full (503)", retryAfter: 0)) == ["the disk is full (503)"])
        // Another run of the program knows it.
        try world.ann.restart(world)
        #expect(world.ann.machine.queue.ids.map { world.ann.machine.queue[$0]?.trouble } == ["the disk is full (503)"])
        try world.ann.tick(world)
        try world.ann.run(world)
        #expect(world.ann.machine.queue.isEmpty)
        try world.ann.create("other", in: world)
        let refusal = BatchRefusal(.invalidRequest, .nameTaken, operation: 0)
        #expect(try answer(.answer(.refused(refusal))) == ["the server refuses it for now (name-taken)"])
        let id = try #require(world.ann.machine.queue.ids.first)
        for trouble in ["full", nil] {
            try world.ann.local(world) { machine throws(TreeError) in try machine.report(trouble, of: id) }
            #expect(try world.ann.store.operations().map(\.trouble) == [trouble])
        }
        try world.settleDown()
        #expect(try world.other.paths() == ["home/a", "home/new", "home/other"])
    }

    @Test("a token that may only read fails operations after one request, and retry sends them with another")
    func readOnly() throws {
        world.server.isReadOnly = true
        try world.ann.create("new", "x", in: world)
        try world.ann.create("new/below", in: world)
        try world.settleDown()
        #expect(world.server.received == 2)
        #expect(world.ann.holds == [.failed("read-only")])
        let failures = world.ann.events.filter { if case .operationFailed = $0 { true } else { false } }
        #expect(failures.count == 1)
        // Reading goes on.
        #expect(world.ann.machine.channel.phase == .live)
        world.server.isReadOnly = false
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(try world.other.paths() == ["home/a", "home/new", "home/new/below"])
    }
}
