import Testing
import ThicketTestSupport

@testable import ThicketCrypto

/// Words and codes as users paste them.
@Suite("Pasted secrets")
struct PastedTextTests {
    private static let phrase = Array(repeating: "abandon", count: 23) + ["art"]

    private func entropy(_ text: String) throws(RecoveryWords.Failure) -> [UInt8] {
        try RecoveryWords.entropy(SecureBytes(copying: Array(text.utf8))).withUnsafeBytes { Array($0) }
    }

    @Test(
        "the words are read from a numbered list, with commas, marks of no width and full-width forms",
        arguments: [
            { words in words.enumerated().map { "\($0 + 1). \($1)" }.joined(separator: "\n") },
            { words in words.enumerated().map { "\($0 + 1)) \($1)   " }.joined() },
            { words in words.joined(separator: ", ") + "." },
            { words in "\u{FEFF}" + words.joined(separator: "\r\n") },
            { words in words.joined(separator: "\u{A0}\u{200B}") },
            { words in words.map { "\u{200E}\($0)\u{AD}" }.joined(separator: "\u{3000}") },
            { words in words.map { $0.uppercased() }.joined(separator: " – ") },
            { words in words.enumerated().map { "\($0 + 1).\($1)" }.joined(separator: "\t") },
            { words in
                words.map { word in
                    String(String.UnicodeScalarView(word.unicodeScalars.map { Unicode.Scalar($0.value + 0xFEE0)! }))
                }.joined(separator: "　")
            },
        ] as [@Sendable ([String]) -> String])
    func forms(_ write: @Sendable ([String]) -> String) throws {
        #expect(try entropy(write(Self.phrase)) == Array(repeating: 0, count: 32))
    }

    @Test("a word that is not in the list stays a named error, wherever the numbers are")
    func unknown() {
        var words = Self.phrase
        words[4] = "äbandon"
        let numbered = words.enumerated().map { "\($0 + 1). \($1)" }.joined(separator: "\n")
        #expect(throws: RecoveryWords.Failure.unknownWord(5)) { try entropy(numbered) }
        #expect(throws: RecoveryWords.Failure.count) { try entropy("1. 2. 3.") }
        #expect(throws: RecoveryWords.Failure.unknownWord(1)) { try entropy("abandonabandon") }
    }

    @Test("a code is read with the punctuation that users put between its groups")
    func codes() throws {
        let bytes = SecureBytes(copying: Array(0..<40))
        let code = try #require(WrittenCode.text(of: bytes)).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        for written in [
            code, "\u{FEFF}" + code.replacing(" ", with: "."), code.replacing(" ", with: "–"),
            code.replacing("\n", with: "\r\n"), code.replacing(" ", with: "\u{200B} "), code.uppercased(),
        ] {
            #expect(try WrittenCode.bytes(of: SecureBytes(copying: Array(written.utf8))) == bytes)
        }
        #expect(throws: WrittenCode.Failure.unreadable) {
            try WrittenCode.bytes(of: SecureBytes(copying: Array(code.replacing(" ", with: "é").utf8)))
        }
    }

    @Test("bytes that are not UTF-8 stay as they are, and no text grows", arguments: [UInt64(1), 2, 3])
    func anyBytes(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let plain = PastedText.plain(SecureBytes(copying: bytes)).withUnsafeBytes { Array($0) }
            #expect(plain.count <= bytes.count)
            let again = PastedText.plain(SecureBytes(copying: plain)).withUnsafeBytes { Array($0) }
            #expect(again == plain, "seed \(seed): \(bytes)")
        }
    }
}
