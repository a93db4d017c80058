import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// Cleo was away. What the server holds meanwhile lies under a snapshot of ben's, which says of every author how far the log holds
/// what they wrote: also of cleo, who knows that better.
@Suite("What somebody else's snapshot says of this device's own operations", .nonceWatch)
struct OwnClaimTests {
    private static let ann: Int = 0, ben: Int = 1, cleo: Int = 2

    private static func world() throws -> SharedWorld {
        var world: SharedWorld = try .init(seed: 3, Circle(["ben": .writes, "cleo": .writes]))
        for user: String in ["ann", "ben", "cleo"] { try world.join(user) }
        try type("begun. ", ann, &world)
        try world.catchUp(cleo)
        return world
    }

    /// Types at the end, sends it, and reads on.
    private static func type(_ text: String, _ chosen: Int, _ world: inout SharedWorld) throws {
        try world.append(text, chosen)
        try world.settle([chosen])
    }

    /// Seals what cleo has typed; it is on its way only if `isSent`.
    private static func seal(_ world: inout SharedWorld, isSent: Bool) throws {
        let sealer: AuthoredSealer = try world.sealer(cleo)
        let made: SealedObject.Pending? = world.devices[cleo].object.seal(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
        let pending: SealedObject.Pending = try #require(made)
        if isSent { world.put(pending) }
    }

    private static func author(_ world: SharedWorld) -> String {
        Base64.encodeURL(world.devices[cleo].writer.id.bytes)
    }

    /// What the server holds lies under a snapshot of ben's, as `change` makes it.
    private static func compacted(
        _ world: inout SharedWorld, changing change: (inout JSONObject) -> Void = { _ in }
    ) throws -> SealedEntity {
        for one: Int in [ann, ben] { try world.catchUp(one) }
        let sealed: [UInt8] = try world.inventedSnapshot(
            by: "ben", under: world.circle.newest, with: world.circle.secrets, changing: change)
        return SealedEntity(snapshots: [world.devices[ann].object.object.log.position: Base64.encodeURL(sealed)])
    }

    /// Cleo's device is shown it.
    private static func shown(_ entity: SealedEntity, _ world: inout SharedWorld) throws -> [SharedEvent] {
        let sealer: AuthoredSealer = try world.sealer(cleo)
        return try world.devices[cleo].object.adopt(entity, with: sealer)
    }

    private static func raise(_ said: inout JSONObject, _ author: String, to position: Int) {
        var authors: JSONObject = said["a"]?.objectValue ?? [:]
        authors[author] = .number(JSONNumber(Int64(position)))
        said["a"] = .object(authors)
    }

    /// Told, read-only, and nothing dropped.
    private static func expectAlarm(
        _ events: [SharedEvent], _ world: SharedWorld, _ before: SealedObject, at position: Int
    ) {
        let object: SealedObject = world.devices[cleo].object.object
        #expect(events.contains(.object(.integrity(.snapshotMismatch(at: position)))))
        #expect(!events.contains { if case .object(.acknowledged) = $0 { true } else { false } })
        #expect(object.problem == .snapshotMismatch(at: position))
        #expect(object.pending == before.pending && object.later == before.later && object.object == before.object)
    }

    @Test(
        "an operation that this device never sealed is claimed of it: an alarm, and what it typed stays",
        arguments: [1, 2, 3, 7])
    func neverSealed(claimed: Int) throws {
        var world: SharedWorld = try Self.world()
        try world.append("cleo's", Self.cleo)
        let before: SealedObject = world.devices[Self.cleo].object.object
        for _ in 0..<6 { try Self.type("ann's ", Self.ann, &world) }
        let author: String = Self.author(world)
        let entity: SealedEntity = try Self.compacted(&world) { Self.raise(&$0, author, to: claimed) }
        Self.expectAlarm(try Self.shown(entity, &world), world, before, at: 7)
    }

    @Test(
        "what was sealed is claimed to be there, and the text lacks it: an alarm, and it is not taken for acknowledged",
        arguments: [true, false])
    func lacking(isSent: Bool) throws {
        var world: SharedWorld = try Self.world()
        try world.append("cleo's", Self.cleo)
        try Self.seal(&world, isSent: false)
        let before: SealedObject = world.devices[Self.cleo].object.object
        try Self.type("ann's ", Self.ann, &world)
        if isSent { world.put(try #require(before.pending)) }
        let author: String = Self.author(world)
        // The member says that the newest operation, hers or another's in the place of hers, did nothing.
        let position: Int = isSent ? 3 : 2
        let entity: SealedEntity = try Self.compacted(&world) { said in
            Self.raise(&said, author, to: position)
            var window: [JSONValue] = said["w"]?.arrayValue ?? []
            window[position - 1] = .null
            said["w"] = .array(window)
            // The object follows from what is left.
            said["o"] = ["t": .string(isSent ? "begun. ann's " : "begun. ")]
        }
        Self.expectAlarm(try Self.shown(entity, &world), world, before, at: position)
    }

    @Test("other words are put into this device's mouth: an alarm, and what it sealed stays")
    func otherWords() throws {
        var world: SharedWorld = try Self.world()
        try world.append("cleo's", Self.cleo)
        try Self.seal(&world, isSent: false)
        let before: SealedObject = world.devices[Self.cleo].object.object
        try Self.type("ann's ", Self.ann, &world)
        let author: String = Self.author(world)
        for isRaised: Bool in [true, false] {
            var tried: SharedWorld = world
            let entity: SealedEntity = try Self.compacted(&tried) { said in
                if isRaised { Self.raise(&said, author, to: 2) }
                var window: [JSONValue] = said["w"]?.arrayValue ?? []
                var entry: JSONObject = window[1].objectValue ?? [:]
                entry["a"] = .string(author)
                window[1] = .object(entry)
                said["w"] = .array(window)
            }
            Self.expectAlarm(try Self.shown(entity, &tried), tried, before, at: 2)
        }
    }

    @Test("an operation further behind its base than any counts is claimed: an alarm")
    func tooFar() throws {
        var world: SharedWorld = try Self.world()
        try world.append("cleo's", Self.cleo)
        try Self.seal(&world, isSent: false)
        let before: SealedObject = world.devices[Self.cleo].object.object
        for _ in 0..<70 { try Self.type("a", Self.ann, &world) }
        let author: String = Self.author(world)
        let entity: SealedEntity = try Self.compacted(&world) { Self.raise(&$0, author, to: 70) }
        Self.expectAlarm(try Self.shown(entity, &world), world, before, at: 71)
    }

    @Test(
        "what was sent and counted, and whose answer was lost, is acknowledged by somebody else's snapshot: no alarm, no word twice",
        arguments: [1, 3, 66])
    func ordinary(others: Int) throws {
        for isFirst: Bool in [true, false] {
            var world: SharedWorld = try Self.world()
            try world.append("cleo's ", Self.cleo)
            try Self.seal(&world, isSent: isFirst)
            let pending: SealedObject.Pending = try #require(world.devices[Self.cleo].object.object.pending)
            try world.append("later ", Self.cleo)
            for _ in 0..<others {
                try Self.type("a ", Self.ann, &world)
                if !isFirst { world.put(pending) }
            }
            let events: [SharedEvent] = try Self.shown(try Self.compacted(&world), &world)
            #expect(events.contains(.object(.acknowledged(pending.changeID))))
            #expect(!events.contains { if case .object(.integrity) = $0 { true } else { false } })
            #expect(!events.contains { if case .object(.conflict) = $0 { true } else { false } }, "nothing is missing")
            #expect(world.devices[Self.cleo].object.object.pending == nil)
            #expect(world.devices[Self.cleo].object.object.isConsistent)
            let text: String = world.devices[Self.cleo].object.object.object?["t"]?.stringValue ?? ""
            for word: String in ["cleo's ", "later "] {
                #expect(text.split(separator: word, omittingEmptySubsequences: false).count == 2, "\(text)")
            }
        }
    }

    @Test("what was sealed and never came stays, and goes out")
    func neverCame() throws {
        for others: Int in [2, 70] {
            var world: SharedWorld = try Self.world()
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
        "away for longer than the window, it is told what it saw when the snapshot claims its operation and the text lacks it"
    )
    func leap() throws {
        var world: SharedWorld = try Self.world()
        try world.append("cleo's", Self.cleo)
        try Self.seal(&world, isSent: true)
        let pending: SealedObject.Pending = try #require(world.devices[Self.cleo].object.object.pending)
        for _ in 0..<70 { try Self.type("a", Self.ann, &world) }
        let without: JSONValue = ["t": .string("begun. " + String(repeating: "a", count: 70))]
        let entity: SealedEntity = try Self.compacted(&world) { $0["o"] = without }
        let events: [SharedEvent] = try Self.shown(entity, &world)
        #expect(events.contains(.object(.acknowledged(pending.changeID))), "nobody can know")
        let told: SealedConflict = .init(
            path: [], losing: ["t": "begun. cleo's"], winning: without)
        #expect(events.contains(.object(.conflict(told))))
    }

    @Test("another's operation under the id of this device's change is another's: what was sealed here stays")
    func borrowedID() throws {
        var world: SharedWorld = try Self.world()
        try world.append("cleo's ", Self.cleo)
        try Self.seal(&world, isSent: false)
        let pending: SealedObject.Pending = try #require(world.devices[Self.cleo].object.object.pending)
        world.put(
            try world.written(
                by: "ben", under: world.circle.newest, with: world.circle.secrets, letter: 0x62,
                id: pending.changeID))
        try world.catchUp(Self.cleo)
        let object: SealedObject = world.devices[Self.cleo].object.object
        #expect(object.pending?.changeID == pending.changeID && object.isConsistent)
        #expect(object.object?["t"] == .string("bbegun. cleo's "))
        try world.catchUp(Self.ann)
        world.put(pending)
        for one: Int in [Self.ann, Self.cleo] {
            try world.catchUp(one)
            #expect(world.devices[one].object.object.log.object == ["t": "bbegun. cleo's "])
        }
    }
}
