import Testing
import ThicketProtocol
import ThicketServer
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// The bounds of inboxes as an operator sets them, at a server that runs with them.
@Suite("Messages: the bounds of inboxes are settings of the server", .timeLimit(.minutes(10)))
struct InboxSettingTests {
    private typealias Person = PeopleBench.Person

    /// A bound, and where it is set: in the file and in the environment, of which the latter counts.
    struct Setting: Sendable, CustomTestStringConvertible {
        let file: String
        let environment: [String: String]
        var testDescription: String { file + environment.map { "\($0.key)=\($0.value)" }.joined() }
    }

    private static func limits(_ setting: Setting) throws -> ServerLimits {
        try ConfigLoader().load(
            environment: setting.environment, file: ConfigLoader.File(path: "thicket.conf", text: setting.file)
        ).config.limits
    }

    private func send(_ text: String, from author: Person, to receiver: Person) async throws -> String? {
        let sent = try await author.tree.messages.send(to: [receiver.user], content: .text(text))
        do throws(TreeError) {
            try await author.tree.messages.wait(for: sent, timeout: PeopleBench.patience)
            return nil
        } catch {
            guard error.code == .refused else { throw error }
            try await author.tree.messages.discard(sent)
            return error.reason
        }
    }

    @Test(
        "an inbox has as many nodes of one sender as inbox-nodes-per-sender-max says",
        arguments: [
            Setting(file: "inbox-nodes-per-sender-max = 2\n", environment: [:]),
            Setting(
                file: "inbox-nodes-per-sender-max = 9\n", environment: ["THICKET_INBOX_NODES_PER_SENDER_MAX": "2"]),
        ])
    func ofSender(_ setting: Setting) async throws {
        let bench = try PeopleBench(limits: Self.limits(setting))
        let (ann, bob, cleo) = (
            try await bench.person("ann"), try await bench.person("bob"), try await bench.person("cleo")
        )
        for text in ["one", "two"] { #expect(try await send(text, from: ann, to: bob) == nil) }
        #expect(try await send("three", from: ann, to: bob) == "inbox-full")
        #expect(try await send("of another sender", from: cleo, to: bob) == nil)
        #expect(bench.refused(.inboxFull) == 1)
        for person in [ann, bob, cleo] { await person.session.close() }
    }

    @Test(
        "an inbox has as many nodes of all senders as inbox-nodes-max says",
        arguments: [
            Setting(file: "inbox-nodes-max = 2\n", environment: [:]),
            Setting(file: "inbox-nodes-max = 9\n", environment: ["THICKET_INBOX_NODES_MAX": "2"]),
        ])
    func ofAll(_ setting: Setting) async throws {
        let bench = try PeopleBench(limits: Self.limits(setting))
        let (ann, bob, cleo) = (
            try await bench.person("ann"), try await bench.person("bob"), try await bench.person("cleo")
        )
        #expect(try await send("one", from: ann, to: bob) == nil)
        #expect(try await send("two", from: cleo, to: bob) == nil)
        #expect(try await send("three", from: ann, to: bob) == "inbox-full")
        #expect(try await send("back", from: bob, to: ann) == nil, "the bound is that of one inbox")
        for person in [ann, bob, cleo] { await person.session.close() }
    }

    @Test(
        "a sender writes as many nodes into an inbox in a minute as messages-per-minute-max says; more wait for the next",
        arguments: [
            Setting(file: "messages-per-minute-max = 2\n", environment: [:]),
            Setting(file: "messages-per-minute-max = 50\n", environment: ["THICKET_MESSAGES_PER_MINUTE_MAX": "2"]),
        ])
    func rate(_ setting: Setting) async throws {
        let bench = try PeopleBench(limits: Self.limits(setting))
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        // One batch: it is over the bound whenever the minute of the clock ends.
        try await ann.tree.pausePush()
        var sent = [TreeMessages.Sent]()
        for text in ["one", "two", "three"] {
            sent.append(try await ann.tree.messages.send(to: [bob.user], content: .text(text)))
        }
        try await ann.tree.resumePush()
        for message in sent.prefix(2) { try await ann.tree.messages.wait(for: message, timeout: PeopleBench.patience) }
        #expect(bench.refused(.rate) >= 1 && bench.refused(.inboxFull) == 0)
        for person in [ann, bob] { await person.session.close() }
    }
}
