import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// A snapshot states the name of its object. Ben has every key, and puts another object's name into a snapshot.
@Suite("The name inside a snapshot is checked against the object's key", .nonceWatch)
struct SnapshotNameTests {
    private static let others = ["another note", "", SharedWorld.appKey + " ", "heads"]

    private static func world() throws -> SharedWorld {
        var world = try SharedWorld(seed: 1, Circle(["ben": .writes, "cleo": .reads]))
        for user in ["ann", "ben", "cleo"] { try world.join(user) }
        return world
    }

    private static func entity(_ world: SharedWorld, named name: String) throws -> SealedEntity {
        let sealed = try world.recreated(
            by: "ben", under: world.circle.newest, with: world.circle.secrets, named: name)
        return SealedEntity(snapshots: [0: Base64.encodeURL(sealed)])
    }

    @Test(
        "a new device refuses a snapshot with another object's name, and the error names the member",
        arguments: others)
    func opened(name: String) throws {
        let world = try Self.world()
        for device in [0, 2] {
            #expect(throws: SharedOpenError.refused(.otherName("ben"))) {
                _ = try SharedObject.open(
                    Self.entity(world, named: name), author: .init(rawValue: 9), with: world.sealer(device))
            }
        }
    }

    @Test(
        "a device with the object or a draft under its key rejects a snapshot with another object's name",
        arguments: others)
    func adopted(name: String) throws {
        let world = try Self.world()
        let entity = try Self.entity(world, named: name)
        let sealer = try world.sealer(0)
        let drafted = SharedObject(
            .absent(author: world.devices[0].writer.id, place: sealer.place, appKey: ""))
        for known in [world.devices[0].object, drafted] {
            var object = known
            let events = try object.adopt(entity, with: sealer)
            #expect(
                events == [
                    .uncounted(.otherName("ben"), .snapshot, at: 0), .object(.integrity(.snapshotMismatch(at: 0))),
                ])
            #expect(object.object.log == known.object.log && object.object.object == known.object.object)
        }
    }

    @Test("a snapshot with the object's own name is opened and adopted")
    func honest() throws {
        let world = try Self.world()
        let entity = try Self.entity(world, named: SharedWorld.appKey)
        let sealer = try world.sealer(2)
        let opened = try SharedObject.open(entity, author: .init(rawValue: 9), with: sealer).object
        #expect(opened.object.object == ["t": "anew"])
        var known = world.devices[2].object
        #expect(try known.adopt(entity, with: sealer).contains(.object(.recreated)))
    }
}
