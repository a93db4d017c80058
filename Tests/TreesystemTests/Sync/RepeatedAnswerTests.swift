import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Answers that arrive twice or late", .nonceWatch)
struct RepeatedAnswerTests {
    private let world: TreeWorld

    init() throws {
        world = try TreeWorld(seed: 64, devices: 2)
        world.isHostile = false
        try world.ann.create("a", in: world)
        try world.ann.create("a/b", in: world)
        try world.settleDown()
    }

    @Test("a log that arrives in parts and again shows no removed node again, and never moves the position back")
    func repeatedLog() throws {
        try world.ann.move("a/b", to: "b", in: world)
        try world.ann.run(world)
        let removed = try world.ann.id("b")
        try world.ann.remove("b", in: world)
        try world.ann.run(world)
        try world.ann.create("c", in: world)
        try world.ann.run(world)
        let device = try SingleDevice()
        device.receive("0:i:{\"current\":\"cv-0\",\"index\":[]}")
        // The device asks again after the first two parts, and the answers begin there.
        var positions = [Int]()
        for start in 0..<3 {
            for number in start..<world.server.log.count {
                device.receive("0:" + world.server.changes(from: number, count: 1))
                positions.append(try #require(Int(device.store.namedValue("cv")?.dropFirst(3) ?? "")))
                #expect(try start == 0 || device.store.row(removed) == nil)
            }
        }
        #expect(positions == positions.sorted() && positions.last == world.server.log.count)
        let discovered = device.actions.count {
            if case .event(.discovered(let node, _)) = $0 { node.id == removed } else { false }
        }
        #expect(discovered == 1)
        // What follows a repetition is applied.
        try world.ann.create("d", in: world)
        try world.ann.run(world)
        device.receive("0:" + world.server.changes(from: world.server.log.count - 1))
        #expect(try device.store.shownCount() == 3)
    }

    @Test("an answer that is older than a reading of all nodes does not show a node that was removed meanwhile")
    func olderAnswer() throws {
        try world.ann.create("new", "x", in: world)
        try world.ann.deliverToServer(world)
        try world.other.run(world)
        try world.other.remove("new", in: world)
        try world.other.run(world)
        // The answer is lost, and the log was cut: the request is sent again after a reading of all nodes.
        try world.ann.forgetPosition(world)
        try world.settleDown()
        #expect(try world.ann.paths() == ["home/a", "home/a/b"])
        #expect(world.ann.machine.queue.isEmpty)
        #expect(world.server.nodes.count == 2)
    }

    @Test("after the answer to a removal, an earlier change of the log does not show the branch again")
    func removalBeforeLog() throws {
        try world.other.write("a", "theirs", in: world)
        try world.other.run(world)
        let (log, events) = (world.server.log.count - 1, world.ann.events.count)
        try world.ann.remove("a", in: world)
        let id = try #require(world.ann.machine.push.inFlight?.id)
        try world.ann.deliverToServer(world)
        let answer = try #require(world.server.batches[id]?.answer)
        try world.ann.local(world) { machine throws(TreeError) in try machine.batchAnswered(id, .answer(answer)) }
        let change = ServerBatch([Array("0:\(world.server.changes(from: log, count: 1))".utf8)])
        try world.ann.local(world) { machine throws(TreeError) in try machine.received(change) }
        #expect(try world.ann.paths().isEmpty)
        try world.settleDown()
        #expect(try world.ann.paths().isEmpty && world.ann.store.unlisted(scan: -1).isEmpty)
        #expect(world.ann.machine.queue.isEmpty)
        let shown = world.ann.events.dropFirst(events).contains { if case .discovered = $0 { true } else { false } }
        #expect(!shown)
    }

    @Test("a reading that still lists what an answered removal removed ends its wait, and shows the server's state")
    func removalBeforeReading() throws {
        let copy = world.server
        try world.ann.remove("a", in: world)
        let id = try #require(world.ann.machine.push.inFlight?.id)
        try world.ann.deliverToServer(world)
        let answer = try #require(world.server.batches[id]?.answer)
        try world.ann.local(world) { machine throws(TreeError) in try machine.batchAnswered(id, .answer(answer)) }
        world.server = copy
        world.server.store = "store-2"
        for device in world.devices { try device.restart(world) }
        try world.settleDown()
        #expect(try world.ann.paths() == ["home/a", "home/a/b"])
        #expect(world.ann.machine.queue.isEmpty)
    }
}
