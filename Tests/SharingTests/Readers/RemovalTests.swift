import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// Ann removes ben. He has every byte that the server ever stored, all wraps, all lists, the earlier secrets and his
/// own keys.
@Suite("Removal from a shared bucket", .nonceWatch)
struct RemovalTests {
    private static let ann = 0, ben: Int = 1, cleo: Int = 2, dora: Int = 3

    /// Before the removal: all members write, and all devices have everything.
    private static func before(_ seed: UInt64) throws -> SharedWorld {
        var world = try SharedWorld(
            seed: seed, Circle(["ben": .writes, "cleo": .writes, "dora": .writes], seed: seed))
        for user in ["ann", "ben", "cleo", "dora"] { try world.join(user) }
        try world.play(80, among: [ann, ben, cleo, dora])
        try world.settle([ann, ben, cleo, dora])
        return world
    }

    /// Every secret that ben can get from the server's data: from his own wraps, and from all others, in all places.
    private static func secrets(of world: SharedWorld) throws -> [SecureBytes] {
        let ben = try world.circle.member("ben")
        var found = [SecureBytes]()
        for wrap in world.circle.wraps {
            for list in world.circle.lists {
                for reader in list.list.readers {
                    for epoch in 0...world.circle.newest.epoch {
                        let place = SecretWrap.place(world.circle.bucket, epoch: epoch, reader)
                        if let secret = try? place.open(wrap.sealed, with: ben.opening) {
                            found.append(secret)
                        }
                    }
                }
            }
        }
        return found
    }

    /// Whether a value opens with any of these secrets, used for any epoch, under any epoch's header.
    private static func opens(
        _ value: (bytes: [UInt8], kind: SealedHeader.Kind, position: Int), _ world: SharedWorld,
        with secrets: [SecureBytes]
    ) throws -> Bool {
        let bucket = world.circle.bucket
        for secret in secrets {
            let keys = try SealedBucketKeys(
                owner: bucket.owner, app: bucket.app, bucket: bucket.bucket, secrets: [0: secret, 1: secret, 2: secret])
            let sealer = try keys.sealer(serverKey: world.serverKey)
            for epoch: UInt8 in 0...2 {
                var bytes: [UInt8] = value.bytes
                bytes[5] = epoch
                if sealer.open(bytes, kind: value.kind, position: value.position) != nil { return true }
            }
        }
        return false
    }

    private static func epoch(_ value: (bytes: [UInt8], kind: SealedHeader.Kind, position: Int)) -> UInt32? {
        SealedHeader(of: value.bytes)?.epoch
    }

