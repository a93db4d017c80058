import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// Ben's account gets other keys while his devices have edits that are not acknowledged.
@Suite("Edits move to an account's new keys", .nonceWatch)
struct KeyChangeTests {
    private static let ann = 0, ben: Int = 1, cleo: Int = 2

    private static func world() throws -> SharedWorld {
        var world = try SharedWorld(seed: 5, Circle(["ben": .writes, "cleo": .writes]))
        for user in ["ann", "ben", "cleo"] { try world.join(user) }
        try world.append("begun. ", ann)
        try world.settle([ann, ben, cleo])
        return world
    }

    private static func seal(_ chosen: Int, _ world: inout SharedWorld) throws -> SealedObject.Pending? {
        let sealer = try world.sealer(chosen)
        return world.devices[chosen].object.seal(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
    }

    /// Ann and cleo continue under the list that names ben's new keys.
    private static func goOn(_ world: inout SharedWorld) throws {
        for one: Int in [ann, cleo] { try world.refresh(one) }
        try world.mark(ann)
        try world.append("ann's ", ann)
        try world.settle([ann, cleo])
    }

    private static func expectOnce(_ words: [String], _ world: SharedWorld) {
        for one in world.devices.indices {
            let text = world.devices[one].object.object.object?["t"]?.stringValue ?? ""
            #expect(world.devices[one].object.object.log == world.devices[ann].object.object.log)
            #expect(world.devices[one].uncounted == [])
            for word in words {
                #expect(text.split(separator: word, omittingEmptySubsequences: false).count == 2, "\(word) in \(text)")
            }
        }
    }

    private enum Way: CaseIterable { case neverSealed, neverSent, arrivesLate, countedUndelivered, countedCompacted }

    @Test(
        "an unacknowledged edit is sent under the new keys, once: neither lost nor doubled if the old one counted"
    )
    func ways() throws {
        for way in Way.allCases {
            for restarts in [false, true] {
                var world = try Self.world()
                try world.append("ben's ", Self.ben)
                let old = try world.circle.member("ben").keys
                let sealed = way == .neverSealed ? nil : try Self.seal(Self.ben, &world)
                let isCounted = way == .countedUndelivered || way == .countedCompacted
                if isCounted { world.put(try #require(sealed)) }
                try world.append("later ", Self.ben)
                if isCounted { try world.catchUp(Self.ann) }
                try world.circle.changeKeys(of: "ben")
                try Self.goOn(&world)
                try world.moveKeys("ben")
                if restarts { try world.restart(Self.ben) }
                let object = world.devices[Self.ben].object.object
                #expect(
                    object.author != Authorship.authorID(keyID: old.id, device: world.devices[Self.ben].writer.deviceID)
                )
                #expect(object.pending?.sealed == sealed?.sealed, "its bytes never change")
                // Until the fate of the old operation is known, nothing else is sealed.
                if sealed != nil {
                    let another = try Self.seal(Self.ben, &world)
                    #expect(another == nil)
                }
                if way == .arrivesLate { world.put(try #require(sealed)) }
                if way == .neverSent {
                    // Its app knows that it was never sent.
                    let events = world.devices[Self.ben].object.refuse()
                    let id = try #require(sealed).changeID
                    #expect(events.contains(.object(.rebased(id))))
                }
                if way == .countedCompacted {
                    let sealer = try world.sealer(Self.ben)
                    let snapshot = try world.inventedSnapshot(
                        by: "cleo", under: world.circle.newest, with: world.circle.secrets)
                    let entity = SealedEntity(
                        snapshots: [world.devices[Self.ann].object.object.log.position: Base64.encodeURL(snapshot)])
                    let events = try world.devices[Self.ben].object.adopt(entity, with: sealer)
                    let id = try #require(sealed).changeID
                    #expect(events.contains(.object(.acknowledged(id))))
                    world.devices[Self.ben].cursor = world.server.feed.count
                }
                try world.settle([Self.ann, Self.ben, Self.cleo])
                Self.expectOnce(["begun. ", "ann's ", "ben's ", "later "], world)
                #expect(world.devices[Self.ben].object.object.isConsistent)
            }
        }
    }

    @Test(
        "devices that type, restart and change their account's keys end equal to the others, with every letter once",
        arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func typing(seed: UInt64) throws {
        var world = try SharedWorld(seed: seed, Circle(["ben": .writes, "cleo": .writes], seed: seed))
        for user in ["ann", "ben", "ben", "cleo"] { try world.join(user) }
        try world.play(80, among: [0, 1, 2, 3], restarts: true)
        try world.circle.changeKeys(of: seed % 2 == 0 ? "ben" : "ann")
        // One device has the new list at once; the others continue under the old one.
        try world.refresh(3)
        try world.play(20, among: [3], restarts: true)
        try world.moveKeys(seed % 2 == 0 ? "ben" : "ann")
        for one: Int in 0..<4 { try world.refresh(one) }
        try world.play(80, among: [0, 1, 2, 3], restarts: true)
        try world.settle([0, 1, 2, 3])
        try world.checkEqual([0, 1, 2, 3])
        for device in world.devices { #expect(device.uncounted == []) }
    }

    @Test("an edit does not move to another account, from keys that were not its account's, or to another device")
    func others() throws {
        var world = try Self.world()
        try world.append("ben's ", Self.ben)
        let old = try world.circle.member("ben").keys
        let before = world.devices[Self.ben].object
        try world.circle.changeKeys(of: "ben")
        let device = world.devices[Self.ben].writer.deviceID
        func sealer(_ user: String, _ device: [UInt8]) throws -> AuthoredSealer {
            try world.circle.sealer(of: user, device: device, key: world.serverKey)
        }
        let cleo = try sealer("cleo", device)
        #expect(throws: SharingError.otherKeys("ben")) { try world.devices[Self.ben].object.move(from: old, to: cleo) }
        let ben = try sealer("ben", device)
        let cleos = try world.circle.member("cleo").keys
        #expect(throws: SharingError.otherKeys("cleo")) {
            try world.devices[Self.ben].object.move(from: cleos, to: ben)
        }
        let never = try Member("ben").keys
        #expect(throws: SharingError.otherKeys("ben")) { try world.devices[Self.ben].object.move(from: never, to: ben) }
        let another = try sealer("ben", .init(repeating: 9, count: 8))
        #expect(throws: SharingError.otherKeys("ben")) {
            try world.devices[Self.ben].object.move(from: old, to: another)
        }
        #expect(world.devices[Self.ben].object == before)
        // Until the edit has moved, nothing is sealed, and the edit stays.
        #expect(
            world.devices[Self.ben].object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: ben) == nil)
        try world.devices[Self.ben].object.move(from: old, to: ben)
        try world.devices[Self.ben].object.move(from: old, to: ben)
        #expect(world.devices[Self.ben].object.object.object?["t"] == .string("begun. ben's "))
    }
}
