import ThicketProtocol
import ThicketTestSupport

/// Random values that favour awkward cases: escapes, surrogate pairs, empty names, numbers in every notation.
struct RandomJSON {
    var random: SeededRandom

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    mutating func value(depth: Int = 4) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 9 : 6), using: &random) {
        case 0: .null
        case 1: .bool(Bool.random(using: &random))
        case 2, 3: .number(number())
        case 4, 5: .string(text())
        case 6: .array((0..<Int.random(in: 0...5, using: &random)).map { _ in value(depth: depth - 1) })
        default: .object(object(depth: depth - 1))
        }
    }

    mutating func object(depth: Int = 3) -> JSONObject {
        // Sometimes an object that is large enough for the hash index.
        let count = Int.random(in: 0..<20, using: &random) == 0 ? 40 : Int.random(in: 0...6, using: &random)
        return JSONObject((0..<count).map { _ in (key: text(), value: value(depth: count > 6 ? 0 : depth)) })
    }

    mutating func text() -> String {
        let pieces = [
            "a", "Zq", "0123456789", "\"", "\\", "/", "\n", "\t", "\u{0}", "\u{1F}", "\u{7F}", "é", "e\u{301}", "€",
            "😀", "👨‍👩‍👧", "\u{FFFF}", "\u{10FFFF}", "\u{2028}", "{", "]", ":", ",", " ", "\\u0041",
        ]
        return (0..<Int.random(in: 0...8, using: &random))
            .map { _ in pieces[Int.random(in: 0..<pieces.count, using: &random)] }.joined()
    }

    mutating func number() -> JSONNumber {
        let forms = [
            "0", "-0", "1.0", "-12.50", "1e3", "1E-7", "0.1", "123456789012345678901234567890", "1e400",
        ]
        if Bool.random(using: &random), let form = JSONNumber(lexeme: forms.randomElement(using: &random) ?? "0") {
            return form
        }
        return JSONNumber(Int64.random(in: -1_000...1_000, using: &random))
    }
}
