import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape
@testable import ThicketTreesystem

/// Eager re-keys of shared branches (S9, A13).
@Suite("Eager re-keys", .nonceWatch, .timeLimit(.minutes(10)))
struct EagerRekeyTests {
    /// An owner with two devices, and the members user-2 (rw) and user-3 (r), each with a device.
    private final class Shared {
        let world: TreeWorld
        let owner: WorldDevice
        let root: NodeID
        let ben: WorldDevice
        let cleo: WorldDevice

        init(_ seed: UInt64, folders: Int = 3) throws {
            world = try TreeWorld(seed: seed, owners: ["user-1", "user-1", "user-2", "user-3"])
            owner = world.devices[0]
            root = try owner.create("album", "about", in: world)
            for number in 0..<folders {
                try owner.create("album/f\(number)", in: world)
                try owner.create("album/f\(number)/leaf", "leaf \(number)", in: world)
            }
            try world.settleDown()
            let members: [UserID: SharePermissions] = [try UserID("user-2"): .readWrite, try UserID("user-3"): .read]
            let id = root
            _ = try owner.local(world) { machine throws(TreeError) in
                try ShareChanges.add(ShareChange(members), to: id, &machine.skeleton)
            }
            try world.settleDown()
            ben = try world.join("user-1", root, as: "user-2")
            cleo = try world.join("user-1", root, as: "user-3")
            try world.settleDown()
        }

        func removeCleo() throws {
            let (user, id) = (try UserID("user-3"), root)
            _ = try owner.local(world) { machine throws(TreeError) in
                try ShareChanges.add(
                    ShareChange([user: []], renews: true), to: id, rekey: .eager, &machine.skeleton)
            }
        }

        /// The nodes of the branch at the server.
        var branch: [NodeID] { world.server.nodes.keys.filter { world.server.audience(of: $0) == root }.sorted() }

        var progress: RekeyProgress? { Rekeying.progress(of: root, owner.machine.skeleton) }
    }

    private func faults(_ device: WorldDevice) -> [IntegrityFault] {
        device.events.compactMap { if case .integrity(let fault) = $0 { fault } else { nil } }
    }

    /// The node as a device opens it.
    private func opened(_ id: NodeID, by device: WorldDevice) throws -> OpenedNode? {
        try device.store.row(id).flatMap { try device.machine.open($0) }
    }

