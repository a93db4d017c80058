import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// Segments as `=kept -deleted +inserted`, separated by bars.
private func show(_ segments: [DiffSegment]) -> String {
    segments.map { segment in
        let mark =
            switch segment.kind {
            case .equal: "="
            case .delete: "-"
            case .insert: "+"
            }
        return mark + String(decoding: segment.units, as: UTF16.self)
    }.joined(separator: "|")
}

private func segments(_ text: String) -> [DiffSegment] {
    text.split(separator: "|").map { part in
        DiffSegment(part.first == "=" ? .equal : part.first == "-" ? .delete : .insert, part.dropFirst().utf16)
    }
}

private func units(_ text: String) -> [UInt16] { Array(text.utf16) }

@Suite("Text diff")
struct TextDiffTests {
    private func delta(_ source: String, _ target: String, steps: Int = .max) -> TextDelta {
        var budget = StepBudget(steps: steps)
        return TextDelta.diff(from: source, to: target, budget: &budget)
    }

    @Test(
        "small differences give the expected deltas",
        arguments: [
            ("", "", ""), ("abc", "abc", "=3"), ("abc", "ab123c", "=2\t+123\t=1"), ("a123bc", "abc", "=1\t-3\t=2"),
            ("a123b456c", "abc", "=1\t-3\t=1\t-3\t=1"), ("a", "b", "-1\t+b"), ("", "a b#", "+a b#"), ("ab", "", "-2"),
            ("Apples are a fruit.", "Bananas are also fruit.", "-5\t+Banana\t=7\t+lso\t=7"),
            ("1ayb2", "abxab", "-5\t+abxab"),
        ])
    func small(source: String, target: String, wire: String) {
        #expect(delta(source, target).encoded == wire)
    }

    @Test(
        "a pair is never cut",
        arguments: [
            ("😀", "😁", "-2\t+%F0%9F%98%81"), ("a😀😀", "a😀😁😀", "=3\t+%F0%9F%98%81\t=2"),
            ("😀b", "🌀b", "-2\t+%F0%9F%8C%80\t=1"), ("😁😀", "😀", "-2\t=2"), ("😀😀", "😀", "=2\t-2"),
            ("x𐐷y", "x🐷y", "=1\t-2\t+%F0%9F%90%B7\t=1"),
        ])
    func pairs(source: String, target: String, wire: String) {
        #expect(delta(source, target).encoded == wire)
    }

