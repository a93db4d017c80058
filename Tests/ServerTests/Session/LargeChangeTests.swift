import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Changes so large that a reader's thread parses them: they keep their place among the others.
struct LargeChangeTests {
    private static let text = String(repeating: "x", count: Hub.largeFrom)

    private static func ccids(_ messages: [String]) -> [String] {
        messages.filter { $0.hasPrefix("0:c:[") }.flatMap { $0.allBetween(#""ccids":[""#, and: "\"") }
    }

    @Test("a large change is given to a reader and its connection is not read further; then it is applied")
    func handedOver() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        harness.holdsReads = true
        peer.send(edit("a", "large", to: Self.text))
        #expect(harness.reads.count == 1)
        #expect(harness.requests.isEmpty)
        #expect(harness.paused == [peer.id])
        #expect(harness.hub.bytesBeingRead > Self.text.utf8.count)
        harness.answerRead()
        #expect(harness.paused.isEmpty)
        #expect(harness.hub.bytesBeingRead == 0)
        #expect(Self.ccids(peer.take()) == ["large"])
        #expect(harness.hub.readCount == 0)
    }

    @Test("a smaller change is parsed in place")
    func small() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        harness.holdsReads = true
        peer.send(edit("a", "small", to: String(Self.text.dropLast(200))))
        #expect(harness.reads.isEmpty)
        #expect(Self.ccids(peer.take()) == ["small"])
    }

    @Test("messages that were already read from the connection wait behind the large change, in their order")
    func order() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        harness.holdsReads = true
        peer.send(
            edit("a", "1", to: Self.text), edit("a", "2", sv: 1, to: "two"), edit("b", "3", to: Self.text),
            edit("a", "4", sv: 2, to: "four"))
        #expect(harness.reads.count == 1, "the second large change waits for the first")
        harness.answerRead()
        #expect(Self.ccids(peer.take()) == ["1", "2"])
        #expect(harness.paused == [peer.id], "the second large change is being parsed")
        harness.answerRead()
        #expect(Self.ccids(peer.take()) == ["3", "4"])
        #expect(harness.paused.isEmpty)
    }

    @Test("several changes in one large message are applied, and then the next message")
    func array() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        let changes: [String] = [edit("a", "1", to: Self.text), edit("b", "2", to: "x")].map { String($0.dropFirst(4)) }
        peer.send("0:c:[\(changes.joined(separator: ","))]", edit("c", "3", to: "x"))
        #expect(Self.ccids(peer.take()) == ["1", "2", "3"])
    }

    @Test("a large change that cannot be parsed is answered 400, with its ccid")
    func unreadable() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        let answers: [String] = peer.ask("0:c:{\"ccid\":\"bad\",\"id\":\"a\",\"v\":{\"t\":\"\(Self.text)")
        #expect(answers.count == 1)
        #expect(answers.first?.contains("\"error\":400") == true, "\(answers)")
        #expect(harness.paused.isEmpty)
    }

    @Test("above the rate a large change is refused with 503, in its place too")
    func refused() throws {
        var limits = ServerLimits()
        (limits.messagesPerSecond, limits.messagesBurst) = (1, 1)
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.client("c")
        _ = peer.ask("h:1")
        harness.holdsReads = true
        peer.send(edit("a", "large", to: Self.text))
        #expect(peer.take().isEmpty)
        harness.answerRead()
        #expect(peer.take() == [#"0:c:[{"clientid":"c","id":"a","error":503,"ccids":["large"]}]"#])
    }

    @Test("a connection that ends while its large change is parsed leaves nothing behind")
    func closed() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        harness.holdsReads = true
        peer.send(edit("a", "large", to: Self.text))
        peer.close()
        harness.answerRead()
        #expect(harness.requests.isEmpty)
        #expect((harness.hub.bytesBeingRead, harness.hub.readCount) == (0, 0))
        harness.holdsReads = false
        #expect(harness.client("d").ask("0:e:a.1") == ["0:e:a.1\n?"])
    }

    @Test("a channel that was opened again meanwhile does not get the large change of the one before")
    func replaced() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        harness.holdsReads = true
        peer.send(edit("a", "large", to: Self.text))
        peer.send(
            "0:init:{\"clientid\":\"c2\",\"api\":\"1.1\",\"token\":\"ann-token\",\"app_id\":\"app\",\"name\":\"other\"}"
        )
        harness.answerRead()
        #expect(harness.requests.isEmpty)
        #expect(harness.paused.isEmpty)
        harness.holdsReads = false
        harness.answerRead()
        #expect(peer.take().first == "0:?")
        #expect(Self.ccids(peer.ask(edit("a", "new", to: "x"))) == ["new"])
    }

    @Test("with too many bytes being parsed, a large change is parsed in place")
    func bound() throws {
        var limits = ServerLimits()
        limits.changeBytesQueuedMax = 3 * Hub.largeFrom / 2
        let harness = try HubHarness(limits: limits)
        let (ann, bob): (Peer, Peer) = (harness.client("a"), harness.client("b", token: "bob-token"))
        harness.holdsReads = true
        ann.send(edit("a", "1", to: Self.text))
        bob.send(edit("b", "2", to: Self.text))
        #expect(harness.reads.count == 1)
        #expect(Self.ccids(bob.take()) == ["2"])
        #expect(harness.metrics.limitHits.value(.queue) == 1)
    }

    @Test("a large change is decided like a small one with the same content", arguments: 0..<8)
    func sameDecision(number: Int) throws {
        let first: String = #"{"t":{"o":"+","v":{"a":[1,2,{"b":"c"}],"e":"text"}},"n":{"o":"+","v":1}}"#
        let diffs: [String] = [
            #"{"t":{"o":"r","v":"whole"}}"#, #"{"t":{"o":"O","v":{"a":{"o":"L","v":{"0":{"o":"-"}}}}}}"#,
            #"{"t":{"o":"O","v":{"e":{"o":"d","v":"=2\t-1\t+yy\t=1"}}}}"#, #"{"n":{"o":"I","v":4}}"#,
            #"{"n":{"o":"-"}}"#, #"{"x":{"o":"+","v":[ 1 ]}}"#, #"{"t":{"o":"?","v":1}}"#, #"[1]"#,
        ]
        var answers: [[String]] = []
        for isLarge: Bool in [false, true] {
            let harness = try HubHarness()
            let peer: Peer = harness.client("c")
            // White space makes a message large and changes nothing.
            let space: String = isLarge ? .init(repeating: " ", count: Hub.largeFrom) : ""
            peer.send("0:c:{\"id\":\"k\",\"o\":\"M\",\"ccid\":\"1\",\(space)\"v\":\(first)}")
            peer.send("0:c:{\"id\":\"k\",\"o\":\"M\",\"sv\":1,\"ccid\":\"2\",\(space)\"v\":\(diffs[number])}")
            answers.append(peer.take() + peer.ask("0:e:k.2"))
        }
        #expect(answers[0] == answers[1])
        #expect(answers[0].count == 3)
    }
}
