import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// Ben's account gets other keys while his devices have edits that nobody has acknowledged.
@Suite("Edits go over to an account's new keys", .nonceWatch)
struct KeyChangeTests {
    private static let ann: Int = 0, ben: Int = 1, cleo: Int = 2

    private static func world() throws -> SharedWorld {
        var world: SharedWorld = try .init(seed: 5, Circle(["ben": .writes, "cleo": .writes]))
        for user: String in ["ann", "ben", "cleo"] { try world.join(user) }
        try world.append("begun. ", ann)
        try world.settle([ann, ben, cleo])
        return world
    }

    private static func seal(_ chosen: Int, _ world: inout SharedWorld) throws -> SealedObject.Pending? {
        let sealer: AuthoredSealer = try world.sealer(chosen)
        return world.devices[chosen].object.seal(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
    }

    /// Ann and cleo go on under the list that names ben's new keys.
    private static func goOn(_ world: inout SharedWorld) throws {
        for one: Int in [ann, cleo] { try world.refresh(one) }
        try world.mark(ann)
        try world.append("ann's ", ann)
        try world.settle([ann, cleo])
    }

    private static func expectOnce(_ words: [String], _ world: SharedWorld) {
        for one: Int in world.devices.indices {
            let text: String = world.devices[one].object.object.object?["t"]?.stringValue ?? ""
            #expect(world.devices[one].object.object.log == world.devices[ann].object.object.log)
            #expect(world.devices[one].uncounted == [])
            for word: String in words {
                #expect(text.split(separator: word, omittingEmptySubsequences: false).count == 2, "\(word) in \(text)")
            }
        }
    }

    private enum Way: CaseIterable { case neverSealed, neverSent, arrivesLate, countedUndelivered, countedCompacted }

    @Test(
        "what was not acknowledged goes out under the new keys, once: never lost, and never doubled when the old one was taken"
    )
    func ways() throws {
        for way: Way in Way.allCases {
            for restarts: Bool in [false, true] {
                var world: SharedWorld = try Self.world()
                try world.append("ben's ", Self.ben)
                let old: PublicKeys = try world.circle.member("ben").keys
                let sealed: SealedObject.Pending? = way == .neverSealed ? nil : try Self.seal(Self.ben, &world)
                let isCounted: Bool = way == .countedUndelivered || way == .countedCompacted
                if isCounted { world.put(try #require(sealed)) }
                try world.append("later ", Self.ben)
                if isCounted { try world.catchUp(Self.ann) }
                try world.circle.changeKeys(of: "ben")
                try Self.goOn(&world)
                try world.moveKeys("ben")
                if restarts { try world.restart(Self.ben) }
                let object: SealedObject = world.devices[Self.ben].object.object
                #expect(
                    object.author != Authorship.authorID(keyID: old.id, device: world.devices[Self.ben].writer.deviceID)
                )
                #expect(object.pending?.sealed == sealed?.sealed, "its bytes never change")
                // As long as it is not known what became of the old one, nothing else is sealed.
                if sealed != nil {
                    let another: SealedObject.Pending? = try Self.seal(Self.ben, &world)
                    #expect(another == nil)
                }
                if way == .arrivesLate { world.put(try #require(sealed)) }
                if way == .neverSent {
                    // Its app knows that it was never sent.
                    let events: [SharedEvent] = world.devices[Self.ben].object.refuse()
                    let id: [UInt8] = try #require(sealed).changeID
                    #expect(events.contains(.object(.rebased(id))))
                }
                if way == .countedCompacted {
                    let sealer: AuthoredSealer = try world.sealer(Self.ben)
                    let snapshot: [UInt8] = try world.inventedSnapshot(
                        by: "cleo", under: world.circle.newest, with: world.circle.secrets)
                    let entity: SealedEntity = .init(
                        snapshots: [world.devices[Self.ann].object.object.log.position: Base64.encodeURL(snapshot)])
                    let events: [SharedEvent] = try world.devices[Self.ben].object.adopt(entity, with: sealer)
                    let id: [UInt8] = try #require(sealed).changeID
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
        "two devices of the account type, stop, start and change their keys amid the others: all end equal, every letter once",
        arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func typing(seed: UInt64) throws {
        var world: SharedWorld = try .init(seed: seed, Circle(["ben": .writes, "cleo": .writes], seed: seed))
        for user: String in ["ann", "ben", "ben", "cleo"] { try world.join(user) }
        try world.play(80, among: [0, 1, 2, 3], restarts: true)
        try world.circle.changeKeys(of: seed % 2 == 0 ? "ben" : "ann")
        // Some have the new list at once; those of before type on under the old one.
        try world.refresh(3)
        try world.play(20, among: [3], restarts: true)
        try world.moveKeys(seed % 2 == 0 ? "ben" : "ann")
        for one: Int in 0..<4 { try world.refresh(one) }
        try world.play(80, among: [0, 1, 2, 3], restarts: true)
        try world.settle([0, 1, 2, 3])
        try world.checkEqual([0, 1, 2, 3])
        for device: SharedWorld.Device in world.devices { #expect(device.uncounted == []) }
    }

    @Test("no edit goes over to another account, to keys that are not this device's, or to another device")
    func others() throws {
        var world: SharedWorld = try Self.world()
        try world.append("ben's ", Self.ben)
        let old: PublicKeys = try world.circle.member("ben").keys
        let before: SharedObject = world.devices[Self.ben].object
        try world.circle.changeKeys(of: "ben")
        let device: [UInt8] = world.devices[Self.ben].writer.deviceID
        func sealer(_ user: String, _ device: [UInt8]) throws -> AuthoredSealer {
            try world.circle.sealer(of: user, device: device, key: world.serverKey)
        }
        let cleo: AuthoredSealer = try sealer("cleo", device)
        #expect(throws: SharingError.otherKeys("ben")) { try world.devices[Self.ben].object.move(from: old, to: cleo) }
        let ben: AuthoredSealer = try sealer("ben", device)
        let cleos: PublicKeys = try world.circle.member("cleo").keys
        #expect(throws: SharingError.otherKeys("cleo")) {
            try world.devices[Self.ben].object.move(from: cleos, to: ben)
        }
        let never: PublicKeys = try Member("ben").keys
        #expect(throws: SharingError.otherKeys("ben")) { try world.devices[Self.ben].object.move(from: never, to: ben) }
        let another: AuthoredSealer = try sealer("ben", .init(repeating: 9, count: 8))
        #expect(throws: SharingError.otherKeys("ben")) {
            try world.devices[Self.ben].object.move(from: old, to: another)
        }
        #expect(world.devices[Self.ben].object == before)
        // Until it has gone over, nothing is sealed, and the edit stays.
        #expect(
            world.devices[Self.ben].object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: ben) == nil)
        try world.devices[Self.ben].object.move(from: old, to: ben)
        try world.devices[Self.ben].object.move(from: old, to: ben)
        #expect(world.devices[Self.ben].object.object.object?["t"] == .string("begun. ben's "))
    }
}
