import Testing
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Ann (`user-1`) and Bob (`user-2`), each with devices.
extension TreeWorld {
    static func people(_ seed: UInt64, bobs: Int = 1) throws -> TreeWorld {
        let world = try TreeWorld(seed: seed, owners: ["user-1"] + [String](repeating: "user-2", count: bobs))
        try world.settleDown()
        return world
    }
}

extension WorldDevice {
    /// Sends a node that exists.
    @discardableResult
    func send(_ path: String, to users: [String] = ["user-2"], in world: TreeWorld) throws -> NodeID {
        let id = try id(path)
        let users = Set(try users.map { try UserID($0) })
        _ = try local(world) { machine throws(TreeError) in try Outgoing.copy(id, to: users, &machine.skeleton) }
        return id
    }

    /// The shown messages in the inbox, in the order of the authors' counters.
    func inbox() throws -> [Node] {
        try store.children(of: .trunk(.inbox), order: .name, offset: 0, limit: 1_000)
            .compactMap { $0.node(isPending: false) }.sorted { ($0.origin?.counter ?? 0) < ($1.origin?.counter ?? 0) }
    }

    func text(_ id: NodeID) throws -> String? {
        guard let row = try store.row(id), let content = try machine.open(row)?.inlineContent() else { return nil }
        return String(decoding: content.data, as: UTF8.self)
    }

    var faults: [IntegrityFault.Kind] {
        events.compactMap { if case .integrity(let fault) = $0 { fault.kind } else { nil } }
    }

    var deliveries: [String] {
        events.compactMap { if case .delivered(let id, let user) = $0 { "\(id.text) \(user.text)" } else { nil } }
    }
}

@Suite("Messages between accounts", .nonceWatch)
struct MessageWorldTests {
    @Test("a message with its attachment arrives with its author, and its sender is told that it was delivered")
    func message() throws {
        let world = try TreeWorld.people(1)
        let (ann, bob) = (world.devices[0], world.devices[1])
        try ann.create("chat", in: world)
        try ann.create("chat/1", "hello", in: world)
        let picture = try ann.create("chat/1/picture", "pixels", in: world)
        let id = try ann.send("chat/1", in: world)
        try world.settleDown()
        #expect(ann.deliveries == ["\(id.text) user-2"] && ann.machine.queue.isEmpty)
        let received = try #require(try bob.inbox().first)
        #expect(received.id == id && received.sender?.text == "user-1" && received.origin?.counter == 1)
        #expect(received.origin?.missing == 0 && received.origin?.isForked == false)
        #expect(try bob.text(id) == "hello" && bob.text(picture) == "pixels")
        #expect(try bob.store.row(picture)?.node(isPending: false)?.sender?.text == "user-1")
        #expect(bob.faults.isEmpty && ann.faults.isEmpty)
        #expect(try ann.store.delivered(id).map(\.receiver.text) == ["user-2"])
    }

    @Test("a signal leaves nothing in the tree of its sender")
    func signal() throws {
        let world = try TreeWorld.people(2)
        let (ann, bob) = (world.devices[0], world.devices[1])
        let user = try UserID("user-2")
        let (id, _) = try ann.local(world) { machine throws(TreeError) in
            try Outgoing.signal(NodeContent(data: [7]), to: [user], &machine.skeleton)
        }
        try world.settleDown()
        #expect(try bob.inbox().map(\.id) == [id] && ann.skeleton().isEmpty)
        #expect(ann.deliveries == ["\(id.text) user-2"])
    }

    @Test("without the author's keys a message is kept and counted, not shown, and it is shown when they are found")
    func awaiting() throws {
        let world = try TreeWorld.people(3)
        let (ann, bob) = (world.devices[0], world.devices[1])
        world.troubles["user-1"] = .offline
        try ann.create("1", "hello", in: world)
        try ann.create("1/a", "attached", in: world)
        let id = try ann.send("1", in: world)
        try world.settleDown()
        #expect(try bob.inbox().isEmpty && bob.store.awaitingCount() == 1)
        try bob.restart(world)
        try world.settleDown()
        #expect(try bob.inbox().isEmpty && bob.store.awaitingCount() == 1 && bob.faults.isEmpty)
        world.troubles = [:]
        try bob.loseConnection(world)
        try world.settleDown()
        #expect(try bob.inbox().map(\.id) == [id] && bob.store.awaitingCount() == 0)
        #expect(try bob.skeleton().count == 2)
    }