    @Test(
        "values under the new list open for a removed member with no wrap, secret or epoch; earlier values do",
        arguments: [1, 2, 3] as [UInt64])
    func removed(seed: UInt64) throws {
        var world = try Self.before(seed)
        let count = world.server.stored.count
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
        try world.mark(Self.ann)
        try world.play(60, among: [Self.ann, Self.cleo, Self.dora])
        try world.compact(Self.cleo)
        try world.settle([Self.ann, Self.cleo, Self.dora])
        try world.checkEqual([Self.ann, Self.cleo, Self.dora])
        let secrets = try Self.secrets(of: world)
        #expect(secrets.count == 1, "his own wrap of epoch 0")
        let later = world.server.stored[count...]
        #expect(later.count > 5 && later.contains { $0.kind == .snapshot })
        for value in later {
            #expect(Self.epoch(value) == 1)
            #expect(try !Self.opens(value, world, with: secrets))
        }
        for value in world.server.stored[..<count] { #expect(try Self.opens(value, world, with: secrets)) }
        // The attack itself works: with the secret that he lacks, all of it opens.
        let all = secrets + [world.circle.secrets.secret(1)]
        for value in later { #expect(try Self.opens(value, world, with: all)) }
        // His device stops where the others continued, and reports what it lacks.
        let shown = world.devices[Self.ben].object.object.object
        try world.catchUp(Self.ben)
        #expect(world.devices[Self.ben].hold == .epoch(1) || world.devices[Self.ben].hold == .secret(1))
        #expect(world.devices[Self.ben].object.object.object == shown)
        #expect(try !world.sealer(Self.ben).maySeal)
    }

    @Test(
        "a device that was offline during a removal catches up and sends its edits again under the new epoch",
        arguments: [4, 5, 6] as [UInt64])
    func away(seed: UInt64) throws {
        var world = try Self.before(seed)
        // Dora types without a connection; one operation is sealed already.
        for _ in 0..<3 { try world.type(Self.dora) }
        for _ in 0..<100 where world.devices[Self.dora].object.object.pending == nil { try world.send(Self.dora) }
        try #require(world.devices[Self.dora].object.object.pending != nil)
        for _ in 0..<2 { try world.type(Self.dora) }
        world.devices[Self.dora].lists = try SharedBucketReader(
            saved: world.devices[Self.dora].lists.saved, keys: world.circle.verified)
        let before = world.server.stored.count
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one in [Self.ann, Self.cleo] { try world.refresh(one) }
        try world.mark(Self.ann)
        try world.play(40, among: [Self.ann, Self.cleo])
        try world.settle([Self.ann, Self.cleo])
        // She reconnects: her sealed operation arrives under the old list, and is void at its position.
        try world.settle([Self.ann, Self.cleo, Self.dora])
        try world.checkEqual([Self.ann, Self.cleo, Self.dora])
        for one in [Self.ann, Self.cleo, Self.dora] { #expect(world.devices[one].uncounted == []) }
        let old = world.server.stored[before...].map(Self.epoch)
        #expect(Set(old).isSubset(of: [0, 1]) && old.count { $0 == 0 } <= 1, "all but the operation sealed before")
        // Only that operation opens for ben: she did not know of the removal when she sealed it.
        let secrets = try Self.secrets(of: world)
        for value in world.server.stored[before...] {
            #expect(try Self.opens(value, world, with: secrets) == (Self.epoch(value) == 0))
        }
    }

    @Test(
        "a removed or now read-only writer writes nothing behind the new list's mark, even with the server's help"
    )
    func lateWriter() throws {
        for isRemoved in [true, false] {
            var world = try Self.before(7)
            let (old, secrets): (ReaderList, BucketSecrets) = (world.circle.newest, world.circle.secrets)
            let rights: [String: ListedReader.Rights] = ["cleo": .writes, "dora": .writes]
            try world.circle.change(
                to: isRemoved ? rights : rights.merging(["ben": .reads]) { $1 }, newEpoch: isRemoved)
            for one in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
            // Until then it counts as what it is: ben's, under the earlier list. No reader can tell that it is late.
            world.put(try world.written(by: "ben", under: old, with: secrets, letter: 0x62))
            try world.catchUp(Self.ann)
            func text(_ device: Int) -> String { world.devices[device].object.object.object?["t"]?.stringValue ?? "" }
            #expect(text(Self.ann).unicodeScalars.contains("b"))
            try world.mark(Self.ann)
            try world.catchUp(Self.ann)
            for letter: UInt16 in [0x78, 0x79] {
                world.put(try world.written(by: "ben", under: old, with: secrets, letter: letter))
                try world.catchUp(Self.ann)
            }
            for one in [Self.cleo, Self.dora] { try world.catchUp(one) }
            for one in [Self.ann, Self.cleo, Self.dora] {
                #expect(world.devices[one].object.object.log == world.devices[Self.ann].object.object.log)
                #expect(!text(one).unicodeScalars.contains { $0 == "x" || $0 == "y" })
                #expect(text(one).unicodeScalars.contains("b"))
            }
            // A device that joins after a compaction also knows where the old list ended.
            try world.compact(Self.ann)
            try world.join("dora")
            #expect(world.devices[4].object.object.log.list == 2)
            world.put(try world.written(by: "ben", under: old, with: secrets, letter: 0x7A))
            try world.catchUp(4)
            #expect(!text(4).unicodeScalars.contains("z"))
        }
    }

    @Test(
        "newer rules or a false history of a removed or read-only member stop no device and raise no alarm"
    )
    func hostileTexts() throws {
        for isRemoved in [true, false] {
            var world = try Self.before(11)
            let (old, secrets) = (world.circle.newest, world.circle.secrets)
            try world.type(Self.dora)
            for _ in 0..<100 where world.devices[Self.dora].object.object.pending == nil { try world.send(Self.dora) }
            try #require(world.devices[Self.dora].object.object.pending != nil)
            let rights: [String: ListedReader.Rights] = ["cleo": .writes, "dora": .writes]
            try world.circle.change(
                to: isRemoved ? rights : rights.merging(["ben": .reads]) { $1 }, newEpoch: isRemoved)
            for one in [Self.ann, Self.cleo] { try world.refresh(one) }
            try world.mark(Self.ann)
            for one in [Self.ann, Self.cleo] { try world.catchUp(one) }
            for sealed in try world.hostile(by: "ben", under: old, with: secrets) {
                world.put(sealed)
                for one in [Self.ann, Self.cleo] { try world.catchUp(one) }
            }
            try world.join("dora")
            for one in [Self.ann, Self.cleo] { try world.type(one) }
            try world.settle([Self.ann, Self.cleo, Self.dora, 4])
            try world.checkEqual([Self.ann, Self.cleo, Self.dora, 4])
            #expect(world.devices.allSatisfy { $0.uncounted == [] && !$0.object.object.isStopped })
        }
    }

    @Test(
        "no device waits for a removed member's keys for an operation behind the new list's mark, which is void anyway"
    )
    func unknownKeys() throws {
        var world = try Self.before(13)
        try world.compact(Self.ann)
        let (old, secrets) = (world.circle.newest, world.circle.secrets)
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one in [Self.ann, Self.dora] { try world.refresh(one) }
        let verified = world.circle.members.mapValues(\.keys).filter { $0.key != "ben" }
        func withoutBen(_ device: Int) throws -> AuthoredSealer {
            let known = world.devices[device]
            return try AuthoredSealer(
                serverKey: world.serverKey, secrets: known.secrets, lists: known.lists,
                keys: VerifiedKeys { verified[$0] }, writer: known.writer)
        }
        let outsider = try withoutBen(Self.ann)
        func opened() throws -> SharedObject {
            try SharedObject.open(world.server.entity, author: .init(rawValue: 9), with: outsider).object
        }
        var there = try opened()
        // An operation that may count holds the device, which must know its author.
        let id = try world.circle.member("ben").keys.id
        let early = try world.written(by: "ben", under: old, with: secrets, letter: 0x79)
        #expect(throws: SharedHold.keys(user: "ben", keyID: id)) { _ = try there.receive(early, with: outsider) }
        try world.mark(Self.ann)
        try world.catchUp(Self.ann)
        there = try opened()
        let late = try world.written(by: "ben", under: old, with: secrets, letter: 0x78)
        world.put(late)
        try world.catchUp(Self.ann)
        _ = try there.receive(late, with: outsider)
        #expect(try opened().object.log == world.devices[Self.ann].object.object.log)
        #expect(there.object.log == world.devices[Self.ann].object.object.log && there.object.log.list == 2)
    }

    @Test(
        "in an object made under the new list, a now read-only member of the epoch writes nothing under the old list"
    )
    func newObject() throws {
        var circle = try Circle(["ben": .writes, "cleo": .writes], seed: 12)
        let old = circle.newest
        try circle.change(to: ["ben": .reads, "cleo": .writes], newEpoch: false)
        var world = try SharedWorld(seed: 12, circle)
        for user in ["ann", "ben", "cleo"] { try world.join(user) }
        world.put(try world.written(by: "ben", under: old, with: circle.secrets, letter: 0x78))
        try world.play(30, among: [0, 1, 2])
        try world.settle([0, 1, 2])
        try world.checkEqual([0, 1, 2])
        for device in world.devices {
            #expect(device.object.object.object?["t"]?.stringValue?.unicodeScalars.contains("x") == false)
        }
    }

    @Test(
        "an object recreated by a removed writer under the earlier list is rejected if the log was under a newer list"
    )
    func recreation() throws {
        var world = try Self.before(10)
        let (old, secrets) = (world.circle.newest, world.circle.secrets)
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
        try world.mark(Self.ann)
        for one in [Self.ann, Self.cleo, Self.dora] { try world.catchUp(one) }
        let bens = SealedEntity(
            snapshots: [0: Base64.encodeURL(try world.recreated(by: "ben", under: old, with: secrets))])
        for one in [Self.ann, Self.cleo] {
            let shown = world.devices[one].object.object.object
            let sealer = try world.sealer(one)
            let events = try world.devices[one].object.adopt(bens, with: sealer)
            #expect(events.contains(.object(.integrity(.snapshotMismatch(at: 0)))))
            #expect(!events.contains(.object(.recreated)))
            #expect(world.devices[one].object.object.object == shown)
        }
        // A writer under the new list may recreate it.
        let cleos = SealedEntity(
            snapshots: [
                0: Base64.encodeURL(
                    try world.recreated(by: "cleo", under: world.circle.newest, with: world.circle.secrets))
            ])
        let sealer = try world.sealer(Self.dora)
        let events = try world.devices[Self.dora].object.adopt(cleos, with: sealer)
        #expect(events.contains(.object(.recreated)))
        #expect(world.devices[Self.dora].object.object.object?["t"] == .string("anew"))
    }

    @Test(
        "a new writer that is shown an old list is held at the first operation under the newer list")
    func oldList() throws {
        var world = try Self.before(8)
        let old = world.circle
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        // Dora's second device has never seen a list. It is shown the first one, and cannot tell that it is old.
        try world.join("dora")
        world.devices[4].lists = old.reader()
        world.devices[4].secrets = try old.opened(by: "dora")
        #expect(try world.sealer(4).maySeal)
        try world.refresh(Self.ann)
        try world.mark(Self.ann)
        // At the first operation under the newer list it stops, and requests what is withheld from it.
        try world.receive(4, atMost: .max)
        #expect(world.devices[4].hold == .epoch(1))
        // Her first device has seen the newer list, and accepts no older one.
        try world.refresh(Self.dora)
        #expect(world.devices[Self.dora].lists.accept(old.lists, keys: old.verified) == .older(1))
    }

    @Test("a member added later reads everything that was written before, under the same names")
    func added() throws {
        var world = try Self.before(9)
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
        try world.play(20, among: [Self.ann, Self.cleo, Self.dora])
        try world.circle.change(to: ["cleo": .writes, "dora": .writes, "emil": .reads], newEpoch: false)
        for one in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
        try world.join("emil")
        try world.play(20, among: [Self.ann, Self.cleo, Self.dora, 4])
        try world.settle([Self.ann, Self.cleo, Self.dora, 4])
        try world.checkEqual([Self.ann, Self.cleo, Self.dora, 4])
        let name = try world.devices[4].secrets.keys().serverKey(of: SharedWorld.appKey)
        #expect(name == world.serverKey)
    }
}
