import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape
@testable import ThicketTreesystem

/// Branches of another account, as their members open them (S10; A10, A12).
@Suite("Branches of another account", .nonceWatch)
struct BranchWorldTests {
    private func faults(_ device: WorldDevice) -> [IntegrityFault] {
        device.events.compactMap { if case .integrity(let fault) = $0 { fault } else { nil } }
    }

    @Test("S10: a member reads the branch from its root down, and nothing beside it")
    func reading() throws {
        let shared = try SharedWorld(1)
        for user in ["user-2", "user-3"] {
            let member = try shared.join(user)
            #expect(try member.paths() == shared.branchPaths())
            #expect(try member.content("album/photo") == "one")
            #expect(try member.content("album/folder/leaf") == "two")
            #expect(faults(member).isEmpty && member.machine.status == .upToDate)
        }
    }

    @Test("S10: changes of the owner and of members reach all of them, signed by their authors")
    func changes() throws {
        let shared = try SharedWorld(2)
        let (ben, cleo) = (try shared.join("user-2"), try shared.join("user-3"))
        try ben.write("album/photo", "by ben", in: shared.world)
        try ben.create("album/folder/new", "also by ben", in: shared.world)
        try shared.owner.move("album/folder", to: "album/renamed", in: shared.world)
        try shared.world.settleDown()
        for device in [shared.owner, shared.world.devices[1], ben, cleo] {
            #expect(try device.content("album/photo") == "by ben")
            #expect(try device.content("album/renamed/new") == "also by ben")
            #expect(faults(device).isEmpty && device.holds.isEmpty)
        }
        try ben.remove("album/renamed/leaf", in: shared.world)
        try ben.move("album/photo", to: "album/renamed/photo", in: shared.world)
        try shared.world.settleDown()
        #expect(try cleo.paths() == shared.branchPaths())
        #expect(try ben.paths() == shared.branchPaths())
    }

    @Test("S9: what was sealed before a removal is refused, sealed again under the new epoch, and nothing is lost")
    func sealedBefore() throws {
        let shared = try SharedWorld(21, ["user-2": "rw", "user-3": "r"])
        let (ben, world) = (try shared.join("user-2"), shared.world)
        let other = world.devices[1]
        // Sealed, and on their way when the list changes.
        try ben.write("album/photo", "by ben", in: world)
        try ben.create("album/folder/new", "also by ben", in: world)
        try other.write("album/folder/leaf", "by ann", in: world)
        try shared.change(["user-3": ""])
        try shared.owner.run(world)
        for device in [ben, other] { try device.deliverToServer(world) }
        let epoch = try #require(world.server.epoch(of: shared.root))
        #expect(epoch == 1 && world.server.refusals.contains(.epoch), "\(world.server.refusals)")
        try world.settleDown()
        for device in [shared.owner, other, ben] {
            #expect(try device.content("album/photo") == "by ben")
            #expect(try device.content("album/folder/new") == "also by ben")
            #expect(try device.content("album/folder/leaf") == "by ann")
            #expect(device.machine.queue.isEmpty && device.holds.isEmpty && faults(device).isEmpty)
        }
        for path in ["album/photo", "album/folder", "album/folder/new", "album/folder/leaf"] {
            #expect(try world.server.epoch(of: shared.owner.id(path)) == 1, "\(path)")
        }
    }

    @Test("a reader's change is refused by the server, and the app decides about it")
    func readOnly() throws {
        let shared = try SharedWorld(3)
        let cleo = try shared.join("user-3")
        try cleo.write("album/photo", "by cleo", in: shared.world)
        try shared.world.settleDown()
        #expect(cleo.holds.count == 1)
        #expect(try shared.owner.content("album/photo") == "one")
    }

    @Test("a member writes the root's content; it neither renames, moves nor removes the root, nor creates beside it")
    func root() throws {
        let shared = try SharedWorld(4)
        let ben = try shared.join("user-2")
        try ben.write("album", "about the album", in: shared.world)
        try shared.world.settleDown()
        #expect(try shared.owner.content("album") == "about the album")
        #expect(throws: TreeError.self) { try ben.move("album", to: "other", in: shared.world) }
        #expect(throws: TreeError.self) { try ben.remove("album", in: shared.world) }
        #expect(throws: TreeError.self) { try ben.create("beside", in: shared.world) }
        #expect(faults(shared.owner).isEmpty)
    }

