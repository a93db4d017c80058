import Testing
import ThicketProtocol

@Suite("Names that come from outside")
struct IdentifierTests {
    @Test("a key of an object admits letters, digits and five other characters, and no other byte")
    func keys() throws {
        let admitted: Set<UInt8> = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-%@".utf8)
        for byte: UInt8 in 0..<0x80 {
            let text = "a" + String(UnicodeScalar(byte)) + "b"
            let isTaken: Bool = (try? EntityKey(text)) != nil
            #expect(isTaken == admitted.contains(byte), "byte \(byte)")
        }
        // Bytes from 0x80 on, of sequences of two, three and four.
        for scalar: UInt32 in [0x80, 0xBF, 0xC0, 0xE9, 0x7FF, 0x800, 0xFFFD, 0x1_0000, 0x10_FFFF] {
            let text = try #require(UnicodeScalar(scalar).map { String($0) })
            #expect(throws: IdentifierError.self) { try EntityKey(text) }
        }
        #expect(throws: IdentifierError.self) { try EntityKey("") }
        let longest = String(repeating: "k", count: Limits.entityKeyBytesMax)
        #expect(try EntityKey(longest).text == longest)
        #expect(throws: IdentifierError.self) { try EntityKey(longest + "k") }
    }

    // MARK: Problems of a name

    /// The problem that a type reports for a text; nil: it accepts the text.
    private static func problem<Name: Identifier>(_ type: Name.Type, _ text: String) -> String? {
        do throws(IdentifierError) { _ = try Name(text) } catch { return "\(error)" }
        return nil
    }

    @Test(
        "each type reports the first character that it does not admit, and its place; invisible ones by number",
        arguments: [
            (AppID.self, "app id", "%", "'%'"), (AppID.self, "app id", "@", "'@'"),
            (AppID.self, "app id", "é", "U+00E9"),
            (BucketName.self, "bucket name", "@", "'@'"), (BucketName.self, "bucket name", " ", "a blank"),
            (EntityKey.self, "object key", "/", "'/'"), (EntityKey.self, "object key", " ", "a blank"),
            (EntityKey.self, "object key", "\u{202E}", "U+202E"), (EntityKey.self, "object key", "\u{0}", "U+0000"),
            (EntityKey.self, "object key", "🎉", "U+1F389"), (EntityKey.self, "object key", "'", "'''"),
            (UserID.self, "user name", "\n", "U+000A"), (UserID.self, "user name", "\u{7F}", "U+007F"),
            (ClientID.self, "clientid", "\t", "U+0009"), (ClientID.self, "clientid", "\u{1B}", "U+001B"),
            (ChangeID.self, "ccid", " ", "a blank"), (ChangeID.self, "ccid", "ß", "U+00DF"),
            (ChangeVersion.self, "change version", ":", "':'"),
        ] as [(any Identifier.Type, String, String, String)])
    func characters(type: any Identifier.Type, kind: String, refused: String, called: String) {
        #expect(
            Self.problem(type, refused) == "\(kind): holds \(called) (character 1), which is not admitted")
        #expect(
            Self.problem(type, "ab\(refused)c\(refused)/")
                == "\(kind): holds \(called) (character 3), which is not admitted")
        #expect(Self.problem(type, "ab") == nil)
    }

    @Test("places are counted in characters, not in bytes")
    func places() {
        #expect(
            Self.problem(UserID.self, "é🎉\u{0}") == "user name: holds U+0000 (character 3), which is not admitted")
    }

    @Test(
        "a name that is too long reports its length and the maximum, an empty one that it is empty",
        arguments: [
            (AppID.self, "app id", 64), (BucketName.self, "bucket name", 64), (EntityKey.self, "object key", 256),
            (UserID.self, "user name", 256), (ClientID.self, "clientid", 256), (ChangeID.self, "ccid", 256),
            (ChangeVersion.self, "change version", 256),
        ] as [(any Identifier.Type, String, Int)])
    func lengths(type: any Identifier.Type, kind: String, most: Int) {
        #expect(Self.problem(type, String(repeating: "a", count: most)) == nil)
        #expect(
            Self.problem(type, String(repeating: "a", count: most + 1))
                == "\(kind): is \(most + 1) bytes long, the maximum is \(most)")
        #expect(Self.problem(type, "") == "\(kind): is empty")
    }

    @Test(
        "a new user's name has no invisible character at an end; an existing user's name may have",
        arguments: [
            ("a ", "ends with a blank (character 2); leave it out"), (" a", "begins with a blank; leave it out"),
            ("a\u{A0}", "ends with U+00A0 (character 2); leave it out"),
            ("\u{3000}a", "begins with U+3000; leave it out"),
            ("é\u{200B}", "ends with U+200B (character 2); leave it out"),
            ("a\u{200D}", "ends with U+200D (character 2); leave it out"),
            ("\u{FEFF}a", "begins with U+FEFF; leave it out"),
            ("a\u{202E}", "ends with U+202E (character 2); leave it out"),
            ("a\u{85}", "ends with U+0085 (character 2); leave it out"),
            ("a\u{3164}", "ends with U+3164 (character 2); leave it out"), (" ", "begins with a blank; leave it out"),
        ])
    func newUsers(name: String, problem: String) {
        #expect(UserID.problem(asNew: name) == problem)
        #expect(UserID.problem(of: name) == nil)
    }

    @Test(
        "other names are accepted for new users, too",
        arguments: ["a", "Ann Lee", "ann@example.com", "é", "日本", "❤\u{FE0F}", "a\u{200D}b", "🎉", ".", "👩\u{200D}💻"])
    func seenNames(name: String) { #expect(UserID.problem(asNew: name) == nil) }

    @Test("a name that no user may have is refused for new users, too; a shorter bound is respected")
    func noNames() {
        #expect(UserID.problem(asNew: "") == "is empty")
        #expect(UserID.problem(asNew: "a\n") == "holds U+000A (character 2), which is not admitted")
        #expect(UserID.problem(asNew: "abc", bytesMax: 2) == "is 3 bytes long, the maximum is 2")
        #expect(UserID.problem(of: "abc", bytesMax: 2) == "is 3 bytes long, the maximum is 2")
    }
}
