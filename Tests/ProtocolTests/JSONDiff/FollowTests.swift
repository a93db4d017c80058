import Testing
import ThicketTestSupport

@testable import ThicketProtocol

@Suite("Edits that follow moved content")
struct FollowTests {
    private func delta(_ text: String) throws -> TextDelta { try TextDelta(parsing: text) }

    @Test(
        "an edit of a text follows the content that it edits",
        arguments: [
            // "a|PQ|Rb" is "aR|PQ|b" now. P is deleted; text typed between P and Q stays between them.
            ("=1\t+PQ\t=2", "=2\t+PQ\t=1", "=1\t-1\t=3", "=2\t-1\t=2"),
            ("=1\t+PQ\t=2", "=2\t+PQ\t=1", "=2\t+x\t=3", "=3\t+x\t=2"),
            // Text typed before P stays beside a, text typed after Q moves with Q.
            ("=1\t+PQ\t=2", "=2\t+PQ\t=1", "=1\t+x\t=4", "=1\t+x\t=4"),
            ("=1\t+PQ\t=2", "=2\t+PQ\t=1", "=3\t+x\t=2", "=4\t+x\t=1"),
            // Q and R are deleted at once, and replaced: R's place is before P now.
            ("=1\t+PQ\t=2", "=2\t+PQ\t=1", "=2\t-2\t+x\t=1", "=1\t-1\t+x\t=1\t-1\t=1"),
            // Content that moves to the very beginning, and to the end.
            ("+P\t=2", "=2\t+P", "+x\t-1\t=2", "+x\t=2\t-1"),
            ("=2\t+P", "+P\t=2", "=2\t-1\t+x", "-1\t+x\t=2"),
            // The order of a deletion and an insertion beside it is another step, but nothing has moved.
            ("=1\t-1\t+P", "=1\t+P\t-1", "=1\t-1\t+x", "=1\t-1\t+x"),
        ])
    func texts(made: String, applied: String, edit: String, expected: String) throws {
        #expect(try delta(edit).following(from: delta(made), to: delta(applied)) == delta(expected))
    }

    @Test(
        "nothing is followed where the two deltas keep or insert something else",
        arguments: [
            ("=1\t+P\t=2", "=2\t+Q\t=1"), ("=1\t+P\t=2", "=1\t+P\t-1\t=1"), ("-1\t+P\t=2", "=1\t-1\t+P\t=1"),
            ("=1\t+P\t=2", "=2\t+P\t=2"), ("=1\t+PQ\t=2", "=1\t+QP\t=2"),
        ])
    func otherTexts(made: String, applied: String) throws {
        let made = try delta(made)
        let edit = TextDelta([.delete(1), .retain(made.targetLength - 1)])
        #expect(try edit.following(from: made, to: delta(applied)) == nil)
    }

