import Testing
import ThicketTestSupport

@testable import ThicketProtocol

@Suite("Text delta")
struct TextDeltaTests {
    @Test(
        "tokens are read leniently and written in normal form",
        arguments: [
            ("", ""), ("=3", "=3"), ("=1\t=2", "=3"), ("=0\t-0\t+\t=4", "=4"), ("=4\t", "=4"), ("\t\t=4", "=4"),
            ("-3\t+x", "-3\t+x"), ("+x\t-3", "+x\t-3"), ("+a\t+b\t=1", "+ab\t=1"), ("+a+b", "+a+b"), ("=007", "=7"),
            ("+%23%2F%3a", "+#/:"), ("+a b%0A", "+a b%0A"), ("+;,/?:@&=+$-_.!~*'()#", "+;,/?:@&=+$-_.!~*'()#"),
            ("+\"<>[]{}|^`\\%25", "+%22%3C%3E%5B%5D%7B%7D%7C%5E%60%5C%25"), ("+é😀", "+%C3%A9%F0%9F%98%80"),
            ("+%ed%a0%bd%ed%b8%80", "+%F0%9F%98%80"), ("+%ED%A0%BD\t-1", "+%ED%A0%BD\t-1"),
            ("=1\t-1\t+%ED%B8%81", "=1\t-1\t+%ED%B8%81"),
        ])
    func codec(wire: String, normal: String) throws {
        #expect(try TextDelta(parsing: wire).encoded == normal)
    }

    @Test(
        "an unreadable token is refused with its number",
        arguments: [
            ("x", DeltaError.unknownToken(token: 0)), ("=1\t*2", .unknownToken(token: 1)), ("=", .badCount(token: 0)),
            ("=a", .badCount(token: 0)), ("-+1", .badCount(token: 0)), ("=1 ", .badCount(token: 0)),
            ("=99999999999999999999", .badCount(token: 0)), ("=1099511627776\t=1099511627776", .badCount(token: 1)),
            ("+%", .badEscape(token: 0)), ("+%4", .badEscape(token: 0)), ("+%zz", .badEscape(token: 0)),
            ("+%C3", .badEscape(token: 0)), ("+%C3%C3", .badEscape(token: 0)), ("+%FF", .badEscape(token: 0)),
            ("+%C0%80", .badEscape(token: 0)), ("+%F4%90%80%80", .badEscape(token: 0)),
        ])
    func refused(wire: String, error: DeltaError) {
        #expect(throws: error) { try TextDelta(parsing: wire) }
    }

    @Test("counts are UTF-16 units, and cut pairs are joined again")
    func applyToString() throws {
        let face = "a😀z"
        #expect(try TextDelta(parsing: "=3\t+é\t=1").apply(to: face).utf8.elementsEqual("a😀éz".utf8))
        #expect(try TextDelta(parsing: "=2\t-1\t+%ED%B8%81\t=1").apply(to: face).utf8.elementsEqual("a😁z".utf8))
        #expect(throws: DeltaError.splitSurrogate) { try TextDelta(parsing: "=2\t-1\t=1").apply(to: face) }
        #expect(throws: DeltaError.lengthMismatch(delta: 3, text: 4)) { try TextDelta(parsing: "=3").apply(to: face) }
        #expect(throws: DeltaError.lengthMismatch(delta: 6, text: 4)) { try TextDelta(parsing: "=6").apply(to: face) }
        #expect(throws: DeltaError.lengthMismatch(delta: 5, text: 4)) { try TextDelta(parsing: "=5").apply(to: "abcd") }
    }

    @Test("applying over UTF-8 and over UTF-16 gives the same result")
    func bothWays() throws {
        var random = SeededRandom(seed: 1)
        for _ in 0..<2_000 {
            let text = random.text(random.below(20))
            let delta = random.delta(length: text.count)
            let units = try delta.apply(to: text)
            let source = try #require(UTF16Text.string(of: text))
            if let target = UTF16Text.string(of: units) {
                #expect(try delta.apply(to: source).utf8.elementsEqual(target.utf8))
            } else {
                #expect(throws: DeltaError.splitSurrogate) { try delta.apply(to: source) }
            }
        }
    }

    @Test("an encoded delta reads back the same")
    func roundTrip() throws {
        var random = SeededRandom(seed: 2)
        for _ in 0..<3_000 {
            let delta = random.delta(length: random.below(20))
            #expect(try TextDelta(parsing: delta.encoded) == delta)
        }
    }

    @Test("a composed delta does what both do, one after the other")
    func compose() throws {
        var random = SeededRandom(seed: 3)
        for _ in 0..<5_000 {
            let text = random.text(random.below(16))
            let first = random.delta(length: text.count)
            let second = random.delta(length: first.targetLength)
            let both = try TextDelta.compose(first, second)
            #expect(both.sourceLength == text.count)
            #expect(try both.apply(to: text) == second.apply(to: first.apply(to: text)))
        }
    }

