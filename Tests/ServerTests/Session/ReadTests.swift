import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Heartbeats, `i`, `e` and `cv` (wire contract, sections 3 and 5).
struct ReadTests {
    // MARK: Messages

    @Test(
        "a heartbeat is answered by the next number, whatever it was",
        arguments: [("h:0", "h:1"), ("h:1", "h:2"), ("h:41", "h:42"), ("h:x", "h:1"), ("h", "h:1"), ("h:-5", "h:1")])
    func heartbeat(text: String, answer: String) throws {
        #expect(try HubHarness().connect().ask(text) == [answer])
    }

    @Test("the largest heartbeat does not overflow")
    func largestHeartbeat() throws {
        #expect(try HubHarness().connect().ask("h:9223372036854775807").count == 1)
    }

    @Test(
        "a message that is not understood is answered by a question mark and does not end the connection",
        arguments: [
            ("0:what", "0:?"), ("0:", "0:?"), ("0", "0:?"), ("7:cv:x", "7:?"), ("", "0:?"), ("nonsense", "0:?"),
            ("99999999999:cv:x", "0:?"), (":cv:x", "0:?"), ("-1:cv:x", "0:?"),
        ])
    func notUnderstood(text: String, answer: String) throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        #expect(peer.ask(text) == [answer])
        #expect(peer.ask("h:1") == ["h:2"])
        #expect(harness.closed.isEmpty)
    }

    @Test("no text breaks a connection")
    func anyText() throws {
        let parts: [String] = [
            "0", ":", "c", "i", "e", "cv", "init", "index", "log", "h", "{", "}", "[", "]", "\"", ",", ".", "-", "1",
            "null", "\"id\":\"k\"", "\"o\":\"M\"", "\"ccid\":\"x\"", "\"v\":{}", "\u{0}", "é", "\n",
            "9223372036854775808",
        ]
        for seed: UInt64 in 1...20 {
            var random = SeededRandom(seed: seed)
            let harness = try HubHarness()
            let peer: Peer = harness.client("c")
            for _ in 0..<200 {
                let count: Int = .random(in: 0...12, using: &random)
                let text: String = (0..<count).map { _ in parts[Int.random(in: 0..<parts.count, using: &random)] }
                    .joined()
                peer.send(Bool.random(using: &random) ? text : "0:" + text)
            }
            _ = peer.take()
            #expect(peer.ask("h:1") == ["h:2"], "seed \(seed)")
            #expect(harness.closed.isEmpty, "seed \(seed)")
        }
    }

    @Test(
        "answers to questions that the server did not ask are dropped",
        arguments: [#"log:{"log":"x"}"#, "0:index:{}"])
    func unasked(text: String) throws {
        #expect(try HubHarness().client("c").ask(text).isEmpty)
    }

    // MARK: Index

    /// A bucket with `one`, `two`, … written in that order.
    private func filled(_ keys: String...) throws -> HubHarness {
        let harness = try HubHarness()
        let writer: Peer = harness.client("writer")
        for (index, key) in keys.enumerated() { writer.send(edit(key, "x\(index)", to: key)) }
        _ = writer.take()
        return harness
    }

    @Test("the index of an empty bucket has a current that cv answers with no changes")
    func emptyIndex() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        #expect(peer.ask("0:i::::500") == ["0:i:{\"current\":\"\(try harness.cv(0))\",\"index\":[]}"])
        #expect(peer.ask("0:cv:\(try harness.cv(0))") == ["0:c:[]"])
    }

    @Test("an index lists the newest change first, with data only when asked for")
    func order() throws {
        let harness: HubHarness = try filled("one", "two", "three")
        let current: String = try harness.cv(3)
        let plain: String = #"[{"id":"three","v":1},{"id":"two","v":1},{"id":"one","v":1}]"#
        for request: String in ["0:i::::500", "0:i:::", "0:i:", "0:i", "0:i:0:::", "0:i::::x", "0:i::::-1"] {
            let peer: Peer = harness.client("c")
            #expect(peer.ask(request) == ["0:i:{\"current\":\"\(current)\",\"index\":\(plain)}"])
        }
        let full: String =
            #"[{"id":"three","v":1,"d":{"t":"three"}},{"id":"two","v":1,"d":{"t":"two"}},"#
            + #"{"id":"one","v":1,"d":{"t":"one"}}]"#
        #expect(harness.client("c").ask("0:i:1:::10") == ["0:i:{\"current\":\"\(current)\",\"index\":\(full)}"])
    }

    @Test("an index scan shows one moment: its current stays the same and later changes do not show")
    func frozenScan() throws {
        let harness: HubHarness = try filled("one", "two", "three")
        let reader: Peer = harness.client("reader")
        let writer: Peer = harness.client("writer")
        let first: String = try #require(reader.ask("0:i:1:::2").first)
        #expect(first.contains(#""index":[{"id":"three","v":1,"d":{"t":"three"}},{"id":"two","#))
        let mark: String = try #require(first.components(between: #""mark":""#, and: "\""))
        writer.send(edit("one", "y1", sv: 1, to: "changed"), removal("two", "y2"), edit("four", "y3", to: "4"))
        let second: [String] = reader.ask("0:i:1:\(mark)::2")
        #expect(
            second.first
                == "0:i:{\"current\":\"\(try harness.cv(3))\",\"index\":[{\"id\":\"one\",\"v\":1,\"d\":{\"t\":\"one\"}}]}"
        )
        #expect(second.count == 2, "changes held back during the scan follow its last page")
        #expect(second.last?.hasPrefix("0:c:[") == true)
    }

    @Test("no page is empty: a page that ends at the last object has no mark")
    func exactPages() throws {
        let harness: HubHarness = try filled("one", "two", "three", "four")
        let peer: Peer = harness.client("c")
        let first: String = try #require(peer.ask("0:i::::2").first)
        let mark: String = try #require(first.components(between: #""mark":""#, and: "\""))
        #expect(!mark.contains(":") && !mark.contains(" "))
        let second: String = try #require(peer.ask("0:i::\(mark)::2").first)
        #expect(second.hasSuffix(#""index":[{"id":"two","v":1},{"id":"one","v":1}]}"#))
    }

    @Test("removed objects are not listed")
    func removedObjects() throws {
        let harness: HubHarness = try filled("one", "two")
        let peer: Peer = harness.client("c")
        _ = peer.ask(removal("one", "z"))
        #expect(
            peer.ask("0:i::::10") == [
                "0:i:{\"current\":\"\(try harness.cv(3))\",\"index\":[{\"id\":\"two\",\"v\":1}]}"
            ])
    }

    @Test("a mark that this server cannot read starts the scan again", arguments: ["x", "x.y", "..", "0"])
    func unreadableMark(mark: String) throws {
        let harness: HubHarness = try filled("one")
        #expect(
            harness.client("c").ask("0:i::\(mark)::10") == [
                "0:i:{\"current\":\"\(try harness.cv(1))\",\"index\":[{\"id\":\"one\",\"v\":1}]}"
            ])
    }

    @Test("a page has 100 objects when no number is asked for and 1,000 at most")
    func pageSizes() throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("writer")
        for number: Int in 0..<1_005 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        let peer: Peer = harness.client("c")
        for (request, count): (String, Int) in [("0:i::::", 100), ("0:i::::0", 100), ("0:i::::5000", 1_000)] {
            let page: String = try #require(peer.ask(request).first)
            #expect(page.countOf("\"id\":") == count)
        }
    }

    @Test("a page ends early, with a mark, when its data has grown too large")
    func largePages() throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("writer")
        let large = String(repeating: "x", count: 900_000)
        for number: Int in 0..<6 { writer.send(edit("k\(number)", "x\(number)", to: large)) }
        let page: String = try #require(harness.client("c").ask("0:i:1:::100").first)
        #expect(page.countOf("\"id\":") < 6 && page.countOf("\"id\":") >= 4)
        #expect(page.countOf("\"mark\":") == 1)
    }

    // MARK: Entity

    @Test("any kept version is returned; an unknown one is answered by a question mark")
    func entity() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        peer.send(edit("a.b", "1", to: "old"), edit("a.b", "2", sv: 1, to: "new"))
        _ = peer.take()
        let table: [(request: String, answer: String)] = [
            ("a.b.1", "a.b.1\n{\"data\":{\"t\":\"old\"}}"), ("a.b.2", "a.b.2\n{\"data\":{\"t\":\"new\"}}"),
            ("a.b.3", "a.b.3\n?"), ("a.b.0", "a.b.0\n?"), ("none.1", "none.1\n?"), ("a b.1", "a b.1\n?"),
            ("nodot", "nodot\n?"), ("a.b.x", "a.b.x\n?"), ("", "\n?"),
        ]
        for (request, answer) in table { #expect(peer.ask("0:e:\(request)") == ["0:e:\(answer)"]) }
    }

    @Test("versions of a removed object stay readable")
    func removedEntity() throws {
        let peer: Peer = try HubHarness().client("c")
        peer.send(edit("k", "1", to: "a"), removal("k", "2"))
        _ = peer.take()
        #expect(peer.ask("0:e:k.1") == ["0:e:k.1\n{\"data\":{\"t\":\"a\"}}"])
        #expect(peer.ask("0:e:k.2") == ["0:e:k.2\n?"])
    }

    @Test("a version that is committed but not published yet cannot be read")
    func unpublishedEntity() throws {
        let harness: HubHarness = try filled("k")
        let peer: Peer = harness.client("c")
        harness.holdsCommits = true
        peer.send(edit("k", "y", sv: 1, to: "b"))
        let group = harness.decide()
        #expect(peer.ask("0:e:k.2") == ["0:e:k.2\n?"])
        harness.publish(group)
        _ = peer.take()
        #expect(peer.ask("0:e:k.2") == ["0:e:k.2\n{\"data\":{\"t\":\"b\"}}"])
    }

    // MARK: Changes since

    @Test("cv returns all later changes, own ones with their ccids, oldest first, in one message")
    func changesSince() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        peer.send(edit("k", "x1", to: "a"), removal("k", "x2"))
        _ = peer.take()
        let first: String =
            "{\"clientid\":\"c\",\"cv\":\"\(try harness.cv(1))\",\"id\":\"k\",\"o\":\"M\","
            + "\"v\":{\"t\":{\"o\":\"+\",\"v\":\"a\"}},\"ev\":1,\"ccids\":[\"x1\"]}"
        let second: String =
            "{\"clientid\":\"c\",\"cv\":\"\(try harness.cv(2))\",\"id\":\"k\",\"o\":\"-\",\"ev\":2,\"ccids\":[\"x2\"]}"
        for harnessed: Peer in [peer, harness.client("d")] {
            #expect(harnessed.ask("0:cv:\(try harness.cv(0))") == ["0:c:[\(first),\(second)]"])
            #expect(harnessed.ask("0:cv:\(try harness.cv(1))") == ["0:c:[\(second)]"])
            #expect(harnessed.ask("0:cv:\(try harness.cv(2))") == ["0:c:[]"])
        }
    }

    @Test("an answer from disk has the same bytes as one from memory")
    func sameBytes() throws {
        var small = ServerLimits()
        small.tailChangesMax = 0
        var answers: [[String]] = []
        for limits: ServerLimits in [ServerLimits(), small] {
            let harness = try HubHarness(limits: limits)
            let peer: Peer = harness.client(#"c\"é"#)
            peer.send(edit("k", "x1", to: "a\u{1F333}"), edit("k", "x2", sv: 1, to: "b"), removal("k", "x3"))
            peer.send(edit("k", "x4", to: "again"))
            _ = peer.take()
            answers.append(peer.ask("0:cv:\(try harness.cv(0))"))
            #expect(harness.metrics.catchUps.value(limits == small ? .disk : .memory) == 1)
        }
        #expect(answers[0] == answers[1])
        #expect(answers[0].first?.countOf("\"ccids\"") == 4)
    }

    @Test("a long catch-up comes in several messages, all of it and in order")
    func pagedCatchUp() throws {
        var limits = ServerLimits()
        limits.tailChangesMax = 2
        limits.catchUpPageChanges = 3
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.client("c")
        for number: Int in 1...10 { peer.send(edit("k\(number)", "x\(number)", to: "v")) }
        _ = peer.take()
        let parts: [String] = harness.client("d").ask("0:cv:\(try harness.cv(0))")
        #expect(parts.map { $0.countOf("\"ccids\"") } == [3, 3, 3, 1])
        let order: [String] = parts.flatMap { $0.allBetween(#""ccids":[""#, and: "\"") }
        #expect(order == (1...10).map { "x\($0)" })
    }

    @Test("a position that is unknown, foreign or malformed is answered by cv:?")
    func unknownVersions() throws {
        let harness: HubHarness = try filled("one")
        let peer: Peer = harness.client("c")
        let foreign: String = try harness.cv(0, bucket: "tags")
        for text: String in ["", "0", "abc123", "?", foreign, try harness.cv(2), String(repeating: "a", count: 32)] {
            #expect(peer.ask("0:cv:\(text)") == ["0:cv:?"])
        }
        #expect(peer.ask("0:cv") == ["0:cv:?"])
    }

    @Test("a position that retention has cut is answered by cv:?, and an index scan on it starts again")
    func cutLog() throws {
        var limits = ServerLimits()
        limits.tailChangesMax = 0
        let harness = try HubHarness(limits: limits)
        let writer: Peer = harness.client("w")
        for number: Int in 1...6 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        let reader: Peer = harness.client("r")
        let first: String = try #require(reader.ask("0:i::::2").first)
        let mark: String = try #require(first.components(between: #""mark":""#, and: "\""))
        for number: Int in 7...12 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        try harness.cutLog(to: 2)
        let other: Peer = harness.client("o")
        #expect(other.ask("0:cv:\(try harness.cv(3))") == ["0:cv:?"])
        #expect(other.ask("0:cv:\(try harness.cv(11))").first?.countOf("\"ccids\"") == 1)
        let again: String = try #require(reader.ask("0:i::\(mark)::2").first)
        #expect(again.hasPrefix("0:i:{\"current\":\"\(try harness.cv(12))\",\"index\":[{\"id\":\"k12\",\"v\":1},"))
        #expect(harness.closed.isEmpty)
    }

    @Test("a store that cannot be read ends the connection with 1011, so that the client reconnects")
    func storeFailure() throws {
        for request: String in ["0:i::::10", "0:e:one.1"] {
            let harness: HubHarness = try filled("one")
            let peer: Peer = harness.client("c")
            harness.holdsReads = true
            peer.send(request)
            harness.failRead()
            #expect(harness.closed[peer.id] == .internalError)
            #expect(peer.take().isEmpty)
        }
    }

    @Test("a page that several clients request has the same bytes for all, and never outlives a change")
    func pagesAreKept() throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("w")
        let text = String(repeating: "x", count: 400)
        for number: Int in 1...60 { writer.send(edit("k\(number)", "x\(number)", to: text)) }
        let first: [String] = harness.client("r1").ask("0:i:1:::100")
        #expect(first == harness.client("r2").ask("0:i:1:::100"))
        #expect(first != harness.client("r3").ask("0:i:1:::50"), "another limit is another page")
        writer.send(edit("k1", "y1", sv: 1, to: "new"))
        let later: [String] = harness.client("r4").ask("0:i:1:::100")
        #expect(later != first && later[0].contains("new"))
    }
}

extension String {
    func countOf(_ part: String) -> Int { allRanges(of: part).count }

    func components(between start: String, and end: String) -> String? { allBetween(start, and: end).first }

    func allBetween(_ start: String, and end: String) -> [String] {
        allRanges(of: start).compactMap { range in
            let rest: Substring = self[range.upperBound...]
            guard let stop: Range<String.Index> = rest.firstRange(of: end) else { return nil }
            return String(rest[..<stop.lowerBound])
        }
    }

    private func allRanges(of part: String) -> [Range<String.Index>] { ranges(of: part) }
}
