import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// Characters that each occur once, so that each can be looked for.
private struct Markers {
    private var count: UInt32 = 0

    mutating func next() -> Unicode.Scalar {
        count += 1
        return Unicode.Scalar(count % 5 == 0 ? 0x2_0000 + count : 0x4E00 + count) ?? "?"
    }

    mutating func next(_ number: Int) -> [Unicode.Scalar] { (0..<number).map { _ in next() } }
}

@Suite("Text carried over many changes by the reference's rule")
struct CarriedTextTests {
    private static func string(_ scalars: [Unicode.Scalar]) -> String {
        var result = ""
        result.unicodeScalars.append(contentsOf: scalars)
        return result
    }

    /// An edit that types at `hunks` places.
    private static func typing(
        into text: [Unicode.Scalar], hunks: Int, _ markers: inout Markers, _ random: inout SeededRandom
    ) -> (delta: TextDelta, text: [Unicode.Scalar]) {
        var places = [Int: [Unicode.Scalar]]()
        for _ in 0..<hunks {
            let typed = markers.next(1 + random.below(random.chance(25) ? 20 : 3))
            places[random.below(text.count + 1), default: []] += typed
        }
        var (delta, result): (TextDelta, [Unicode.Scalar]) = (TextDelta(), [])
        for place in 0...text.count {
            let typed = places[place] ?? []
            delta.insert(Array(string(typed).utf16))
            result += typed
            guard place < text.count else { continue }
            delta.retain(UTF16.width(text[place]))
            result.append(text[place])
        }
        return (delta, result)
    }

    private static func diff(_ delta: TextDelta) -> ObjectDiff { ObjectDiff([(key: "t", operation: .text(delta))]) }

    // A difference that reads well gives up short equalities: it removed characters of other authors and put them back,
    // and for the next change only the removal found its place.
    @Test("an edit that only inserts removes nothing and loses nothing, however many changes it is carried over")
    func insertionsOnly() throws {
        var random = SeededRandom(seed: 41)
        for run in 0..<150 {
            var markers = Markers()
            var text = markers.next(4 + random.below(30))
            let edit = Self.typing(
                into: text, hunks: 1 + random.below(12), &markers, &random)
            let typed = Set(edit.text).subtracting(text)
            var carried = Self.diff(edit.delta)
            for _ in 0..<20 {
                let change = Self.typing(
                    into: text, hunks: 1 + random.below(3), &markers, &random)
                carried = try JSONDiff.transform(
                    carried, over: Self.diff(change.delta), base: ["t": .string(Self.string(text))], rule: .reference)
                text = change.text
                let after = try JSONDiff.apply(carried, to: ["t": .string(Self.string(text))])
                let result = Array((after["t"]?.stringValue ?? "").unicodeScalars)
                #expect(Set(result) == Set(text).union(typed), "run \(run)")
                #expect(result.count == text.count + typed.count, "run \(run)")
            }
        }
    }
}