    @Test(
        "without keys of the receiver nothing is sealed: the operation is held with the reason, and sent after a retry")
    func receiversKeys() throws {
        let world = try TreeWorld.people(4)
        let (ann, bob) = (world.devices[0], world.devices[1])
        try ann.create("1", "hello", in: world)
        for trouble in [KeyTrouble.needsConfirmation, .alarm, .absent] {
            world.troubles["user-2"] = trouble
            try ann.send("1", in: world)
            try world.settleDown()
            #expect(ann.holds == [.held(.keys)] && ann.machine.queue.ids.count == 1)
            #expect(ann.machine.queue.ids.compactMap { ann.machine.queue[$0]?.trouble } == [trouble.rawValue])
            try ann.discardAll(world)
        }
        try ann.send("1", in: world)
        try world.settleDown()
        world.troubles = [:]
        #expect(try bob.inbox().isEmpty && ann.holds == [.held(.keys)])
        try ann.retryAll(world)
        try world.settleDown()
        #expect(try bob.inbox().count == 1 && ann.machine.queue.isEmpty)
        world.troubles["user-2"] = .offline
        try ann.loseConnection(world)
        try world.settleDown()
    }

    @Test("a receiver that refuses the sender fails the operation visibly, and the node stays")
    func blocked() throws {
        let world = try TreeWorld.people(5)
        let (ann, bob) = (world.devices[0], world.devices[1])
        world.server.refusing = ["user-2"]
        try ann.create("1", "hello", in: world)
        try ann.send("1", in: world)
        try world.settleDown()
        #expect(ann.holds == [.failed("blocked")] && ann.deliveries.isEmpty)
        #expect(try bob.inbox().isEmpty && ann.paths().count == 1)
        world.server.refusing = []
        try ann.retryAll(world)
        try world.settleDown()
        // The number of the refused message was given again.
        #expect(try bob.inbox().map { $0.origin?.counter } == [1])
        #expect(try bob.inbox().map { $0.origin?.missing } == [0])
    }

    @Test("A16: message 5 of 9 is withheld: the gap is shown at the sixth, and ends when the fifth arrives")
    func withheld() throws {
        let world = try TreeWorld.people(6)
        let (ann, bob) = (world.devices[0], world.devices[1])
        var ids = [NodeID]()
        for number in 1...9 {
            try ann.create("\(number)", "message \(number)", in: world)
            if number == 5 { world.withheld = [try ann.id("5")] }
            ids.append(try ann.send("\(number)", in: world))
            try world.settleDown()
        }
        #expect(try bob.inbox().map { $0.origin?.counter } == [1, 2, 3, 4, 6, 7, 8, 9])
        #expect(try bob.inbox().map { $0.origin?.missing } == [0, 0, 0, 0, 1, 0, 0, 0])
        #expect(bob.faults == [.messagesMissing])
        try bob.restart(world)
        world.release()
        try world.settleDown()
        #expect(try bob.inbox().map { $0.origin?.counter } == [1, 2, 3, 4, 5, 6, 7, 8, 9])
        #expect(try bob.inbox().allSatisfy { $0.origin?.missing == 0 } && bob.faults == [.messagesMissing])
        #expect(try bob.inbox().map(\.id) == ids)
    }

    @Test("A8: a message that was removed and is delivered again is dropped and counted")
    func repeated() throws {
        let world = try TreeWorld.people(7)
        let (ann, bob) = (world.devices[0], world.devices[1])
        try ann.create("1", "hello", in: world)
        let id = try ann.send("1", in: world)
        try world.settleDown()
        let record = try #require(world["user-2"].nodes[id]?.record)
        _ = try bob.local(world) { machine throws(TreeError) in try machine.delete(id) }
        try world.settleDown()
        world["user-2"].forge(id, record)
        try world.settleDown()
        #expect(try bob.inbox().isEmpty && bob.store.repetitions() == 1 && bob.store.row(id) == nil)
    }

    @Test("A8: a message that the server attributes to another account, or forwards, is quarantined with an event")
    func forged() throws {
        let world = try TreeWorld(seed: 8, owners: ["user-1", "user-2", "user-3"])
        let (ann, bob, carol) = (world.devices[0], world.devices[1], world.devices[2])
        try world.settleDown()
        try ann.create("1", "hello", in: world)
        let id = try ann.send("1", in: world)
        try world.settleDown()
        var record = try #require(world["user-2"].nodes[id]?.record)
        record.stamps.sender = try UserID("user-3")
        var other = world["user-2"]
        other.forge(id, record)
        world["user-2"] = other
        try world.settleDown()
        // The message that was verified stays as it is.
        #expect(bob.faults == [.origin])
        #expect(try bob.inbox().map { $0.sender?.text } == ["user-1"])
        world["user-3"].forge(NodeID(9), record)
        try world.settleDown()
        #expect(try carol.inbox().isEmpty && carol.faults == [.seal])
    }

