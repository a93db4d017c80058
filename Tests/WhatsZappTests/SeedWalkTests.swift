import Testing
import ThicketBlocking
import ThicketProtocol
import ThicketTreesystem

@testable import WhatsZapp

/// The seed's walk through a first conversation, with its pictures of the trees.
@Suite("WhatsZapp: a first conversation", .blocking, .timeLimit(.minutes(5)))
struct SeedWalkTests {
    @Test("seed: Alice writes, Bob reads and answers, and after each step both trees are those of the seed")
    func walk() async throws {
        let stand = try ChatStand()
        let (alice, bob) = (try await stand.person("alice"), try await stand.person("bob"))
        let toBob = try await alice.chat.person(named: "bob")
        #expect(toBob == bob.user)

        // Starting a conversation: a node for it, the message below, and the server's copy in Bob's inbox.
        let first = try await alice.chat.send("Hello Bob", to: toBob)
        #expect(first.state == .queued && first.isMine && first.isRead)
        var names = [
            try ConversationName.of(bob.user).text: "convoBob", try ConversationName.of(alice.user).text: "convoAlice",
            first.id: "msg1",
        ]
        try await bob.wait { try await $0.conversations().first?.unread == 1 }
        try await alice.wait { try await $0.messages(with: toBob).first?.state == .sent }
        #expect(try await alice.picture(names) == ["(home)", "  (convoBob)", "    (msg1)", "(inbox)"])
        #expect(try await bob.picture(names) == ["(home)", "(inbox)", "  (msg1)"])
        let unread = try #require(try await bob.chat.conversations().first)
        #expect(unread.id == alice.user.text && unread.name == "alice" && unread.preview == "Hello Bob")

        // Once it has been read, it moves into a conversation.
        let read = try await bob.chat.read(alice.user)
        #expect(read.map(\.text) == ["Hello Bob"] && read.first?.isMine == false)
        #expect(try await bob.picture(names) == ["(home)", "  (convoAlice)", "    (msg1)", "(inbox)"])
        #expect(try await bob.chat.conversations().first?.unread == 0)

        // Bob responds: the reverse flow.
        let answer = try await bob.chat.send("Hello Alice", to: alice.user)
        names[answer.id] = "msg2"
        try await alice.wait { try await $0.conversations().first?.unread == 1 }
        #expect(
            try await alice.picture(names) == ["(home)", "  (convoBob)", "    (msg1)", "(inbox)", "  (msg2)"])
        #expect(try await bob.texts(with: alice.user) == ["Hello Bob", "Hello Alice"])
        #expect(try await alice.texts(with: bob.user) == ["Hello Bob", "Hello Alice"])
        #expect(try await alice.chat.conversations().map(\.preview) == ["Hello Alice"])

        // And the server has none of it.
        for text in ["Hello Bob", "Hello Alice", "convo"] { #expect(try !stand.holds(text), "\(text)") }
        #expect(try stand.holds("tree"), "the search finds what is there")
        await alice.session.close()
        await bob.session.close()
    }

    @Test("two devices of Bob: what one reads is read on the other, and both show the same conversation")
    func twoDevices() async throws {
        let stand = try ChatStand()
        let (alice, bob) = (try await stand.person("alice"), try await stand.person("bob"))
        let phone = try await stand.device(of: "bob", 2)
        for text in ["one", "two", "three"] { try await alice.chat.send(text, to: bob.user) }
        for device in [bob, phone] {
            try await device.wait { try await $0.conversations().first?.unread == 3 }
            #expect(try await device.texts(with: alice.user) == ["one", "two", "three"])
        }
        try await phone.chat.read(alice.user)
        try await bob.wait { try await $0.conversations().first?.unread == 0 }
        let answer = try await phone.chat.send("four", to: alice.user)
        try await bob.wait { try await $0.conversations().first?.newest == answer.id }
        let seen = try await bob.chat.messages(with: alice.user)
        #expect(seen.map(\.text) == ["four", "three", "two", "one"])
        #expect(seen.map(\.isMine) == [true, false, false, false] && seen.allSatisfy(\.isRead))
        #expect(seen.map(\.order) == seen.map(\.order).sorted(by: >))

        // A message that is removed on one device is gone on the other, and the one before it is shown in the list.
        let last = try #require(seen.first)
        // A message that is removed before its copy is on its way is sent to no person.
        try await phone.wait { try await $0.message(last.id)?.state == .sent }
        try await bob.chat.remove(last)
        try await phone.wait { try await $0.conversations().first?.preview == "three" }
        #expect(try await phone.texts(with: alice.user) == ["one", "two", "three"])
        for device in [alice, bob, phone] { await device.session.close() }
    }

    @Test("two devices that start the same conversation offline end with one")
    func sameConversation() async throws {
        let stand = try ChatStand()
        let (alice, bob) = (try await stand.person("alice"), try await stand.person("bob"))
        let laptop = try await stand.device(of: "alice", 2)
        for device in [alice, laptop] {
            try await device.tree.waitUntilSynced(timeout: ChatStand.patience)
            _ = try await device.chat.person(named: "bob")
            await device.tree.goOffline()
        }
        try await alice.chat.send("from the phone", to: bob.user)
        try await laptop.chat.send("from the laptop", to: bob.user)
        for device in [alice, laptop] { await device.tree.goOnline() }
        for device in [alice, laptop] {
            try await device.wait { try await $0.messages(with: bob.user).count == 2 }
            let conversations = try await device.tree.children(of: TreePath(.home))
            #expect(conversations.count == 1)
        }
        try await bob.wait { try await $0.conversations().first?.unread == 2 }
        #expect(Set(try await bob.texts(with: alice.user)) == ["from the phone", "from the laptop"])
        for device in [alice, laptop, bob] { await device.session.close() }
    }
}
