import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketReplay

@Suite("Carrying recorded edits to clients that have seen more")
struct TraceCarrierTests {
    /// Applies edits to a plain text, as a client would.
    static func apply(_ edits: [TraceCarrier.Edit], to text: inout [UInt16]) {
        for edit in edits {
            text.replaceSubrange(edit.position..<(edit.position + edit.deleted), with: edit.inserted.utf16)
        }
    }

    /// Types a trace in any order its parents allow, each client seeing others' edits at random moments.
    static func play(_ trace: Trace, seed: UInt64, visibilityPerMille: UInt64) throws -> [String] {
        var random = SeededRandom(seed: seed)
        var carrier = try TraceCarrier(trace)
        var typed = [Int](repeating: 0, count: trace.agentCount)
        var left = trace.transactions.count
        while left > 0 {
            let agent = Int(random.next() % UInt64(trace.agentCount))
            guard typed[agent] < carrier.byAgent[agent].count else { continue }
            let row = carrier.byAgent[agent][typed[agent]]
            let needs = carrier.needs(row)
            guard (0..<trace.agentCount).allSatisfy({ needs[$0] <= typed[$0] }) else { continue }
            for other in 0..<trace.agentCount where other != agent {
                let sees = random.next() % 1_000 < visibilityPerMille
                carrier.saw(agent: agent, other: other, count: sees ? typed[other] : needs[other])
            }
            let isChecked = left % 97 == 0
            var text: [UInt16] = isChecked ? Array(carrier.expectedText(of: agent).utf16) : []
            let edits = carrier.type(row)
            if isChecked {
                apply(edits, to: &text)
                #expect(text.elementsEqual(carrier.expectedText(of: agent).utf16), "row \(row)")
            }
            typed[agent] += 1
            left -= 1
        }
        for agent in 0..<trace.agentCount {
            for other in 0..<trace.agentCount { carrier.saw(agent: agent, other: other, count: typed[other]) }
        }
        return (0..<trace.agentCount).map { carrier.expectedText(of: $0) }
    }

    @Test(
        "a view does not depend on the order in which authors are caught up, and deleted text stays deleted",
        arguments: [[0, 1], [1, 0]])
    func caughtUpInAnyOrder(order: [Int]) throws {
        func transaction(_ agent: Int, _ parents: [Int], _ position: Int, _ deleted: Int, _ inserted: String)
            -> Trace.Transaction
        {
            Trace.Transaction(
                agent: agent, parents: parents,
                patches: [Trace.Patch(position: position, deleted: deleted, inserted: inserted)])
        }
        let trace = Trace(
            isConcurrent: true, startContent: "", endContent: "ac!", agentCount: 3,
            transactions: [
                transaction(1, [], 0, 0, "abc"), transaction(0, [0], 1, 1, ""), transaction(2, [1], 2, 0, "!"),
            ])
        var carrier = try TraceCarrier(trace)
        _ = carrier.type(0)
        carrier.saw(agent: 0, other: 1, count: 1)
        _ = carrier.type(1)
        for other in order { carrier.saw(agent: 2, other: other, count: 1) }
        #expect(carrier.expectedText(of: 2) == "ac")
        #expect(carrier.type(2) == [TraceCarrier.Edit(position: 2, deleted: 0, inserted: "!")])
        #expect(carrier.expectedText(of: 2) == "ac!")
    }

    @Test("a generated session ends in its recorded text, whatever each client has seen when", arguments: [1, 2, 3])
    func generated(seed: UInt64) throws {
        var generator = TraceGenerator(
            seed: seed,
            texts: ["One paragraph of words.\n\nAnother, with 🌲 and é.\n\nA third that is longer than both."])
        let trace: Trace = generator.make(editsMin: 1_500)
        #expect(trace.transactions.count >= 1_500)
        #expect(Set(trace.transactions.map(\.agent)) == [0, 1])
        for visibility: UInt64 in [0, 300, 1_000] {
            for text in try Self.play(trace, seed: seed, visibilityPerMille: visibility) {
                #expect(text.utf8.elementsEqual(trace.endContent.utf8), "visibility \(visibility)")
            }
        }
    }

