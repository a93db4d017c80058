import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// Ann removes ben. He has every byte that the server ever stored, all wraps, all lists, the secrets of before and his own keys.
@Suite("Who is removed from a shared bucket", .nonceWatch)
struct RemovalTests {
    private static let ann: Int = 0, ben: Int = 1, cleo: Int = 2, dora: Int = 3

    /// Before the removal: everybody writes, and has everything.
    private static func before(_ seed: UInt64) throws -> SharedWorld {
        var world: SharedWorld = try .init(
            seed: seed, Circle(["ben": .writes, "cleo": .writes, "dora": .writes], seed: seed))
        for user: String in ["ann", "ben", "cleo", "dora"] { try world.join(user) }
        try world.play(80, among: [ann, ben, cleo, dora])
        try world.settle([ann, ben, cleo, dora])
        return world
    }

    /// Every secret that ben can get out of what the server has: his own wraps, and all others, in all places.
    private static func secrets(of world: SharedWorld) throws -> [SecureBytes] {
        let ben: Member = try world.circle.member("ben")
        var found: [SecureBytes] = []
        for wrap: SecretWrap in world.circle.wraps {
            for list: SignedReaderList in world.circle.lists {
                for reader: ListedReader in list.list.readers {
                    for epoch: UInt32 in 0...world.circle.newest.epoch {
                        let place: KeyWrap = SecretWrap.place(world.circle.bucket, epoch: epoch, reader)
                        if let secret: SecureBytes = try? place.open(wrap.sealed, with: ben.opening) {
                            found.append(secret)
                        }
                    }
                }
            }
        }
        return found
    }

