import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@Suite("Names below one parent")
struct NameTests {
    private static let salt = [UInt8](repeating: 5, count: 32)

    private static func tag(_ name: NodeName) throws -> NodeTag { try NodeTag(of: name.octets, salt: salt) }

    /// A random name of letters with case, letters without, marks, symbols and blanks.
    private static func name(_ random: inout SeededRandom) -> String {
        let ranges: [ClosedRange<UInt32>] = [
            0x20...0x7E, 0xC0...0x24F, 0x370...0x3FF, 0x400...0x52F, 0x300...0x314, 0x1E00...0x1EFF, 0x3041...0x3096,
            0xAC00...0xD7A3, 0x10400...0x1044F, 0x1F600...0x1F64F, 0x5D0...0x5EA,
        ]
        var scalars = String.UnicodeScalarView()
        while scalars.isEmpty || Bool.random(using: &random) && scalars.count < 12 {
            let range = ranges.randomElement(using: &random) ?? 0x61...0x7A
            if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &random)) { scalars.append(scalar) }
        }
        return String(scalars)
    }

    /// A letter whose lower and upper forms are single scalars that lead back to each other: case folding, which the
    /// standard library does not offer, cannot keep them apart.
    private static func otherCase(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        for (one, other) in [
            (scalar.properties.uppercaseMapping, \Unicode.Scalar.Properties.lowercaseMapping),
            (scalar.properties.lowercaseMapping, \Unicode.Scalar.Properties.uppercaseMapping),
        ] {
            let scalars = one.unicodeScalars
            guard let first = scalars.first, scalars.count == 1, first != scalar,
                first.properties[keyPath: other].unicodeScalars.elementsEqual([scalar])
            else { continue }
            return first
        }
        return nil
    }

    @Test("10,000 random pairs: the tags are equal if the folded forms are, and otherwise not")
    func foldedPairs() throws {
        var random = SeededRandom(seed: 5)
        var (same, different) = (0, 0)
        while same + different < 10_000 {
            let first = Self.name(&random)
            // Half of the pairs are variants of one name, so that both outcomes occur often.
            let isVariant = Bool.random(using: &random)
            let second =
                isVariant
                ? String(
                    String.UnicodeScalarView(
                        first.unicodeScalars.map { scalar in
                            Bool.random(using: &random) ? Self.otherCase(scalar) ?? scalar : scalar
                        })) : Self.name(&random)
            let (left, right) = (try NodeName(first), try NodeName(second))
            let isSame = left.isSame(as: right)
            #expect(isSame == (left.folded == right.folded))
            #expect(try (Self.tag(left) == Self.tag(right)) == isSame, "\(first) \(second)")
            if isVariant { #expect(isSame, "\(first) and \(second) differ only in case") }
            // Canonical equivalence, which Swift decides by itself, implies the same name.
            if first == second { #expect(isSame) }
            if isSame { same += 1 } else { different += 1 }
        }
        #expect(same > 4_000 && different > 4_000, "\(same) \(different)")
    }

    @Test("names that differ in an accent, a letter or a blank are different")
    func different() throws {
        let names = ["a", "á", "b", "a ", " a", "a.", "а", "ａ", "a\u{301}\u{301}", "1", "١"]
        let tags = Set(try names.map { try Self.tag(NodeName($0)) })
        #expect(tags.count == names.count)
    }

    @Test("equal names below two parents have different tags")
    func salts() throws {
        let name = try NodeName("foo")
        #expect(try Self.tag(name) != NodeTag(of: name.octets, salt: [UInt8](repeating: 6, count: 32)))
        #expect(try Self.tag(name).text.utf8.count == 32)
    }

    @Test(
        "published names have their folded forms and their tags",
        .enabled(if: Vectors.has("container/name-tags.json"), "needs the container vectors"))
    func published() throws {
        let cases = try #require(try Vectors.json("container/name-tags.json")["cases"]?.arrayValue)
        var count = 0
        for each in cases {
            let octets = try #require(each["name_utf8"]?.stringValue.flatMap { Hex.decode($0) })
            guard let name = try? NodeName(octets: octets) else { continue }
            let salt = try #require(each["salt"]?.stringValue.flatMap { Hex.decode($0) })
            #expect(Hex.encode(name.folded) == each["folded_utf8"]?.stringValue)
            let tag = try NodeTag(of: name.octets, salt: salt)
            #expect(tag.text == each["tag"]?.stringValue && NodeTag(text: tag.text) == tag)
            count += 1
        }
        #expect(count > 60)
    }

    @Test(
        "other texts are not tags",
        arguments: [
            "", "6mrjiyohtiyisfsmxrlm2rgclcgpqn5", "6MRJIYOHTIYISFSMXRLM2RGCLCGPQN5S",
            "6mrjiyohtiyisfsmxrlm2rgclcgpqn51",
        ])
    func notTags(text: String) { #expect(NodeTag(text: text) == nil) }
}

@Suite("Free names")
struct FreeNameTests {
    private static func free(_ name: String, _ siblings: [String]) throws -> String {
        try NodeName(name).free(among: siblings.map { name in try NodeName(name) }).text
    }

    @Test(
        "a taken name gets the first free number from 2, before its extension",
        arguments: [
            ("a.txt", [], "a.txt"), ("a.txt", ["a.txt"], "a 2.txt"), ("a.txt", ["A.TXT", "a 2.txt"], "a 3.txt"),
            ("a.txt", ["a.txt", "a 3.txt"], "a 2.txt"), ("42.pdf", ["42.pdf"], "42 2.pdf"),
            ("Foobar", ["foobar"], "Foobar 2"), ("a 2.txt", ["a 2.txt"], "a 3.txt"),
            ("a 1.txt", ["a 1.txt"], "a 1 2.txt"),
            ("a 02.txt", ["a 02.txt"], "a 02 2.txt"), ("2", ["2"], "2 2"), (" 2", [" 2"], " 2 2"),
            (".bashrc", [".bashrc"], ".bashrc 2"), ("a.", ["a."], "a. 2"), ("a.tar.gz", ["a.tar.gz"], "a.tar 2.gz"),
            ("v1. draft", ["v1. draft"], "v1. draft 2"), ("a.b/c", ["a.b/c"], "a.b/c 2"),
            ("é.txt", ["E\u{301}.TXT"], "é 2.txt"), ("straße", ["STRASSE", "strasse 2"], "straße 3"),
            ("a 999999999", ["a 999999999"], "a 1000000000"), ("a 1000000000", ["a 1000000000"], "a 1000000000 2"),
        ] as [(String, [String], String)])
    func table(name: String, siblings: [String], expected: String) throws {
        #expect(try Self.free(name, siblings).utf8.elementsEqual(expected.utf8))
    }

    @Test(
        "a name that would become too long is shortened between characters, and keeps its extension",
        arguments: ["x", "é", "👩‍👩‍👧‍👦", "e\u{301}\u{302}"])
    func long(piece: String) throws {
        var text = ""
        while text.utf8.count + piece.utf8.count + 4 <= 255 { text += piece }
        let name = try NodeName(text + ".txt")
        let free = name.free(among: [name])
        #expect(free.text.hasSuffix(" 2.txt") && free.octets.count <= 255)
        #expect(free.octets.count > 255 - piece.utf8.count - 2)
        #expect(text.hasPrefix(String(free.text.dropLast(" 2.txt".count))))
    }

    @Test("one character of 255 bytes is shortened inside, because a name needs space for its number")
    func oneCharacter() throws {
        let name = try NodeName("e" + String(repeating: "\u{301}", count: 127))
        #expect(name.text.count == 1 && name.octets.count == 255)
        let free = name.free(among: [name])
        #expect(free.octets.count <= 255 && free.text.hasSuffix(" 2") && !free.isSame(as: name))
    }

    @Test("the free name is never the name of a sibling, even among thousands that count on")
    func never() throws {
        var random = SeededRandom(seed: 6)
        var siblings = [NodeName]()
        let seeds = ["a.txt", "A.txt", "a 2.txt", String(repeating: "ß", count: 125) + ".txt", "42.pdf"]
        for _ in 0..<400 {
            let name = try NodeName(seeds.randomElement(using: &random) ?? "")
            let free = name.free(among: siblings)
            #expect(!siblings.contains { $0.isSame(as: free) })
            siblings.append(free)
        }
    }
}
