import ThicketTestSupport

@testable import ThicketProtocol

/// Random texts and edits: few letters, so that places coincide often; pairs, lines and controls among them.
extension SeededRandom {
    private static let characters: [[UInt16]] = [
        "a", "b", "c", "a", "b", "\n", " ", "é", "e\u{301}", "日", "😀", "😁", "🅰", "\t", "%", "\u{0}",
    ].map { Array($0.utf16) }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    /// Whole characters, `count` of them.
    mutating func text(_ count: Int) -> [UInt16] {
        (0..<count).flatMap { _ in Self.characters[below(Self.characters.count)] }
    }

    /// An edit of a text of `length` units, in which cuts may fall anywhere.
    mutating func delta(length: Int) -> TextDelta {
        var result = TextDelta()
        var left = length
        while left > 0 {
            let count = min(left, 1 + below(4))
            switch below(4) {
            case 0, 1: result.retain(count)
            case 2: result.delete(count)
            default:
                result.insert(text(1 + below(2)))
                continue
            }
            left -= count
        }
        if chance(30) { result.insert(text(1 + below(2))) }
        return result
    }

    /// An edit of a text that leaves no half of a pair; cuts inside pairs that stay are possible.
    mutating func delta(of units: [UInt16]) -> TextDelta {
        for _ in 0..<8 {
            let delta = delta(length: units.count)
            if let target = try? delta.apply(to: units), UTF16Text.string(of: target) != nil { return delta }
        }
        return .identity(length: units.count)
    }
}
