import Glibc
import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// Several accounts in one object, over a server that only orders: real keys, real signatures, real seals.
///
/// `THICKET_SEED` begins with another case.
@Suite("Several accounts type into one sealed object", .nonceWatch)
struct SharedTypingTests {
    private static let first: UInt64 = getenv("THICKET_SEED").flatMap { UInt64(String(cString: $0)) } ?? 42
    private static let seeds: [UInt64] = (0..<6).map { first &* 1_000_003 &+ $0 }

    private static func world(_ seed: UInt64) throws -> SharedWorld {
        var world: SharedWorld = try .init(
            seed: seed, Circle(["ben": .writes, "cleo": .reads, "dora": .writes], seed: seed))
        for user: String in ["ann", "ben", "cleo", "dora", "ben"] { try world.join(user) }
        return world
    }

    @Test("owner, writers and a reader end with the same, compactions and late devices included", arguments: seeds)
    func converges(seed: UInt64) throws {
        var world: SharedWorld = try Self.world(seed)
        try world.play(150, among: [0, 1, 2, 3, 4])
        try world.compact(3)
        try world.join("cleo")
        try world.play(60, among: [0, 1, 2, 3, 4, 5])
        try world.settle([0, 1, 2, 3, 4, 5])
        try world.checkEqual([0, 1, 2, 3, 4, 5])
        for device: SharedWorld.Device in world.devices {
            #expect(device.uncounted == [], "a false alarm")
            #expect(device.written["cleo"] == nil)
        }
        // Who wrote what is known to everybody who was there from the beginning.
        let told: [String: Int] = world.devices[2].written
        #expect(Set(told.keys).isSubset(of: ["ann", "ben", "dora"]) && !told.isEmpty)
    }

    @Test(
        "what the server, a reader and a member under another's name put between counts for nothing, and everybody is told",
        arguments: seeds)
    func inventions(seed: UInt64) throws {
        var world: SharedWorld = try Self.world(seed)
        let list: ReaderList = world.circle.newest
        var count: Int = 0
        for round: Int in 0..<4 {
            try world.play(25, among: [0, 1, 2, 3, 4])
            try world.settle([0, 1, 2, 3, 4])
            // One edit at least is there: those before it somebody may have compacted away.
            try world.type(0)
            try world.settle([0, 1, 2, 3, 4])
            // The server has neither key nor name; it can copy, change and cut what there is.
            let honest: [UInt8] = try #require(world.server.stored.last { $0.kind == .operation }).bytes
            var changed: [UInt8] = honest
            changed[changed.count - 1 - round] ^= 1
            world.put(changed)
            world.put(SealedHeader.bytes(like: honest) + RandomBytes.make(156))
            // Cleo has every key to read with.
            world.put(
                try world.written(
                    by: "cleo", under: list, with: world.circle.secrets, letter: 0x63))
            count += 3
            // Before anybody compacts: who comes after a compaction is not told of what lies before.
            try world.settle([0, 1, 2, 3, 4])
        }
        try world.play(25, among: [0, 1, 2, 3, 4])
        try world.settle([0, 1, 2, 3, 4])
        try world.checkEqual([0, 1, 2, 3, 4])
        for device: SharedWorld.Device in world.devices {
            #expect(device.uncounted.count == count)
            #expect(device.uncounted.count { $0 == .mayNotWrite("cleo") } == 4)
            #expect(device.uncounted.count { $0 == .doesNotOpen } == 8)
        }
    }

    @Test(
        "a compaction by somebody who may only read is believed by nobody, new devices and old ones, and told with the name"
    )
    func readersCompaction() throws {
        var world: SharedWorld = try Self.world(1)
        try world.play(60, among: [0, 1, 3])
        try world.settle([0, 1, 2, 3, 4])
        try world.type(0)
        try world.settle([0, 1, 2, 3, 4])
        let list: ReaderList = world.circle.newest
        world.putSnapshot(try world.inventedSnapshot(by: "cleo", under: list, with: world.circle.secrets))
        #expect(throws: SharedOpenError.refused(.mayNotWrite("cleo"))) { try world.join("dora") }
        let sealer: AuthoredSealer = try world.sealer(0)
        let shown: JSONObject? = world.devices[0].object.object.object
        let events: [SharedEvent] = try world.devices[0].object.adopt(world.server.entity, with: sealer)
        let position: Int = world.devices[0].object.object.log.position
        #expect(
            events == [
                .uncounted(.mayNotWrite("cleo"), .snapshot, at: position),
                .object(.integrity(.snapshotMismatch(at: position))),
            ])
        #expect(world.devices[0].object.object.object == shown)
    }

    @Test("who may only read edits and seals nothing, and what a writer has typed stays when the right is taken")
    func rights() throws {
        var world: SharedWorld = try Self.world(2)
        #expect(throws: SealedEditError.readOnly) { try world.type(2) }
        let cleo: AuthoredSealer = try world.sealer(2)
        #expect(
            world.devices[2].object.sealedSnapshot(
                id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: cleo) == nil)
        try world.type(1)
        try world.circle.change(to: ["ben": .reads, "cleo": .reads, "dora": .writes], newEpoch: false)
        try world.refresh(1)
        let ben: AuthoredSealer = try world.sealer(1)
        #expect(
            world.devices[1].object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: ben) == nil)
        #expect(world.devices[1].object.object.hasEdits)
        #expect(world.devices[1].object.object.object?["t"] == .string("\u{4E00}"))
    }

    @Test("a snapshot among the operations is none, for who opens the object anew as for who was there")
    func snapshotInTail() throws {
        var world: SharedWorld = try Self.world(4)
        var entity: SealedEntity = world.server.entity
        let newest: (position: Int, text: String) = try #require(entity.newest)
        entity.tail = [newest.text]
        let sealer: AuthoredSealer = try world.sealer(0)
        let told: SharedEvent = .object(.integrity(.misfit(at: newest.position + 1, .doesNotOpen)))
        let anew: [SharedEvent] = try SharedObject.open(entity, author: .init(rawValue: 9), with: sealer).events
        let there: [SharedEvent] = try world.devices[0].object.receive(
            SealedObject.bytes(of: newest.text), with: sealer)
        #expect(anew.contains(told) && there.contains(told))
    }

    @Test("a private bucket's clear text counts nowhere here, and this one's is no operation there")
    func kindsOfBuckets() throws {
        var world: SharedWorld = try Self.world(3)
        let keys: SealedBucketKeys = try world.circle.secrets.keys()
        let plain: ObjectSealer = try keys.sealer(serverKey: world.serverKey)
        var object: SealedObject = world.devices[1].object.object
        try object.edit(ObjectDiff([(key: "n", operation: .insert(1))]))
        let made: SealedObject.Pending? = object.seal(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: plain)
        world.put(try #require(made).sealed)
        try world.settle([0, 1, 2, 3, 4])
        #expect(world.devices.map(\.uncounted) == .init(repeating: [.unsigned], count: 5))
        try world.type(1)
        try world.settle([0, 1, 2, 3, 4])
        let written: [UInt8] = try #require(world.server.stored.last).bytes
        var log: SealedLog = world.devices[0].object.object.log
        #expect(
            log.append(written, clear: plain.open(written, kind: .operation, position: 0)?.clear) == .void(.malformed))
    }
}

extension SealedHeader {
    /// The bytes in front of a sealed value, with an id of its own.
    static func bytes(like sealed: [UInt8]) -> [UInt8] { Array(sealed[..<6]) + RandomBytes.make(16) }
}
