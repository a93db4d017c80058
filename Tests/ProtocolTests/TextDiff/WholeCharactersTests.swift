import Testing
import ThicketProtocol
import ThicketTestSupport

/// Differences over which edits are carried do not touch a character that stayed, also where its halves occur in
/// others.
@Suite("Differences by whole characters")
struct WholeCharactersTests {
    private static func gap(_ source: String, _ target: String) -> TextDelta {
        var budget = StepBudget.standard
        return TextDelta.diff(from: source, to: target, keepsShortEqualities: true, budget: &budget)
    }

    @Test(
        "a character that stays is not removed and put back because its neighbour begins or ends with the same half",
        arguments: [
            ("\u{20000}\u{20001}", "\u{20001}", "-2\t=2"), ("\u{20000}\u{20001}", "\u{20000}", "=2\t-2"),
            ("\u{20400}\u{20800}x", "\u{20800}x", "-2\t=3"),
            ("a\u{1F600}\u{1F601}\u{1F602}b", "a\u{1F601}b", "=1\t-2\t=2\t-2\t=1"),
        ])
    func stays(source: String, target: String, delta: String) {
        #expect(Self.gap(source, target).encoded == delta)
    }

    @Test("a text of any characters becomes the other, and each that occurs once in both, in one order, stays")
    func random() throws {
        let seed: UInt64 = 20_261
        var random = SeededRandom(seed: seed)
        for round in 0..<400 {
            // Each character occurs once, so it is known what stayed.
            var all = [Unicode.Scalar]()
            for number in 0..<UInt32(random.next() % 260) {
                let value = random.next() % 2 == 0 ? 0x20000 + number * 37 : 0x4E00 + number
                if let scalar = Unicode.Scalar(value) { all.append(scalar) }
            }
            var (source, target) = ("", "")
            var kept = 0
            for scalar in all {
                let choice = random.next() % 8
                if choice > 0 { source.unicodeScalars.append(scalar) }
                if choice != 1 { target.unicodeScalars.append(scalar) }
                if choice > 1 { kept += scalar.value > 0xFFFF ? 2 : 1 }
            }
            let delta = Self.gap(source, target)
            #expect(try delta.apply(to: source).utf8.elementsEqual(target.utf8), "seed \(seed), round \(round)")
            let retained = delta.operations.reduce(0) { sum, operation in
                if case .retain(let count) = operation { sum + count } else { sum }
            }
            #expect(retained == kept, "seed \(seed), round \(round)")
        }
    }
}
