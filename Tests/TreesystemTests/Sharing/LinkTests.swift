import Testing
import ThicketClient
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Links to branches for people without an account, with everything that owner and holder run (S14, K18).
@Suite("Links: deposits and readers without an account, and a real server", .timeLimit(.minutes(10)))
struct LinkTests {
    private func passphrase(_ text: String) -> SecureBytes { SecureBytes(copying: Array(text.utf8)) }

    private func refusal(_ body: () async throws -> Void) async -> TreeError? {
        await #expect(throws: TreeError.self) { try await body() }
    }

    /// Waits until the server has refused the tree to its reader.
    private func isShutOut(_ tree: Treesystem) async {
        for await status in await tree.status {
            if case .offline(.unauthorized) = status { break }
        }
    }

    @Test("K18: deposits by a link arrive, open for the owner alone, and have a guest as their author")
    func deposit() async throws {
        let box = try await LinkBench().box()
        let link = try await box.links.make(box.root, for: .deposit, limits: LinkLimits(deposits: 2))
        let large = ContentSeed(3).bytes(2 << 20)
        let holder = try await BranchLink(link.text).open()
        try await holder.deposit(.text("my form"), named: try NodeName("form"))
        try await holder.deposit(NodeSections(data: .bytes(large)), named: try NodeName("photo"))
        await holder.close()
        for (name, bytes) in [("form", Array("my form".utf8)), ("photo", large)] {
            let node = try await box.arrived(name)
            #expect(try await box.tree.data(of: node.id) == bytes)
            let author = try #require(try await box.tree.sharing.author(of: node.id))
            #expect(author == link.guest && author.isGuest)
        }
        #expect(try await box.tree.quarantined.isEmpty)
        let entry = try #require(try await box.links.list(of: box.root).first)
        #expect(entry.guest == link.guest && entry.isOpen && entry.purpose == .deposit)
        #expect(entry.account?.depositsLeft == 0 && entry.account?.bytesLeft ?? 0 < 98 << 20)
        #expect(try await box.links.list(of: box.other).isEmpty)
        await box.close()
    }

    @Test("A9: a guest neither lists nor reads a drop box, nor writes more, elsewhere or to anyone, nor shares")
    func strangers() async throws {
        let box = try await LinkBench().box()
        let link = try await box.links.make(box.root, for: .deposit, limits: LinkLimits(bytes: 20_000))
        let holder = try await link.open()
        let name = try NodeName("form")
        let branch = try await holder.branch()
        await isShutOut(branch)
        #expect(try await branch.paths().isEmpty)
        await branch.close()

        let large = NodeSections(data: .bytes(ContentSeed(1).bytes(1 << 20)))
        #expect(await refusal { try await holder.deposit(large, named: name) } != nil, "above its bytes")
        let other = await refusal {
            try await holder.session.deposit(.text("x"), named: name, into: link.owner, root: box.other)
        }
        #expect(
            other?.reason == "permission", "the guest of one branch is none of another: \(other.debugDescription)")
        try await holder.deposit(.text("the only one"), named: name)
        let second = await refusal { try await holder.deposit(.text("one more"), named: name) }
        #expect(second?.code == .refused && second?.reason == "guest-limit", "\(second.debugDescription)")