    /// Every unit is another letter, so the letters show what an edit deletes and beside what it inserts.
    @Test("random edits delete and insert beside the same letters, whatever the order", arguments: 0..<400)
    func random(seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed))
        let source: [UInt16] = Array(0x100..<UInt16(0x100 + random.below(8)))
        let inserted: [UInt16] = Array(0x200..<UInt16(0x201 + random.below(5)))
        let kept = source.map { _ in random.chance(70) }
        let made = scattered(source, inserted, kept, &random)
        let applied = scattered(source, inserted, kept, &random)
        let (before, after) = (try made.apply(to: source), try applied.apply(to: source))
        #expect(Set(before) == Set(after))

        var next: UInt16 = 0x300
        var edit = TextDelta()
        var gone = Set<UInt16>()
        var left = [UInt16: UInt16]()
        for place in 0...before.count {
            if random.chance(30) {
                edit.insert([next])
                left[next] = place == 0 ? 0 : before[place - 1]
                next += 1
            }
            guard place < before.count else { break }
            if random.chance(30) {
                edit.delete(1)
                gone.insert(before[place])
            } else {
                edit.retain(1)
            }
        }
        let moved = try #require(edit.following(from: made, to: applied))
        #expect(moved.sourceLength == after.count)
        let result = try moved.apply(to: after)
        #expect(result.filter { $0 < 0x300 } == after.filter { !gone.contains($0) })
        #expect(result.count { $0 >= 0x300 } == left.count)
        // Each insertion is after the nearest letter on its left that is not deleted.
        for (unit, neighbour) in left {
            let place: Int = try #require(result.firstIndex(of: unit))
            let found = result[..<place].last { $0 < 0x300 } ?? 0
            let start: Int = neighbour == 0 ? -1 : try #require(after.firstIndex(of: neighbour))
            #expect(found == (after[..<(start + 1)].last { !gone.contains($0) } ?? 0))
        }
    }

    /// The same units kept, and the same inserted in one order, at random places.
    private func scattered(
        _ source: [UInt16], _ inserted: [UInt16], _ kept: [Bool], _ random: inout SeededRandom
    ) -> TextDelta {
        var result = TextDelta()
        var next = 0
        for place in 0...source.count {
            while next < inserted.count, place == source.count || random.chance(30) {
                result.insert([inserted[next]])
                next += 1
            }
            if place < source.count { if kept[place] { result.retain(1) } else { result.delete(1) } }
        }
        return result
    }

    @Test("an edit of a list follows its elements, and so do edits inside elements")
    func lists() throws {
        // [1, P, Q, 2, 3] is [1, 2, P, Q, 3] now.
        let made = ListDelta(
            ListDiff([(index: 1, operation: .insert("P")), (index: 2, operation: .insert("Q"))]))
        let applied = ListDelta(
            ListDiff([(index: 2, operation: .insert("P")), (index: 3, operation: .insert("Q"))]))
        let edit = ListDelta(
            ListDiff([
                (index: 1, operation: .remove), (index: 2, operation: .replace("q")),
                (index: 3, operation: .insert("x")),
                (index: 4, operation: .replace(9)),
            ]))
        #expect(try edit.apply(to: [1, "P", "Q", 2, 3], depth: 0) == [1, "q", "x", 9, 3])
        let moved = try #require(edit.following(from: made, to: applied, count: 3))
        #expect(try moved.apply(to: [1, 2, "P", "Q", 3], depth: 0) == [1, 9, "q", "x", 3])
    }

    @Test("nothing is followed in a list where the two deltas treat an element differently")
    func otherLists() throws {
        let made = ListDelta(
            ListDiff([(index: 0, operation: .insert("P")), (index: 1, operation: .replace(5))]))
        let applied = ListDelta(
            ListDiff([(index: 0, operation: .replace(6)), (index: 1, operation: .insert("P"))]))
        let edit = ListDelta(ListDiff([(index: 0, operation: .remove)]))
        #expect(edit.following(from: made, to: applied, count: 2) == nil)
        #expect(edit.following(from: made, to: made, count: 2) == edit)
    }

    @Test("an object is split by keys: edits of moved content follow it, the rest stays as it was")
    func objects() throws {
        let base: JSONObject = ["t": "ab", "o": ["u": "ab", "v": "ab"], "n": 1]
        func text(_ delta: String) throws -> ThicketProtocol.Operation { .text(try self.delta(delta)) }
        let made = ObjectDiff([
            (key: "t", operation: try text("=1\t+P\t=1")),
            (key: "o", operation: .object(ObjectDiff([(key: "u", operation: try text("=1\t+P\t=1"))]))),
        ])
        let applied = ObjectDiff([
            (key: "t", operation: try text("=1\t+P\t=1")),
            (key: "o", operation: .object(ObjectDiff([(key: "u", operation: try text("=2\t+P"))]))),
        ])
        let edit: ObjectDiff = ObjectDiff([
            (key: "t", operation: try text("=1\t-1\t=1")),
            (
                key: "o",
                operation: .object(
                    ObjectDiff([
                        (key: "u", operation: try text("=1\t-1\t=1")), (key: "v", operation: try text("-1\t=1")),
                    ]))
            ), (key: "n", operation: .increment(2)),
        ])
        let parts: (moved: ObjectDiff, rest: ObjectDiff) = JSONDiff.follow(edit, from: made, to: applied, base: base)
        #expect(
            parts.moved.json.serializedText == #"{"o":{"o":"O","v":{"u":{"o":"d","v":"=2\t-1"}}}}"#)
        #expect(parts.rest["t"] == edit["t"])
        #expect(parts.rest["n"] == .increment(2))
        let result = try JSONDiff.apply(
            JSONDiff.joined(parts.moved, parts.rest), to: JSONDiff.apply(applied, to: base))
        #expect(JSONValue.object(result).serializedText == #"{"t":"ab","o":{"u":"ab","v":"b"},"n":3}"#)
    }
}
