import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// A snapshot says itself which object it is of. Ben has every key, and puts another object's name into one.
@Suite("The name inside of a snapshot is held against the object's key", .nonceWatch)
struct SnapshotNameTests {
    private static let others: [String] = ["another note", "", SharedWorld.appKey + " ", "heads"]

    private static func world() throws -> SharedWorld {
        var world: SharedWorld = try .init(seed: 1, Circle(["ben": .writes, "cleo": .reads]))
        for user: String in ["ann", "ben", "cleo"] { try world.join(user) }
        return world
    }

    private static func entity(_ world: SharedWorld, named name: String) throws -> SealedEntity {
        let sealed: [UInt8] = try world.recreated(
            by: "ben", under: world.circle.newest, with: world.circle.secrets, named: name)
        return SealedEntity(snapshots: [0: Base64.encodeURL(sealed)])
    }

    @Test("a new device opens no object that a member shows as another, and is told who did it", arguments: others)
    func opened(name: String) throws {
        let world: SharedWorld = try Self.world()
        for device: Int in [0, 2] {
            #expect(throws: SharedOpenError.refused(.otherName("ben"))) {
                _ = try SharedObject.open(
                    Self.entity(world, named: name), author: .init(rawValue: 9), with: world.sealer(device))
            }
        }
    }

    @Test(
        "a device that has the object, and one that has a draft under its key, take nothing of one that a member shows as another",
        arguments: others)
    func adopted(name: String) throws {
        let world: SharedWorld = try Self.world()
        let entity: SealedEntity = try Self.entity(world, named: name)
        let sealer: AuthoredSealer = try world.sealer(0)
        let drafted: SharedObject = .init(
            .absent(author: world.devices[0].writer.id, place: sealer.place, appKey: ""))
        for known: SharedObject in [world.devices[0].object, drafted] {
            var object: SharedObject = known
            let events: [SharedEvent] = try object.adopt(entity, with: sealer)
            #expect(
                events == [
                    .uncounted(.otherName("ben"), .snapshot, at: 0), .object(.integrity(.snapshotMismatch(at: 0))),
                ])
            #expect(object.object.log == known.object.log && object.object.object == known.object.object)
        }
    }

    @Test("under its own name it is opened and taken, whoever made it")
    func honest() throws {
        let world: SharedWorld = try Self.world()
        let entity: SealedEntity = try Self.entity(world, named: SharedWorld.appKey)
        let sealer: AuthoredSealer = try world.sealer(2)
        let opened: SharedObject = try SharedObject.open(entity, author: .init(rawValue: 9), with: sealer).object
        #expect(opened.object.object == ["t": "anew"])
        var known: SharedObject = world.devices[2].object
        #expect(try known.adopt(entity, with: sealer).contains(.object(.recreated)))
    }
}