    @Test(
        "composing keeps every insertion at its place",
        arguments: [
            ("+x\t-3\t=2", "=3", "+x\t-3\t=2"),
            ("-3\t+x\t=2", "=3", "-3\t+x\t=2"),
            ("-3\t+a\t=2", "=1\t+b\t=2", "-3\t+ab\t=2"),
            ("+a\t-3\t=2", "=1\t+b\t=2", "+ab\t-3\t=2"),
            ("=1\t-3\t=1", "=1\t+b\t=1", "=1\t+b\t-3\t=1"),
            ("-2\t=1\t-2", "=1\t+b", "-2\t=1\t+b\t-2"),
            ("+ab\t-3", "-2\t+x", "+x\t-3"),
            ("=2\t+ab\t=2", "=3\t-1\t=2", "=2\t+a\t=2"),
        ])
    func composed(first: String, second: String, both: String) throws {
        #expect(try TextDelta.compose(TextDelta(parsing: first), TextDelta(parsing: second)).encoded == both)
    }

    @Test("two concurrent edits converge in either order, for either tie-break")
    func meeting() throws {
        var random = SeededRandom(seed: 4)
        for _ in 0..<8_000 {
            let text = random.text(random.below(12))
            let (a, b) = (random.delta(length: text.count), random.delta(length: text.count))
            let tie: TieBreak = random.chance(50) ? .after : .before
            let one = try TextDelta.transform(a, over: b, tie: tie).apply(to: b.apply(to: text))
            let two = try TextDelta.transform(b, over: a, tie: tie.opposite).apply(to: a.apply(to: text))
            #expect(one == two, "text \(text) a \(a) b \(b)")
        }
    }

    @Test("after a transform no insertion of either side is missing, and no deleted text of either side is left")
    func nothingLost() throws {
        var random = SeededRandom(seed: 5)
        for _ in 0..<5_000 {
            // Every unit shows where it comes from.
            let text = (0..<random.below(12)).map { UInt16(1_000 + $0) }
            var next: UInt16 = 2_000
            func tagged(_ delta: TextDelta) -> TextDelta {
                TextDelta(
                    delta.operations.map { operation in
                        guard case .insert(let units) = operation else { return operation }
                        next += UInt16(units.count)
                        return .insert((0..<units.count).map { next - UInt16($0) })
                    })
            }
            let a = tagged(random.delta(length: text.count))
            let b = tagged(random.delta(length: text.count))
            let (onlyA, onlyB) = (try a.apply(to: text), try b.apply(to: text))
            let result = try TextDelta.transform(a, over: b, tie: .after).apply(to: onlyB)
            let kept = Set(text).intersection(onlyA).intersection(onlyB)
            let typed = Set(onlyA + onlyB).subtracting(text)
            #expect(Set(result) == kept.union(typed))
            #expect(result.count == kept.count + typed.count)
        }
    }

    @Test("of insertions at one place the later one comes after, or before if it was the earlier one")
    func ties() throws {
        let (a, b): (TextDelta, TextDelta) = (try .init(parsing: "=1\t+A\t=1"), try .init(parsing: "=1\t+BB\t=1"))
        #expect(try TextDelta.transform(a, over: b, tie: .after).encoded == "=3\t+A\t=1")
        #expect(try TextDelta.transform(a, over: b, tie: .before).encoded == "=1\t+A\t=3")
        let inside = try TextDelta(parsing: "=2\t+B\t=2")
        #expect(try TextDelta.transform(inside, over: .init(parsing: "-4\t+x"), tie: .after).encoded == "-0\t+B\t=1")
        #expect(try TextDelta.transform(inside, over: .init(parsing: "+x\t-4"), tie: .after).encoded == "=1\t-0\t+B")
    }

    @Test("deltas of other lengths are refused")
    func mismatched() throws {
        let (a, b): (TextDelta, TextDelta) = (.identity(length: 3), .identity(length: 4))
        #expect(throws: DeltaError.lengthMismatch(delta: 3, text: 4)) {
            try TextDelta.transform(a, over: b, tie: .after)
        }
        #expect(throws: DeltaError.lengthMismatch(delta: 4, text: 3)) { try TextDelta.compose(a, b) }
        #expect(throws: DeltaError.lengthMismatch(delta: 3, text: 1)) { try a.apply(to: [65]) }
    }

    @Test("an edit that cuts pairs is widened to whole characters, with the same result")
    func wholePairs() throws {
        var random = SeededRandom(seed: 6)
        var widened = 0
        for _ in 0..<4_000 {
            let text = random.text(random.below(12))
            let delta = random.delta(length: text.count)
            let target = try delta.apply(to: text)
            guard UTF16Text.string(of: target) != nil else { continue }
            let whole = try delta.keepingPairsWhole(in: text)
            #expect(try whole.apply(to: text) == target)
            for case .insert(let units) in whole.operations { #expect(UTF16Text.string(of: units) != nil) }
            if whole != delta { widened += 1 }
        }
        #expect(widened > 50)
        let swap = try TextDelta(parsing: "=1\t-1\t+%ED%B8%81")
        #expect(try swap.keepingPairsWhole(in: Array("😀".utf16)).encoded == "-2\t+%F0%9F%98%81")
    }
}
