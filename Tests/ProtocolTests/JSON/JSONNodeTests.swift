import Testing
import ThicketProtocol

@Suite struct JSONNodeTests {
    @Test("members and elements are read on demand, with the kinds they have")
    func access() throws {
        let text = #"{"n":null,"t":true,"f":false,"i":-12,"s":"a\tb\u00e9","l":[1,[2],{"x":3}],"k\u0065y":"x"}"#
        let root = try JSONDocument(parsing: Array(text.utf8)).root
        #expect(root.kind == .object)
        #expect(root.count == 7)
        #expect(root.pairs.map(\.key) == ["n", "t", "f", "i", "s", "l", "key"])
        #expect(root["n"]?.isNull == true)
        #expect(root["t"]?.bool == true)
        #expect(root["f"]?.bool == false)
        #expect(root["i"]?.int64 == -12)
        #expect(root["s"]?.string == "a\tbé")
        #expect(root["l"]?.elements.map(\.kind) == [.number, .array, .object])
        #expect(root["l"]?.count == 3)
        #expect(root["key"]?.string == "x")
        #expect(root["ke"] == nil)
        #expect(root["n"]?["x"] == nil)
        #expect(root["i"]?.string == nil)
        #expect(root["s"]?.number == nil)
        #expect(root["s"]?.bool == nil)
        #expect(Array(root["i"]?.elements.map(\.kind) ?? []) == [])
    }

    @Test("strings are lent as bytes, and in place where they have no escapes")
    func text() throws {
        let text = #" {"plain":"é€","empty":"","escaped":"a\u0062","n":1,"l":["x"]}"#
        let bytes: [UInt8] = Array(text.utf8)
        let root = try JSONDocument(parsing: bytes[1...]).root
        func lent(_ node: JSONNode?) -> String? {
            var text: String?
            let isString = node?.withText { text = String(decoding: $0, as: UTF8.self) } ?? false
            #expect(isString == (text != nil))
            return text
        }
        #expect(lent(root["plain"]) == "é€" && lent(root["empty"]) == "" && lent(root["escaped"]) == "ab")
        #expect(lent(root["n"]) == nil && lent(root["l"]) == nil && lent(root) == nil)
        for (key, wanted) in [("plain", "é€"), ("empty", "")] {
            let place = try #require(root[key]?.plainText)
            root.withDocument { #expect(String(decoding: $0[place], as: UTF8.self) == wanted) }
        }
        for key in ["escaped", "n", "l"] { #expect(root[key]?.plainText == nil) }
        #expect(root["plain"]?.isOfDocument(root) == true)
        #expect(!root.isOfDocument(try JSONDocument(parsing: bytes).root))
    }

    @Test("members are found among longer, shorter and escaped keys, by their bytes only")
    func members() throws {
        let text = #"{"a":1,"ab":2,"b\u0061":3,"é":4,"e\u0301":5,"":6,"a\u0000":7}"#
        let root = try JSONDocument(parsing: Array(text.utf8)).root
        for (key, wanted) in [("a", 1), ("ab", 2), ("ba", 3), ("é", 4), ("e\u{301}", 5), ("", 6), ("a\0", 7)] {
            #expect(root[key]?.int64 == Int64(wanted), "\(key)")
        }
        for key in ["b", "abc", "A", "b\\u0061"] { #expect(root[key] == nil, "\(key)") }
    }

    @Test("strings are read as UTF-16 as well, escaped or not")
    func utf16() throws {
        for text in ["", "abc", "é€😀\u{10FFFF}", "a\"\\\n😀", "\u{0}"] {
            let bytes: [UInt8] = JSONValue.string(text).serialized()
            #expect(try JSONDocument(parsing: bytes).root.utf16 == Array(text.utf16))
            let escaped = "\"" + text.utf16.map { "\\u" + hex($0) }.joined() + "\""
            #expect(try JSONDocument(parsing: Array(escaped.utf8)).root.utf16 == Array(text.utf16))
            #expect(try JSONDocument(parsing: Array(escaped.utf8)).root.string?.utf8.elementsEqual(text.utf8) == true)
        }
        #expect(try JSONDocument(parsing: Array("1".utf8)).root.utf16 == nil)
    }

    private func hex(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }

    @Test("the writer escapes only what it must, in the shortest form")
    func escapes() {
        let table = [
            ("", #""""#), ("\"", #""\"""#), ("\\", #""\\""#), ("/", #""/""#), ("\u{08}\u{0C}\n\r\t", #""\b\f\n\r\t""#),
            ("\u{0}\u{0B}\u{1F}", #""\u0000\u000b\u001f""#), ("\u{7F}é😀\u{2028}", "\"\u{7F}é😀\u{2028}\""),
            ("12345678\"12345678\n", #""12345678\"12345678\n""#),
        ]
        for (text, json) in table {
            #expect(String(decoding: JSONValue.string(text).serialized(), as: UTF8.self) == json)
            #expect(JSONValue.string(text).serializedSize == json.utf8.count)
        }
    }

    @Test("a node of a pretty-printed text is written on one line")
    func oneLine() throws {
        let root: JSONNode = try JSONDocument(parsing: Array("{\r\n  \"a\": [1,\n 2]\n}".utf8)).root
        var writer = JSONWriter()
        writer.write(root)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == "{  \"a\": [1, 2]}")
    }

    @Test("a document reads the same from an array, a slice and a buffer")
    func sources() throws {
        let bytes: [UInt8] = Array("xx[1,\"é\"]yy".utf8)
        let expected: JSONValue = [1, "é"]
        #expect(try JSONDocument(parsing: bytes[2..<10]).root.value == expected)
        let copied = try bytes[2..<10].withUnsafeBytes { try JSONDocument(parsing: $0) }
        #expect(copied.root.value == expected)
        #expect(copied.root == (try JSONDocument(parsing: Array(bytes[2..<10])).root))
    }
}
