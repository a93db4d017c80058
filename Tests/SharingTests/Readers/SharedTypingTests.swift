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
/// `THICKET_SEED` sets the seed.
@Suite("Several accounts type into one sealed object", .nonceWatch)
struct SharedTypingTests {
    private static let first = getenv("THICKET_SEED").flatMap { UInt64(String(cString: $0)) } ?? 42
    private static let seeds = (0..<6).map { first &* 1_000_003 &+ $0 }

    private static func world(_ seed: UInt64) throws -> SharedWorld {
        var world = try SharedWorld(
            seed: seed, Circle(["ben": .writes, "cleo": .reads, "dora": .writes], seed: seed))
        for user in ["ann", "ben", "cleo", "dora", "ben"] { try world.join(user) }
        return world
    }

    @Test("owner, writers and a reader converge, also with compactions and late devices", arguments: seeds)
    func converges(seed: UInt64) throws {
        var world = try Self.world(seed)
        try world.play(150, among: [0, 1, 2, 3, 4])
        try world.compact(3)
        try world.join("cleo")
        try world.play(60, among: [0, 1, 2, 3, 4, 5])
        try world.settle([0, 1, 2, 3, 4, 5])
        try world.checkEqual([0, 1, 2, 3, 4, 5])
        for device in world.devices {
            #expect(device.uncounted == [], "a false alarm")
            #expect(device.written["cleo"] == nil)
        }
        // A device that was present from the beginning knows each operation's author.
        let reported = world.devices[2].written
        #expect(Set(reported.keys).isSubset(of: ["ann", "ben", "dora"]) && !reported.isEmpty)
    }

    @Test(
        "operations that the server or a read-only member inserts do not count, and every device reports them",
        arguments: seeds)
    func inventions(seed: UInt64) throws {
        var world = try Self.world(seed)
        let list = world.circle.newest
        var count = 0
        for round in 0..<4 {
            try world.play(25, among: [0, 1, 2, 3, 4])
            try world.settle([0, 1, 2, 3, 4])
            // At least one edit must be stored; a compaction may have removed earlier ones.
            try world.type(0)
            try world.settle([0, 1, 2, 3, 4])
            // The server has neither a key nor a reader's name; it can copy, change and cut stored values.
            let honest = try #require(world.server.stored.last { $0.kind == .operation }).bytes
            var changed = honest
            changed[changed.count - 1 - round] ^= 1
            world.put(changed)
            world.put(SealedHeader.bytes(like: honest) + RandomBytes.make(156))
            // Cleo has all keys for reading.
            world.put(
                try world.written(
                    by: "cleo", under: list, with: world.circle.secrets, letter: 0x63))
            count += 3
            // Before any compaction: a device that reads after one is not notified of what was before it.
            try world.settle([0, 1, 2, 3, 4])
        }
        try world.play(25, among: [0, 1, 2, 3, 4])
        try world.settle([0, 1, 2, 3, 4])
        try world.checkEqual([0, 1, 2, 3, 4])
        for device in world.devices {
            #expect(device.uncounted.count == count)
            #expect(device.uncounted.count { $0 == .mayNotWrite("cleo") } == 4)
            #expect(device.uncounted.count { $0 == .doesNotOpen } == 8)
        }
    }

    @Test(
        "new and existing devices reject a read-only member's compaction and report its author by name"
    )
    func readersCompaction() throws {
        var world = try Self.world(1)
        try world.play(60, among: [0, 1, 3])
        try world.settle([0, 1, 2, 3, 4])
        try world.type(0)
        try world.settle([0, 1, 2, 3, 4])
        let list = world.circle.newest
        world.putSnapshot(try world.inventedSnapshot(by: "cleo", under: list, with: world.circle.secrets))
        #expect(throws: SharedOpenError.refused(.mayNotWrite("cleo"))) { try world.join("dora") }
        let sealer = try world.sealer(0)
        let shown = world.devices[0].object.object.object
        let events = try world.devices[0].object.adopt(world.server.entity, with: sealer)
        let position = world.devices[0].object.object.log.position
        #expect(
            events == [
                .uncounted(.mayNotWrite("cleo"), .snapshot, at: position),
                .object(.integrity(.snapshotMismatch(at: position))),
            ])
        #expect(world.devices[0].object.object.object == shown)
    }

    @Test("a read-only member edits and seals nothing, and a writer's unsent text stays when the right is revoked")
    func rights() throws {
        var world = try Self.world(2)
        #expect(throws: SealedEditError.readOnly) { try world.type(2) }
        let cleo = try world.sealer(2)
        #expect(
            world.devices[2].object.sealedSnapshot(
                id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: cleo) == nil)
        try world.type(1)
        try world.circle.change(to: ["ben": .reads, "cleo": .reads, "dora": .writes], newEpoch: false)
        try world.refresh(1)
        let ben = try world.sealer(1)
        #expect(
            world.devices[1].object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: ben) == nil)
        #expect(world.devices[1].object.object.hasEdits)
        #expect(world.devices[1].object.object.object?["t"] == .string("\u{4E00}"))
    }

    @Test("a snapshot among the operations is a misfit, for a device that opens the object and for one that has it")
    func snapshotInTail() throws {
        var world = try Self.world(4)
        var entity = world.server.entity
        let newest = try #require(entity.newest)
        entity.tail = [newest.text]
        let sealer = try world.sealer(0)
        let reported = SharedEvent.object(.integrity(.misfit(at: newest.position + 1, .doesNotOpen)))
        let fresh = try SharedObject.open(entity, author: .init(rawValue: 9), with: sealer).events
        let there = try world.devices[0].object.receive(
            SealedObject.bytes(of: newest.text), with: sealer)
        #expect(fresh.contains(reported) && there.contains(reported))
    }

    @Test("an operation of a private bucket does not count in a shared one, nor a shared one in a private bucket")
    func kindsOfBuckets() throws {
        var world = try Self.world(3)
        let keys = try world.circle.secrets.keys()
        let plain = try keys.sealer(serverKey: world.serverKey)
        var object = world.devices[1].object.object
        try object.edit(ObjectDiff([(key: "n", operation: .insert(1))]))
        let made = object.seal(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: plain)
        world.put(try #require(made).sealed)
        try world.settle([0, 1, 2, 3, 4])
        #expect(world.devices.map(\.uncounted) == .init(repeating: [.unsigned], count: 5))
        try world.type(1)
        try world.settle([0, 1, 2, 3, 4])
        let written = try #require(world.server.stored.last).bytes
        var log = world.devices[0].object.object.log
        #expect(
            log.append(written, clear: plain.open(written, kind: .operation, position: 0)?.clear) == .void(.malformed))
    }
}

extension SealedHeader {
    /// The bytes in front of a sealed value, with a new id.
    static func bytes(like sealed: [UInt8]) -> [UInt8] { Array(sealed[..<6]) + RandomBytes.make(16) }
}
