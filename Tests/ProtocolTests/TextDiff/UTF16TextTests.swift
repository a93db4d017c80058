import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// Texts in code units: the same as the standard library's, whatever the text.
struct UTF16TextTests {
    @Test("runs of ASCII of every length between other characters give the units of the standard library")
    func runs() {
        for other in ["é", "日", "😀", "\u{0}", "\u{7F}\u{80}"] {
            for length in 0...40 {
                let run = String((0..<length).map { Character(UnicodeScalar(UInt8(33 + $0))) })
                for text in [run, run + other, other + run, run + other + run + other] {
                    #expect(UTF16Text.units(of: text) == Array(text.utf16), "\(text)")
                }
            }
        }
    }

    @Test("random texts give the units of the standard library, and come back")
    func random() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        for run in 0..<500 {
            let units = random.text(random.below(60)) + Array(String(repeating: "x", count: run % 30).utf16)
            let text = UTF16Text.string(of: units) ?? ""
            #expect(UTF16Text.units(of: text) == units, "run \(run) of seed \(seed)")
        }
    }
}
