import Testing
import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Messages between accounts with everything that a user runs: sign-up, key log, key book, tree, sockets.
@Suite("Messages between people at a real server", .timeLimit(.minutes(10)))
struct PeopleTests {
    @Test("a message with an attachment arrives with its author, is delivered, and is moved out of the inbox")
    func message() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        // One in the record, one in a blob that both trees refer to.
        let (small, large) = ([UInt8](repeating: 7, count: 5_000), [UInt8](repeating: 9, count: 300_000))
        let sent = try await ann.tree.messages.send(
            to: [bob.user], content: .text("hello"),
            attachments: [
                (try NodeName("cat.jpg"), NodeSections(data: .bytes(small))),
                (try NodeName("dog.jpg"), NodeSections(data: .bytes(large))),
            ])
        try await ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        let deliveries = try await ann.tree.messages.deliveries(of: sent.node)
        #expect(deliveries.map(\.receiver) == [bob.user] && deliveries.allSatisfy { $0.delivered != nil })

        let id = sent.node
        try await bob.tree.wait { tree in try tree.node(id) != nil }
        let node = try #require(try await bob.tree.node(id))
        #expect(node.sender == ann.user)
        #expect(node.origin?.counter == 1 && node.origin?.missing == 0)
        #expect(try await bob.tree.data(of: id) == Array("hello".utf8))
        let attachments = try await bob.tree.children(of: .node(id)).sorted { $0.name.text < $1.name.text }
        #expect(attachments.map(\.name.text) == ["cat.jpg", "dog.jpg"])
        #expect(attachments.map(\.sender) == [ann.user, ann.user])
        #expect(try await bob.tree.data(of: try #require(attachments.first).id) == small)
        #expect(try await bob.tree.data(of: try #require(attachments.last).id) == large)
        #expect(try await bob.tree.messages.counts.awaitingKeys == 0)

        try await bob.tree.createNode(at: .home("ann"))
        try await bob.tree.move(id, to: .home("ann", "first"))
        try await bob.tree.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(
            try await bob.tree.paths() == [
                "home/ann", "home/ann/first", "home/ann/first/cat.jpg", "home/ann/first/dog.jpg",
            ])
        #expect(try await bob.tree.node(id)?.sender == ann.user)
        for person in [ann, bob] { await person.session.close() }
    }

    @Test("a receiver without an account, and one that has no keys, are refused; nothing is called delivered")
    func unknownReceiver() async throws {
        let bench = try PeopleBench()
        let ann = try await bench.person("ann")
        let stranger = try UserID("0123456789abcdef0123456789abcdef")
        let sent = try await ann.tree.messages.send(to: [stranger], content: .text("hello"))
        let operation = try #require(sent.operations.first)
        try await ann.tree.wait { tree in
            try tree.queue.contains { $0.id == operation && $0.state != .waiting }
        }
        let deliveries = try await ann.tree.messages.deliveries(of: sent.node)
        #expect(deliveries.map(\.delivered) == [nil])
        await ann.session.close()
    }
}
