import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// Devices that stop and start, hold, choose after an alarm; and members who are removed and do not keep to it.
@Suite("Shared objects are kept, restored and repaired", .nonceWatch)
struct SharedRepairTests {
    private static let ann: Int = 0, ben: Int = 1, cleo: Int = 2

    private static func world(_ seed: UInt64 = 1) throws -> SharedWorld {
        var world: SharedWorld = try .init(seed: seed, Circle(["ben": .writes, "cleo": .writes], seed: seed))
        for user: String in ["ann", "ben", "cleo"] { try world.join(user) }
        try world.append("begun. ", ann)
        try world.settle([ann, ben, cleo])
        return world
    }

    private static func seal(_ chosen: Int, _ world: inout SharedWorld) throws -> SealedObject.Pending {
        let sealer: AuthoredSealer = try world.sealer(chosen)
        let made: SealedObject.Pending? = world.devices[chosen].object.seal(
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
        var world: SharedWorld = try .init(seed: seed, Circle(["ben": .writes, "cleo": .reads], seed: seed))
        for user: String in ["ann", "ben", "ben", "cleo"] { try world.join(user) }
        try world.play(200, among: [0, 1, 2, 3], restarts: true)
        try world.settle([0, 1, 2, 3])
        try world.checkEqual([0, 1, 2, 3])
    }

    @Test("what was kept is read on where the owner has signed two lists since; nothing is taken or sealed")
    func forked() throws {
        var world: SharedWorld = try Self.world()
        try world.append("ben's ", Self.ben)
        _ = try Self.seal(Self.ben, &world)
        let shown: JSONObject? = world.devices[Self.ben].object.object.object
        var (one, other): (Circle, Circle) = (world.circle, world.circle)
        try one.change(to: ["ben": .writes], newEpoch: true)
        try other.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        _ = world.devices[Self.ben].lists.accept(one.lists, keys: one.verified)
        guard case .forked = world.devices[Self.ben].lists.accept(other.lists, keys: one.verified) else {
            Issue.record("no fork")
            return
        }
        try world.restart(Self.ben)
        #expect(world.devices[Self.ben].object.object.object == shown)
        let sealer: AuthoredSealer = try world.sealer(Self.ben)
        let pending: SealedObject.Pending = try #require(world.devices[Self.ben].object.object.pending)
        #expect(throws: SharedHold.forked) {
            _ = try world.devices[Self.ben].object.receive(pending.sealed, with: sealer)
        }
        #expect(!sealer.maySeal)
        #expect(throws: SharedOpenError.held(.forked)) {
            _ = try SharedObject.open(world.server.entity, author: sealer.author, with: sealer)
        }
    }

    @Test(
        "what was kept and does not belong together, or does not count, is refused with a word for it, and held what is lacking"
    )
    func damaged() throws {
        var world: SharedWorld = try Self.world()
        try world.append("ben's ", Self.ben)
        let pending: SealedObject.Pending = try Self.seal(Self.ben, &world)
        let (entity, kept): (SealedEntity, SealedKept) = (
            world.keptEntity(Self.ben), world.devices[Self.ben].object.object.kept
        )
        let sealer: AuthoredSealer = try world.sealer(Self.ben)
        func restored(
            _ entity: SealedEntity?, _ pending: [UInt8]?, _ kept: SealedKept, _ sealer: AuthoredSealer
        ) throws -> SharedObject {
            try SharedObject.restored(entity, appKey: SharedWorld.appKey, pending: pending, kept: kept, with: sealer)
        }
        #expect(try restored(entity, pending.sealed, kept, sealer).object.object == ["t": "begun. ben's "])
        var flipped: [UInt8] = pending.sealed
        flipped[flipped.count - 1] ^= 1
        #expect(throws: SharedOpenError.refused(.doesNotOpen)) { _ = try restored(entity, flipped, kept, sealer) }
        #expect(throws: SharedOpenError.doesNotFit) { _ = try restored(nil, pending.sealed, kept, sealer) }
        let readers: [UInt8] = try world.inventedSnapshot(
            by: "ben", under: world.circle.newest, with: world.circle.secrets)
        #expect(throws: SharedOpenError.refused(.doesNotOpen)) {
            _ = try restored(SealedEntity(snapshots: [7: Base64.encodeURL(readers)]), nil, SealedKept(), sealer)
        }
        // Nor does another's operation go out as this device's.
        for (user, device): (String, UInt8) in [("cleo", 7), ("ben", 7)] {
            let others: [UInt8] = try world.written(
                by: user, under: world.circle.newest, with: world.circle.secrets, letter: 0x62)
            #expect(throws: SharedOpenError.doesNotFit, "\(user), device \(device)") {
                _ = try restored(entity, others, kept, sealer)
            }
        }
        let lacking: AuthoredSealer = try .init(
            serverKey: world.serverKey, secrets: world.circle.secrets,
            lists: SharedBucketReader(bucket: world.circle.bucket), keys: world.circle.verified,
            writer: world.devices[Self.ben].writer)
        #expect(throws: SharedOpenError.held(.list(1))) { _ = try restored(entity, pending.sealed, kept, lacking) }
    }

    @Test(
        "an operation that was on its way when the server's was taken stands in the log later: no alarm, and the next edit is not given up for it"
    )
    func letGo() throws {
        for isTypingOn: Bool in [true, false] {
            for restarts: Bool in [true, false] {
                var world: SharedWorld = try Self.world()
                try world.append("one ", Self.cleo)
                let sealed: SealedObject.Pending = try Self.seal(Self.cleo, &world)
                let shown: SealedEntity = world.server.entity
                _ = world.devices[Self.cleo].object.serverRemoved()
                let sealer: AuthoredSealer = try world.sealer(Self.cleo)
                let told: [SharedEvent] = try world.devices[Self.cleo].object.takeServers(shown, with: sealer)
                #expect(
                    told.contains(
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
                let snapshot: [UInt8] = try world.inventedSnapshot(
                    by: "ben", under: world.circle.newest, with: world.circle.secrets)
                let entity: SealedEntity = .init(snapshots: [2: Base64.encodeURL(snapshot)])
                let events: [SharedEvent] = try world.devices[Self.cleo].object.adopt(entity, with: sealer)
                #expect(!events.contains { if case .object(.integrity) = $0 { true } else { false } })
                #expect(!events.contains { if case .object(.acknowledged) = $0 { true } else { false } })
                #expect(
                    Self.text(Self.cleo, world).contains("one ") && world.devices[Self.cleo].object.object.isConsistent)
                #expect(Self.text(Self.cleo, world).contains("two ") == isTypingOn)
                #expect((world.devices[Self.cleo].object.object.pending != nil) == isTypingOn)
            }
        }
    }

    @Test("what was discarded while it was on its way stands in the log later all the same: no alarm")
    func discarded() throws {
        var world: SharedWorld = try Self.world()
        try world.append("one ", Self.cleo)
        let sealed: SealedObject.Pending = try Self.seal(Self.cleo, &world)
        world.devices[Self.cleo].object.discardEdits()
        #expect(Self.text(Self.cleo, world) == "begun. ")
        try world.restart(Self.cleo)
        world.put(sealed)
        try world.catchUp(Self.ann)
        let snapshot: [UInt8] = try world.inventedSnapshot(
            by: "ben", under: world.circle.newest, with: world.circle.secrets)
        let sealer: AuthoredSealer = try world.sealer(Self.cleo)
        let events: [SharedEvent] = try world.devices[Self.cleo].object.adopt(
            SealedEntity(snapshots: [2: Base64.encodeURL(snapshot)]), with: sealer)
        #expect(!events.contains { if case .object(.integrity) = $0 { true } else { false } })
        #expect(Self.text(Self.cleo, world) == "begun. one ")
    }

    @Test("the server's is taken only where it counts and holds together; else nothing has happened")
    func takeServers() throws {
        var world: SharedWorld = try Self.world()
        try world.circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        for one: Int in [Self.ann, Self.ben] { try world.refresh(one) }
        try world.append("ann's ", Self.ann)
        try world.settle([Self.ann, Self.ben])
        _ = world.devices[Self.ben].object.serverRemoved()
        let before: SharedObject = world.devices[Self.ben].object
        let sealer: AuthoredSealer = try world.sealer(Self.ben)
        let position: Int = before.object.log.position
        func shown(_ snapshot: [UInt8], _ tail: [[UInt8]] = []) -> SealedEntity {
            SealedEntity(snapshots: [position: Base64.encodeURL(snapshot)], tail: tail.map { Base64.encodeURL($0) })
        }
        let cleos: [UInt8] = try world.inventedSnapshot(
            by: "cleo", under: world.circle.newest, with: world.circle.secrets)
        #expect(throws: SharedOpenError.refused(.mayNotWrite("cleo"))) {
            _ = try world.devices[Self.ben].object.takeServers(shown(cleos), with: sealer)
        }
        let old: AuthoredSealer = try .init(
            serverKey: world.serverKey, secrets: world.circle.secrets,
            lists: SharedBucketReader(saved: Self.first(world.circle).saved, keys: world.circle.verified),
            keys: world.circle.verified, writer: world.devices[Self.ben].writer)
        let bens: [UInt8] = try world.inventedSnapshot(
            by: "ben", under: world.circle.newest, with: world.circle.secrets)
        #expect(throws: SharedOpenError.held(.list(2))) {
            _ = try world.devices[Self.ben].object.takeServers(shown(bens), with: old)
        }
        // Two histories at once: behind the snapshot stands an operation that was made on another.
        let log: SealedLog = before.object.log
        let head: Head = try #require(Head(RandomBytes.make(16)))
        let other: [UInt8] = try world.written(
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
        let events: [SharedEvent] = try world.devices[Self.ben].object.takeServers(shown(bens), with: sealer)
        #expect(
            events.contains {
                if case .written(let author, .snapshot, position) = $0 { author.reader.user == "ben" } else { false }
            })
        #expect(world.devices[Self.ben].object.object.problem == nil && Self.text(Self.ben, world) == "begun. ann's ")
    }

    private static func first(_ circle: Circle) -> SharedBucketReader {
        var reader: SharedBucketReader = .init(bucket: circle.bucket)
        _ = reader.accept([circle.lists[0]], keys: circle.verified)
        return reader
    }

    @Test(
        "a removed writer's tombstone behind the first word under the new list deletes nothing; when the server removes the object all the same, it is told and stays"
    )
    func removedDeletes() throws {
        var world: SharedWorld = try Self.world()
        let (sealer, list, secrets): (AuthoredSealer, ReaderList, BucketSecrets) = (
            try world.sealer(Self.ben), world.circle.newest, world.circle.secrets
        )
        // His device has not heard of it, and seals.
        try world.devices[Self.ben].object.delete(with: sealer)
        let tombstone: SealedObject.Pending = try Self.seal(Self.ben, &world)
        try world.circle.change(to: ["cleo": .writes], newEpoch: true)
        for one: Int in [Self.ann, Self.cleo] { try world.refresh(one) }
        try world.mark(Self.ann)
        world.put(tombstone)
        for one: Int in [Self.ann, Self.cleo] {
            try world.catchUp(one)
            #expect(Self.text(one, world) == "begun. ")
        }
        // A device that opens it anew sees the same.
        let cleo: AuthoredSealer = try world.sealer(Self.cleo)
        let fresh: SharedObject = try SharedObject.open(world.server.entity, author: .init(rawValue: 9), with: cleo)
            .object
        #expect(fresh.object.object == ["t": "begun. "])
        // Nor does it come back as his, made anew under the list of before.
        let bens: SealedEntity = .init(
            snapshots: [0: Base64.encodeURL(try world.recreated(by: "ben", under: list, with: secrets))])
        var known: SharedObject = world.devices[Self.cleo].object
        let events: [SharedEvent] = try known.adopt(bens, with: cleo)
        #expect(events.contains(.object(.integrity(.snapshotMismatch(at: 0)))))
        #expect(!events.contains(.object(.recreated)) && known.object.object == ["t": "begun. "])
        for one: Int in [Self.ann, Self.cleo] {
            #expect(world.devices[one].object.serverRemoved() == [.object(.integrity(.removed))])
            #expect(Self.text(one, world) == "begun. ")
        }
    }

    @Test("a tombstone or a new object by somebody who may only read counts for nothing, and is told with the name")
    func readerDeletes() throws {
        var world: SharedWorld = try Self.world()
        try world.circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        for one: Int in [Self.ann, Self.ben] { try world.refresh(one) }
        let list: ReaderList = world.circle.newest
        world.put(
            try world.written(by: "cleo", under: list, with: world.circle.secrets, letter: 0, content: .tombstone))
        try world.catchUp(Self.ann)
        #expect(world.devices[Self.ann].uncounted == [.mayNotWrite("cleo")] && Self.text(Self.ann, world) == "begun. ")
        let made: SealedEntity = .init(
            snapshots: [
                0: Base64.encodeURL(try world.recreated(by: "cleo", under: list, with: world.circle.secrets))
            ])
        let sealer: AuthoredSealer = try world.sealer(Self.ben)
        var draft: SharedObject = try .absent(SharedWorld.appKey, with: sealer)
        try draft.create(["t": "ben's"], with: sealer)
        let before: SharedObject = draft
        #expect(throws: SharedOpenError.refused(.mayNotWrite("cleo"))) { _ = try draft.meet(made, with: sealer) }
        #expect(draft == before)
    }

    @Test(
        "a device that holds for a list edits, stops, starts and deletes meanwhile; once it has the list, it ends as one that had it at once",
        arguments: [1, 2, 3] as [UInt64])
    func held(seed: UInt64) throws {
        for isDeleted: Bool in [false, true] {
            var world: SharedWorld = try Self.world(seed)
            try world.circle.change(to: ["ben": .writes, "cleo": .writes, "dora": .reads], newEpoch: seed % 2 == 0)
            for one: Int in [Self.ann, Self.ben] { try world.refresh(one) }
            try world.append("ann's ", Self.ann)
            try world.settle([Self.ann, Self.ben])
            try world.append("before ", Self.cleo)
            let sealed: SealedObject.Pending = try Self.seal(Self.cleo, &world)
            if seed % 3 == 0 { world.put(sealed) }
            try world.receive(Self.cleo, atMost: .max)
            let lacking: SharedHold = seed % 2 == 0 ? .epoch(1) : .list(2)
            #expect(world.devices[Self.cleo].hold == lacking)
            let position: Int = world.devices[Self.cleo].object.object.log.position
            try world.append("meanwhile ", Self.cleo)
            try world.restart(Self.cleo)
            if isDeleted { try world.devices[Self.cleo].object.delete(with: world.sealer(Self.cleo)) }
            try world.restart(Self.cleo)
            try world.receive(Self.cleo, atMost: .max)
            #expect(world.devices[Self.cleo].hold == lacking)
            #expect(world.devices[Self.cleo].object.object.log.position == position, "nothing is taken while it holds")
            #expect(world.devices[Self.cleo].object.object.pending?.sealed == sealed.sealed)
            try world.settle([Self.ann, Self.ben, Self.cleo])
            for one: Int in [Self.ann, Self.ben, Self.cleo] {
                #expect(world.devices[one].object.object.log == world.devices[Self.ann].object.object.log)
                #expect(world.devices[one].object.object.object == world.devices[Self.ann].object.object.object)
                #expect(world.devices[one].uncounted == [])
            }
            if isDeleted {
                #expect(world.devices[Self.ann].object.object.object == nil)
            } else {
                for word: String in ["begun. ", "ann's ", "before ", "meanwhile "] {
                    let parts: [Substring] = Self.text(Self.ann, world).split(
                        separator: word, omittingEmptySubsequences: false)
                    #expect(parts.count == 2, "\(word) in \(Self.text(Self.ann, world))")
                }
            }
        }
    }
}
