import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport
import ThicketTree

@testable import ThicketTreeShape
@testable import ThicketTreesystem

/// Shared branches of an own tree: lists that this device changes, and what it believes of the server's (S8, S9; A10).
@Suite("Shared branches of an own tree", .nonceWatch)
struct SharingWorldTests {
    private static func share(
        _ path: String, _ letters: [String: String], at device: WorldDevice, _ world: TreeWorld
    ) throws {
        let id = try device.id(path)
        var members = [UserID: SharePermissions]()
        for (name, text) in letters { members[try UserID(name)] = SharePermissions(text: text) ?? [] }
        let change = ShareChange(members)
        _ = try device.local(world) { machine throws(TreeError) in
            try ShareChanges.add(change, to: id, &machine.skeleton)
        }
    }

    /// Two devices of user-1, and the accounts user-2 and user-3.
    private func world(_ seed: UInt64) throws -> TreeWorld {
        let world = try TreeWorld(seed: seed, owners: ["user-1", "user-1", "user-2", "user-3"])
        try world.devices[0].create("album", in: world)
        try world.devices[0].create("album/photo", "one", in: world)
        try world.devices[0].create("private", in: world)
        try world.settleDown()
        return world
    }

    private func letters(_ path: String, at device: WorldDevice) throws -> [String: String]? {
        guard let members = try ShareChanges.members(of: device.id(path), device.machine.skeleton) else { return nil }
        return Dictionary(uniqueKeysWithValues: members.map { ($0.key.text, $0.value.text) })
    }

    private func faults(_ device: WorldDevice) -> [IntegrityFault] {
        device.events.compactMap { if case .integrity(let fault) = $0 { fault } else { nil } }
    }

    @Test("S8: sharing a branch writes one record, and the other devices of the owner know the list")
    func share() throws {
        let world = try world(1)
        for number in 0..<20 { try world.devices[0].create("album/n\(number)", in: world) }
        try world.settleDown()
        let before = world.server.log.count
        try Self.share("album", ["user-2": "rw", "user-3": "r"], at: world.devices[0], world)
        #expect(try letters("album", at: world.devices[0]) == ["user-2": "rw", "user-3": "r"])
        try world.settleDown()
        #expect(world.server.log.count == before + 1)
        for device in world.devices.prefix(2) {
            #expect(try letters("album", at: device) == ["user-2": "rw", "user-3": "r"])
            #expect(faults(device).isEmpty)
        }
        // What is written below is signed now, and nothing elsewhere is.
        try world.devices[1].write("album/photo", "two", in: world)
        try world.devices[1].create("private/note", in: world)
        try world.settleDown()
        let (photo, note) = (try world.devices[0].id("album/photo"), try world.devices[0].id("private/note"))
        #expect(world.server.nodes[photo]?.record.signature?.author.text == "user-1")
        #expect(world.server.nodes[note]?.record.signature == nil)
        #expect(try world.devices[0].content("album/photo") == "two")
        #expect(faults(world.devices[0]).isEmpty)
    }

    @Test("sharing, and what is created below at once, reach the server in one request")
    func oneRequest() throws {
        let world = try world(2)
        let device = world.devices[0]
        device.machine.pausePush()
        try Self.share("album", ["user-2": "rw"], at: device, world)
        try device.create("album/new", "x", in: world)
        try device.create("album/new/below", "y", in: world)
        device.machine.resumePush()
        try device.local(world) { _ throws(TreeError) in }
        try world.settleDown()
        for path in ["album/new", "album/new/below"] {
            #expect(try world.server.nodes[device.id(path)]?.record.signature != nil)
            #expect(try world.devices[1].content(path) != nil)
        }
        #expect(device.holds.isEmpty && faults(world.devices[1]).isEmpty)
    }

