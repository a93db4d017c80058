import Testing
import ThicketProtocol

@testable import ThicketSimulation

/// The server's side is written by hand: the world of these tests has no server, and its clock does not run.
@Suite("A client with the older libraries' rules, and changes that it cannot apply")
struct LegacyChannelTests {
    /// Records what it sends instead of sending it.
    private final class RecordingClient: LegacyClient {
        private(set) var sent = [String]()

        override func send(_ message: ClientMessage) { sent.append(String(decoding: message.encoded(), as: UTF8.self)) }

        func receive(_ text: String) { linkReceived(Array(text.utf8)) }

        /// Opens the bucket on a new connection.
        func open() {
            linkOpened()
            receive("0:auth:ann@example.com")
        }

        /// The server dies: the requests without an answer are lost, and the client connects again.
        func loseServer() {
            linkClosed(code: nil, "the connection was lost")
            sent = []
            open()
        }
    }

    private struct Table {
        let world: World
        let client: RecordingClient

        /// A client that has read the index of an empty bucket, at position 0.
        init(_ habit: LegacyClient.Habit) throws {
            var scenario = Scenario(seed: 1, kind: .storm)
            _ = scenario.turn("sealed", to: 0)
            world = try World(scenario, sink: nil)
            client = RecordingClient(world, habit.rawValue, world.names.accounts[0])
            client.open()
            client.receive(#"0:i:{"current":"\#(LegacyChannelTests.position(0))","index":[]}"#)
            if habit == .asksAfterIndex { client.receive("0:c:[]") }
        }

        func shows(_ key: String) throws -> JSONObject? {
            let key = try EntityKey(key)
            return client.local(world.names.notes, key)
        }
    }

    static func position(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }

    /// Version 2 of an object that the client does not know.
    private static let unknown =
        #"0:c:[{"clientid":"x","cv":"\#(position(1))","id":"big","o":"M","v":{"t":{"o":"+","v":"b"}},"#
        + #""sv":1,"ev":2,"ccids":["a"]}]"#
    private static let answer = "0:e:big.2\n" + #"{"data":{"s":"a","t":"b"}}"#
    private static let creation =
        #"0:c:[{"clientid":"x","cv":"\#(position(2))","id":"new","o":"M","v":{"t":{"o":"+","v":"n"}},"#
        + #""ev":1,"ccids":["b"]}]"#
    private static let later =
        #"0:c:[{"clientid":"x","cv":"\#(position(3))","id":"big","o":"M","v":{"t":{"o":"r","v":"c"}},"#
        + #""sv":2,"ev":3,"ccids":["c"]}]"#

    private static let habits: [LegacyClient.Habit] = [.asksAfterIndex, .continues]

    @Test("it asks for an object to which a change does not apply, once, and shows the answer", arguments: habits)
    func asks(habit: LegacyClient.Habit) throws {
        let table = try Table(habit)
        table.client.receive(Self.unknown)
        table.client.receive(Self.unknown)
        #expect(table.client.sent.filter { $0 == "0:e:big.2" }.count == 1)
        #expect(try table.shows("big") == nil)
        table.client.receive(Self.answer)
        #expect(try table.shows("big") == ["s": "a", "t": "b"])
    }

    @Test(
        "if the server dies before it answers, the client's position is before the change, and it asks again",
        arguments: habits)
    func asksAgain(habit: LegacyClient.Habit) throws {
        let table = try Table(habit)
        table.client.receive(Self.unknown)
        table.client.loseServer()
        #expect(table.client.sent.last == "0:cv:\(Self.position(0))")
        table.client.receive(Self.unknown)
        #expect(table.client.sent.last == "0:e:big.2")
        table.client.receive(Self.answer)
        #expect(try table.shows("big") == ["s": "a", "t": "b"])
    }

    @Test("a change that it has applied moves its position", arguments: habits)
    func moves(habit: LegacyClient.Habit) throws {
        let table = try Table(habit)
        table.client.receive(Self.creation)
        table.client.loseServer()
        #expect(table.client.sent.last == "0:cv:\(Self.position(2))")
    }

    @Test(
        "a change of another object moves its position past the unanswered one; it asks at the object's next change",
        arguments: habits)
    func movesPast(habit: LegacyClient.Habit) throws {
        let table = try Table(habit)
        table.client.receive(Self.unknown)
        table.client.receive(Self.creation)
        table.client.loseServer()
        #expect(table.client.sent.last == "0:cv:\(Self.position(2))")
        table.client.receive("0:c:[]")
        #expect(!table.client.sent.contains { $0.hasPrefix("0:e:") }, "no library repeats the request by itself")
        table.client.receive(Self.later)
        #expect(table.client.sent.last == "0:e:big.3")
    }
}
