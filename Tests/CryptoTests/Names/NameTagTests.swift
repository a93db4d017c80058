import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@Suite("Folding and tags of names")
struct NameTagTests {
    @Test(
        "every published name has its folded form and its tag",
        .enabled(if: Vectors.has("container/name-tags.json"), "needs the container vectors"))
    func published() throws {
        let cases = try Vectors.json("container/name-tags.json").list("cases")
        #expect(cases.count == 76)
        for each in cases {
            let (name, salt) = (try each.hex("name_utf8"), try each.hex("salt"))
            #expect(try Hex.encode(UnicodeText.folded(name)) == each.text("folded_utf8"))
            #expect(try Hex.encode(NameTag.bytes(of: name, salt: salt)) == each.text("tag20"))
            #expect(try NameTag.text(of: name, salt: salt) == each.text("tag"))
        }
    }

    @Test(
        "names that users hold equal fold to equal bytes",
        arguments: [
            ["Straße", "STRASSE", "strasse", "straẞe"], ["caf\u{E9}", "cafe\u{301}", "CAFÉ"],
            ["ΣΊΣΥΦΟΣ", "Σίσυφος"], ["\u{212B}", "\u{C5}", "A\u{30A}", "å"],
        ])
    func equal(names: [String]) throws {
        let folded: Set<[UInt8]> = Set(try names.map { try UnicodeText.folded(Array($0.utf8)) })
        #expect(folded.count == 1)
    }

    @Test("folding follows no language's rules: a Turkish I stays apart")
    func locale() throws {
        #expect(try UnicodeText.folded(Array("I".utf8)) == Array("i".utf8))
        #expect(try UnicodeText.folded(Array("İ".utf8)) == Array("i\u{307}".utf8))
        #expect(try UnicodeText.folded(Array("ı".utf8)) == Array("ı".utf8))
    }

    @Test("composing joins letters and marks, and leaves compatibility forms as they are")
    func composed() throws {
        #expect(try UnicodeText.composed(Array("e\u{301} \u{FF46} \u{FB01}".utf8)) == Array("é \u{FF46} \u{FB01}".utf8))
        #expect(try UnicodeText.composed([]) == [] && UnicodeText.folded([]) == [])
        #expect(try UnicodeText.composed(Array("a\0b".utf8)) == Array("a\0b".utf8))
        let lent: [UInt8] = try Array("e\u{301}".utf8).withUnsafeBytes { bytes in
            try UnicodeText.composed(bytes) { Array($0) }
        }
        #expect(lent == Array("é".utf8))
    }

    @Test("a name that is not UTF-8, or too long, is refused")
    func refusals() {
        for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0x61, 0xC3], [0xF5, 0x80, 0x80, 0x80]] {
            #expect(throws: UnicodeText.Failure.notUTF8) { try UnicodeText.folded(bytes) }
        }
        let long = [UInt8](repeating: 0x61, count: UnicodeText.bytesMax + 1)
        #expect(throws: UnicodeText.Failure.tooLong) { try UnicodeText.folded(long) }
        #expect(throws: Never.self) { try UnicodeText.folded(long.dropLast()) }
    }

    @Test(
        "base32 in lower case (RFC 4648, section 10), in both directions",
        arguments: [
            ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ])
    func base32(text: String, encoded: String) {
        #expect(Base32.encode(Array(text.utf8)) == encoded)
        #expect(Base32.decode(encoded.utf8) == Array(text.utf8))
        #expect(isText(encoded, of: text))
        for wrong in [encoded + "a", String(encoded.dropLast()), encoded.uppercased(), encoded + "="]
        where wrong != encoded { #expect(!isText(wrong, of: text), "\(wrong)") }
        for place in 0..<encoded.utf8.count {
            var letters: [UInt8] = Array(encoded.utf8)
            letters[place] = letters[place] == 0x61 ? 0x62 : 0x61
            #expect(!isText(String(decoding: letters, as: UTF8.self), of: text))
        }
    }

    private func isText(_ letters: String, of text: String) -> Bool {
        Array(letters.utf8).withUnsafeBytes { letters in
            Array(text.utf8).withUnsafeBytes { Base32.isText(letters, of: $0) }
        }
    }

    @Test(
        "base32 text that is not canonical is refused",
        arguments: ["MY", "my======", "m", "mz", "mzx", "mzxw6y", "m1", "my "])
    func strict(text: String) { #expect(Base32.decode(text.utf8) == nil) }
}