    @Test("any difference leads to the target, with whole pairs in every step")
    func property() throws {
        var random = SeededRandom(seed: 31)
        for _ in 0..<4_000 {
            let source = random.text(random.below(30))
            let target: [UInt16] =
                random.chance(40) ? random.text(random.below(30)) : try random.delta(of: source).apply(to: source)
            var budget = StepBudget.unlimited
            let delta = TextDelta.diff(from: source, to: target, budget: &budget)
            #expect(try delta.apply(to: source) == target)
            #expect(try delta.keepingPairsWhole(in: source) == delta)
            for case .insert(let units) in delta.operations { #expect(UTF16Text.string(of: units) != nil) }
        }
    }

    @Test("long texts compared by lines lead to the target, too")
    func lines() throws {
        var random = SeededRandom(seed: 32)
        for _ in 0..<150 {
            let source: [UInt16] = (0..<(10 + random.below(30))).flatMap { _ in random.text(random.below(12)) + [0x0A] }
            var target: [UInt16] = try random.delta(of: source).apply(to: source)
            if random.chance(30) { target = target + source[..<(source.count / 2)] }
            var budget = StepBudget.unlimited
            for byLines in [true, false] {
                var found: [DiffSegment] = TextDiff.diff(source, target, byLines: byLines, budget: &budget)
                #expect(TextDiff.source(of: found) == source && TextDiff.target(of: found) == target)
                TextDiff.cleanupSemantic(&found)
                #expect(TextDiff.source(of: found) == source && TextDiff.target(of: found) == target)
                TextDiff.cleanupEfficiency(&found)
                #expect(TextDiff.source(of: found) == source && TextDiff.target(of: found) == target)
            }
        }
    }

    @Test("a budget that is used up makes the difference coarse, not wrong")
    func budget() throws {
        var random = SeededRandom(seed: 33)
        for steps in [0, 1, 10, 100, 1_000] {
            let (source, target) = (random.text(400), random.text(400))
            var budget = StepBudget(steps: steps)
            let delta = TextDelta.diff(from: source, to: target, budget: &budget)
            #expect(budget.isUsedUp)
            #expect(try delta.apply(to: source) == target)
        }
        #expect(delta("abcdef", "xyzuvw", steps: 0).encoded == "-6\t+xyzuvw")
    }

    @Test("a whole rewrite of a large text, or a text of one letter, ends with the budget")
    func hostile() throws {
        var random = SeededRandom(seed: 34)
        let source = (0..<20_000).map { _ in UInt16(97 + random.below(26)) }
        let target = (0..<20_000).map { _ in UInt16(97 + random.below(26)) }
        let letter: [UInt16] = Array(repeating: 97, count: 20_000)
        for (one, two): ([UInt16], [UInt16]) in [
            (source, target), ([1] + letter + [2], [3] + letter[..<12_000] + [4] + letter[..<7_000] + [5]),
        ] {
            var budget = StepBudget(steps: 50_000)
            let delta = TextDelta.diff(from: one, to: two, budget: &budget)
            #expect(budget.isUsedUp)
            #expect(try delta.apply(to: one) == two)
        }
    }

    @Test(
        "merging joins neighbours, removes what edits share and shifts edits over equalities",
        arguments: [
            ("=a|-b|+c", "=a|-b|+c"), ("=a|=b|=c", "=abc"), ("-a|-b|-c", "-abc"), ("-a|+b|-c|+d|=e|=f", "-ac|+bd|=ef"),
            ("-a|+abc|-dc", "=a|-d|+b|=c"), ("=x|-a|+abc|-dc|=y", "=xa|-d|+b|=cy"), ("=a|+ba|=c", "+ab|=ac"),
            ("=c|+ab|=a", "=ca|+ba"), ("=a|-b|=c|-ac|=x", "-abc|=acx"), ("=x|-ca|=c|-b|=a", "=xca|-cba"),
        ])
    func merge(before: String, after: String) {
        var found = segments(before)
        TextDiff.cleanupMerge(&found)
        #expect(show(found) == after)
    }

    @Test("segments that count as joined are left unchanged by merging")
    func clean() {
        var random = SeededRandom(seed: 35)
        var clean = 0
        for _ in 0..<20_000 {
            let kinds: [DiffSegment.Kind] = [.equal, .delete, .insert]
            let found = (0..<random.below(6)).map { _ in
                DiffSegment(kinds[random.below(3)], (0..<random.below(3)).map { _ in UInt16(97 + random.below(3)) })
            }
            guard TextDiff.isJoined(found) else { continue }
            clean += 1
            #expect(show(TextDiff.joined(found)) == show(found))
        }
        #expect(clean > 500)
        for unclean in ["=a|=b", "-a|-b", "+a|-b", "-ab|+ac", "-ab|+cb", "=a|-ab|+ac|=d"] {
            #expect(!TextDiff.isJoined(segments(unclean)), "\(unclean)")
        }
    }

    @Test(
        "equalities that cost more than they save are given up",
        arguments: [
            ("-ab|+12|=wxyz|-cd|+34", "-ab|+12|=wxyz|-cd|+34"), ("-ab|+12|=xyz|-cd|+34", "-abxyzcd|+12xyz34"),
            ("+12|=x|-cd|+34", "-xcd|+12x34"), ("-ab|+12|=xy|+34|=z|-cd|+56", "-abxyzcd|+12xy34z56"),
        ])
    func efficiency(before: String, after: String) {
        var found = segments(before)
        TextDiff.cleanupEfficiency(&found)
        #expect(show(found) == after)
    }

    @Test(
        "edits are made readable",
        arguments: [
            ("-a|=b|-c", "-abc|+b"), ("-ab|=cd|-e|=f|-g", "-abcdefg|+cdf"),
            ("+1|=A|-B|+2|=_|+1|=A|-B|+2", "-AB_AB|+1A2_1A2"),
            ("=The c|-ow and the c|=at.", "=The |-cow and the |=cat."), ("-abcxx|+xxdef", "-abcxx|+xxdef"),
            ("-abcxxx|+xxxdef", "-abc|=xxx|+def"), ("-xxxabc|+defxxx", "+def|=xxx|-abc"),
        ])
    func semantic(before: String, after: String) {
        var found = segments(before)
        TextDiff.cleanupSemantic(&found)
        #expect(show(found) == after)
    }

    @Test(
        "edits move to the ends of lines and words",
        arguments: [
            ("=AAA\n\nBBB|+\nDDD\n\nBBB|=\nEEE", "=AAA\n\n|+BBB\nDDD\n\n|=BBB\nEEE"),
            ("=The c|+ow and the c|=at.", "=The |+cow and the |=cat."),
            ("=The-c|+ow-and-the-c|=at.", "=The-|+cow-and-the-|=cat."), ("=a|-a|=ax", "-a|=aax"),
            ("=xa|-a|=a", "=xaa|-a"),
            ("=The xxx. The |+zzz. The |=yyy.", "=The xxx.|+ The zzz.|= The yyy."),
        ])
    func lossless(before: String, after: String) {
        var found = segments(before)
        TextDiff.cleanupSemanticLossless(&found)
        #expect(show(found) == after)
    }

    @Test(
        "a pattern is found near its place, with errors",
        arguments: [
            ("abcdefghijk", "fgh", 5, 5), ("abcdefghijk", "fgh", 0, 5), ("abcdefghijk", "efxhi", 0, 4),
            ("abcdefghijk", "cdefxyhijk", 5, 2), ("abcdefghijk", "bxy", 1, nil), ("123456789xx0", "3456789x0", 2, 2),
            ("abcdef", "xxabc", 4, 0), ("abcdef", "defyy", 4, 3), ("abcdef", "xabcdefy", 0, 0), ("", "abc", 0, nil),
        ] as [(String, String, Int, Int?)])
    func match(text: String, pattern: String, near: Int, place: Int?) {
        var budget = StepBudget.unlimited
        let found = units(pattern).withUnsafeBufferPointer { pattern in
            units(text).withUnsafeBufferPointer { TextMatch.find(pattern, in: $0, near: near, budget: &budget) }
        }
        #expect(found == place)
    }

    @Test(
        "hunks are applied where they fit, or not at all",
        arguments: [
            (
                "The quick brown fox jumps over the lazy dog.", "That quick brown fox jumped over a lazy dog.",
                "The quick red rabbit jumps over the tired tiger.", "That quick red rabbit jumped over a tired tiger.",
                "yy"
            ),
            (
                "The quick brown fox jumps over the lazy dog.", "That quick brown fox jumped over a lazy dog.",
                "I am the very model of a modern major general.", "I am the very model of a modern major general.", "nn"
            ),
            ("", "test", "", "test", "y"), ("XY", "XtestY", "XY", "XtestY", "y"), ("y", "y123", "x", "x123", "y"),
            (
                "x1234567890123456789012345678901234567890123456789012345678901234567890y", "xabcy",
                "x123456789012345678901234567890-----++++++++++-----123456789012345678901234567890y", "xabcy", "yy"
            ),
            (
                "x1234567890123456789012345678901234567890123456789012345678901234567890y", "xabcy",
                "x12345678901234567890---------------++++++++++---------------12345678901234567890y",
                "xabc12345678901234567890---------------++++++++++---------------12345678901234567890y", "ny"
            ),
        ])
    func patch(source: String, target: String, other: String, result: String, found: String) {
        var budget = StepBudget.unlimited
        let difference = TextDiff.diff(units(source), units(target), budget: &budget)
        let patches = TextDiff.patchMake(units(source), difference, budget: &budget)
        let outcome = TextDiff.patchApply(patches, to: units(other), budget: &budget)
        #expect(String(decoding: outcome.text, as: UTF16.self) == result)
        #expect(outcome.found == found.map { $0 == "y" })
        let same = TextDiff.patchApply(patches, to: units(source), budget: &budget)
        #expect(same.text == units(target))
    }

    @Test("the search agrees with looking everywhere, also for texts of few letters")
    func search() {
        var random = SeededRandom(seed: 35)
        for _ in 0..<2_000 {
            let text: [UInt16] = (0..<random.below(40)).map { _ in UInt16(random.below(2)) }
            let needle: [UInt16] = (0..<(1 + random.below(5))).map { _ in UInt16(random.below(2)) }
            let start = random.below(text.count + 1)
            let expected: Int? = (start..<(text.count + 1)).first { text[$0...].starts(with: needle) }
            let overlap: Int? = (0...min(text.count, needle.count)).last { text.suffix($0) == needle.prefix($0) }
            text.withUnsafeBufferPointer { text in
                needle.withUnsafeBufferPointer { needle in
                    #expect(UnitSearch.first(needle, in: text, from: start) == expected)
                    #expect(UnitSearch.overlap(text, needle) == overlap)
                }
            }
        }
        // The slow beginning of each match makes the search change its method.
        let letters: [UInt16] = Array(repeating: 97, count: 5_000)
        let needle: [UInt16] = letters[..<1_000] + [98]
        (letters + [98]).withUnsafeBufferPointer { text in
            needle.withUnsafeBufferPointer { #expect(UnitSearch.first($0, in: text) == 4_000) }
        }
    }
}
