import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// Merges by the reference's rule may place text differently; they lose none of it.
@Suite("Merges by the reference's rule keep what was typed")
struct KeptTextTests {
    private func merged(_ text: String, _ first: ObjectDiff, _ second: ObjectDiff) throws -> String {
        let base: JSONObject = ["q": .string(text)]
        let carried = try JSONDiff.transform(second, over: first, base: base, rule: .reference)
        let after = try JSONDiff.apply(carried, to: try JSONDiff.apply(first, to: base))
        return try #require(after["q"]?.stringValue)
    }

    private func diff(_ delta: String) throws -> ObjectDiff {
        try ObjectDiff(["q": ["o": "d", "v": .string(delta)]])
    }

    @Test("an insertion of which half was once lost, and a comma that was once lost, are kept")
    func found() throws {
        let base = "version draft todo draft draft"
        let a = try diff("=15\t-3\t=3\t-6\t+%F0%9F%87%AB%F0%9F%87%B7\t=3")
        let b = try diff("+plan.%0Aplan fox 2024 ser\t=3\t+ server done!%0Ar\t=21\t-6\t+,")
        for (first, second) in [(a, b), (b, a)] {
            let text = try merged(base, first, second)
            for piece in ["🇫🇷", ",", "plan.\nplan fox 2024 ser", " server done!\nr"] {
                #expect(text.contains(piece), "\(piece) in \(text)")
            }
        }
    }

    /// Characters that only this author types.
    private static func alphabet(_ author: Int) -> [Unicode.Scalar] {
        (0..<40).compactMap { Unicode.Scalar(UInt32(author % 2 == 0 ? 0x1F300 : 0x4E00) + UInt32(author * 64 + $0)) }
    }

    /// An edit of a text with insertions around its deletions, and how often it types each character.
    private static func edit(
        _ base: [UInt16], author: Int, _ random: inout SeededRandom
    ) -> (delta: TextDelta, typed: [Unicode.Scalar]) {
        var (delta, typed, place) = (TextDelta(), [Unicode.Scalar](), 0)
        let letters = alphabet(author)
        func type() {
            let text = (0..<Int.random(in: 1...4, using: &random)).map { _ in letters.randomElement(using: &random)! }
            typed += text
            delta.insert(Array(String(String.UnicodeScalarView(text)).utf16))
        }
        while place < base.count {
            if Int.random(in: 0..<6, using: &random) == 0 { type() }
            let count = min(Int.random(in: 1...8, using: &random), base.count - place)
            if Int.random(in: 0..<3, using: &random) == 0 { delta.delete(count) } else { delta.retain(count) }
            place += count
        }
        if typed.isEmpty { type() }
        return (delta, typed)
    }

    /// Where the text is in its object.
    enum Place: CaseIterable {
        case member, inObject, inList

        func object(_ text: String) -> JSONObject {
            switch self {
            case .member: ["q": .string(text)]
            case .inObject: ["q": .object(["x": .string(text), "y": 1])]
            case .inList: ["q": .array(["first", .string(text)])]
            }
        }

        func diff(_ delta: TextDelta) -> ObjectDiff {
            switch self {
            case .member: ObjectDiff([(key: "q", operation: .text(delta))])
            case .inObject:
                ObjectDiff([(key: "q", operation: .object(ObjectDiff([(key: "x", operation: .text(delta))])))])
            case .inList: ObjectDiff([(key: "q", operation: .list(ListDiff([(index: 1, operation: .text(delta))])))])
            }
        }

        func text(_ object: JSONObject) -> String? {
            switch self {
            case .member: object["q"]?.stringValue
            case .inObject: object["q"]?["x"]?.stringValue
            case .inList: object["q"]?.arrayValue?.last?.stringValue
            }
        }
    }

    @Test(
        "chains of two to five authors that delete around insertions keep each author's text once, in its order",
        arguments: [UInt64(1), 2, 3, 4], Place.allCases)
    func chains(seed: UInt64, place: Place) throws {
        var random = SeededRandom(seed: seed)
        let words = ["version", "draft", "todo", "plan", "fox", "2024", "server", "done!", "\n", "the"]
        for round in 0..<60 {
            let text = (0..<Int.random(in: 3...14, using: &random)).map { _ in words.randomElement(using: &random)! }
                .joined(separator: " ")
            let base = place.object(text)
            var edits = [(diff: ObjectDiff, typed: [Unicode.Scalar])]()
            for author in 0..<Int.random(in: 2...5, using: &random) {
                let (delta, typed) = Self.edit(Array(text.utf16), author: author, &random)
                edits.append((place.diff(delta), typed))
            }
            var (object, done) = (base, [ObjectDiff]())
            for edit in edits {
                var (carried, under) = (edit.diff, base)
                for before in done {
                    carried = try JSONDiff.transform(carried, over: before, base: under, rule: .reference)
                    under = try JSONDiff.apply(before, to: under)
                }
                object = try JSONDiff.apply(carried, to: object)
                done.append(carried)
            }
            let result = try #require(place.text(object)).unicodeScalars
            for (author, edit) in edits.enumerated() {
                let letters = Set(edit.typed)
                let standing = result.filter { letters.contains($0) }
                #expect(Array(standing) == edit.typed, "seed \(seed), round \(round), author \(author) in \(text)")
            }
        }
    }
}
