import Testing
import ThicketTestSupport

@testable import ThicketReplay

/// Recordings by two to five authors that often type into one gap concurrently (docs/decisions/0088).
@Suite("Recordings by several authors, carried to their clients")
struct ManyAuthorsTests {
    @Test(
        "random recordings end in the text of an independent model of the order, whatever each client has seen when",
        arguments: 2...5)
    func random(authors: Int) throws {
        for seed in 1...UInt64(12) {
            let trace = Trace.random(authors: authors, transactions: 60, seed: seed &* 31 &+ UInt64(authors))
            for visibility: UInt64 in [0, 400, 1_000] {
                let texts = try TraceCarrierTests.play(trace, seed: seed, visibilityPerMille: visibility)
                for text in texts where !text.utf8.elementsEqual(trace.endContent.utf8) {
                    Issue.record(
                        "\(authors) authors, seed \(seed), visibility \(visibility): \(text), \(trace.endContent)")
                    return
                }
            }
        }
    }

    @Test("random recordings contain over 10 insertions of unaware authors at one position, and deletions")
    func conflicts() throws {
        let trace = Trace.random(authors: 3, transactions: 60, seed: 5)
        #expect(Set(trace.transactions.map(\.agent)) == [0, 1, 2])
        #expect(trace.transactions.contains { $0.patches.contains { $0.deleted > 0 } })
        let carrier = try TraceCarrier(trace)
        let pairs = trace.transactions.indices.flatMap { one in trace.transactions.indices.map { (one, $0) } }
        let unaware = pairs.filter { (one, other) in
            let (first, second) = (trace.transactions[one], trace.transactions[other])
            guard first.agent < second.agent, first.patches[0].position == second.patches[0].position else {
                return false
            }
            return carrier.needs(one)[second.agent] <= ordinal(other, carrier, second.agent)
                && carrier.needs(other)[first.agent] <= ordinal(one, carrier, first.agent)
        }
        #expect(unaware.count > 10)
    }

    private func ordinal(_ row: Int, _ carrier: TraceCarrier, _ agent: Int) -> Int {
        carrier.byAgent[agent].firstIndex(of: row) ?? 0
    }

    /// A recording by authors that see none of each other's edits.
    private func alone(_ typed: [[(position: Int, text: String)]], end: String) -> Trace {
        var rows = [Trace.Transaction]()
        for (author, patches) in typed.enumerated() {
            for (count, patch) in patches.enumerated() {
                rows.append(
                    Trace.Transaction(
                        agent: author, parents: count == 0 ? [] : [rows.count - 1],
                        patches: [Trace.Patch(position: patch.position, deleted: 0, inserted: patch.text)]))
            }
        }
        return Trace(
            isConcurrent: true, startContent: "", endContent: end, agentCount: typed.count, transactions: rows)
    }

    @Test("the texts of several authors in one gap stay together, forwards and backwards, the smaller author first")
    func together() throws {
        let traces = [
            alone([[(0, "a"), (1, "b")], [(0, "x"), (1, "y")], [(0, "1"), (1, "2")]], end: "abxy12"),
            alone([[(0, "b"), (0, "a")], [(0, "y"), (0, "x")], [(0, "2"), (0, "1")]], end: "abxy12"),
            alone([[(0, "ab")], [(0, "y"), (0, "x")]], end: "abxy"),
        ]
        for trace in traces {
            for seed in 1...UInt64(10) {
                let texts = try TraceCarrierTests.play(trace, seed: seed, visibilityPerMille: 300)
                #expect(texts.allSatisfy { $0 == trace.endContent }, "\(texts)")
            }
        }
    }

    @Test(
        "a generated session by three to five ends in its recorded text, whatever each client has seen when",
        arguments: 3...5)
    func generated(authors: Int) throws {
        var generator = TraceGenerator(
            seed: UInt64(authors), texts: ["One paragraph of words.\n\nAnother, with 🌲 and é.\n\nA third, longer one."],
            authors: authors)
        let trace = generator.make(editsMin: 1_500)
        #expect(trace.agentCount == authors)
        #expect(Set(trace.transactions.map(\.agent)) == Set(0..<authors))
        for visibility: UInt64 in [0, 300, 1_000] {
            for text in try TraceCarrierTests.play(trace, seed: 9, visibilityPerMille: visibility) {
                #expect(text.utf8.elementsEqual(trace.endContent.utf8), "visibility \(visibility)")
            }
        }
    }

    @Test("a generated session of two stays byte for byte the same")
    func unchanged() {
        var generator = TraceGenerator(seed: 7, texts: ["some words to type"])
        var hash: UInt64 = 14_695_981_039_346_656_037
        for byte in generator.make(editsMin: 300).json() { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 }
        #expect(hash == 958_967_011_632_637_279)
    }
}
