import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// Cleo's device was disconnected. The server's operations are now under a snapshot of ben's, which states for every
/// author up to which position the log holds their operations: also for cleo, whose device knows that better.
@Suite("Statements of another device's snapshot about this device's operations", .nonceWatch)
struct OwnClaimTests {
    private static let ann = 0, ben: Int = 1, cleo: Int = 2

    private static func world() throws -> SharedWorld {
        var world = try SharedWorld(seed: 3, Circle(["ben": .writes, "cleo": .writes]))
        for user in ["ann", "ben", "cleo"] { try world.join(user) }
        try type("begun. ", ann, &world)
        try world.catchUp(cleo)
        return world
    }

    /// Types at the end, sends the edit, and reads on.
    private static func type(_ text: String, _ chosen: Int, _ world: inout SharedWorld) throws {
        try world.append(text, chosen)
        try world.settle([chosen])
    }

    /// Seals what cleo has typed; it is in flight only if `isSent`.
    private static func seal(_ world: inout SharedWorld, isSent: Bool) throws {
        let sealer = try world.sealer(cleo)
        let made = world.devices[cleo].object.seal(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
        let pending = try #require(made)
        if isSent { world.put(pending) }
    }

    private static func author(_ world: SharedWorld) -> String {
        Base64.encodeURL(world.devices[cleo].writer.id.bytes)
    }

    /// The server's state under a snapshot of ben's that `change` has altered.
    private static func compacted(
        _ world: inout SharedWorld, changing change: (inout JSONObject) -> Void = { _ in }
    ) throws -> SealedEntity {
        for one in [ann, ben] { try world.catchUp(one) }
        let sealed = try world.inventedSnapshot(
            by: "ben", under: world.circle.newest, with: world.circle.secrets, changing: change)
        return SealedEntity(snapshots: [world.devices[ann].object.object.log.position: Base64.encodeURL(sealed)])
    }

    /// Shows the state to cleo's device.
    private static func shown(_ entity: SealedEntity, _ world: inout SharedWorld) throws -> [SharedEvent] {
        let sealer = try world.sealer(cleo)
        return try world.devices[cleo].object.adopt(entity, with: sealer)
    }

    private static func raise(_ said: inout JSONObject, _ author: String, to position: Int) {
        var authors = said["a"]?.objectValue ?? [:]
        authors[author] = .number(JSONNumber(Int64(position)))
        said["a"] = .object(authors)
    }

    /// Expects the alarm, a read-only object, and that nothing was dropped.
    private static func expectAlarm(
        _ events: [SharedEvent], _ world: SharedWorld, _ before: SealedObject, at position: Int
    ) {
        let object = world.devices[cleo].object.object
        #expect(events.contains(.object(.integrity(.snapshotMismatch(at: position)))))
        #expect(!events.contains { if case .object(.acknowledged) = $0 { true } else { false } })
        #expect(object.problem == .snapshotMismatch(at: position))
        #expect(object.pending == before.pending && object.later == before.later && object.object == before.object)
    }

    @Test(
        "a snapshot that claims an operation that this device never sealed raises an alarm, and its edits stay",
        arguments: [1, 2, 3, 7])
    func neverSealed(claimed: Int) throws {
        var world = try Self.world()
        try world.append("cleo's", Self.cleo)
        let before = world.devices[Self.cleo].object.object
        for _ in 0..<6 { try Self.type("ann's ", Self.ann, &world) }
        let author = Self.author(world)
        let entity = try Self.compacted(&world) { Self.raise(&$0, author, to: claimed) }
        Self.expectAlarm(try Self.shown(entity, &world), world, before, at: 7)
    }

    @Test(
        "a snapshot that claims a sealed operation but lacks its text raises an alarm, and acknowledges nothing",
        arguments: [true, false])
    func lacking(isSent: Bool) throws {
        var world = try Self.world()
        try world.append("cleo's", Self.cleo)
        try Self.seal(&world, isSent: false)
        let before = world.devices[Self.cleo].object.object
        try Self.type("ann's ", Self.ann, &world)
        if isSent { world.put(try #require(before.pending)) }
        let author = Self.author(world)
        // The member states that the newest operation, hers or another's in place of hers, did nothing.
        let position = isSent ? 3 : 2
        let entity = try Self.compacted(&world) { said in
            Self.raise(&said, author, to: position)
            var window = said["w"]?.arrayValue ?? []
            window[position - 1] = .null
            said["w"] = .array(window)
            // The object follows from what is left.
            said["o"] = ["t": .string(isSent ? "begun. ann's " : "begun. ")]
        }
        Self.expectAlarm(try Self.shown(entity, &world), world, before, at: position)
    }

    @Test("a snapshot that attributes another's text to this device raises an alarm, and its sealed operation stays")
    func otherWords() throws {
        var world = try Self.world()
        try world.append("cleo's", Self.cleo)
        try Self.seal(&world, isSent: false)
        let before = world.devices[Self.cleo].object.object
        try Self.type("ann's ", Self.ann, &world)
        let author = Self.author(world)
        for isRaised in [true, false] {
            var tried = world
            let entity = try Self.compacted(&tried) { said in
                if isRaised { Self.raise(&said, author, to: 2) }
                var window = said["w"]?.arrayValue ?? []
                var entry = window[1].objectValue ?? [:]
                entry["a"] = .string(author)
                window[1] = .object(entry)
                said["w"] = .array(window)
            }
            Self.expectAlarm(try Self.shown(entity, &tried), tried, before, at: 2)
        }
    }

    @Test("a snapshot that claims an operation further from its base than counts raises an alarm")
    func tooFar() throws {
        var world = try Self.world()
        try world.append("cleo's", Self.cleo)
        try Self.seal(&world, isSent: false)
        let before = world.devices[Self.cleo].object.object
        for _ in 0..<70 { try Self.type("a", Self.ann, &world) }
        let author = Self.author(world)
        let entity = try Self.compacted(&world) { Self.raise(&$0, author, to: 70) }
        Self.expectAlarm(try Self.shown(entity, &world), world, before, at: 71)
    }

    @Test(
        "another device's snapshot acknowledges an operation whose answer was lost: no alarm, and no text twice",
        arguments: [1, 3, 66])
    func ordinary(others: Int) throws {
        for isFirst in [true, false] {
            var world = try Self.world()
            try world.append("cleo's ", Self.cleo)
            try Self.seal(&world, isSent: isFirst)
            let pending = try #require(world.devices[Self.cleo].object.object.pending)
            try world.append("later ", Self.cleo)
            for _ in 0..<others {
                try Self.type("a ", Self.ann, &world)
                if !isFirst { world.put(pending) }
            }
            let events = try Self.shown(try Self.compacted(&world), &world)
            #expect(events.contains(.object(.acknowledged(pending.changeID))))
            #expect(!events.contains { if case .object(.integrity) = $0 { true } else { false } })
            #expect(!events.contains { if case .object(.conflict) = $0 { true } else { false } }, "nothing is missing")
            #expect(world.devices[Self.cleo].object.object.pending == nil)
            #expect(world.devices[Self.cleo].object.object.isConsistent)
            let text = world.devices[Self.cleo].object.object.object?["t"]?.stringValue ?? ""
            for word in ["cleo's ", "later "] {
                #expect(text.split(separator: word, omittingEmptySubsequences: false).count == 2, "\(text)")
            }
        }
    }

    @Test("a sealed operation that never arrived stays pending, without an alarm or an acknowledgement")
    func neverCame() throws {
        for others in [2, 70] {
            var world = try Self.world()
            try world.append("cleo's ", Self.cleo)
            try Self.seal(&world, isSent: false)
            for _ in 0..<others { try Self.type("a ", Self.ann, &world) }
            let events: [SharedEvent] = try Self.shown(try Self.compacted(&world), &world)
            #expect(!events.contains { if case .object(.integrity) = $0 { true } else { false } })
            #expect(!events.contains { if case .object(.acknowledged) = $0 { true } else { false } })
            #expect(world.devices[Self.cleo].object.object.hasEdits)
            #expect(world.devices[Self.cleo].object.object.object?["t"]?.stringValue?.contains("cleo's") == true)
        }
    }

    @Test(
        "after longer than the window, a snapshot that claims an operation and lacks its text reports a conflict"
    )
    func leap() throws {
        var world = try Self.world()
        try world.append("cleo's", Self.cleo)
        try Self.seal(&world, isSent: true)
        let pending: SealedObject.Pending = try #require(world.devices[Self.cleo].object.object.pending)
        for _ in 0..<70 { try Self.type("a", Self.ann, &world) }
        let without: JSONValue = ["t": .string("begun. " + String(repeating: "a", count: 70))]
        let entity = try Self.compacted(&world) { $0["o"] = without }
        let events: [SharedEvent] = try Self.shown(entity, &world)
        #expect(events.contains(.object(.acknowledged(pending.changeID))), "the device cannot know better")
        let reported = SealedConflict(
            path: [], losing: ["t": "begun. cleo's"], winning: without)
        #expect(events.contains(.object(.conflict(reported))))
    }

    @Test("another author's operation under the id of this device's change does not acknowledge that change")
    func borrowedID() throws {
        var world = try Self.world()
        try world.append("cleo's ", Self.cleo)
        try Self.seal(&world, isSent: false)
        let pending = try #require(world.devices[Self.cleo].object.object.pending)
        world.put(
            try world.written(
                by: "ben", under: world.circle.newest, with: world.circle.secrets, letter: 0x62,
                id: pending.changeID))
        try world.catchUp(Self.cleo)
        let object = world.devices[Self.cleo].object.object
        #expect(object.pending?.changeID == pending.changeID && object.isConsistent)
        #expect(object.object?["t"] == .string("bbegun. cleo's "))
        try world.catchUp(Self.ann)
        world.put(pending)
        for one in [Self.ann, Self.cleo] {
            try world.catchUp(one)
            #expect(world.devices[one].object.object.log.object == ["t": "bbegun. cleo's "])
        }
    }
}
