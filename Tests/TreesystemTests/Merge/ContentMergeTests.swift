import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Contents that two devices change", .nonceWatch)
struct ContentMergeTests {
    private let world: TreeWorld

    init() throws {
        world = try TreeWorld(seed: 31, devices: 2)
        world.isHostile = false
        try world.ann.create("a", #"{"n":0}"#, in: world)
        try world.settleDown()
    }

    /// Both devices write `a`; the other one's content reaches the server first.
    private func meet(_ mine: String, _ theirs: String) throws {
        try world.other.write("a", theirs, in: world)
        try world.other.run(world)
        try world.ann.write("a", mine, in: world)
        try world.settleDown()
    }

    private func merges(_ device: WorldDevice) -> Int {
        device.events.count { if case .conflict(.merged) = $0 { true } else { false } }
    }

    private func conflicts(_ device: WorldDevice) -> Int {
        device.events.count { if case .conflict(.data) = $0 { true } else { false } }
    }

    @Test("Q17: JSON that two devices change is merged: both have both changes, and nothing waits for the app")
    func merged() throws {
        try meet(#"{"n":0,"mine":1}"#, #"{"n":0,"theirs":1}"#)
        let wanted = #"{"n":0,"theirs":1,"mine":1}"#
        #expect(try world.ann.content("a") == wanted && world.other.content("a") == wanted)
        #expect(world.ann.machine.queue.isEmpty && merges(world.ann) == 1 && conflicts(world.ann) == 0)
        #expect(merges(world.other) == 0)
        #expect(try world.ann.store.bases().isEmpty && world.other.store.bases().isEmpty)
    }

    @Test(
        "Q17: where only one change can stay, the local content waits with all changes that fit, and the other one is there"
    )
    func lacking() throws {
        try meet(#"{"n":1}"#, #"{"n":2,"theirs":1}"#)
        #expect(world.ann.holds == [.held(.data)] && merges(world.ann) == 0 && conflicts(world.ann) == 1)
        #expect(try world.other.content("a") == #"{"n":2,"theirs":1}"#)
        #expect(try world.ann.content("a") == #"{"n":2,"theirs":1}"#, "confirmed")
        try world.ann.retryAll(world)
        try world.settleDown()
        let kept = #"{"n":1,"theirs":1}"#
        #expect(try world.ann.content("a") == kept && world.other.content("a") == kept)
        try meet(#"{"n":5,"theirs":1}"#, #"{"n":6,"theirs":1}"#)
        try world.ann.discardAll(world)
        try world.settleDown()
        #expect(try world.ann.content("a") == #"{"n":6,"theirs":1}"#)
    }

    @Test(
        "Q17: a rule that keeps the local change sends it, and a rule that merges nothing leaves the conflict to the app"
    )
    func otherRules() throws {
        world.ann.mergeRule = .jsonKeepingLocal
        try meet(#"{"n":1}"#, #"{"n":2,"theirs":1}"#)
        #expect(try world.other.content("a") == #"{"n":1,"theirs":1}"# && world.ann.machine.queue.isEmpty)
        world.ann.mergeRule = .none
        try meet(#"{"n":1,"theirs":1,"mine":1}"#, #"{"n":1,"theirs":2}"#)
        #expect(world.ann.holds == [.held(.data)])
        try world.ann.retryAll(world)
        try world.settleDown()
        #expect(try world.other.content("a") == #"{"n":1,"theirs":1,"mine":1}"#)
    }

    @Test("Q17: equal changes are one: nothing more is sent, and nothing is asked")
    func equal() throws {
        try meet(#"{"n":7}"#, #"{"n":7}"#)
        #expect(world.ann.machine.queue.isEmpty && conflicts(world.ann) == 0)
        let id = try world.ann.id("a")
        #expect(world.server.nodes[id]?.version == 2)
    }

    @Test("Q17: a merge goes on after the program has ended between the two contents, and waits for the connection")
    func restarts() throws {
        try world.other.write("a", #"{"n":0,"theirs":1}"#, in: world)
        try world.other.run(world)
        try world.ann.write("a", #"{"n":0,"mine":1}"#, in: world)
        #expect(try world.ann.store.bases().count == 1)
        try world.ann.restart(world)
        try world.settleDown()
        #expect(try world.other.content("a") == #"{"n":0,"theirs":1,"mine":1}"#)
    }

    @Test("Q17: a change that was made while the first one was being sent is merged after it")
    func whileSending() throws {
        try world.ann.write("a", #"{"n":0,"one":1}"#, in: world)
        try world.ann.write("a", #"{"n":0,"one":1,"two":2}"#, in: world)
        try world.other.write("a", #"{"n":0,"theirs":1}"#, in: world)
        try world.other.run(world)
        #expect(world.ann.machine.queue.count == 2)
        try world.settleDown()
        let wanted = #"{"n":0,"theirs":1,"one":1,"two":2}"#
        #expect(try world.ann.content("a") == wanted && world.other.content("a") == wanted)
        #expect(conflicts(world.ann) + conflicts(world.other) == 0)
    }

    @Test("Q17: contents above the bound are not merged, and bases beyond their bound are not kept")
    func bounds() throws {
        let id = try world.ann.id("a")
        world.ann.machine.pausePush()
        try world.ann.write("a", #"{"n":0,"mine":1}"#, in: world)
        #expect(try world.ann.store.base(of: id)?.content?.data == Array(#"{"n":0}"#.utf8))
        try world.ann.discardAll(world)
        world.ann.machine.resumePush()
        world.ann.machine.skeleton.merges[NodeID(7)] = Int64(MergeLimits.basesBytesMax)
        try meet(#"{"n":0,"mine":1}"#, #"{"n":0,"theirs":1}"#)
        #expect(world.ann.holds == [.held(.data)] && merges(world.ann) == 0)
    }

    /// `folder/b` waits to be merged with the other device's content, when the server shows another record of a node.
    ///
    /// - Parameter change: what it shows.
    private func unopened(_ change: (inout NodeRecord) -> Void) throws -> NodeID {
        try world.ann.create("folder", in: world)
        let id = try world.ann.create("folder/b", #"{"n":0}"#, in: world)
        try world.settleDown()
        try world.other.write("folder/b", #"{"n":0,"theirs":1}"#, in: world)
        try world.other.run(world)
        world.ann.machine.pausePush()
        try world.ann.write("folder/b", #"{"n":0,"mine":1}"#, in: world)
        try world.ann.run(world)
        #expect(world.ann.machine.skeleton.merges.behind == [id])
        let folder = try world.ann.id("folder")
        var record = try #require(world.server.nodes[folder]?.record)
        change(&record)
        world.server.forge(folder, record)
        return id
    }

    @Test(
        "Q17: a content that is to be merged below a node whose newest record does not open waits as a conflict, with the reason"
    )
    func quarantinedParent() throws {
        let id = try unopened { $0.metadata[20] ^= 1 }
        try world.ann.run(world)
        // The keys of the folder are read again from its newest record.
        try world.ann.restart(world)
        try world.ann.tick(world)
        try world.ann.run(world)
        #expect(world.ann.holds == [.held(.data)], "\(world.ann.summary)")
        let operation = try #require(world.ann.machine.queue.operations(of: id).first)
        #expect(operation.trouble == ContentMerges.unopened)
        let faults = world.ann.events.compactMap { event in
            if case .operationFailed(_, id, let error) = event { error } else { nil }
        }
        #expect(faults.map(\.code) == [.quarantined] && merges(world.ann) == 0)
        #expect(world.ann.machine.skeleton.merges.behind.isEmpty && world.ann.machine.skeleton.merges.running.isEmpty)
        // The other content is at the server until the user decides.
        #expect(try world.other.content("folder/b") == #"{"n":0,"theirs":1}"#)
        try world.ann.discardAll(world)
        #expect(world.ann.machine.queue.isEmpty)
    }

    @Test("Q17: a content that is to be merged and was moved below a node that does not open waits as a conflict, too")
    func movedBelowQuarantined() throws {
        let id = try unopened { _ in }
        try world.other.run(world)
        try world.other.create("damaged", in: world)
        try world.other.run(world)
        let damaged = try world.other.id("damaged")
        // The other device has the record as it made it; this one gets another one.
        var record = try #require(world.server.nodes[damaged]?.record)
        record.metadata[20] ^= 1
        world.server.show(damaged, ModelServer.Held(record: record, version: 1))
        try world.other.move("folder/b", to: "damaged/b", in: world)
        try world.other.run(world)
        try world.ann.forgetPosition(world)
        try world.ann.run(world)
        #expect(try world.ann.store.row(id)?.state != .open)
        #expect(world.ann.holds == [.held(.data)], "\(world.ann.summary)")
        #expect(world.ann.machine.skeleton.merges.behind.isEmpty)
    }

    @Test(
        "Q17: random edits of JSON on three devices over a hostile network: one content, and no edit lost",
        arguments: TreeWorld.seeds)
    func randomEdits(seed: UInt64) throws {
        let world = try TreeWorld(seed: seed &+ 700, devices: 3)
        let names = ["a", "b"]
        for name in names { try world.devices[0].create(name, #"{"text":""}"#, in: world) }
        try world.settleDown()
        world.isHostile = true
        var made = [String: Set<String>]()
        for number in 0..<60 {
            for _ in 0..<world.roll(12) { try world.step() }
            let device = world.devices[world.roll(3)]
            let name = names[world.roll(2)]
            guard let id = try? device.id(name), let now = try device.machine.skeleton.content(of: id),
                var object = try JSONValue(parsing: now.data).objectValue
            else { continue }
            let key = "d\(device.number)n\(number)"
            object[key] = .string("by \(device.number)")
            let text = object["text"]?.stringValue ?? ""
            object["text"] = .string(text + "<\(key)>")
            made[name, default: []].insert(key)
            try device.write(name, JSONValue.object(object).serializedText, in: world)
        }
        try world.settleDown()
        for name in names {
            let contents = try world.devices.map { try $0.content(name) }
            #expect(Set(contents).count == 1, "\(contents)")
            let merged = try JSONValue(parsing: contents[0] ?? "")
            let keys = Set((merged.objectValue?.keys ?? []).filter { $0 != "text" })
            #expect(keys == made[name] ?? [])
            let text = merged["text"]?.stringValue ?? ""
            for key in made[name] ?? [] { #expect(text.ranges(of: "<\(key)>").count == 1, "\(key): \(text)") }
        }
        for device in world.devices {
            #expect(device.machine.queue.isEmpty, "\(device.summary)")
            #expect(try device.store.bases().isEmpty)
        }
    }
}
