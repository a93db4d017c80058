import Testing
import ThicketClient
import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Replaced keys of accounts with everything that a user runs (treesystem 4.12, K13; decision 0066).
@Suite("Messages: replaced keys of accounts at a real server", .timeLimit(.minutes(10)))
struct ReplacedKeysTests {
    private typealias Person = PeopleBench.Person

    private func send(_ text: String, from author: Person, to receiver: Person) async throws -> NodeID {
        let sent = try await author.tree.messages.send(to: [receiver.user], content: .text(text))
        try await author.tree.messages.wait(for: sent, timeout: PeopleBench.patience)
        return sent.node
    }

    private func expect(_ id: NodeID, _ text: String, from author: Person, at receivers: Person...) async throws {
        for receiver in receivers {
            try await receiver.tree.wait { tree in try tree.node(id) != nil }
            #expect(try await receiver.tree.data(of: id) == Array(text.utf8))
            #expect(try await receiver.tree.node(id)?.sender == author.user)
        }
    }

    /// The newest keys of another account are looked up, and used from now on.
    private func lookUp(_ other: Person, at person: Person) async throws -> PublicKeys {
        let keys = try await person.session.people().safetyNumber(with: other.user).keys
        await person.tree.goOffline()
        await person.tree.goOnline()
        return keys
    }

    @Test("messages before and after a replacement open on every device, also on one that has not heard of it")
    func devices() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        let second = try await bench.device(of: "ann", "ann-second")
        let first = try await send("before", from: bob, to: ann)
        try await expect(first, "before", from: bob, at: ann, second)
        let before = try #require(ann.session.account?.bundle.keyPair)

        try await bench.replaceKeys(of: ann)
        // Bob still seals to the keys from before.
        let between = try await send("between", from: bob, to: ann)
        try await expect(between, "between", from: bob, at: ann, second)

        // The second device signs with the keys from before: the server refuses that, and it reads the new ones.
        let own = try await send("from the second", from: second, to: bob)
        try await expect(own, "from the second", from: second, at: bob)
        let now = try #require(ann.session.account?.bundle)
        #expect(second.session.account?.bundle == now && now.earlierKeys == [before] && now.keyPair != before)

        let keys = try await lookUp(ann, at: bob)
        #expect(keys.identity == now.signingKey.verifyingKey && keys.encryption == now.exchangeKey.publicKey)
        let after = try await send("after", from: bob, to: ann)
        try await expect(after, "after", from: bob, at: ann, second)
        let reply = try await send("reply", from: ann, to: bob)
        try await expect(reply, "reply", from: ann, at: bob)

        // A new device has all of them, whatever keys they were sealed to.
        let third = try await bench.device(of: "ann", "ann-third")
        for (id, text) in [(first, "before"), (between, "between"), (after, "after")] {
            try await expect(id, text, from: bob, at: third)
        }
        for person in [ann, second, third] { #expect(try await person.tree.quarantined.isEmpty) }
        for person in [ann, second, third, bob] { await person.session.close() }
    }

    @Test("a device that gets a message for keys which it has not heard of reads them, and shows the message")
    func unheard() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        let second = try await bench.device(of: "ann", "ann-second")
        try await bench.replaceKeys(of: ann)
        _ = try await lookUp(ann, at: bob)
        let sent = try await send("for the new keys", from: bob, to: ann)
        try await expect(sent, "for the new keys", from: bob, at: ann, second)
        #expect(second.session.account?.bundle == ann.session.account?.bundle)
        #expect(try await second.tree.quarantined.isEmpty)
        for person in [ann, second, bob] { await person.session.close() }
    }

    @Test("a replacement that was cut short before the key log is completed by the next device that needs it")
    func cutShort() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        try await bench.replaceKeys(of: ann, isCutShort: true)
        // Others know nothing of it yet, and what they send opens.
        let before = try await send("before", from: bob, to: ann)
        try await expect(before, "before", from: bob, at: ann)
        // A new device has the new keys, which the log does not show.
        let second = try await bench.device(of: "ann", "ann-second")
        let sent = try await send("with new keys", from: second, to: bob)
        try await expect(sent, "with new keys", from: second, at: bob)
        let keys = try await lookUp(ann, at: bob)
        #expect(keys.identity == second.session.account?.bundle.signingKey.verifyingKey)
        #expect(try await ann.session.people().checkOwn() == .asCreated)
        for person in [ann, second, bob] { await person.session.close() }
    }

    @Test("contacts hear of new keys that the old ones have signed, and need not confirm them")
    func contacts() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        let book = try await bob.session.people()
        try await book.addContact(named: "ann")
        try await book.confirm(try await book.safetyNumber(with: ann.user).keys)
        #expect(try await book.contacts().map(\.standing) == [.compared])
        let events = await book.events
        try await bench.replaceKeys(of: ann)
        let keys = try await lookUp(ann, at: bob)
        var found: PeopleEvent?
        for await event in events {
            if case .rotated = event { found = event }
            if found != nil { break }
        }
        guard case .rotated(let old, keys)? = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        #expect(old != keys && old.user == ann.user.text)
        #expect(try await book.contacts().map(\.standing) == [.rotated])
        #expect(try await book.alarms().isEmpty)
        try await book.confirm(keys)
        #expect(try await book.contacts().map(\.standing) == [.compared])
        for person in [ann, bob] { await person.session.close() }
    }
}
