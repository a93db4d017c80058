import ThicketTestSupport

/// File names of at most 255 bytes: letters of many scripts, composed and decomposed, emoji of several code points.
struct RandomNames {
    private var random: SeededRandom
    private static let scripts = [
        ["日", "本", "語", "木", "한", "글", "中"], ["ä", "é", "ñ", "ø", "ß", "Å"],
        // The same letters with a combining mark after them.
        ["a\u{308}", "e\u{301}", "n\u{303}", "A\u{30A}", "o\u{302}\u{323}"],
        ["🙋", "👩‍👩‍👧", "🇫🇷", "👍🏽", "❤️"], ["ب", "ש", "क्षि", "ไ", "Ж"], ["a", "Z", "7", " ", "%", "@", ".", "_", "-"],
    ]

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    mutating func next() -> String {
        // Mostly of one script, as names are.
        let main = Self.scripts[Int.random(in: 0..<Self.scripts.count, using: &random)]
        let ending = ["", ".md", ".json", ".txt"][Int.random(in: 0..<4, using: &random)]
        let bytes = Int.random(in: 1...255 - ending.utf8.count, using: &random)
        // No name that is passed over, and none that is a key as it is.
        var name = "n"
        while true {
            let script =
                Int.random(in: 0..<10, using: &random) == 0
                ? Self.scripts[Int.random(in: 0..<Self.scripts.count, using: &random)] : main
            let letter = script[Int.random(in: 0..<script.count, using: &random)]
            guard name.utf8.count + letter.utf8.count <= bytes else { return name + ending }
            name += letter
        }
    }
}