    @Test("text that was typed behind a character that the client's text no longer has is marked")
    func mark() throws {
        // Author 0 replaces "." by ","; author 1, which has not seen that in the recording, types behind ".".
        let trace = Trace(
            isConcurrent: true, startContent: "s.", endContent: "s,!", agentCount: 2,
            transactions: [
                .init(
                    agent: 0, parents: [],
                    patches: [
                        .init(position: 1, deleted: 1, inserted: ""), .init(position: 1, deleted: 0, inserted: ","),
                    ]), .init(agent: 1, parents: [], patches: [.init(position: 2, deleted: 0, inserted: "!")]),
            ])
        var carrier = try TraceCarrier(trace)
        _ = carrier.type(0)
        carrier.saw(agent: 1, other: 0, count: 1)
        let edits = carrier.type(1)
        #expect(edits.map { $0.delta(length: 2).encoded } == ["=2\t-0\t+!"])
        #expect(carrier.expectedText(of: 1).utf8.elementsEqual(trace.endContent.utf8))
    }

    @Test("a prefix of a session of two ends in the text that both had typed by then")
    func part() throws {
        var generator = TraceGenerator(seed: 21, texts: ["One paragraph of words.\n\nAnother one."])
        let whole = generator.make(editsMin: 600)
        #expect(try whole.prefix(whole.transactions.count).endContent.utf8.elementsEqual(whole.endContent.utf8))
        // One author deletes the other's text: it stays deleted in the prefix.
        let trace = Trace(
            isConcurrent: true, startContent: "", endContent: "b", agentCount: 2,
            transactions: [
                .init(agent: 0, parents: [], patches: [.init(position: 0, deleted: 0, inserted: "ab")]),
                .init(agent: 1, parents: [0], patches: [.init(position: 0, deleted: 1, inserted: "")]),
                .init(agent: 0, parents: [1], patches: [.init(position: 1, deleted: 0, inserted: "c")]),
            ])
        #expect(try trace.prefix(2).endContent == "b")
    }

    @Test("the same seed makes the same session, and another seed another session")
    func deterministic() {
        var one = TraceGenerator(seed: 7, texts: ["some words to type"])
        var two = TraceGenerator(seed: 7, texts: ["some words to type"])
        var three = TraceGenerator(seed: 8, texts: ["some words to type"])
        let first = one.make(editsMin: 300)
        #expect(first == two.make(editsMin: 300))
        #expect(first != three.make(editsMin: 300))
    }

    @Test("a trace survives its own file format, packed")
    func fileFormat() throws {
        var generator = TraceGenerator(seed: 1, texts: ["words \u{1F332} words"])
        let trace = generator.make(editsMin: 200)
        #expect(try Trace(json: Gzip.unpack(Gzip.pack(trace.json()))) == trace)
    }

    @Test("damaged files are refused with the reason")
    func damaged() {
        #expect(throws: TraceError.self) { try Gzip.unpack([0x1F, 0x8B, 8, 0]) }
        #expect(throws: TraceError.field("endContent")) { try Trace(json: Array("{}".utf8)) }
        #expect(throws: TraceError.notReadable(path: "/no/such/trace")) { try Trace(path: "/no/such/trace") }
        let strange =
            #"{"kind":"concurrent","numAgents":2,"endContent":"","txns":[{"parents":[3],"agent":0,"patches":[]}]}"#
        #expect(throws: TraceError.transaction(index: 0, problem: "a parent does not precede it")) {
            try Trace(json: Array(strange.utf8))
        }
    }

    @Test("the recorded session of two friends ends in its recorded text", .enabled(if: Vectors.has("editing-traces")))
    func friends() throws {
        let trace = try Trace(path: Vectors.path("editing-traces/friendsforever.json.gz"))
        for text in try Self.play(trace, seed: 5, visibilityPerMille: 500) {
            #expect(text.utf8.elementsEqual(trace.endContent.utf8))
        }
    }
}
