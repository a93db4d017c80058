import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// A walk whose log is cut meanwhile begins anew at another `current`. Who takes both for one walk keeps what it met
/// before and was removed since; so everybody is told to walk once more (decision 0081).
@Suite("A walk that had to begin anew is walked once more")
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

    /// Pages of three from a first request to the last page.
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
        "behind the last page comes cv:?, once, whether the client asks cv after an index or not",
        arguments: ["ios", "osx", "thicket", "node-simperium", "android", "other"])
    func once(library: String) throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk(library)
        let second: [String] = walk(reader, from: "0:i::\(mark)::3")
        #expect(second.count == 5 && second.last == "0:cv:?")
        #expect(keys(in: second[0]) == ["k12", "k11", "k10"])
        #expect(harness.metrics.walksRepeated.value == 1)

        let third: [String] = walk(reader)
        #expect(third.count == 4 && !third.contains("0:cv:?"))
        #expect(third.flatMap { keys(in: $0) } == [12, 11, 10, 9, 8, 7, 5, 4, 3, 2, 1].map { "k\($0)" })
        #expect(harness.metrics.walksRepeated.value == 1)
        #expect(harness.closed.isEmpty)
    }

    @Test("who begins anew without being told, as Android does, is not told for that walk")
    func beginsByItself() throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk("other")
        _ = reader.ask("0:i::\(mark)::3")
        #expect(!walk(reader).contains("0:cv:?"))
        #expect(harness.metrics.walksRepeated.value == 0)
    }

    @Test("a glance at where the bucket stands neither forgets it nor ends it")
    func glance() throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk("other")
        let page: String? = reader.ask("0:i::\(mark)::3").first
        #expect(reader.ask("0:i::::1").count == 1)
        let rest: [String] = walk(reader, from: "0:i::\(try #require(self.mark(in: page)))::3")
        #expect(rest.last == "0:cv:?")
    }

    @Test("a walk that ends in time is not walked again, though the log is cut behind it")
    func inTime() throws {
        let reader: Peer = harness.client("r", library: "other")
        #expect(!walk(reader).contains("0:cv:?"))
        try harness.cutLog(to: 2)
        #expect(!walk(reader).contains("0:cv:?"))
    }

    @Test("a first page that finds the log cut, before any page was seen, is no reason")
    func firstPage() throws {
        let reader: Peer = harness.client("r", library: "other")
        harness.holdsReads = true
        reader.send("0:i::::20")
        for number: Int in 7...12 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        try harness.cutLog(to: 2)
        while !harness.reads.isEmpty { harness.answerRead() }
        let answers: [String] = reader.take().filter { $0.hasPrefix("0:i") || $0.hasPrefix("0:cv") }
        #expect(answers.count == 1 && keys(in: answers.first).count == 12)
    }

    @Test("who does not walk again is told after a minute what came behind the walk, and nothing twice")
    func ignored() throws {
        let (reader, mark): (Peer, String) = try readerOfCutWalk("other")
        _ = walk(reader, from: "0:i::\(mark)::3")
        writer.send(edit("k1", "y1", sv: 1, to: "b"))
        #expect(reader.take().isEmpty, "it is expected to walk, and no page may undo a change")
        harness.pass(seconds: 61)
        #expect(reader.take().flatMap { $0.allBetween(#""ccids":[""#, and: "\"") } == ["y1"])
    }
}
