import Glibc
import Testing
import ThicketOnions
import ThicketProtocol
import ThicketTestSupport

@Suite("Typing into a text with a limit")
struct TypedTextTests {
    @Test("typed text is inserted at the cursor, and the part that does not fit is dropped")
    func cursor() {
        var text = TypedText("abef", unitsMax: 6)
        text.move(to: 2)
        #expect(text.insert("cdXY") == 2)
        #expect(text.text == "abcdef" && text.cursor == 4)
        #expect(text.insert("Z") == 1)
        #expect(text.text == "abcdef")
    }

    @Test("selected text counts as removed when the limit is checked")
    func selection() {
        var text = TypedText("abcdef", unitsMax: 6)
        text.move(to: 1)
        for _ in 0..<3 { text.moveRight(selects: true) }
        #expect(text.selection == 1..<4)
        #expect(text.insert("12345") == 2)
        #expect(text.text == "a123ef" && text.cursor == 4 && text.anchor == nil)
        text.selectAll()
        #expect(text.insert("é日😀") == 0)
        #expect(text.text == "é日😀" && text.units == 4)
    }

    @Test(
        "a character is never cut",
        arguments: [
            ("", 3, "😀😀", "😀"), ("a", 2, "😀", "a"), ("", 11, "👨‍👩‍👧‍👦👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"), ("", 10, "👨‍👩‍👧‍👦b", ""),
            ("", 1, "e\u{301}x", ""), ("ab", 3, "\r\n", "ab"), ("", 3, "🇫🇷🇫🇷", ""), ("", 4, "🇫🇷🇫🇷", "🇫🇷"),
            // After the existing text these form other characters than by themselves.
            ("🇫", 6, "🇷🇫🇷", "🇫🇷"), ("e", 2, "\u{301}x", "e\u{301}"), ("e", 2, "\u{301}\u{302}", "e"),
        ] as [(String, Int, String, String)])
    func characters(start: String, unitsMax: Int, typed: String, result: String) {
        var text = TypedText(start, unitsMax: unitsMax)
        text.insert(typed)
        #expect(Array(text.text.utf8) == Array(result.utf8))
    }

    @Test(
        "a character typed in parts is inserted as a whole or not at all, and the text before it stays",
        arguments: [
            ("", 30, "👨‍👩‍👧‍👦!", "👨‍👩‍👧‍👦!"), ("abc", 3, "d", "abc"), ("", 3, "🇫🇷", ""), ("", 7, "🇫🇷🇫🇷", "🇫🇷"), ("", 10, "👨‍👩‍👧‍👦", ""),
            ("a", 3, "👍🏽", "a"), ("x", 2, "e\u{301}", "x"), ("", 4, "👨‍👩‍👧‍👦ab", "ab"), ("e", 1, "\u{301}", "e"),
            ("ab", 3, "😀\u{200D}😀c", "abc"),
        ] as [(String, Int, String, String)])
    func typedInParts(start: String, unitsMax: Int, typed: String, result: String) {
        var text = TypedText(start, unitsMax: unitsMax)
        var dropped = 0
        for scalar in typed.unicodeScalars { dropped += text.type(scalar) }
        #expect(Array(text.text.utf8) == Array(result.utf8), "\(text.text)")
        #expect(text.units == start.utf16.count + typed.utf16.count - dropped && text.cursor == text.units)
    }

    @Test("only the character that is being typed is taken back: after another key an existing letter stays")
    func begunBefore() {
        var text = TypedText(unitsMax: 1)
        text.type("e")
        text.moveLeft()
        text.moveRight()
        #expect(text.type("\u{301}") == 1)
        #expect(text.text == "e")
        text.deleteBackward()
        #expect(text.type("x") == 0 && text.text == "x")
    }

    @Test("deleting is always allowed, also in a text that is too long")
    func deleting() {
        var text = TypedText("abcdef", unitsMax: 3)
        #expect(text.insert("x") == 1)
        text.deleteBackward()
        #expect(text.text == "abcde")
        text.move(to: 1)
        text.deleteForward()
        #expect(text.text == "acde" && text.cursor == 1)
        text.selectAll()
        text.deleteBackward()
        #expect(text.text.isEmpty && text.cursor == 0)
        text.deleteBackward()
        text.deleteForward()
        #expect(text.text.isEmpty)
    }

    @Test("deleting removes a whole character")
    func wholes() {
        var text = TypedText("x👨‍👩‍👧‍👦e\u{301}", unitsMax: 30)
        text.deleteBackward()
        #expect(text.text == "x👨‍👩‍👧‍👦")
        text.moveLeft()
        #expect(text.cursor == 1)
        text.deleteForward()
        #expect(text.text == "x")
    }

    @Test(
        "a published text fits if it has at most 30 UTF-16 units",
        .enabled(if: Vectors.has("onions"), "needs the onions vectors"))
    func published() throws {
        let cases = try Vectors.json("onions/limits.json").list("cases")
        #expect(!cases.isEmpty)
        for each in cases {
            let (whole, units) = (try each.text("text"), try each.int("utf16"))
            var text = TypedText(unitsMax: NoteField.title.unitsMax)
            let dropped = text.insert(whole)
            #expect((dropped == 0) == (units <= 30) && text.units + dropped == units)
        }
    }

    @Test(
        "after any operation the text keeps its limit, the cursor is between characters and the drop count is exact"
    )
    func anything() {
        let seed = getenv("THICKET_SEED").flatMap { UInt64(String(cString: $0)) } ?? .random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        let pieces = [
            "a", "é", "e\u{301}", "\u{301}", "日", "😀", "👨‍👩‍👧‍👦", "\u{200D}", "🇫", "🇷", "\r\n", "\n", "ab c",
        ]
        for _ in 0..<300 {
            var text = TypedText(unitsMax: Int.random(in: 0...30, using: &random))
            for _ in 0..<40 {
                let before = text
                switch Int.random(in: 0..<8, using: &random) {
                case 0: text.deleteBackward()
                case 1: text.deleteForward()
                case 2: text.moveLeft(selects: Bool.random(using: &random))
                case 3: text.moveRight(selects: Bool.random(using: &random))
                case 4: text.move(to: Int.random(in: -2...32, using: &random), selects: Bool.random(using: &random))
                case 5:
                    let scalar =
                        pieces.randomElement(using: &random)?.unicodeScalars.randomElement(using: &random) ?? "x"
                    let dropped = text.type(scalar)
                    #expect(
                        text.units == before.units - before.selection.count + scalar.utf16.count - dropped,
                        "seed \(seed)")
                default:
                    let typed = pieces.randomElement(using: &random) ?? "x"
                    let dropped = text.insert(typed)
                    #expect(
                        text.units == before.units - before.selection.count + typed.utf16.count - dropped,
                        "seed \(seed)")
                }
                #expect(text.units <= text.unitsMax, "seed \(seed)")
                var places: Set<Int> = [0]
                var sum = 0
                for character in text.text {
                    sum += character.utf16.count
                    places.insert(sum)
                }
                #expect(places.contains(text.cursor), "seed \(seed)")
            }
        }
    }
}