    @Test(
        "a node that the owner moves out of the branch leaves it with what is below; one that comes in is read whole"
    )
    func audience() throws {
        let shared = try SharedWorld(5)
        let ben = try shared.join("user-2")
        try shared.owner.move("album/folder", to: "private/folder", in: shared.world)
        try shared.world.settleDown()
        #expect(try ben.paths() == shared.branchPaths())
        #expect(try shared.owner.content("private/folder/leaf") == "two")
        try shared.owner.move("private", to: "album/private", in: shared.world)
        try shared.world.settleDown()
        #expect(try ben.paths() == shared.branchPaths())
        #expect(try ben.content("album/private/note") == "secret")
        #expect(try ben.content("album/private/folder/leaf") == "two")
        #expect(faults(ben).isEmpty)
    }

    @Test("S10: a member that is removed while it is offline keeps its copies, and is told when it comes back")
    func revoked() throws {
        let shared = try SharedWorld(6)
        let (ben, cleo) = (try shared.join("user-2"), try shared.join("user-3"))
        _ = try cleo.local(shared.world) { machine throws(TreeError) in machine.goOffline() }
        try shared.change(["user-3": ""])
        try shared.owner.write("album/photo", "later", in: shared.world)
        try shared.world.settleDownBut(cleo)
        #expect(try ben.content("album/photo") == "later")
        #expect(cleo.shareEvents.isEmpty || !cleo.shareEvents.contains(.revoked))
        cleo.goOnline(shared.world)
        try cleo.run(shared.world)
        #expect(cleo.shareEvents.last == .revoked)
        #expect(try cleo.content("album/photo") == "one")
        guard case .offline(.unauthorized) = cleo.machine.status else {
            Issue.record("\(cleo.machine.status)")
            return
        }
    }

    @Test("a member that is removed while it is connected is told at once, and gets nothing more")
    func revokedLive() throws {
        let shared = try SharedWorld(7)
        let cleo = try shared.join("user-3")
        try shared.change(["user-3": ""])
        try shared.owner.create("album/later", "x", in: shared.world)
        try shared.world.settleDownBut(cleo)
        try cleo.run(shared.world)
        #expect(cleo.shareEvents.last == .revoked)
        #expect(try !cleo.paths().contains("home/album/later"))
    }

