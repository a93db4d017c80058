import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// A walk whose log is cut meanwhile begins anew at another `current`. iOS takes both for one walk, and would keep what it
/// met before and was removed since (decision 0081).
@Suite("A walk that had to begin anew is walked once more by iOS")
struct WalkAgainTests {
    private let harness: HubHarness
    private let writer: Peer

    init() throws {
        var limits: ServerLimits = .init()
        limits.tailChangesMax = 0
        harness = try HubHarness(limits: limits)
        writer = harness.client("w")
        for number: Int in 1...6 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
    }

    private func mark(in page: String?) -> String? { page?.components(between: #""mark":""#, and: "\"") }

    private func keys(in page: String?) -> [String] { page?.allBetween(#""id":""#, and: "\"") ?? [] }

    private func ccids(_ answers: [String]) -> [String] {
        answers.flatMap { $0.allBetween(#""ccids":[""#, and: "\"") }
    }

    /// All answers to pages of three, from a first request to the last page.
    private func walk(_ peer: Peer, from request: String = "0:i::::3") -> [String] {
        var answers: [String] = peer.ask(request)
        while let mark: String = mark(in: answers.last) { answers += peer.ask("0:i::\(mark)::3") }
        return answers
    }

    /// A reader that has the first page, with k6, which is removed; the log no longer reaches back to it.
    private func readerOfCutWalk(_ library: String) throws -> (peer: Peer, mark: String) {
        let reader: Peer = harness.client("r", library: library)
        let first: String? = reader.ask("0:i::::3").first
        #expect(keys(in: first) == ["k6", "k5", "k4"])
        writer.send(removal("k6", "gone"))
        for number: Int in 7...12 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        try harness.cutLog(to: 2)
        return (reader, try #require(mark(in: first)))
    }

    @Test(
        "its cv behind the last page is answered by cv:?, once, and the next walk is a walk",
        arguments: ["ios", "osx"])
    func once(library: String) throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk(library)
        let second: [String] = walk(reader, from: "0:i::\(mark)::3")
        #expect(second.count == 4, "nothing behind the last page: while it works on an index, iOS does not hear")
        #expect(keys(in: second[0]) == ["k12", "k11", "k10"])
        #expect(reader.ask("0:cv:\(try harness.cv(13))") == ["0:cv:?"])
        #expect(harness.metrics.walksRepeated.value == 1)

        writer.send(removal("k1", "gone2"))
        let third: [String] = walk(reader)
        #expect(third.flatMap { keys(in: $0) } == [12, 11, 10, 9, 8, 7, 5, 4, 3, 2].map { "k\($0)" })
        #expect(reader.ask("0:cv:\(try harness.cv(14))") == ["0:c:[]"])
        #expect(harness.metrics.walksRepeated.value == 1)
        writer.send(edit("k2", "y2", sv: 1, to: "w"))
        #expect(ccids(reader.take()) == ["y2"])
    }

    @Test("a second cv in the place of a walk is answered as ever")
    func secondPosition() throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk("ios")
        _ = walk(reader, from: "0:i::\(mark)::3")
        #expect(reader.ask("0:cv:\(try harness.cv(13))") == ["0:cv:?"])
        #expect(reader.ask("0:cv:\(try harness.cv(13))") == ["0:c:[]"])
    }

    @Test(
        "who removes nothing for want of it in an index is not held up: what came behind the walk follows its last page",
        arguments: ["node-simperium", "android", "other"])
    func others(library: String) throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk(library)
        let page: String? = reader.ask("0:i::\(mark)::3").first
        writer.send(removal("k1", "late"))
        let rest: [String] = walk(reader, from: "0:i::\(try #require(self.mark(in: page)))::3")
        #expect(rest.count == 4 && ccids(rest) == ["late"])
        #expect(reader.ask("0:cv:\(try harness.cv(14))") == ["0:c:[]"])
        #expect(harness.metrics.walksRepeated.value == 0)
    }

    @Test("our own client asks with the first page's position, so its answer is the true one")
    func ours() throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk("thicket")
        _ = walk(reader, from: "0:i::\(mark)::3")
        #expect(reader.ask("0:cv:\(try harness.cv(6))") == ["0:cv:?"], "the log does not reach back to it")
        #expect(reader.ask("0:cv:\(try harness.cv(13))") == ["0:c:[]"])
        #expect(harness.metrics.walksRepeated.value == 0)
    }

    @Test("who begins a walk of its own accord is answered as ever, and so is who never had to")
    func beginsAgain() throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk("ios")
        _ = reader.ask("0:i::\(mark)::3")
        _ = walk(reader)
        #expect(reader.ask("0:cv:\(try harness.cv(13))") == ["0:c:[]"])
        let other: Peer = harness.client("o", library: "ios")
        _ = walk(other)
        try harness.cutLog(to: 1)
        #expect(other.ask("0:cv:\(try harness.cv(13))") == ["0:c:[]"])
    }

    @Test("a first page that finds the log cut, before any page was seen, is no reason")
    func firstPage() throws {
        let reader: Peer = harness.client("r", library: "ios")
        harness.holdsReads = true
        reader.send("0:i::::20")
        for number: Int in 7...12 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        try harness.cutLog(to: 2)
        while !harness.reads.isEmpty { harness.answerRead() }
        harness.holdsReads = false
        let answers: [String] = reader.take()
        #expect(answers.count == 1 && keys(in: answers.first).count == 12)
        #expect(reader.ask("0:cv:\(try harness.cv(12))") == ["0:c:[]"])
    }

    @Test("a glance at where the bucket stands does not make up for it")
    func glance() throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk("ios")
        let page: String? = reader.ask("0:i::\(mark)::3").first
        _ = reader.ask("0:i::::1")
        _ = walk(reader, from: "0:i::\(try #require(self.mark(in: page)))::3")
        #expect(reader.ask("0:cv:\(try harness.cv(13))") == ["0:cv:?"])
    }

    @Test("a glance in the middle of a walk loses nothing of what was held back")
    func glanceInWalk() throws {
        let reader: Peer = harness.client("r", library: "other")
        let first: String? = reader.ask("0:i::::3").first
        let mark: String = try #require(self.mark(in: first))
        writer.send(removal("k6", "gone"))
        #expect(reader.take().isEmpty)
        var heard: [String] = reader.ask("0:i::::1")
        heard += walk(reader, from: "0:i::\(mark)::3")
        #expect(ccids(heard) == ["gone"])
    }
}