    @Test("S9: after a removal the root has another key at once, and each write takes its ancestors along")
    func remove() throws {
        let world = try world(3)
        let device = world.devices[0]
        try device.create("album/folder", in: world)
        try device.create("album/folder/leaf", "one", in: world)
        try Self.share("album", ["user-2": "rw", "user-3": "r"], at: device, world)
        try world.settleDown()
        let before = world.server.log.count
        try Self.share("album", ["user-3": ""], at: device, world)
        try world.settleDown()
        #expect(world.server.log.count == before + 1)
        let (root, folder) = (try device.id("album"), try device.id("album/folder"))
        let leaf = try device.id("album/folder/leaf")
        #expect(world.server.nodes[root]?.record.epoch == 1 && world.server.nodes[folder]?.record.epoch == 0)
        // Another device, which read the list, writes a leaf.
        try world.devices[1].write("album/folder/leaf", "two", in: world)
        try world.settleDown()
        for id in [folder, leaf] { #expect(world.server.nodes[id]?.record.epoch == 1) }
        #expect(world.server.log.count == before + 3)
        #expect(try device.content("album/folder/leaf") == "two")
        #expect(try device.content("album/photo") == "one")
        // A removal and a write in one request.
        device.machine.pausePush()
        try Self.share("album", ["user-2": "r"], at: device, world)
        try device.write("album/folder/leaf", "three", in: world)
        device.machine.resumePush()
        try device.local(world) { _ throws(TreeError) in }
        try world.settleDown()
        for id in [root, folder, leaf] { #expect(world.server.nodes[id]?.record.epoch == 2) }
        #expect(try world.devices[1].content("album/folder/leaf") == "three")
        for device in world.devices.prefix(2) { #expect(faults(device).isEmpty && device.holds.isEmpty) }
    }

    @Test("a device that reads the tree for the first time believes the list and everything that it finds below")
    func firstReading() throws {
        let world = try world(4)
        try Self.share("album", ["user-2": "rw"], at: world.devices[0], world)
        try world.devices[0].create("album/new", "x", in: world)
        try world.settleDown()
        try world.devices[1].forgetPosition(world)
        try world.settleDown()
        #expect(try world.devices[1].paths() == world.devices[0].paths())
        #expect(faults(world.devices[1]).isEmpty)
        #expect(try letters("album", at: world.devices[1]) == ["user-2": "rw"])
    }

    @Test("the end of sharing gives the root another key, and what is written below later is not signed")
    func unshare() throws {
        let world = try world(5)
        let device = world.devices[0]
        try Self.share("album", ["user-2": "rw"], at: device, world)
        try world.settleDown()
        let id = try device.id("album")
        _ = try device.local(world) { machine throws(TreeError) in
            try ShareChanges.add(ShareChange(isEnd: true), to: id, &machine.skeleton)
        }
        try world.settleDown()
        for device in world.devices.prefix(2) { #expect(try letters("album", at: device) == nil) }
        try world.devices[1].write("album/photo", "two", in: world)
        try world.settleDown()
        #expect(try world.server.nodes[device.id("album/photo")]?.record.signature == nil)
        #expect(try device.content("album/photo") == "two")
        for device in world.devices.prefix(2) { #expect(faults(device).isEmpty) }
        // It can be shared again, with a list that begins again.
        try Self.share("album", ["user-3": "r"], at: world.devices[1], world)
        try world.settleDown()
        #expect(try letters("album", at: device) == ["user-3": "r"] && faults(device).isEmpty)
    }

    @Test("no list below a list, none at a trunk, none for the owner, and none without keys")
    func refusedLocally() throws {
        let world = try world(6)
        let device = world.devices[0]
        try device.create("private/album", in: world)
        try Self.share("private", ["user-2": "rw"], at: device, world)
        try world.settleDown()
        for (path, letters) in [("private/album", ["user-2": "r"]), ("album", ["user-1": "r"])] {
            let error = #expect(throws: TreeError.self) { try Self.share(path, letters, at: device, world) }
            #expect(error?.code == .sharing)
        }
        try device.create("outer", in: world)
        try device.move("private", to: "outer/private", in: world)
        #expect(throws: TreeError.self) { try Self.share("outer", ["user-2": "r"], at: device, world) }
    }

    @Test("A5: nothing is wrapped for an account whose keys cannot be verified; the change waits and is reported")
    func keys() throws {
        let world = try world(7)
        let device = world.devices[0]
        world.troubles["user-2"] = .needsConfirmation
        let before = world.server.log.count
        try Self.share("album", ["user-2": "rw"], at: device, world)
        try world.settleDown()
        #expect(world.server.log.count == before && device.holds == [.held(.keys)])
        world.troubles = [:]
        try device.retryAll(world)
        try device.loseConnection(world)
        try world.settleDown()
        #expect(world.server.log.count == before + 1 && device.holds.isEmpty)
    }

    @Test(
        "A10: a reader, a wrap or letters that the server adds, and an older list, are reported and wrapped for no one")
    func forged() throws {
        let world = try world(8)
        let (writer, reader) = (world.devices[0], world.devices[1])
        try Self.share("album", ["user-2": "rw"], at: writer, world)
        try world.settleDown()
        let id = try writer.id("album")
        let first = try #require(world.server.nodes[id]?.record)
        try Self.share("album", ["user-3": "r"], at: writer, world)
        try world.settleDown()
        let genuine = try #require(world.server.nodes[id]?.record)
        let stranger = try #require(world.people["user-3"]).keys
        let changes: [(inout NodeRecord) throws -> Void] = [
            { record in record.shareList?.members[0].permissions = .all },
            { record in record.shareList?.members.removeAll { $0.user.text == "user-2" } },
            { record in
                record.shareList?.members.append(ShareList.Member(try UserID("zed"), .read, keyID: stranger.id))
                record.wraps.append(
                    RecordWrap(
                        .user(try UserID("zed"), keyID: stranger.id), sealed: [1] + [UInt8](repeating: 0, count: 80)))
            },
            { record in record = first },
            { record in record.shareList = nil },
        ]
        for change in changes {
            var forged = genuine
            try change(&forged)
            let seen = faults(reader).count
            world.server.forge(id, forged)
            try world.settleDown()
            #expect(faults(reader).count > seen)
            #expect(try letters("album", at: reader) == ["user-2": "rw", "user-3": "r"])
        }
        #expect(Set(faults(reader).map(\.node)) == [id])
        world.server.forge(id, genuine)
        // The next list of the owner repairs the record, and has wraps for the believed readers only.
        try Self.share("album", ["user-3": "rw"], at: writer, world)
        try world.settleDown()
        let repaired = try #require(world.server.nodes[id]?.record)
        #expect(repaired.wraps.map(\.kind) == ["p", "u:user-2", "u:user-3"])
        #expect(try letters("album", at: reader) == ["user-2": "rw", "user-3": "rw"])
    }

    @Test("A10: a record that the server puts into a shared branch without a signature of a member is not shown")
    func unsigned() throws {
        let world = try world(9)
        let (writer, reader) = (world.devices[0], world.devices[1])
        let id = try writer.id("album/photo")
        let unsigned = try #require(world.server.nodes[id]?.record)
        try Self.share("album", ["user-2": "rw"], at: writer, world)
        try writer.write("album/photo", "two", in: world)
        try world.settleDown()
        world.server.forge(id, unsigned)
        try world.settleDown()
        #expect(faults(reader).last?.kind == .sharing)
        #expect(try reader.content("album/photo") == "two")
    }

    @Test("random changes of two devices, with lists that change meanwhile: both end with the server's tree")
    func random() throws {
        for seed in TreeWorld.seeds {
            let world = try world(100 + seed)
            for round in 0..<40 {
                let device = world.devices[world.roll(2)]
                switch world.roll(5) {
                case 0:
                    try? Self.share(
                        "album", ["user-\(2 + world.roll(2))": ["", "r", "rw"][world.roll(3)]], at: device, world)
                case 1: _ = try? device.create("album/r\(round)", "c\(round)", in: world)
                case 2: try? device.write("album/photo", "c\(round)", in: world)
                case 3:
                    try? device.move(
                        "album/photo", to: world.chance(50) ? "private/photo" : "album/p\(round)", in: world)
                default: try? device.move("private/photo", to: "album/photo", in: world)
                }
                for _ in 0..<world.roll(12) { try world.step() }
            }
            try world.settleDown()
            // Discarding one change may send another.
            for _ in 0..<3 {
                for device in world.devices.prefix(2) { try? device.discardAll(world) }
                try world.settleDown()
            }
            let expected = try world.devices[0].places()
            #expect(try world.devices[1].places() == expected, "seed \(seed)")
            for device in world.devices.prefix(2) { #expect(faults(device).isEmpty, "seed \(seed) \(faults(device))") }
        }
    }
}
