import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// Devices that restart, hold, or choose after an alarm; and removed members that write all the same.
@Suite("Shared objects are kept, restored and repaired", .nonceWatch)
struct SharedRepairTests {
    private static let ann = 0, ben: Int = 1, cleo: Int = 2

    private static func world(_ seed: UInt64 = 1) throws -> SharedWorld {
        var world = try SharedWorld(seed: seed, Circle(["ben": .writes, "cleo": .writes], seed: seed))
        for user in ["ann", "ben", "cleo"] { try world.join(user) }
        try world.append("begun. ", ann)
        try world.settle([ann, ben, cleo])
        return world
    }

    private static func seal(_ chosen: Int, _ world: inout SharedWorld) throws -> SealedObject.Pending {
        let sealer = try world.sealer(chosen)
        let made = world.devices[chosen].object.seal(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
        return try #require(made)
    }

    private static func text(_ chosen: Int, _ world: SharedWorld) -> String {
        world.devices[chosen].object.object.object?["t"]?.stringValue ?? ""
    }

    @Test(
        "devices that stop and start at any moment end with the same, every letter once",
        arguments: [1, 2, 3, 4] as [UInt64])
    func restarts(seed: UInt64) throws {
        var world = try SharedWorld(seed: seed, Circle(["ben": .writes, "cleo": .reads], seed: seed))
        for user in ["ann", "ben", "ben", "cleo"] { try world.join(user) }
        try world.play(200, among: [0, 1, 2, 3], restarts: true)
        try world.settle([0, 1, 2, 3])
        try world.checkEqual([0, 1, 2, 3])
    }

    @Test("after a fork of the owner's lists, a kept object can still be read, but receives and seals nothing")
    func forked() throws {
        var world = try Self.world()
        try world.append("ben's ", Self.ben)
        _ = try Self.seal(Self.ben, &world)
        let shown = world.devices[Self.ben].object.object.object
        var (one, other) = (world.circle, world.circle)
        try one.change(to: ["ben": .writes], newEpoch: true)
        try other.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        _ = world.devices[Self.ben].lists.accept(one.lists, keys: one.verified)
        guard case .forked = world.devices[Self.ben].lists.accept(other.lists, keys: one.verified) else {
            Issue.record("no fork")
            return
        }
        try world.restart(Self.ben)
        #expect(world.devices[Self.ben].object.object.object == shown)
        let sealer = try world.sealer(Self.ben)
        let pending = try #require(world.devices[Self.ben].object.object.pending)
        #expect(throws: SharedHold.forked) {
            _ = try world.devices[Self.ben].object.receive(pending.sealed, with: sealer)
        }
        #expect(!sealer.maySeal)
        #expect(throws: SharedOpenError.held(.forked)) {
            _ = try SharedObject.open(world.server.entity, author: sealer.author, with: sealer)
        }
    }

    @Test(
        "kept parts that do not match or do not count are refused with a reason, and lacking lists hold the object"
    )
    func damaged() throws {
        var world = try Self.world()
        try world.append("ben's ", Self.ben)
        let pending = try Self.seal(Self.ben, &world)
        let (entity, kept) = (
            world.keptEntity(Self.ben), world.devices[Self.ben].object.object.kept
        )
        let sealer = try world.sealer(Self.ben)
        func restored(
            _ entity: SealedEntity?, _ pending: [UInt8]?, _ kept: SealedKept, _ sealer: AuthoredSealer
        ) throws -> SharedObject {
            try SharedObject.restored(entity, appKey: SharedWorld.appKey, pending: pending, kept: kept, with: sealer)
        }
        #expect(try restored(entity, pending.sealed, kept, sealer).object.object == ["t": "begun. ben's "])
        var flipped = pending.sealed
        flipped[flipped.count - 1] ^= 1
        #expect(throws: SharedOpenError.refused(.doesNotOpen)) { _ = try restored(entity, flipped, kept, sealer) }
        #expect(throws: SharedOpenError.doesNotFit) { _ = try restored(nil, pending.sealed, kept, sealer) }
        let readers = try world.inventedSnapshot(
            by: "ben", under: world.circle.newest, with: world.circle.secrets)
        #expect(throws: SharedOpenError.refused(.doesNotOpen)) {
            _ = try restored(SealedEntity(snapshots: [7: Base64.encodeURL(readers)]), nil, SealedKept(), sealer)
        }
        // Another author's operation is not sent as this device's.
        for (user, device): (String, UInt8) in [("cleo", 7), ("ben", 7)] {
            let others = try world.written(
                by: user, under: world.circle.newest, with: world.circle.secrets, letter: 0x62)
            #expect(throws: SharedOpenError.doesNotFit, "\(user), device \(device)") {
                _ = try restored(entity, others, kept, sealer)
            }
        }
        let lacking = try AuthoredSealer(
            serverKey: world.serverKey, secrets: world.circle.secrets,
            lists: SharedBucketReader(bucket: world.circle.bucket), keys: world.circle.verified,
            writer: world.devices[Self.ben].writer)
        #expect(throws: SharedOpenError.held(.list(1))) { _ = try restored(entity, pending.sealed, kept, lacking) }
    }

    @Test(
        "an operation in flight when the server's state was taken may arrive later: no alarm, and the next edit stays"
    )
    func letGo() throws {
        for isTypingOn in [true, false] {
            for restarts in [true, false] {
                var world = try Self.world()
                try world.append("one ", Self.cleo)
                let sealed = try Self.seal(Self.cleo, &world)
                let shown = world.server.entity
                _ = world.devices[Self.cleo].object.serverRemoved()
                let sealer = try world.sealer(Self.cleo)
                let reported = try world.devices[Self.cleo].object.takeServers(shown, with: sealer)
                #expect(
                    reported.contains(
                        .object(
                            .conflict(
                                SealedConflict(
                                    path: [], losing: ["t": "begun. one "], winning: ["t": "begun. "])))))
                if restarts { try world.restart(Self.cleo) }
                if isTypingOn {
                    try world.append("two ", Self.cleo)
                    _ = try Self.seal(Self.cleo, &world)
                }
                world.put(sealed)
                try world.catchUp(Self.ann)
                let snapshot = try world.inventedSnapshot(
                    by: "ben", under: world.circle.newest, with: world.circle.secrets)
                let entity = SealedEntity(snapshots: [2: Base64.encodeURL(snapshot)])
                let events = try world.devices[Self.cleo].object.adopt(entity, with: sealer)
                #expect(!events.contains { if case .object(.integrity) = $0 { true } else { false } })
                #expect(!events.contains { if case .object(.acknowledged) = $0 { true } else { false } })
                #expect(
                    Self.text(Self.cleo, world).contains("one ") && world.devices[Self.cleo].object.object.isConsistent)
                #expect(Self.text(Self.cleo, world).contains("two ") == isTypingOn)
                #expect((world.devices[Self.cleo].object.object.pending != nil) == isTypingOn)
            }
        }
    }

    @Test("an operation that was discarded while in flight may still arrive, without an alarm")
    func discarded() throws {
        var world = try Self.world()
        try world.append("one ", Self.cleo)
        let sealed = try Self.seal(Self.cleo, &world)
        world.devices[Self.cleo].object.discardEdits()
        #expect(Self.text(Self.cleo, world) == "begun. ")
        try world.restart(Self.cleo)
        world.put(sealed)
        try world.catchUp(Self.ann)
        let snapshot = try world.inventedSnapshot(
            by: "ben", under: world.circle.newest, with: world.circle.secrets)
        let sealer = try world.sealer(Self.cleo)
        let events = try world.devices[Self.cleo].object.adopt(
            SealedEntity(snapshots: [2: Base64.encodeURL(snapshot)]), with: sealer)
        #expect(!events.contains { if case .object(.integrity) = $0 { true } else { false } })
        #expect(Self.text(Self.cleo, world) == "begun. one ")
    }

    @Test("the server's state is taken only if it counts and is consistent; otherwise nothing changes")
    func takeServers() throws {
        var world = try Self.world()
        try world.circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        for one in [Self.ann, Self.ben] { try world.refresh(one) }
        try world.append("ann's ", Self.ann)
        try world.settle([Self.ann, Self.ben])
        _ = world.devices[Self.ben].object.serverRemoved()
        let before = world.devices[Self.ben].object
        let sealer = try world.sealer(Self.ben)
        let position = before.object.log.position
        func shown(_ snapshot: [UInt8], _ tail: [[UInt8]] = []) -> SealedEntity {
            SealedEntity(snapshots: [position: Base64.encodeURL(snapshot)], tail: tail.map { Base64.encodeURL($0) })
        }
        let cleos = try world.inventedSnapshot(
            by: "cleo", under: world.circle.newest, with: world.circle.secrets)
        #expect(throws: SharedOpenError.refused(.mayNotWrite("cleo"))) {
            _ = try world.devices[Self.ben].object.takeServers(shown(cleos), with: sealer)
        }
        let old = try AuthoredSealer(
            serverKey: world.serverKey, secrets: world.circle.secrets,
            lists: SharedBucketReader(saved: Self.first(world.circle).saved, keys: world.circle.verified),
            keys: world.circle.verified, writer: world.devices[Self.ben].writer)
        let bens = try world.inventedSnapshot(
            by: "ben", under: world.circle.newest, with: world.circle.secrets)
        #expect(throws: SharedOpenError.held(.list(2))) {
            _ = try world.devices[Self.ben].object.takeServers(shown(bens), with: old)
        }
        // Two histories at once: the operation behind the snapshot was made on another history.
        let log = before.object.log
        let head = try #require(Head(RandomBytes.make(16)))
        let other = try world.written(
            by: "ben", under: world.circle.newest, with: world.circle.secrets, letter: 0x62,
            raw: SealedOperation(
                base: log.position, head: head, incarnation: log.incarnationTag,
                author: Authorship.authorID(
                    keyID: world.circle.member("ben").keys.id, device: .init(repeating: 7, count: 8)),
                list: 2, content: .tombstone))
        #expect(throws: SharedOpenError.sealed(SealedOpenError(integrity: .forked(at: position)))) {
            _ = try world.devices[Self.ben].object.takeServers(shown(bens, [other]), with: sealer)
        }
        #expect(world.devices[Self.ben].object == before)
        let events = try world.devices[Self.ben].object.takeServers(shown(bens), with: sealer)
        #expect(
            events.contains {
                if case .written(let author, .snapshot, position) = $0 { author.reader.user == "ben" } else { false }
            })
        #expect(world.devices[Self.ben].object.object.problem == nil && Self.text(Self.ben, world) == "begun. ann's ")
    }

    private static func first(_ circle: Circle) -> SharedBucketReader {
        var reader = SharedBucketReader(bucket: circle.bucket)
        _ = reader.accept([circle.lists[0]], keys: circle.verified)
        return reader
    }

    @Test(
        "a removed writer's tombstone behind the new list's mark deletes nothing; a removal by the server is an alarm"
    )
    func removedDeletes() throws {
        var world = try Self.world()
        let (sealer, list, secrets) = (
            try world.sealer(Self.ben), world.circle.newest, world.circle.secrets
        )
        // His device does not know of the removal, and seals.
        try world.devices[Self.ben].object.delete(with: sealer)
        let tombstone = try Self.seal(Self.ben, &world)
        try world.circle.change(to: ["cleo": .writes], newEpoch: true)
        for one in [Self.ann, Self.cleo] { try world.refresh(one) }
        try world.mark(Self.ann)
        world.put(tombstone)
        for one in [Self.ann, Self.cleo] {
            try world.catchUp(one)
            #expect(Self.text(one, world) == "begun. ")
        }
        // A device that opens it from the start sees the same.
        let cleo = try world.sealer(Self.cleo)
        let fresh = try SharedObject.open(world.server.entity, author: .init(rawValue: 9), with: cleo)
            .object
        #expect(fresh.object.object == ["t": "begun. "])
        // Nor is it replaced by an object of his, created under the earlier list.
        let bens = SealedEntity(
            snapshots: [0: Base64.encodeURL(try world.recreated(by: "ben", under: list, with: secrets))])
        var known = world.devices[Self.cleo].object
        let events = try known.adopt(bens, with: cleo)
        #expect(events.contains(.object(.integrity(.snapshotMismatch(at: 0)))))
        #expect(!events.contains(.object(.recreated)) && known.object.object == ["t": "begun. "])
        for one in [Self.ann, Self.cleo] {
            #expect(world.devices[one].object.serverRemoved() == [.object(.integrity(.removed))])
            #expect(Self.text(one, world) == "begun. ")
        }
    }

    @Test("a read-only member's tombstone or new object does not count, and is reported with the member's name")
    func readerDeletes() throws {
        var world = try Self.world()
        try world.circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        for one in [Self.ann, Self.ben] { try world.refresh(one) }
        let list = world.circle.newest
        world.put(
            try world.written(by: "cleo", under: list, with: world.circle.secrets, letter: 0, content: .tombstone))
        try world.catchUp(Self.ann)
        #expect(world.devices[Self.ann].uncounted == [.mayNotWrite("cleo")] && Self.text(Self.ann, world) == "begun. ")
        let made = SealedEntity(
            snapshots: [
                0: Base64.encodeURL(try world.recreated(by: "cleo", under: list, with: world.circle.secrets))
            ])
        let sealer = try world.sealer(Self.ben)
        var draft: SharedObject = try .absent(SharedWorld.appKey, with: sealer)
        try draft.create(["t": "ben's"], with: sealer)
        let before = draft
        #expect(throws: SharedOpenError.refused(.mayNotWrite("cleo"))) { _ = try draft.meet(made, with: sealer) }
        #expect(draft == before)
    }

    @Test(
        "a device that holds for a list can edit, restart and delete, and ends equal to the others with the list",
        arguments: [1, 2, 3] as [UInt64])
    func held(seed: UInt64) throws {
        for isDeleted in [false, true] {
            var world = try Self.world(seed)
            try world.circle.change(to: ["ben": .writes, "cleo": .writes, "dora": .reads], newEpoch: seed % 2 == 0)
            for one in [Self.ann, Self.ben] { try world.refresh(one) }
            try world.append("ann's ", Self.ann)
            try world.settle([Self.ann, Self.ben])
            try world.append("before ", Self.cleo)
            let sealed = try Self.seal(Self.cleo, &world)
            if seed % 3 == 0 { world.put(sealed) }
            try world.receive(Self.cleo, atMost: .max)
            let lacking: SharedHold = seed % 2 == 0 ? .epoch(1) : .list(2)
            #expect(world.devices[Self.cleo].hold == lacking)
            let position = world.devices[Self.cleo].object.object.log.position
            try world.append("meanwhile ", Self.cleo)
            try world.restart(Self.cleo)
            if isDeleted { try world.devices[Self.cleo].object.delete(with: world.sealer(Self.cleo)) }
            try world.restart(Self.cleo)
            try world.receive(Self.cleo, atMost: .max)
            #expect(world.devices[Self.cleo].hold == lacking)
            #expect(world.devices[Self.cleo].object.object.log.position == position, "no operation during the hold")
            #expect(world.devices[Self.cleo].object.object.pending?.sealed == sealed.sealed)
            try world.settle([Self.ann, Self.ben, Self.cleo])
            for one in [Self.ann, Self.ben, Self.cleo] {
                #expect(world.devices[one].object.object.log == world.devices[Self.ann].object.object.log)
                #expect(world.devices[one].object.object.object == world.devices[Self.ann].object.object.object)
                #expect(world.devices[one].uncounted == [])
            }
            if isDeleted {
                #expect(world.devices[Self.ann].object.object.object == nil)
            } else {
                for word in ["begun. ", "ann's ", "before ", "meanwhile "] {
                    let parts: [Substring] = Self.text(Self.ann, world).split(
                        separator: word, omittingEmptySubsequences: false)
                    #expect(parts.count == 2, "\(word) in \(Self.text(Self.ann, world))")
                }
            }
        }
    }
}