        #expect(await refusal { _ = try await holder.session.links().list() } != nil)
        let spam = await refusal {
            let own = try await holder.session.tree()
            let sent = try await own.messages.send(to: [link.owner], content: .text("spam"))
            try await own.messages.wait(for: sent, timeout: .seconds(5))
        }
        #expect(spam != nil)
        let reply = try await box.tree.messages.send(to: [link.guest], content: .text("hello"))
        let blocked = await refusal { try await box.tree.messages.wait(for: reply, timeout: PeopleBench.patience) }
        #expect(blocked?.code == .refused, "a guest has no inbox: \(blocked.debugDescription)")
        _ = try await box.arrived("form")
        #expect(try await box.tree.children(of: .node(box.root)).count == 2)
        #expect(try await box.tree.children(of: .node(box.other)).isEmpty)
        #expect(try await box.tree.children(of: .trunk(.inbox)).isEmpty)
        await holder.close()
        await box.close()
    }

    @Test("K18: several people hold one link, and the end of one's login is not that of the others")
    func holders() async throws {
        let box = try await LinkBench().box()
        let link = try await box.links.make(box.root, for: .deposit, limits: LinkLimits(deposits: 2))
        let (first, second) = (try await link.open(), try await link.open())
        try await first.deposit(.text("one"), named: try NodeName("first"))
        await first.close()
        try await second.deposit(.text("two"), named: try NodeName("second"))
        await second.close()
        _ = try await box.arrived("first")
        _ = try await box.arrived("second")
        await box.close()
    }

    @Test("A9: after its end a link opens nothing, and what is open writes nothing")
    func ended() async throws {
        let clock = AheadClock()
        let bench = try LinkBench(clock: clock)
        let box = try await bench.box()
        let link = try await box.links.make(box.root, for: .deposit, limits: LinkLimits(days: 1))
        let holder = try await link.open()
        clock.set(daysAhead: 1)
        #expect(await refusal { try await holder.deposit(.text("late"), named: try NodeName("late")) } != nil)
        let late = await refusal { _ = try await link.open() }
        #expect(late?.code == .link && late?.reason == "ended", "\(late.debugDescription)")
        clock.set(daysAhead: 0)
        #expect(try await box.tree.children(of: .node(box.root)).map(\.name.text) == ["note"])
        await holder.session.close()
        await box.close()
    }

    @Test("A9: a link that was removed opens nothing, and removing it goes on where it was cut off")
    func removed() async throws {
        let box = try await LinkBench().box()
        let link = try await box.links.make(box.root, for: .deposit)
        let kept = try await box.links.make(box.root, for: .deposit)
        let holder = try await link.open()
        // The first of the two steps, as a program that is killed then leaves it.
        try await box.done(try await box.tree.sharing.remove(link.guest, from: box.root))
        let half = try #require(try await box.links.list().first { $0.guest == link.guest })
        #expect(!half.isOpen && half.account != nil)
        let refused = await refusal { try await holder.deposit(.text("x"), named: try NodeName("x")) }
        #expect(refused?.reason == "permission")
        try await box.links.remove(link.guest, from: box.root)
        #expect(await refusal { try await holder.deposit(.text("x"), named: try NodeName("x")) } != nil)
        #expect(await refusal { _ = try await link.open() }?.reason == "ended")
        #expect(await refusal { try await box.links.remove(link.guest, from: box.root) }?.code == .notFound)
        // A guest that is gone before its place in the list.
        try await box.owner.session.removeGuest(kept.guest)
        let gone = try #require(try await box.links.list().first)
        #expect(gone.guest == kept.guest && gone.account == nil && !gone.isOpen && gone.purpose == .deposit)
        try await box.links.remove(kept.guest, from: box.root)
        #expect(try await box.links.list().isEmpty)
        #expect(try await box.tree.sharing.members(of: box.root)?.isEmpty ?? true)
        await holder.session.close()
        await box.close()
    }

    @Test("S14: a passphrase opens a branch to read, another one or none does not; its reader sees later changes")
    func reading() async throws {
        let box = try await LinkBench().box()
        let made = try await box.links.make(box.root, for: .reading, passphrase: passphrase("sesame"))
        let link = try BranchLink(made.text)
        #expect(link.needsPassphrase)
        #expect(await refusal { _ = try await link.open() }?.reason == "passphrase")
        let wrong = await refusal { _ = try await link.open(passphrase: passphrase("sesame!")) }
        #expect(wrong?.code == .link && wrong?.reason == "passphrase")
        let holder = try await link.open(passphrase: passphrase("sesame"))
        let branch = try await holder.branch()
        try await branch.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await branch.paths() == ["home/box", "home/box/note"])
        let note = try #require(try await branch.node(at: .home("box", "note")))
        #expect(try await branch.data(of: note.id) == Array("read me".utf8))
        try await box.tree.setContent(of: note.id, .text("changed"))
        let (id, changed) = (note.id, Array("changed".utf8))
        try await branch.wait { tree in try tree.content(of: id)?.data == changed }
        try await branch.setContent(of: note.id, .text("mine"))
        let operation = try #require(try await branch.queue.first)
        let refused = await refusal { try await branch.wait(for: operation.id, timeout: PeopleBench.patience) }
        #expect(refused?.code == .refused && refused?.reason == "permission", "\(refused.debugDescription)")
        try await branch.discard(operation.id)
        #expect(try await box.tree.data(of: note.id) == changed)

        let events = branch.sharing.events
        try await box.links.remove(link.guest, from: box.root)
        for await event in events where event == .revoked { break }
        try await box.tree.setContent(of: note.id, .text("not for guests"))
        try await box.tree.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await branch.data(of: id) == changed)
        let later = await refusal { _ = try await link.open(passphrase: passphrase("sesame")) }
        #expect(later?.code == .link)
        await holder.session.close()
        await box.close()
    }

    @Test("S14: what a server stores of a link has neither its secret, nor the passphrase, nor a content")
    func stored() async throws {
        let bench = try LinkBench()
        let box = try await bench.box()
        let canary = "canary-of-the-branch"
        try await box.tree.createNode(at: .home("box", "canary"), content: .text(canary))
        let open = try await box.links.make(box.root, for: .reading)
        _ = try await box.links.make(box.root, for: .reading, passphrase: passphrase("canary-passphrase"))
        let holder = try await open.open()
        let branch = try await holder.branch()
        try await branch.waitUntilSynced(timeout: PeopleBench.patience)
        await holder.close()
        let secret = try #require(open.secret).withUnsafeBytes { Array($0) }
        let password = BranchLinks.password(open.secret).withUnsafeBytes { Array($0) }
        let stored = try bench.people.stored()
        #expect(stored.contains(Array(open.guest.text.utf8)), "the search finds what is there")
        for text in [secret, password, Array(canary.utf8), Array("canary-passphrase".utf8)] {
            #expect(!stored.contains(text))
        }
        await box.close()
    }

    @Test(
        "A5: other keys of the owner than a link names are an alarm, and keys that the old ones have signed are not"
    )
    func owner() async throws {
        let bench = try LinkBench()
        let box = try await bench.box()
        let link = try await box.links.make(box.root, for: .deposit)
        let (mine, mallory) = (try #require(box.owner.session.messageIdentity).keys, Ed25519.SigningKey.random())
        let other = try PublicKeys(
            user: mine.user, identity: mallory.verifyingKey, encryption: mine.encryption)
        let account = try #require(try await box.links.list().first?.account)
        let forged = try BranchLink(
            (link.server, link.app, link.apiKey), other, box.root, account, secret: link.secret)
        let alarm = await refusal { _ = try await forged.open() }
        #expect(alarm?.code == .keys && alarm?.reason == "other-owner", "\(alarm.debugDescription)")
        try await bench.people.replaceKeys(of: box.owner)
        #expect(try #require(box.owner.session.messageIdentity).keys != mine)
        let holder = try await link.open()
        try await holder.deposit(.text("after the change"), named: try NodeName("form"))
        #expect(try await box.links.list().first?.account?.depositsLeft == 0)
        await holder.close()
        await box.close()
    }

    @Test("K18: a deposit to replaced keys of the owner is shown by a device that does not have them yet")
    func replacedKeys() async throws {
        let bench = try LinkBench()
        let box = try await bench.box()
        let link = try await box.links.make(box.root, for: .deposit)
        try await bench.people.replaceKeys(of: box.owner)
        let holder = try await link.open()
        let events = await box.tree.events
        try await holder.deposit(.text("after the change"), named: try NodeName("form"))
        var shown: String?
        search: for await event in events {
            switch event {
            case .discovered(let node, _) where node.name.text.hasPrefix("form"):
                shown = node.name.text
                break search
            case .integrity(let fault):
                Issue.record("the deposit is reported: \(fault)")
                break search
            default: continue
            }
        }
        let path = try await box.tree.paths().first { $0.contains("form") }
        #expect(path == shown.map { "home/box/\($0)" })
        await holder.close()
        await box.close()
    }

    @Test("K19: a backend's account opens only what was shared with it, and learns of changes by its connection")
    func backend() async throws {
        let bench = try LinkBench()
        let box = try await bench.box()
        let orders = try await bench.people.person("orders")
        let secret = try await box.tree.createNode(at: .home("other", "secret"), content: .text("not shared"))
        try await box.done(try await box.tree.sharing.share(box.root, with: [orders.user: .read]))
        let branch = try await orders.session.branch(of: box.owner.user, root: box.root)
        try await branch.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await branch.paths() == ["home/box", "home/box/note"])
        let order = try await box.tree.createNode(at: .home("box", "order 1"), content: .text("two loaves"))
        let (id, wanted) = (order.id, Array("two loaves".utf8))
        try await branch.wait { tree in (try? tree.content(of: id))?.data == wanted }
        #expect(try await branch.node(secret.id) == nil)
        let other = try await orders.session.branch(of: box.owner.user, root: box.other)
        await isShutOut(other)
        #expect(try await other.paths().isEmpty)
        await orders.session.close()
        await box.close()
    }
}