    /// Whether a value opens with any of these secrets, taken for any epoch's, under any epoch's header.
    private static func opens(
        _ value: (bytes: [UInt8], kind: SealedHeader.Kind, position: Int), _ world: SharedWorld,
        with secrets: [SecureBytes]
    ) throws -> Bool {
        let bucket: SharedBucket = world.circle.bucket
        for secret: SecureBytes in secrets {
            let keys: SealedBucketKeys = try .init(
                owner: bucket.owner, app: bucket.app, bucket: bucket.bucket, secrets: [0: secret, 1: secret, 2: secret])
            let sealer: ObjectSealer = try keys.sealer(serverKey: world.serverKey)
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
        "what is written later by devices that have the new list opens for nobody who was removed, with all that the server stored, all wraps, all secrets, all epochs; what was before still does",
        arguments: [1, 2, 3] as [UInt64])
    func removed(seed: UInt64) throws {
        var world: SharedWorld = try Self.before(seed)
        let count: Int = world.server.stored.count
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one: Int in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
        try world.mark(Self.ann)
        try world.play(60, among: [Self.ann, Self.cleo, Self.dora])
        try world.compact(Self.cleo)
        try world.settle([Self.ann, Self.cleo, Self.dora])
        try world.checkEqual([Self.ann, Self.cleo, Self.dora])
        let secrets: [SecureBytes] = try Self.secrets(of: world)
        #expect(secrets.count == 1, "his own wrap of epoch 0")
        let later: ArraySlice<(bytes: [UInt8], kind: SealedHeader.Kind, position: Int)> = world.server.stored[count...]
        #expect(later.count > 5 && later.contains { $0.kind == .snapshot })
        for value in later {
            #expect(Self.epoch(value) == 1)
            #expect(try !Self.opens(value, world, with: secrets))
        }
        for value in world.server.stored[..<count] { #expect(try Self.opens(value, world, with: secrets)) }
        // The attack itself works: with the secret that he has not got, all of it opens.
        let all: [SecureBytes] = secrets + [world.circle.secrets.secret(1)]
        for value in later { #expect(try Self.opens(value, world, with: all)) }
        // His device stands still where the others went on, and says what it lacks.
        let shown: JSONObject? = world.devices[Self.ben].object.object.object
        try world.catchUp(Self.ben)
        #expect(world.devices[Self.ben].hold == .epoch(1) || world.devices[Self.ben].hold == .secret(1))
        #expect(world.devices[Self.ben].object.object.object == shown)
        #expect(try !world.sealer(Self.ben).maySeal)
    }

    @Test(
        "a device that was away during a removal catches up, and what it typed meanwhile goes out again under the new epoch",
        arguments: [4, 5, 6] as [UInt64])
    func away(seed: UInt64) throws {
        var world: SharedWorld = try Self.before(seed)
        // Dora types without a connection; one operation is sealed already.
        for _ in 0..<3 { try world.type(Self.dora) }
        for _ in 0..<100 where world.devices[Self.dora].object.object.pending == nil { try world.send(Self.dora) }
        try #require(world.devices[Self.dora].object.object.pending != nil)
        for _ in 0..<2 { try world.type(Self.dora) }
        world.devices[Self.dora].lists = try SharedBucketReader(
            saved: world.devices[Self.dora].lists.saved, keys: world.circle.verified)
        let before: Int = world.server.stored.count
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one: Int in [Self.ann, Self.cleo] { try world.refresh(one) }
        try world.mark(Self.ann)
        try world.play(40, among: [Self.ann, Self.cleo])
        try world.settle([Self.ann, Self.cleo])
        // She comes back: what was sealed arrives under the old list, and counts for nothing where it stands.
        try world.settle([Self.ann, Self.cleo, Self.dora])
        try world.checkEqual([Self.ann, Self.cleo, Self.dora])
        for one: Int in [Self.ann, Self.cleo, Self.dora] { #expect(world.devices[one].uncounted == []) }
        let old: [UInt32?] = world.server.stored[before...].map(Self.epoch)
        #expect(Set(old).isSubset(of: [0, 1]) && old.count { $0 == 0 } <= 1, "all but what was sealed before")
        // Only that one opens for ben: she did not know better when she sealed it.
        let secrets: [SecureBytes] = try Self.secrets(of: world)
        for value in world.server.stored[before...] {
            #expect(try Self.opens(value, world, with: secrets) == (Self.epoch(value) == 0))
        }
    }

    @Test(
        "a removed writer, and one who may only read now, writes nothing more behind the first word under the new list, the server helping"
    )
    func lateWriter() throws {
        for isRemoved: Bool in [true, false] {
            var world: SharedWorld = try Self.before(7)
            let (old, secrets): (ReaderList, BucketSecrets) = (world.circle.newest, world.circle.secrets)
            let rights: [String: ListedReader.Rights] = ["cleo": .writes, "dora": .writes]
            try world.circle.change(
                to: isRemoved ? rights : rights.merging(["ben": .reads]) { $1 }, newEpoch: isRemoved)
            for one: Int in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
            // Until then it counts, as what it is: ben's, under the list of before. No reader can tell that it is late.
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
            for one: Int in [Self.cleo, Self.dora] { try world.catchUp(one) }
            for one: Int in [Self.ann, Self.cleo, Self.dora] {
                #expect(world.devices[one].object.object.log == world.devices[Self.ann].object.object.log)
                #expect(!text(one).unicodeScalars.contains { $0 == "x" || $0 == "y" })
                #expect(text(one).unicodeScalars.contains("b"))
            }
            // A device that comes after a compaction, too, knows where the old list ended.
            try world.compact(Self.ann)
            try world.join("dora")
            #expect(world.devices[4].object.object.log.list == 2)
            world.put(try world.written(by: "ben", under: old, with: secrets, letter: 0x7A))
            try world.catchUp(4)
            #expect(!text(4).unicodeScalars.contains("z"))
        }
    }

    @Test(
        "somebody removed, or who may only read now, neither stops devices nor makes them blame the server, with newer rules or a history that never was; who was away sends its edit again"
    )
    func hostileTexts() throws {
        for isRemoved: Bool in [true, false] {
            var world: SharedWorld = try Self.before(11)
            let (old, secrets): (ReaderList, BucketSecrets) = (world.circle.newest, world.circle.secrets)
            try world.type(Self.dora)
            for _ in 0..<100 where world.devices[Self.dora].object.object.pending == nil { try world.send(Self.dora) }
            try #require(world.devices[Self.dora].object.object.pending != nil)
            let rights: [String: ListedReader.Rights] = ["cleo": .writes, "dora": .writes]
            try world.circle.change(
                to: isRemoved ? rights : rights.merging(["ben": .reads]) { $1 }, newEpoch: isRemoved)
            for one: Int in [Self.ann, Self.cleo] { try world.refresh(one) }
            try world.mark(Self.ann)
            for one: Int in [Self.ann, Self.cleo] { try world.catchUp(one) }
            for sealed: [UInt8] in try world.hostile(by: "ben", under: old, with: secrets) {
                world.put(sealed)
                for one: Int in [Self.ann, Self.cleo] { try world.catchUp(one) }
            }
            try world.join("dora")
            for one: Int in [Self.ann, Self.cleo] { try world.type(one) }
            try world.settle([Self.ann, Self.cleo, Self.dora, 4])
            try world.checkEqual([Self.ann, Self.cleo, Self.dora, 4])
            #expect(world.devices.allSatisfy { $0.uncounted == [] && !$0.object.object.isStopped })
        }
    }

    @Test(
        "nobody waits for the keys of somebody removed whose operation stands behind the first word under the new list: it counts for nothing, whoever wrote it"
    )
    func unknownKeys() throws {
        var world: SharedWorld = try Self.before(13)
        try world.compact(Self.ann)
        let (old, secrets): (ReaderList, BucketSecrets) = (world.circle.newest, world.circle.secrets)
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one: Int in [Self.ann, Self.dora] { try world.refresh(one) }
        let verified: [String: PublicKeys] = world.circle.members.mapValues(\.keys).filter { $0.key != "ben" }
        func withoutBen(_ device: Int) throws -> AuthoredSealer {
            let known: SharedWorld.Device = world.devices[device]
            return try AuthoredSealer(
                serverKey: world.serverKey, secrets: known.secrets, lists: known.lists,
                keys: VerifiedKeys { verified[$0] }, writer: known.writer)
        }
        let stranger: AuthoredSealer = try withoutBen(Self.ann)
        func opened() throws -> SharedObject {
            try SharedObject.open(world.server.entity, author: .init(rawValue: 9), with: stranger).object
        }
        var there: SharedObject = try opened()
        // What may count is waited for: somebody must know whose it is.
        let id: String = try world.circle.member("ben").keys.id
        let early: [UInt8] = try world.written(by: "ben", under: old, with: secrets, letter: 0x79)
        #expect(throws: SharedHold.keys(user: "ben", keyID: id)) { _ = try there.receive(early, with: stranger) }
        try world.mark(Self.ann)
        try world.catchUp(Self.ann)
        there = try opened()
        let late: [UInt8] = try world.written(by: "ben", under: old, with: secrets, letter: 0x78)
        world.put(late)
        try world.catchUp(Self.ann)
        _ = try there.receive(late, with: stranger)
        #expect(try opened().object.log == world.devices[Self.ann].object.object.log)
        #expect(there.object.log == world.devices[Self.ann].object.object.log && there.object.log.list == 2)
    }

    @Test(
        "in an object that is made under the new list somebody of the same epoch who may only read by it writes nothing, the server helping"
    )
    func newObject() throws {
        var circle: Circle = try .init(["ben": .writes, "cleo": .writes], seed: 12)
        let old: ReaderList = circle.newest
        try circle.change(to: ["ben": .reads, "cleo": .writes], newEpoch: false)
        var world: SharedWorld = try .init(seed: 12, circle)
        for user: String in ["ann", "ben", "cleo"] { try world.join(user) }
        world.put(try world.written(by: "ben", under: old, with: circle.secrets, letter: 0x78))
        try world.play(30, among: [0, 1, 2])
        try world.settle([0, 1, 2])
        try world.checkEqual([0, 1, 2])
        for device: SharedWorld.Device in world.devices {
            #expect(device.object.object.object?["t"]?.stringValue?.unicodeScalars.contains("x") == false)
        }
    }

    @Test(
        "an object that a removed writer makes anew under the list of before is not taken where a newer list stood in the log"
    )
    func recreation() throws {
        var world: SharedWorld = try Self.before(10)
        let (old, secrets): (ReaderList, BucketSecrets) = (world.circle.newest, world.circle.secrets)
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one: Int in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
        try world.mark(Self.ann)
        for one: Int in [Self.ann, Self.cleo, Self.dora] { try world.catchUp(one) }
        let bens: SealedEntity = .init(
            snapshots: [0: Base64.encodeURL(try world.recreated(by: "ben", under: old, with: secrets))])
        for one: Int in [Self.ann, Self.cleo] {
            let shown: JSONObject? = world.devices[one].object.object.object
            let sealer: AuthoredSealer = try world.sealer(one)
            let events: [SharedEvent] = try world.devices[one].object.adopt(bens, with: sealer)
            #expect(events.contains(.object(.integrity(.snapshotMismatch(at: 0)))))
            #expect(!events.contains(.object(.recreated)))
            #expect(world.devices[one].object.object.object == shown)
        }
        // One who writes under the new list may.
        let cleos: SealedEntity = .init(
            snapshots: [
                0: Base64.encodeURL(
                    try world.recreated(by: "cleo", under: world.circle.newest, with: world.circle.secrets))
            ])
        let sealer: AuthoredSealer = try world.sealer(Self.dora)
        let events: [SharedEvent] = try world.devices[Self.dora].object.adopt(cleos, with: sealer)
        #expect(events.contains(.object(.recreated)))
        #expect(world.devices[Self.dora].object.object.object?["t"] == .string("anew"))
    }

    @Test(
        "the server shows an old list to a new writer: what that one writes is held against the list that others have")
    func oldList() throws {
        var world: SharedWorld = try Self.before(8)
        let old: Circle = world.circle
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        // Dora's second device has never seen a list. It is shown the first one, and cannot tell.
        try world.join("dora")
        world.devices[4].lists = old.reader()
        world.devices[4].secrets = try old.opened(by: "dora")
        #expect(try world.sealer(4).maySeal)
        try world.refresh(Self.ann)
        try world.mark(Self.ann)
        // At the first word of somebody who knows better it stops, and asks for what is kept from it.
        try world.receive(4, atMost: .max)
        #expect(world.devices[4].hold == .epoch(1))
        // Her first device has seen the newer list, and takes no older one.
        try world.refresh(Self.dora)
        #expect(world.devices[Self.dora].lists.accept(old.lists, keys: old.verified) == .older(1))
    }

    @Test("who is added later reads all that was there, under the same names")
    func added() throws {
        var world: SharedWorld = try Self.before(9)
        try world.circle.change(to: ["cleo": .writes, "dora": .writes], newEpoch: true)
        for one: Int in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
        try world.play(20, among: [Self.ann, Self.cleo, Self.dora])
        try world.circle.change(to: ["cleo": .writes, "dora": .writes, "emil": .reads], newEpoch: false)
        for one: Int in [Self.ann, Self.cleo, Self.dora] { try world.refresh(one) }
        try world.join("emil")
        try world.play(20, among: [Self.ann, Self.cleo, Self.dora, 4])
        try world.settle([Self.ann, Self.cleo, Self.dora, 4])
        try world.checkEqual([Self.ann, Self.cleo, Self.dora, 4])
        let name: String = try world.devices[4].secrets.keys().serverKey(of: SharedWorld.appKey)
        #expect(name == world.serverKey)
    }
}
