import Testing
import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// `TreeMessages` as an app calls it, at a real server.
@Suite("Messages: calls of an app", .timeLimit(.minutes(10)))
struct MessageCallTests {
    private static let stranger = "0123456789abcdef0123456789abcdef"

    @Test("A3: a blob that is not the one of its author's statement is refused, though all its seals are right")
    func otherContent() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        let large = [UInt8](repeating: 9, count: 300_000)
        let made = try await ann.tree.createNode(at: .home("dog"), content: NodeSections(data: .bytes(large)))
        try await ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        let data = try #require(try await ann.tree.node(made.id)?.content?.id)
        // Ann's device signs another digest than that of the bytes that it has sealed, so that Bob gets "other" bytes.
        try await ann.tree.digest(of: data, [UInt8](repeating: 1, count: 32))
        let lie = try await ann.tree.messages.copy(made.id, toInboxOf: [bob.user])
        try await ann.tree.messages.wait(for: lie, timeout: PeopleBench.patience)
        try await bob.tree.wait { tree in try tree.node(made.id) != nil }
        let refused = await #expect(throws: TreeError.self) { _ = try await bob.tree.data(of: made.id) }
        #expect(refused?.code == .contentMismatch && refused?.reason == "other-content")
        let ticket = try #require(try await bob.tree.downloadNodeData(made.id))
        let file = try #require(try await ticket.value()).file
        await #expect(throws: TreeError.self) { try await bob.tree.messages.verify(file, isContentOf: made.id) }

        let honest = try await ann.tree.messages.send(
            to: [bob.user], content: .text("see"),
            attachments: [(try NodeName("dog"), NodeSections(data: .bytes(large)))])
        try await ann.tree.messages.wait(for: honest, timeout: PeopleBench.patience)
        try await bob.tree.wait { tree in try tree.children(of: .node(honest.node)).count == 1 }
        let attachment = try #require(try await bob.tree.children(of: .node(honest.node)).first)
        #expect(try await bob.tree.data(of: attachment.id) == large)
        // What Bob has written in a message is his own.
        try await bob.tree.move(made.id, to: .home("mine"))
        try await bob.tree.setContent(of: made.id, NodeSections(data: .bytes(large + large)))
        try await bob.tree.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await bob.tree.data(of: made.id) == large + large)
        for person in [ann, bob] { await person.session.close() }
    }

    @Test("when one receiver cannot get a message, wait fails, and after discard no other receiver gets it")
    func group() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        let sent = try await ann.tree.messages.send(
            to: [bob.user, try UserID(Self.stranger)], content: .text("to both"))
        let failed = await #expect(throws: TreeError.self) {
            try await ann.tree.messages.wait(for: sent, timeout: PeopleBench.patience)
        }
        #expect(failed?.code == .keys && failed?.reason == "absent")
        try await ann.tree.messages.discard(sent)
        // The node below outbox stays, and may be on its way still.
        try await ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await ann.tree.operations(of: sent.node).isEmpty)
        let next = try await ann.tree.messages.send(to: [bob.user], content: .text("to Bob"))
        try await ann.tree.messages.wait(for: next, timeout: PeopleBench.patience)
        try await bob.tree.wait { tree in try tree.node(next.node) != nil }
        #expect(try await bob.tree.node(sent.node) == nil)
        #expect(try await ann.tree.messages.deliveries(of: sent.node).isEmpty)
        for person in [ann, bob] { await person.session.close() }
    }

    @Test("messages whose author cannot be looked up are counted with the reason, and shown after a look-up")
    func authors() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        // A witness that does not exist: no look-up counts.
        let witness = OwnWitness.key
        let book = try await bob.session.people()
        try await book.requireWitness(witness)
        let sent = try await ann.tree.messages.send(to: [bob.user], content: .text("hello"))
        try await ann.tree.messages.wait(for: sent, timeout: PeopleBench.patience)
        // No event reports what is not shown: round trips of Bob's own changes pass the time.
        for round in 0..<1_000 where try await bob.tree.messages.counts.awaitingKeys == 0 {
            try await bob.tree.createNode(at: .home("round \(round)"))
            try await bob.tree.waitUntilSynced(timeout: PeopleBench.patience)
        }
        let waiting = try await bob.tree.messages.lookUpAuthors()
        #expect(waiting.map(\.author) == [ann.user] && waiting.map(\.messages) == [1])
        #expect(waiting.map(\.reason) == ["not-witnessed"])
        #expect(try await bob.tree.node(sent.node) == nil)
        try await book.dropWitnesses()
        #expect(try await bob.tree.messages.lookUpAuthors() == [])
        #expect(try await bob.tree.node(sent.node)?.sender == ann.user)
        for person in [ann, bob] { await person.session.close() }
    }
}

private enum OwnWitness {
    /// A valid point that no test signs with: the base point.
    static let key: [UInt8] = [0x58] + [UInt8](repeating: 0x66, count: 31)
}

extension Treesystem {
    fileprivate func digest(of id: DataID, _ octets: [UInt8]) throws(TreeError) {
        try act { machine throws(TreeError) in try machine.store.setDigest(id, octets) }
    }
}
