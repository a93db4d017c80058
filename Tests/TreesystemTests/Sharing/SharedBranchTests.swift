import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Shared branches with everything that a user runs: sign-up, key log, key book, trees, sockets, a real server (S8, S9,
/// S10).
@Suite("Shared branches: devices and a real server", .timeLimit(.minutes(10)))
struct SharedBranchTests {
    /// Ann's album, which Bob may change and Carol may read.
    private struct Shared {
        let bench: PeopleBench
        let ann: PeopleBench.Person
        let bob: PeopleBench.Person
        let carol: PeopleBench.Person
        let (root, photo, film): (NodeID, NodeID, NodeID)

        func branch(_ person: PeopleBench.Person) async throws -> Treesystem {
            try await person.session.branch(of: ann.user, root: root)
        }

        func remove(_ person: PeopleBench.Person) async throws {
            let operation = try await ann.tree.sharing.remove(person.user, from: root)
            try await ann.tree.wait(for: operation, timeout: PeopleBench.patience)
        }

        func close(_ more: PeopleBench.Person...) async {
            for person in [ann, bob, carol] + more { await person.session.close() }
        }
    }

    private let folder = ContentFolder()
    private let large = ContentSeed(1).bytes(3 << 20)

    private func shared(inFiles: Bool = false) async throws -> Shared {
        let bench = try PeopleBench()
        func place(_ name: String) -> StoreLocation { inFiles ? .file(folder.file(name + ".db")) : .memory }
        let (ann, bob) = (try await bench.person("ann", place("ann")), try await bench.person("bob", place("bob")))
        let carol = try await bench.person("carol", place("carol"))
        let tree = ann.tree
        let root = try await tree.createNode(at: .home("album"), content: .text("about")).id
        let photo = try await tree.createNode(at: .home("album", "photo"), content: .text("one")).id
        let film = try await tree.createNode(
            at: .home("album", "film"), content: NodeSections(data: .bytes(large))
        ).id
        try await tree.createNode(at: .home("private"), content: .text("secret"))
        try await tree.waitUntilSynced(timeout: PeopleBench.patience)
        let operation = try await tree.sharing.share(root, with: [bob.user: .readWrite, carol.user: .read])
        try await tree.wait(for: operation, timeout: PeopleBench.patience)
        return Shared(bench: bench, ann: ann, bob: bob, carol: carol, root: root, photo: photo, film: film)
    }

    private func has(_ path: String, _ tree: Treesystem) async throws {
        let names = path.split(separator: "/").map(String.init)
        let place = try TreePath(.home, names)
        try await tree.wait { tree in try tree.node(at: place) != nil }
    }

    private func text(_ id: NodeID, is text: String, _ tree: Treesystem) async throws {
        let bytes = Array(text.utf8)
        try await tree.wait { tree in try tree.content(of: id)?.data == bytes }
    }

    @Test("S10: members open a branch, read contents in records and in blobs, and see each other's changes live")
    func members() async throws {
        let shared = try await shared()
        let trees = [try await shared.branch(shared.bob), try await shared.branch(shared.carol)]
        for tree in trees {
            try await tree.waitUntilSynced(timeout: PeopleBench.patience)
            #expect(try await tree.paths() == ["home/album", "home/album/film", "home/album/photo"])
            #expect(try await tree.data(of: shared.root) == Array("about".utf8))
            #expect(try await tree.data(of: shared.photo) == Array("one".utf8))
            #expect(try await tree.data(of: shared.film) == large)
        }
        try await shared.ann.tree.move(shared.photo, to: .home("album", "picture"))
        for tree in trees { try await has("album/picture", tree) }
        try await trees[0].setContent(of: shared.photo, .text("by bob"))
        for tree in [shared.ann.tree, trees[1]] {
            try await text(shared.photo, is: "by bob", tree)
            #expect(try await tree.sharing.author(of: shared.photo) == shared.bob.user)
            #expect(try await tree.quarantined.isEmpty)
        }
        let more = ContentSeed(2).bytes(2 << 20)
        let made = try await trees[0].createNode(
            at: .home("album", "new"), content: NodeSections(data: .bytes(more)))
        try await trees[0].waitUntilSynced(timeout: PeopleBench.patience)
        for tree in [shared.ann.tree, trees[1]] {
            try await has("album/new", tree)
            #expect(try await tree.data(of: made.id) == more)
            #expect(try await tree.sharing.author(of: made.id) == shared.bob.user)
        }
        #expect(try await shared.ann.tree.sharing.author(of: shared.film) == nil, "from before the branch was shared")
        await shared.close()
    }

    @Test("a reader's change is refused with the server's word, and given up it leaves the node as it was")
    func reader() async throws {
        let shared = try await shared()
        let tree = try await shared.branch(shared.carol)
        try await tree.waitUntilSynced(timeout: PeopleBench.patience)
        try await tree.setContent(of: shared.photo, .text("by carol"))
        let operation = try #require(try await tree.queue.first)
        let refused = await #expect(throws: TreeError.self) {
            try await tree.wait(for: operation.id, timeout: PeopleBench.patience)
        }
        #expect(refused?.code == .refused && refused?.reason == "permission", "\(refused.debugDescription)")
        try await tree.discard(operation.id)
        #expect(try await tree.data(of: shared.photo) == Array("one".utf8))
        #expect(try await shared.ann.tree.data(of: shared.photo) == Array("one".utf8))
        await shared.close()
    }

    @Test("S9: a removed member is told while it is connected, gets no content, and the others go on")
    func removed() async throws {
        let shared = try await shared()
        let (bob, carol) = (try await shared.branch(shared.bob), try await shared.branch(shared.carol))
        for tree in [bob, carol] { try await tree.waitUntilSynced(timeout: PeopleBench.patience) }
        let events = bob.sharing.events
        try await shared.remove(shared.bob)
        for await event in events where event == .revoked { break }
        guard case .offline(.unauthorized) = await bob.currentStatus else {
            Issue.record("\(await bob.currentStatus)")
            return
        }
        #expect(try await bob.data(of: shared.photo) == Array("one".utf8), "copies stay until the app removes them")
        let film = await #expect(throws: TreeError.self) { _ = try await bob.data(of: shared.film) }
        #expect(film?.code == .content || film?.code == .refused, "\(film.debugDescription)")
        try await shared.ann.tree.setContent(of: shared.photo, .text("later"))
        try await text(shared.photo, is: "later", carol)
        #expect(try await carol.data(of: shared.film) == large)
        #expect(try await bob.data(of: shared.photo) == Array("one".utf8))
        #expect(try await carol.quarantined.isEmpty)
        await shared.close()
    }

    @Test("S10: branches go on after restarts of the server and of the devices, and a removal while away is found")
    func restarts() async throws {
        let shared = try await shared(inFiles: true)
        let (bob, carol) = (try await shared.branch(shared.bob), try await shared.branch(shared.carol))
        for tree in [bob, carol] { try await tree.waitUntilSynced(timeout: PeopleBench.patience) }
        await bob.goOffline()
        try await bob.setContent(of: shared.photo, .text("by bob, offline"))
        await shared.bob.session.close()
        try shared.bench.restart()
        await carol.goOffline()
        await carol.goOnline()
        let again = try await shared.bench.again(shared.bob, .file(folder.file("bob.db")))
        let branch = try await shared.branch(again)
        #expect(try await branch.paths() == ["home/album", "home/album/film", "home/album/photo"])
        try await branch.waitUntilSynced(timeout: PeopleBench.patience)
        try await text(shared.photo, is: "by bob, offline", carol)
        #expect(try await carol.sharing.author(of: shared.photo) == shared.bob.user)
        #expect(try await branch.data(of: shared.film) == large)

        await again.session.close()
        try await text(shared.photo, is: "by bob, offline", shared.ann.tree)
        try await shared.remove(shared.bob)
        try await shared.ann.tree.setContent(of: shared.photo, .text("without bob"))
        try await text(shared.photo, is: "without bob", carol)
        try shared.bench.restart()
        let last = try await shared.bench.again(shared.bob, .file(folder.file("bob.db")))
        let old = try await shared.branch(last)
        for await status in await old.status {
            if case .offline(.unauthorized) = status { break }
        }
        #expect(try await old.data(of: shared.photo) == Array("by bob, offline".utf8))
        #expect(try await old.sharing.members(of: shared.root)?[shared.bob.user] == .readWrite)
        await shared.close(again, last)
    }

    @Test("what another device of a member has opened for the first time is the branch as it is")
    func secondDevice() async throws {
        let shared = try await shared()
        let bob = try await shared.branch(shared.bob)
        try await bob.waitUntilSynced(timeout: PeopleBench.patience)
        try await bob.createNode(at: .home("album", "folder"))
        try await bob.createNode(at: .home("album", "folder", "leaf"), content: .text("by bob"))
        try await bob.waitUntilSynced(timeout: PeopleBench.patience)
        try await shared.remove(shared.bob)
        try await shared.ann.tree.setContent(of: shared.photo, .text("later"))
        try await shared.ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        let other = try await shared.bench.again(shared.carol)
        let tree = try await shared.branch(other)
        // What a former member wrote stays, with its author.
        try await has("album/folder/leaf", tree)
        let leaf = try #require(try await tree.node(at: .home("album", "folder", "leaf")))
        #expect(try await tree.sharing.author(of: leaf.id) == shared.bob.user)
        #expect(try await tree.data(of: shared.photo) == Array("later".utf8))
        #expect(try await tree.data(of: shared.film) == large)
        #expect(try await tree.quarantined.isEmpty)
        await shared.close(other)
    }

    @Test("S10: an invitation becomes a pointer node on all devices of a member, and leaving asks the owner")
    func invitation() async throws {
        let shared = try await shared()
        let (ann, carol) = (shared.ann, shared.carol)
        let sent = try await ann.tree.sharing.invite(shared.root, for: [carol.user])
        try await ann.tree.messages.wait(for: sent, timeout: PeopleBench.patience)
        try await carol.tree.wait { tree in try tree.node(sent.node) != nil }
        let invitation = try #require(try await carol.tree.sharing.invitations.first)
        #expect(invitation.sender == ann.user && invitation.name == "album" && invitation.message == sent.node)
        #expect(invitation.invite.branch == BranchName(of: ann.user, root: shared.root))
        let pointer = try await carol.tree.sharing.accept(invitation.message, at: .home("from ann"))
        try await carol.tree.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await carol.tree.sharing.invitations.isEmpty)

        let other = try await shared.bench.again(carol)
        try await other.tree.wait { tree in try tree.node(pointer.id) != nil }
        let invite = try #require(try await other.tree.node(pointer.id)?.branch)
        #expect(invite == invitation.invite)
        let branch = try await other.session.branch(of: invite.owner, root: invite.root, invite: invite)
        try await branch.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await branch.data(of: shared.photo) == Array("one".utf8))

        let left = try await other.tree.sharing.leave(pointer.id)
        try await other.tree.messages.wait(for: left.request, timeout: PeopleBench.patience)
        try await carol.tree.wait { tree in try tree.node(pointer.id) == nil }
        try await ann.tree.wait { tree in try tree.node(left.request.node) != nil }
        let departures = try await ann.tree.sharing.departures
        #expect(departures.map(\.member) == [carol.user] && departures.map(\.root) == [shared.root])
        #expect(try await ann.tree.sharing.invitations.isEmpty)
        let events = branch.sharing.events
        try await shared.remove(carol)
        for await event in events where event == .revoked { break }
        #expect(await branch.sharing.isRevoked)
        await branch.close()
        try other.session.removeBranch(of: invite.owner, root: invite.root)
        await shared.close(other)
    }

    @Test("S7: a member with s adds a reader, which is served; without s nothing is added")
    func furtherSharing() async throws {
        let shared = try await shared()
        let dave = try await shared.bench.person("dave")
        let bob = try await shared.branch(shared.bob)
        try await bob.waitUntilSynced(timeout: PeopleBench.patience)
        // Without the letter the change is refused, here or by the server.
        await #expect(throws: TreeError.self) {
            let operation = try await bob.sharing.share(shared.root, with: [dave.user: .read])
            try await bob.wait(for: operation, timeout: PeopleBench.patience)
        }
        for operation in try await bob.queue { try await bob.discard(operation.id) }
        #expect(try await shared.ann.tree.sharing.members(of: shared.root)?[dave.user] == nil)

        let granting = try await shared.ann.tree.sharing.setPermissions(.all, of: shared.bob.user, in: shared.root)
        try await shared.ann.tree.wait(for: granting, timeout: PeopleBench.patience)
        while try await bob.sharing.members(of: shared.root)?[shared.bob.user] != .all {
            try await bob.waitUntilSynced(timeout: PeopleBench.patience)
            await pauseBetweenLooks()
        }
        let adding = try await bob.sharing.share(shared.root, with: [dave.user: .read])
        try await bob.wait(for: adding, timeout: PeopleBench.patience)
        let branch = try await shared.branch(dave)
        try await has("album/photo", branch)
        #expect(try await branch.data(of: shared.photo) == Array("one".utf8))
        #expect(try await branch.data(of: shared.film) == large)
        let carol = try await shared.branch(shared.carol)
        try await has("album/photo", carol)
        #expect(try await carol.sharing.members(of: shared.root)?[dave.user] == .read)
        for tree in [branch, carol] { #expect(try await tree.quarantined.isEmpty) }
        // The owner removes what a member has added.
        while try await shared.ann.tree.sharing.members(of: shared.root)?[dave.user] == nil {
            try await shared.ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
            await pauseBetweenLooks()
        }
        let events = branch.sharing.events
        try await shared.remove(dave)
        for await event in events where event == .revoked { break }
        await shared.close(dave)
    }

    @Test(
        "S7: a member with s removes a member, also with other keys than its grant names, and all others go on",
        arguments: [false, true])
    func furtherRemoval(replacesKeys: Bool) async throws {
        let shared = try await shared()
        let (bob, carol) = (try await shared.branch(shared.bob), try await shared.branch(shared.carol))
        for tree in [bob, carol] { try await tree.waitUntilSynced(timeout: PeopleBench.patience) }
        let refused = await #expect(throws: TreeError.self) {
            try await bob.sharing.remove(shared.carol.user, from: shared.root)
        }
        #expect(refused?.reason == "no-share")
        let granting = try await shared.ann.tree.sharing.setPermissions(.all, of: shared.bob.user, in: shared.root)
        try await shared.ann.tree.wait(for: granting, timeout: PeopleBench.patience)
        if replacesKeys { try await shared.bench.replaceKeys(of: shared.bob) }
        let again = try await shared.bench.device(of: "bob", "bob-2")
        let branch = try await shared.branch(again)
        try await has("album/photo", branch)
        let events = carol.sharing.events
        let removal = try await branch.sharing.remove(shared.carol.user, from: shared.root)
        try await branch.wait(for: removal, timeout: PeopleBench.patience)
        for await event in events where event == .revoked { break }
        // The owner opens the key that the member has made, and what is written under it.
        try await branch.setContent(of: shared.photo, .text("by bob"))
        try await text(shared.photo, is: "by bob", shared.ann.tree)
        #expect(try await shared.ann.tree.sharing.members(of: shared.root) == [shared.bob.user: .all])
        try await shared.ann.tree.setContent(of: shared.photo, .text("by ann"))
        try await text(shared.photo, is: "by ann", branch)
        for tree in [shared.ann.tree, branch] { #expect(try await tree.quarantined.isEmpty) }
        let sharer = await #expect(throws: TreeError.self) {
            try await branch.sharing.unshare(shared.root)
        }
        #expect(sharer?.reason == "owner-only")
        // The owner's next list, which gives Bob a grant for the keys that he has now, is accepted by all.
        let renewing = try await shared.ann.tree.sharing.share(shared.root, with: [shared.carol.user: .read])
        try await shared.ann.tree.wait(for: renewing, timeout: PeopleBench.patience)
        while try await branch.sharing.members(of: shared.root)?.count != 2 {
            try await branch.waitUntilSynced(timeout: PeopleBench.patience)
            await pauseBetweenLooks()
        }
        let last = try await branch.sharing.remove(shared.carol.user, from: shared.root)
        try await branch.wait(for: last, timeout: PeopleBench.patience)
        #expect(try await branch.quarantined.isEmpty)
        await shared.close(again)
    }

    @Test(
        "S12: a depositor puts contents into a drop box, and neither lists nor reads; the owner and no member opens them"
    )
    func dropBox() async throws {
        let shared = try await shared()
        let dave = try await shared.bench.person("dave")
        let sharing = try await shared.ann.tree.sharing.share(shared.root, with: [dave.user: .deposit])
        try await shared.ann.tree.wait(for: sharing, timeout: PeopleBench.patience)
        let carol = try await shared.branch(shared.carol)
        try await has("album/photo", carol)
        let bytes = ContentSeed(7).bytes(2 << 20)
        for content in [NodeSections.text("small"), NodeSections(data: .bytes(bytes))] {
            try await dave.session.deposit(
                content, named: NodeName("note.txt"), into: shared.ann.user, root: shared.root)
        }
        let tree = shared.ann.tree
        let root = shared.root
        func deposits() async throws -> [Node] {
            try await tree.children(of: .node(root)).filter { $0.name.text.hasPrefix("note (") }
        }
        try await tree.wait { tree in
            try tree.children(of: .node(root)).filter { $0.name.text.hasPrefix("note (") }.count == 2
        }
        let found = try await deposits().sorted { ($0.content?.storedBytes ?? 0) < ($1.content?.storedBytes ?? 0) }
        let (small, big) = (found[0].id, found[1].id)
        #expect(try await tree.data(of: small) == Array("small".utf8))
        #expect(try await tree.data(of: big) == bytes)
        #expect(try await tree.node(big)?.name.text == "note (\(big.text.prefix(8))).txt")
        #expect(try await tree.sharing.author(of: big) == dave.user)
        // Neither the depositor nor another member has it.
        let branch = try await shared.branch(dave)
        for await status in await branch.status {
            if case .offline(.unauthorized) = status { break }
        }
        #expect(try await branch.children(of: .trunk(.home)).isEmpty)
        #expect(try await carol.node(small) == nil)
        #expect(try await carol.quarantined.allSatisfy { $0.kind == .awaitingKeys })
        // A second node of the id, and a deposit of an account without the letter, are refused.
        let stranger = await #expect(throws: TreeError.self) {
            try await shared.carol.session.deposit(
                .text("x"), named: NodeName("x"), into: shared.ann.user, root: shared.root)
        }
        #expect(stranger?.code == .refused)
        // What the owner moves is an ordinary node, which members read.
        try await tree.move(small, to: .home("album", "from dave"))
        try await has("album/from dave", carol)
        #expect(try await carol.data(of: small) == Array("small".utf8))
        await shared.close(dave)
    }

    @Test("only members are invited, to branches whose list the server has")
    func strangers() async throws {
        let shared = try await shared()
        let dave = try await shared.bench.person("dave")
        let tree = shared.ann.tree
        let stranger = await #expect(throws: TreeError.self) {
            try await tree.sharing.invite(shared.root, for: [dave.user])
        }
        #expect(stranger?.reason == "not-member")
        let unshared = await #expect(throws: TreeError.self) {
            try await tree.sharing.invite(shared.photo, for: [shared.bob.user])
        }
        #expect(unshared?.reason == "not-shared")
        // A message that is no invitation is not accepted.
        let sent = try await tree.messages.send(to: [dave.user], content: .text("hello"))
        try await tree.messages.wait(for: sent, timeout: PeopleBench.patience)
        try await dave.tree.wait { tree in try tree.node(sent.node) != nil }
        await #expect(throws: TreeError.self) { try await dave.tree.sharing.accept(sent.node, at: .home("x")) }
        #expect(try await dave.tree.sharing.invitations.isEmpty)
        await shared.close(dave)
    }

    @Test("the copy of a branch is removed when it is closed, with its contents, and is read again when it is opened")
    func removedCopy() async throws {
        let shared = try await shared(inFiles: true)
        var branch: Treesystem? = try await shared.branch(shared.bob)
        try await branch?.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await branch?.data(of: shared.film) == large)
        let (owner, root, session) = (shared.ann.user, shared.root, shared.bob.session)
        #expect(throws: TreeError.self) { try session.removeBranch(of: owner, root: root) }
        await branch?.close()
        branch = nil
        let own = folder.names.filter { $0.hasPrefix("bob.db") }.count
        try session.removeBranch(of: owner, root: root)
        #expect(folder.names.filter { $0.hasPrefix("bob.db") }.count < own)
        #expect(folder.names.contains("bob.db.tree"))
        let again = try await shared.branch(shared.bob)
        try await again.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await again.data(of: shared.film) == large)
        await shared.close()
    }

    @Test("the end of sharing closes the branch for all members, and the owner's tree goes on")
    func unshared() async throws {
        let shared = try await shared()
        let trees = [try await shared.branch(shared.bob), try await shared.branch(shared.carol)]
        for tree in trees { try await tree.waitUntilSynced(timeout: PeopleBench.patience) }
        let events = trees.map(\.sharing.events)
        let operation = try await shared.ann.tree.sharing.unshare(shared.root)
        try await shared.ann.tree.wait(for: operation, timeout: PeopleBench.patience)
        for stream in events {
            for await event in stream where event == .revoked { break }
        }
        try await shared.ann.tree.setContent(of: shared.photo, .text("mine"))
        try await shared.ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        let other = try await shared.bench.again(shared.ann)
        try await other.tree.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await other.tree.data(of: shared.photo) == Array("mine".utf8))
        #expect(try await other.tree.sharing.roots.isEmpty)
        await shared.close(other)
    }
}
