import ThicketCrypto
import ThicketTestSupport

/// T24 in full: every phrase that differs from one of 1,000 in one word, 49 million in all. As many are accepted as the
/// checksum allows, and none of them gives the same key.
public enum WordsRun {
    private static let wordCount = 24
    private static let listCount = 2_048

    /// - Parameter phrases: the number of original phrases.
    /// - Returns: the faults.
    public static func run(phrases: Int, seed: UInt64, report: (String) -> Void) throws -> [String] {
        var random = SeededRandom(seed: seed)
        // Each word is the first one of the phrase whose first eleven bits are its number.
        let list = try (0..<listCount).map { (number: Int) in
            try words([UInt8(number >> 3), UInt8(number & 7) << 5] + .init(repeating: 0, count: 30))[0]
        }
        var (tried, taken, same) = (0, 0, 0)
        for _ in 0..<phrases {
            let entropy = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
            let right = try words(entropy)
            for place in 0..<wordCount {
                let (before, behind): ([UInt8], [UInt8]) = (
                    Array(right[..<place].map { $0 + [0x20] }.joined()),
                    Array(right[(place + 1)...].map { [0x20] + $0 }.joined())
                )
                for word in list where word != right[place] {
                    tried += 1
                    guard let found = entropyOf(before + word + behind) else { continue }
                    taken += 1
                    if found == entropy { same += 1 }
                }
            }
        }
        return judged(tried: tried, taken: taken, same: same, wanted: phrases * wordCount * (listCount - 1), report)
    }

    /// The last word has eight bits of checksum and three of the key: 7 of its 2,047 changes fit, the others 1 in 256.
    private static func judged(
        tried: Int, taken: Int, same: Int, wanted: Int, _ report: (String) -> Void
    ) -> [String] {
        let expected = Double(tried) * (23.0 / 256 + 7.0 / 2_047) / 24
        let deviation = expected.squareRoot()
        report("\(tried) phrases with one other word: \(taken) taken, \(Int(expected)) expected, ± \(Int(deviation))")
        var faults = [String]()
        if tried != wanted { faults.append("\(tried) phrases, not \(wanted)") }
        if abs(Double(taken) - expected) > 5 * deviation {
            faults.append("\(taken) were taken, not about \(Int(expected))")
        }
        if same > 0 { faults.append("\(same) other phrases are the same key") }
        return faults
    }

    private static func words(_ entropy: [UInt8]) throws -> [[UInt8]] {
        try RecoveryWords.words(SecureBytes(copying: entropy)).withUnsafeBytes { Array($0) }
            .split(separator: 0x20).map(Array.init)
    }

    /// The entropy of a phrase; nil if it is refused.
    private static func entropyOf(_ text: [UInt8]) -> [UInt8]? {
        var room = [UInt8](repeating: 0, count: 32)
        let count = text.withUnsafeBytes { (text: UnsafeRawBufferPointer) in
            room.withUnsafeMutableBytes { (room: UnsafeMutableRawBufferPointer) in
                try? RecoveryWords.read(text, to: room)
            }
        }
        return count == 32 ? room : nil
    }
}
