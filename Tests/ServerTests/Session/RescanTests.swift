import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// An index scan whose log is cut meanwhile starts again. iOS regards both as one scan, and would keep objects that it
/// met before and that were removed since: the pages of the new scan carry a position that does not exist (decision
/// 0003).
@Suite("An index scan whose log was cut")
struct RescanTests {
    private let harness: HubHarness
    private let writer: Peer

    init() throws {
        var limits = ServerLimits()
        limits.tailChangesMax = 0
        (harness, writer) = try Self.filled(limits)
    }

    private static func filled(_ limits: ServerLimits) throws -> (HubHarness, Peer) {
        let harness = try HubHarness(limits: limits)
        let writer: Peer = harness.client("w")
        for number: Int in 1...6 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        return (harness, writer)
    }

    private func mark(in page: String?) -> String? { page?.components(between: #""mark":""#, and: "\"") }

    private func keys(in page: String?) -> [String] { page?.allBetween(#""id":""#, and: "\"") ?? [] }

    private func ccids(_ answers: [String]) -> [String] {
        answers.flatMap { $0.allBetween(#""ccids":[""#, and: "\"") }
    }

    /// All answers to pages of three, from a first request to the last page.
    private func scan(_ peer: Peer, from request: String = "0:i::::3") -> [String] {
        var answers: [String] = peer.ask(request)
        while let mark: String = mark(in: answers.last) { answers += peer.ask("0:i::\(mark)::3") }
        return answers
    }

    private func current(in page: String?) -> String? { page?.components(between: #""current":""#, and: "\"") }

    /// A reader that has the first page, with k6, which is then removed; the log no longer reaches back to it.
    private func readerOfCutScan(_ library: String) throws -> (peer: Peer, mark: String) {
        let reader: Peer = harness.client("r", library: library)
        let first: String? = reader.ask("0:i::::3").first
        #expect(keys(in: first) == ["k6", "k5", "k4"])
        writer.send(removal("k6", "gone"))
        for number: Int in 7...12 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        try harness.cutLog(to: 2)
        return (reader, try #require(mark(in: first)))
    }

    @Test(
        "the scan starts again; iOS gets a position that any connection answers with cv:?, and scans once more",
        arguments: ["ios", "osx"])
    func scansOnceMore(library: String) throws {
        let (reader, mark): (Peer, String) = try readerOfCutScan(library)
        let second: [String] = scan(reader, from: "0:i::\(mark)::3")
        #expect(second.map { keys(in: $0).count } == [3, 3, 3, 2] && keys(in: second[0]) == ["k12", "k11", "k10"])
        let none: String = try #require(current(in: second[0]))
        #expect(second.allSatisfy { current(in: $0) == none })
        #expect(reader.ask("0:cv:\(none)") == ["0:cv:?"])
        #expect(harness.client("again", library: library).ask("0:cv:\(none)") == ["0:cv:?"])
        #expect(harness.metrics.scansRestarted.value == 1)

        writer.send(removal("k1", "gone2"))
        let third: [String] = scan(reader)
        #expect(third.flatMap { keys(in: $0) } == [12, 11, 10, 9, 8, 7, 5, 4, 3, 2].map { "k\($0)" })
        let now: String = try harness.cv(14)
        #expect(third.allSatisfy { current(in: $0) == now })
        #expect(reader.ask("0:cv:\(now)") == ["0:c:[]"])
        writer.send(edit("k2", "y2", sv: 1, to: "w"))
        #expect(ccids(reader.take()) == ["y2"])
    }

    @Test("iOS gets the same position on another connection, and when the log is cut twice")
    func goesOnElsewhere() throws {
        let (reader, mark): (Peer, String) = try readerOfCutScan("ios")
        let page: String? = reader.ask("0:i::\(mark)::3").first
        reader.close()
        let other: Peer = harness.client("r", library: "ios")
        let next: String? = other.ask("0:i::\(try #require(self.mark(in: page)))::3").first
        #expect(keys(in: next) == ["k9", "k8", "k7"])
        for number: Int in 13...16 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        try harness.cutLog(to: 2)
        let rest: [String] = scan(other, from: "0:i::\(try #require(self.mark(in: next)))::3")
        #expect(keys(in: rest.first) == ["k16", "k15", "k14"])
        let none: String = try #require(current(in: page))
        #expect(([page, next] + rest).allSatisfy { current(in: $0) == none })
        #expect(other.ask("0:cv:\(none)") == ["0:cv:?"])
        #expect(harness.metrics.scansRestarted.value == 2)
    }

    @Test("iOS scans once more although memory still reaches back: changes below its versions would undo them")
    func fromMemory() throws {
        let (harness, writer): (HubHarness, Peer) = try Self.filled(ServerLimits())
        let reader: Peer = harness.client("r", library: "ios")
        let first: String? = reader.ask("0:i::::3").first
        writer.send(removal("k6", "gone"))
        for number: Int in 7...12 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        try harness.cutLog(to: 2)
        let pages: [String] = scan(reader, from: "0:i::\(try #require(mark(in: first)))::3")
        let missed: [String] = harness.client("o", library: "ios").ask("0:cv:\(try harness.cv(6))")
        #expect(ccids(missed) == ["gone"] + (7...12).map { "x\($0)" }, "the memory does not reach back")
        #expect(reader.ask("0:cv:\(try #require(current(in: pages.last)))") == ["0:cv:?"])
    }

    @Test(
        "other libraries get the current position, and after the last page the changes since",
        arguments: ["node-simperium", "android", "other"])
    func others(library: String) throws {
        let (reader, mark): (Peer, String) = try readerOfCutScan(library)
        let page: String? = reader.ask("0:i::\(mark)::3").first
        writer.send(removal("k1", "late"))
        let rest: [String] = scan(reader, from: "0:i::\(try #require(self.mark(in: page)))::3")
        let now: String = try harness.cv(13)
        #expect(([page] + rest.dropLast()).allSatisfy { current(in: $0) == now })
        #expect(rest.count == 4 && ccids(rest) == ["late"])
        #expect(reader.ask("0:cv:\(now)").flatMap { ccids([$0]) } == ["late"])
        #expect(harness.metrics.scansRestarted.value == 1)
    }

    @Test("Thicket's client keeps the first page's position, and its pages carry the current position, too")
    func ours() throws {
        let (reader, mark): (Peer, String) = try readerOfCutScan("thicket")
        let now: String = try harness.cv(13)
        #expect(scan(reader, from: "0:i::\(mark)::3").allSatisfy { current(in: $0) == now })
        #expect(reader.ask("0:cv:\(try harness.cv(6))") == ["0:cv:?"])
    }

    @Test("a first page that finds the log cut carries the current position, since no page of the old scan was seen")
    func firstPage() throws {
        let reader: Peer = harness.client("r", library: "ios")
        harness.holdsReads = true
        reader.send("0:i::::20")
        for number: Int in 7...12 { writer.send(edit("k\(number)", "x\(number)", to: "v")) }
        try harness.cutLog(to: 2)
        while !harness.reads.isEmpty { harness.answerRead() }
        let answers: [String] = reader.take()
        #expect(answers.count == 1 && keys(in: answers.first).count == 12)
        #expect(current(in: answers.first) == (try harness.cv(12)))
        #expect(harness.metrics.scansRestarted.value == 0)
    }

    @Test(
        "a mark whose third part is not a position, or a future one, starts the scan again",
        arguments: ["", "x", "8"])
    func strangeMark(part: String) throws {
        let (reader, mark): (Peer, String) = try readerOfCutScan("ios")
        let page: String? = reader.ask("0:i::\(mark)::3").first
        let parts: [Substring] = try #require(self.mark(in: page)).split(separator: ".")
        #expect(parts.count == 3)
        let third: String = part == "8" ? try harness.cv(14) : part
        let again: String? = reader.ask("0:i::\(parts[0]).\(parts[1]).\(third)::3").first
        #expect(keys(in: again) == ["k12", "k11", "k10"])
        #expect(current(in: again) == (try harness.cv(13)))
    }

    @Test("a head probe during a scan is not part of it: changes held back wait for the last page, and are delivered")
    func probeInScan() throws {
        let reader: Peer = harness.client("r", library: "other")
        let first: String? = reader.ask("0:i::::3").first
        let mark: String = try #require(self.mark(in: first))
        writer.send(removal("k1", "gone"))
        #expect(reader.take().isEmpty)
        #expect(ccids(reader.ask("0:i::::1")).isEmpty, "the next page still lists k1")
        let rest: [String] = scan(reader, from: "0:i::\(mark)::3")
        #expect(keys(in: rest.first) == ["k3", "k2", "k1"] && ccids(rest) == ["gone"])
        writer.send(edit("k2", "y2", sv: 1, to: "w"))
        #expect(ccids(reader.take()) == ["y2"])
    }

    @Test("a head probe without a scan ends with its answer, and a scan that follows it goes on")
    func glanceAlone() throws {
        let reader: Peer = harness.client("r", library: "other")
        harness.holdsReads = true
        reader.send("0:i::::1", "0:i::::3")
        harness.answerRead()
        harness.answerRead()
        harness.holdsReads = false
        let mark: String = try #require(self.mark(in: reader.take().last))
        writer.send(removal("k1", "gone"))
        #expect(reader.take().isEmpty, "a scan is in progress")
        #expect(ccids(scan(reader, from: "0:i::\(mark)::3")) == ["gone"])
        #expect(reader.ask("0:i::::1").count == 1)
        writer.send(edit("k2", "y2", sv: 1, to: "w"))
        #expect(ccids(reader.take()) == ["y2"])
    }
}