    @Test("A13: a removed member with all its keys and a full copy of the server opens nothing that is stored after it")
    func removedMember() throws {
        let shared = try Shared(1)
        let (world, cleo) = (shared.world, shared.cleo)
        // Each key that cleo has, of nodes and of contents.
        var (parents, contents) = ([ParentKeys](), [ContentAccess]())
        for id in shared.branch {
            let node = try #require(try opened(id, by: cleo))
            parents.append(node.childKeys)
            if let access = node.metadata.content { contents.append(access) }
        }
        #expect(contents.count == 4)
        let before = world.server.nodes
        try shared.removeCleo()
        try world.settleDownBut(cleo)
        #expect(shared.progress == nil && shared.owner.shareEvents.last == .rekeyed(shared.root))
        for id in shared.branch {
            let record = try #require(world.server.nodes[id]?.record)
            #expect(record.epoch == 1 && record.commitment != before[id]?.record.commitment)
            for keys in parents {
                var moved = record
                moved.parent = keys.parent
                for each in [record, moved] {
                    #expect(throws: NodeFault.self) {
                        try cleo.machine.skeleton.keyring.opener.open(each, id, below: keys)
                    }
                }
            }
            #expect(throws: NodeFault.self) { try cleo.machine.skeleton.keyring.opener.openRoot(record, id) }
            guard case .inline(let data, let sealed)? = record.data else { continue }
            #expect(data != before[id]?.record.data?.id)
            for access in contents {
                let key = try access.contentKey(data)
                let length = record.data?.plainLength ?? 0
                #expect(throws: CryptoError.self) { try ContentOpener.open(sealed, key, length: length) }
            }
        }
        for device in [shared.owner, world.devices[1], shared.ben] {
            #expect(try device.content("album") == "about" && device.content("album/f1/leaf") == "leaf 1")
            #expect(faults(device).isEmpty && device.holds.isEmpty)
        }
    }

    @Test("it goes on after the program was killed at any moment, and each node is written once")
    func restarts() throws {
        for seed in TreeWorld.seeds {
            let shared = try Shared(20 + seed, folders: 12)
            let world = shared.world
            let before = world.server.nodes
            try shared.removeCleo()
            world.isHostile = true
            var restarts = 0
            for _ in 0..<400 {
                try world.step()
                if world.chance(8) {
                    try shared.owner.restart(world)
                    restarts += 1
                }
            }
            try world.settleDownBut(shared.cleo)
            #expect(restarts > 0 && shared.progress == nil, "seed \(seed)")
            for id in shared.branch {
                let held = try #require(world.server.nodes[id])
                #expect(held.record.epoch == 1, "seed \(seed)")
                if let old = before[id]?.record.data?.id { #expect(held.record.data?.id != old, "seed \(seed)") }
                // The root was written with the list too.
                let writes = held.version - (before[id]?.version ?? 0)
                #expect(writes <= (id == shared.root ? 2 : 1), "seed \(seed)")
            }
            for device in [shared.owner, shared.ben] {
                #expect(try device.content("album/f7/leaf") == "leaf 7")
                #expect(faults(device).isEmpty, "seed \(seed): \(faults(device))")
            }
        }
    }

    @Test("edits of members and of the owner while it runs are kept, and cause no conflict")
    func edits() throws {
        for seed in TreeWorld.seeds {
            let shared = try Shared(60 + seed, folders: 8)
            let (world, ben, other) = (shared.world, shared.ben, shared.world.devices[1])
            try shared.removeCleo()
            world.isHostile = true
            for round in 0..<8 {
                try ben.write("album/f\(round)/leaf", "ben \(round)", in: world)
                if round % 2 == 0 { try shared.owner.create("album/f\(round)/own", "own \(round)", in: world) }
                if round == 5 { try other.move("album/f5", to: "album/moved", in: world) }
                if round == 6 { try ben.create("album/f6/new", "new", in: world) }
                for _ in 0..<world.roll(40) { try world.step() }
            }
            for _ in 0..<3 { try world.settleDownBut(shared.cleo) }
            #expect(shared.progress == nil, "seed \(seed)")
            for device in [shared.owner, other, ben] {
                for round in 0..<8 {
                    let folder = round == 5 ? "moved" : "f\(round)"
                    #expect(try device.content("album/\(folder)/leaf") == "ben \(round)", "seed \(seed)")
                    if round % 2 == 0 { #expect(try device.content("album/\(folder)/own") == "own \(round)") }
                }
                #expect(try device.content("album/f6/new") == "new")
                #expect(faults(device).isEmpty && device.holds.isEmpty, "seed \(seed): \(faults(device))")
                let conflicts = device.events.filter { if case .conflict = $0 { true } else { false } }
                #expect(conflicts.isEmpty, "seed \(seed): \(conflicts)")
            }
            for id in shared.branch { #expect(world.server.nodes[id]?.record.epoch == 1, "seed \(seed)") }
        }
    }

    @Test("a change that is given up begins none, and the end of sharing ends one")
    func givenUp() throws {
        let shared = try Shared(3)
        let world = shared.world
        shared.owner.machine.pausePush()
        try shared.removeCleo()
        #expect(shared.progress != nil)
        for id in shared.owner.machine.queue.ids {
            _ = try shared.owner.local(world) { machine throws(TreeError) in try machine.discard(id) }
        }
        #expect(shared.progress == nil)
        try shared.removeCleo()
        let root = shared.root
        _ = try shared.owner.local(world) { machine throws(TreeError) in
            try ShareChanges.add(ShareChange(isEnd: true), to: root, &machine.skeleton)
        }
        shared.owner.machine.resumePush()
        _ = try shared.owner.local(world) { _ throws(TreeError) in }
        try world.settleDownBut(shared.cleo, shared.ben)
        #expect(shared.progress == nil && shared.owner.machine.queue.isEmpty)
        #expect(try shared.owner.content("album/f2/leaf") == "leaf 2")
    }

    // MARK: - Blobs

    @Test("A13: contents in blobs are sealed again and uploaded, and the old ones are released; members read on")
    func blobs() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        let carol = try await bench.person("carol")
        let root = try await ann.tree.createNode(at: .home("album")).id
        let large = ContentSeed(9).bytes(3 << 20)
        let film = try await ann.tree.createNode(
            at: .home("album", "film"),
            content: NodeSections(metadata: .bytes([1, 2]), thumbnail: .bytes([3]), data: .bytes(large))
        ).id
        let note = try await ann.tree.createNode(at: .home("album", "note"), content: .text("small")).id
        try await ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        let sharing = try await ann.tree.sharing.share(root, with: [bob.user: .readWrite, carol.user: .read])
        try await ann.tree.wait(for: sharing, timeout: PeopleBench.patience)
        let branch = try await bob.session.branch(of: ann.user, root: root)
        let removed = try await carol.session.branch(of: ann.user, root: root)
        for tree in [branch, removed] {
            try await tree.wait { tree in try tree.node(note) != nil }
            #expect(try await tree.data(of: film) == large)
        }
        let old = try #require(try await removed.reference(of: film))
        #expect(try bench.blob(old.blob) != nil)

        let operation = try await ann.tree.sharing.remove(carol.user, from: root, rekey: .eager)
        try await ann.tree.wait(for: operation, timeout: PeopleBench.patience)
        try await ann.tree.sharing.waitForRekey(of: root, timeout: PeopleBench.patience)
        #expect(try await ann.tree.sharing.rekeyProgress(of: root) == nil)
        let new = try #require(try await ann.tree.reference(of: film))
        #expect(new.blob != old.blob && new.id != old.id)
        // Old keys do not open what is stored, and the old blob is not referred to by anything.
        let sealed = try #require(try bench.blob(new.blob))
        let chunk = Array(sealed.prefix(ContentLayout.sealedChunkBytes))
        #expect(ChunkCheck.opens(first: chunk, new))
        #expect(!ChunkCheck.opens(first: chunk, old))
        for tree in [ann.tree, branch] {
            try await tree.wait { tree in try tree.reference(of: film)?.blob == new.blob }
            #expect(try await tree.data(of: film) == large)
            #expect(try await tree.data(of: film, .metadata) == [1, 2])
            #expect(try await tree.data(of: film, .thumbnail) == [3])
            #expect(try await tree.data(of: note) == Array("small".utf8))
            #expect(try await tree.quarantined.isEmpty)
        }
        #expect(try bench.isReferenced(old.blob) == false && bench.isReferenced(new.blob) == true)
        for person in [ann, bob, carol] { await person.session.close() }
    }
}

extension ChunkCheck {
    /// Whether the first chunk of a blob opens with the keys of a content.
    fileprivate static func opens(first chunk: [UInt8], _ reference: BlobReference) -> Bool {
        (try? ChunkCheck(reference))?.opens(0, chunk[...]) ?? false
    }
}