    @Test("A12: a removed member with all that it kept and the whole server opens nothing that is written later")
    func removedMember() throws {
        let shared = try SharedWorld(8)
        let (ben, cleo) = (try shared.join("user-2"), try shared.join("user-3"))
        let world = shared.world
        let before = world.server.nodes
        try shared.change(["user-3": ""])
        try world.settleDownBut(cleo)
        try ben.write("album/folder/leaf", "later", in: world)
        try shared.owner.create("album/new", "later", in: world)
        try ben.create("album/folder/new", "later", in: world)
        try world.settleDownBut(cleo)
        let written = world.server.nodes.filter { before[$0.key]?.version != $0.value.version }
        #expect(written.count == 5)
        // Every key of cleo's store, for every record.
        let rows = before.keys.sorted()
        for (id, held) in written {
            for parent in rows {
                let keys = try cleo.machine.reading { machine throws(TreeError) in
                    try machine.skeleton.parentKeys(of: .node(parent))
                }
                guard let keys else { continue }
                var record = held.record
                record.parent = .node(parent)
                for record in [held.record, record] {
                    #expect(throws: NodeFault.self) {
                        try cleo.machine.skeleton.keyring.opener.open(record, id, below: keys)
                    }
                }
            }
            #expect(throws: NodeFault.self) {
                try cleo.machine.skeleton.keyring.opener.openRoot(held.record, id)
            }
        }
        // The members that stay open all of it.
        #expect(try ben.content("album/new") == "later" && ben.content("album/folder/leaf") == "later")
        #expect(try shared.owner.content("album/folder/new") == "later")
        for device in [shared.owner, ben] { #expect(faults(device).isEmpty) }
    }

    @Test(
        "A10: a root that the server seals to the member under a key of its own is not believed or used"
    )
    func forgedRoot() throws {
        let shared = try SharedWorld(9)
        let ben = try shared.join("user-2")
        let world = shared.world
        let genuine = try #require(world.server.nodes[shared.root])
        // The server makes a list, a key and a wrap, and signs with an account that it controls.
        let (attacker, reader) = (try #require(world.people["user-3"]), try #require(world.people["user-2"]))
        let tree = shared.owner.keys.tree
        let (sealer, key) = (NodeSealer(tree, random: .system), NodeSealer(tree).newKey())
        let root = try NodeOpener(tree, identity: reader).openRoot(genuine.record, shared.root)
        var record = genuine.record
        (record.stamps, record.base, record.commitment) = (RecordStamps(), genuine.version, NodeSealer.commitment(key))
        record.shareList?.version += 1
        record.shareList?.commitment = record.commitment
        let context = KeyWrap(of: shared.root, in: tree, epoch: 0, for: reader.user, keyID: reader.keys.id)
        record.wraps.removeAll { $0.kind == "u:user-2" }
        record.wraps.append(
            RecordWrap(
                .user(reader.user, keyID: reader.keys.id),
                sealed: try context.seal(key.secret, to: reader.keys.encryption)))
        let forged = try sealer.sealing(root.metadata, with: key, in: record, shared.root, by: attacker)
        world.server.forge(shared.root, forged)
        try world.settleDown()
        #expect(faults(ben).last?.kind == .sharing)
        try ben.restart(world)
        try world.settleDown()
        try ben.create("album/later", "x", in: world)
        try world.settleDown()
        let id = try ben.id("album/later")
        #expect(world.server.nodes[id]?.record.epoch == genuine.record.epoch)
        #expect(try shared.owner.content("album/later") == "x")
    }

    @Test("A10: a device that opens a branch by its invitation believes no older list than that one")
    func olderList() throws {
        let shared = try SharedWorld(12)
        let world = shared.world
        let older = try #require(world.server.nodes[shared.root])
        try shared.change(["user-2": "r"])
        try world.settleDown()
        let newer = try #require(world.server.nodes[shared.root])
        let list = try #require(newer.record.shareList)
        let invite = BranchInvite(list, at: ShareList.Place(shared.owner.keys.tree, root: shared.root))
        // The server shows new devices what it had before.
        world.server.show(shared.root, older)
        let trusting = try world.join("user-1", shared.root, as: "user-3")
        let invited = try world.join("user-1", shared.root, as: "user-3", invite: invite)
        try world.settleDown()
        #expect(try trusting.paths().contains("home/album"))
        #expect(try invited.paths() == [])
        #expect(faults(invited).contains { $0.kind == .sharing && $0.detail == BranchFault.olderList.description })
        #expect(invited.machine.skeleton.branches.known.isEmpty)
        world.server.show(shared.root, newer)
        try invited.forgetPosition(world)
        try world.settleDown()
        #expect(try invited.paths().contains("home/album/photo"))
    }

    @Test("S9: lists go on when a branch is shared again: devices that knew the last one report no second list")
    func sharedAgain() throws {
        let shared = try SharedWorld(13)
        let world = shared.world
        let (ben, away) = (try shared.join("user-2"), try shared.join("user-2"))
        let first = try #require(world.server.nodes[shared.root]?.record.shareList)
        let invite = BranchInvite(first, at: ShareList.Place(shared.owner.keys.tree, root: shared.root))
        _ = try away.local(world) { machine throws(TreeError) in machine.goOffline() }
        for round in 0..<2 {
            let root = shared.root
            _ = try shared.owner.local(world) { machine throws(TreeError) in
                try ShareChanges.add(ShareChange(isEnd: true), to: root, &machine.skeleton)
            }
            try world.settleDownBut(ben, away)
            try world.devices[1].write("album/photo", "alone \(round)", in: world)
            try world.settleDownBut(ben, away)
            // The other device of the owner begins it again.
            let (user, device) = (try UserID("user-2"), world.devices[1])
            _ = try device.local(world) { machine throws(TreeError) in
                try ShareChanges.add(ShareChange([user: .readWrite]), to: root, &machine.skeleton)
            }
            try world.settleDownBut(ben, away)
        }
        let list = try #require(world.server.nodes[shared.root]?.record.shareList)
        #expect(list.version == first.version + 2 && list.epoch == first.epoch + 2 && list.previous != nil)
        for device in [ben, away] { device.goOnline(world) }
        try world.settleDown()
        for device in [ben, away] {
            #expect(try device.paths() == shared.branchPaths())
            #expect(try device.content("album/photo") == "alone 1")
            #expect(faults(device).isEmpty)
        }
        // So does one that was invited before.
        let invited = try world.join("user-1", shared.root, as: "user-2", invite: invite)
        try world.settleDown()
        #expect(try invited.paths() == shared.branchPaths() && faults(invited).isEmpty)
        try ben.write("album/photo", "by ben", in: world)
        try world.settleDown()
        for device in [shared.owner, world.devices[1], away] {
            #expect(try device.content("album/photo") == "by ben")
            #expect(faults(device).isEmpty && device.holds.isEmpty)
        }
    }

    @Test("A12: what a member wrote between two removals is believed by a device that was away, and nothing from later")
    func betweenRemovals() throws {
        let shared = try SharedWorld(14, ["user-2": "rw", "user-3": "rw"])
        let (world, away) = (shared.world, shared.world.devices[1])
        let (ben, cleo) = (try shared.join("user-2"), try shared.join("user-3"))
        _ = try away.local(world) { machine throws(TreeError) in machine.goOffline() }
        try shared.change(["user-2": ""])
        try world.settleDownBut(ben, away)
        for text in ["first", "second"] {
            try cleo.write("album/photo", text, in: world)
            try world.settleDownBut(ben, away)
        }
        try cleo.create("album/between", "by cleo", in: world)
        try cleo.create("album/between/below", "too", in: world)
        try world.settleDownBut(ben, away)
        try shared.change(["user-3": ""])
        try world.settleDownBut(ben, cleo, away)
        // The device reads all of it before it can look up the keys of the author.
        world.troubles["user-3"] = .offline
        away.goOnline(world)
        try world.settleDownBut(ben, cleo)
        #expect(try away.content("album/photo") == "one" && !away.paths().contains("home/album/between"))
        try away.restart(world)
        try world.settleDownBut(ben, cleo)
        world.troubles = [:]
        try away.loseConnection(world)
        try world.settleDownBut(ben, cleo)
        #expect(try away.content("album/photo") == "second" && away.content("album/between/below") == "too")
        #expect(faults(away).isEmpty && away.machine.skeleton.branches.delivered.isEmpty)
        // What the former member writes later with the help of the server, under the key that it has.
        let (author, tree) = (try #require(world.people["user-3"]), shared.owner.keys.tree)
        let photo = try away.id("album/photo")
        let held = try #require(world.server.nodes[photo])
        let root = shared.root
        let keys = try cleo.machine.reading { machine throws(TreeError) in
            try machine.skeleton.parentKeys(of: .node(root))
        }
        let below = try #require(keys)
        let opened = try NodeOpener(tree, identity: author).open(held.record, photo, below: below)
        let late = NodeEdit(content: .inline(NodeContent(data: Array("late".utf8))))
        world.server.forge(
            photo, try NodeSealer(tree).edit(opened, late, below: below, replacing: held.version, by: author))
        try world.settleDownBut(ben, cleo)
        #expect(try away.content("album/photo") == "second")
        #expect(faults(away).contains { $0.node == photo && $0.kind == .sharing })
    }

    @Test("a branch is caught up when requested records have arrived and the keys of their authors are looked up")
    func caughtUp() throws {
        let shared = try SharedWorld(16, ["user-2": "rw", "user-3": "r"])
        let (ben, cleo) = (try shared.join("user-2"), try shared.join("user-3"))
        let world = shared.world
        _ = try cleo.local(world) { machine throws(TreeError) in machine.goOffline() }
        // The second change follows a record that is not believed yet.
        for text in ["first", "second"] {
            try ben.write("album/photo", text, in: world)
            try world.settleDownBut(cleo)
        }
        cleo.goOnline(world)
        let before = cleo.events.count
        for _ in 0..<1_000 where !cleo.events.dropFirst(before).contains(.caughtUp) {
            #expect(!CaughtUp.isReached(cleo.machine))
            try cleo.deliverToServer(world)
            try cleo.deliverToDevice(world)
        }
        #expect(CaughtUp.isReached(cleo.machine))
        #expect(try cleo.content("album/photo") == "second")
        try world.settleDown()
        #expect(cleo.events.dropFirst(before).filter { $0 == .caughtUp }.count == 1)
        // Once more while it is connected, with keys that must be looked up again.
        try shared.owner.write("album/photo", "by the owner", in: world)
        try world.settleDownBut(cleo)
        for text in ["third", "fourth"] {
            try ben.write("album/photo", text, in: world)
            try world.settleDownBut(cleo)
        }
        try cleo.loseConnection(world)
        var wanted = 0
        for _ in 0..<1_000 where !CaughtUp.isReached(cleo.machine) {
            wanted = max(wanted, cleo.machine.channel.wanted.count)
            try world.pass(500)
            try cleo.deliverToServer(world)
            try cleo.deliverToDevice(world)
        }
        #expect(wanted > 0 && cleo.machine.channel.wanted.isEmpty)
        #expect(try cleo.content("album/photo") == "fourth")
    }

    @Test("A5: a record that a list permits, which waits for keys of its author, waits with the list")
    func awaitedList() throws {
        let shared = try SharedWorld(15, ["user-2": "rws"])
        let (world, away) = (shared.world, shared.world.devices[1])
        let ben = try shared.join("user-2")
        _ = try away.local(world) { machine throws(TreeError) in machine.goOffline() }
        // Ben lets cleo in, and cleo writes.
        let (root, user) = (shared.root, try UserID("user-3"))
        _ = try ben.local(world) { machine throws(TreeError) in
            try ShareChanges.add(ShareChange([user: .readWrite]), to: root, &machine.skeleton)
        }
        try world.settleDownBut(away)
        let cleo = try world.join("user-1", shared.root, as: "user-3")
        try world.settleDownBut(away)
        try cleo.create("album/new", "by cleo", in: world)
        try world.settleDownBut(away)
        world.troubles["user-2"] = .offline
        away.goOnline(world)
        try world.settleDown()
        #expect(try !away.paths().contains("home/album/new"))
        world.troubles = [:]
        try away.loseConnection(world)
        try world.settleDown()
        #expect(try away.content("album/new") == "by cleo")
        for device in [shared.owner, away, ben, cleo] { #expect(faults(device).isEmpty) }
    }

    @Test("A5: records of a member whose keys cannot be looked up wait, and are shown when they can")
    func awaitedKeys() throws {
        let shared = try SharedWorld(10)
        let (ben, cleo) = (try shared.join("user-2"), try shared.join("user-3"))
        shared.world.troubles["user-2"] = .offline
        try cleo.loseConnection(shared.world)
        try ben.create("album/late", "x", in: shared.world)
        try ben.write("album/photo", "by ben", in: shared.world)
        try shared.world.settleDown()
        #expect(try !cleo.paths().contains("home/album/late"))
        #expect(try cleo.content("album/photo") == "one")
        #expect(faults(cleo).isEmpty)
        // What cannot be looked up now is not waited for.
        #expect(CaughtUp.isReached(cleo.machine))
        shared.world.troubles = [:]
        try cleo.loseConnection(shared.world)
        try shared.world.settleDown()
        #expect(try cleo.content("album/late") == "x" && cleo.content("album/photo") == "by ben")
    }

    @Test("random changes of an owner and two members over a bad network, with restarts: all end with the same branch")
    func random() throws {
        for seed in TreeWorld.seeds {
            let shared = try SharedWorld(200 + seed, ["user-2": "rw", "user-3": "rw"])
            let members = [try shared.join("user-2"), try shared.join("user-3")]
            let world = shared.world
            world.isHostile = true
            for round in 0..<40 {
                let device = ([shared.owner] + members)[world.roll(3)]
                let paths = try device.paths().filter { $0.hasPrefix("home/album/") }.map { String($0.dropFirst(5)) }
                switch world.roll(4) {
                case 0: _ = try? device.create("album/c\(round)", "c\(round)", in: world)
                case 1: if let path = world.pick(paths) { try? device.write(path, "w\(round)", in: world) }
                case 2: if let path = world.pick(paths) { try? device.move(path, to: "album/m\(round)", in: world) }
                default: if let path = world.pick(paths), world.chance(40) { try? device.remove(path, in: world) }
                }
                for _ in 0..<world.roll(15) { try world.step() }
            }
            for _ in 0..<3 {
                try world.settleDown()
                // Discarding one change may send another.
                for device in [shared.owner] + members { try? device.discardAll(world) }
            }
            try world.settleDown()
            let expected = try shared.branchPaths()
            for device in members {
                let difference = try Set(device.paths()).symmetricDifference(expected).sorted()
                #expect(difference.isEmpty, "seed \(seed), device \(device.number): \(device.summary)")
                #expect(faults(device).isEmpty, "seed \(seed): \(faults(device))")
            }
            #expect(faults(shared.owner).isEmpty, "seed \(seed): \(faults(shared.owner))")
        }
    }
}