    @Test("a message that is moved out of the inbox keeps its author on every device, also when two move it at once")
    func moved() throws {
        let world = try TreeWorld.people(9, bobs: 2)
        let (ann, bob, second) = (world.devices[0], world.devices[1], world.devices[2])
        try bob.create("chat", in: world)
        try ann.create("1", "hello", in: world)
        let picture = try ann.create("1/picture", "pixels", in: world)
        let id = try ann.send("1", in: world)
        try world.settleDown()
        for device in [bob, second] {
            _ = try device.local(world) { machine throws(TreeError) in
                try machine.move(id, to: WorldDevice.path("chat/\(id.text)"))
            }
        }
        try world.settleDown()
        for device in [bob, second] {
            #expect(try device.inbox().isEmpty && device.machine.queue.isEmpty && device.holds.isEmpty)
            let node = try #require(try device.store.row(id)?.node(isPending: false))
            #expect(node.sender?.text == "user-1" && node.origin?.counter == 1)
            #expect(try device.text(id) == "hello" && device.text(picture) == "pixels")
        }
        #expect(world["user-2"].nodes[id]?.record.signature == nil)
        // A device that reads the tree for the first time verifies the statement that was kept.
        try second.forgetPosition(world)
        try world.settleDown()
        #expect(try second.store.row(id)?.node(isPending: false)?.sender?.text == "user-1")
    }

    @Test("a message to several accounts has one statement, and a burnt one disappears from the inbox")
    func several() throws {
        let world = try TreeWorld(seed: 10, owners: ["user-1", "user-2", "user-3"])
        let (ann, bob, carol) = (world.devices[0], world.devices[1], world.devices[2])
        try world.settleDown()
        try ann.create("1", "hello", in: world)
        let id = try ann.send("1", to: ["user-2", "user-3"], in: world)
        try world.settleDown()
        let origins = try [bob, carol].map { try $0.inbox().first?.origin?.statement }
        #expect(origins[0] != nil && origins[0] == origins[1] && ann.deliveries.count == 2)
        let user = try UserID("user-2")
        _ = try ann.local(world) { machine throws(TreeError) in
            try Outgoing.burn(id, sentTo: user, &machine.skeleton)
        }
        try world.settleDown()
        #expect(try bob.inbox().isEmpty && carol.inbox().count == 1 && ann.machine.queue.isEmpty)
        // Burnt already: asking again cannot help.
        _ = try ann.local(world) { machine throws(TreeError) in
            try Outgoing.burn(id, sentTo: user, &machine.skeleton)
        }
        try world.settleDown()
        let left = ann.machine.queue.ids.compactMap { ann.machine.queue[$0] }
        #expect(left.map(\.state) == [.failed("node-missing")] && left.map(\.attempts) == [0])
    }

    @Test("whatever the network loses and repeats, each message arrives once, with its number, and none is missing")
    func random() throws {
        for seed in TreeWorld.seeds {
            let world = try TreeWorld(seed: seed, owners: ["user-1", "user-1", "user-2", "user-2"])
            var sent = Set<NodeID>()
            for round in 0..<200 {
                try world.step()
                guard world.chance(15) else { continue }
                let author = world.devices[world.roll(2)]
                try author.create("\(round)", "text \(round)", in: world)
                sent.insert(try author.send("\(round)", in: world))
            }
            try world.settleDown()
            for bob in world.devices[2...] {
                let inbox = try bob.inbox()
                #expect(Set(inbox.map(\.id)) == sent, "seed \(seed)")
                #expect(inbox.allSatisfy { $0.origin?.missing == 0 && $0.sender?.text == "user-1" }, "seed \(seed)")
                let chains = Dictionary(grouping: inbox.compactMap(\.origin)) { $0.device }
                for chain in chains.values {
                    #expect(chain.map(\.counter).sorted() == Array(1...UInt64(chain.count)), "seed \(seed)")
                }
                #expect(bob.faults.allSatisfy { $0 == .messagesMissing }, "seed \(seed): \(bob.faults)")
            }
            #expect(world.server.changedBatches == 0)
        }
    }
}
