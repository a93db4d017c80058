import Testing
import ThicketProtocol

/// Written from RFC 8259 by section, and from the places where readers are known to differ.
@Suite struct JSONGrammarTests {
    static let accepted = [
        // Section 2 and 3: any value may be the whole text, white space anywhere between tokens.
        "null", "true", "false", "0", "\"\"", "[]", "{}", " 1", "1 ", "\t\r\n [ \t\r\n ] \t\r\n", " { } ",
        "[1 , 2]", "[ 1,2 ]", "{ \"a\" : 1 , \"b\" : 2 }", "{\"a\":{\"b\":{\"c\":[]}}}", "\n\"x\"\n", "[\n]",
        // Section 4: objects.
        "{\"\":0}", "{\"a\":1,\"A\":2}", "{\"a\":1,\"a \":2}", "{\"a\":{\"a\":1}}", "[{\"a\":1},{\"a\":1}]",
        "{\"\\u0061\":1,\"b\":2}", "{\"é\":1,\"e\u{301}\":2}", "{\"\\u0000\":1,\"\":2}", "{\"\\n\":1,\"n\":2}",
        "{\"constructor\":1,\"toString\":2,\"__proto__\":3}",
        // Section 5: arrays.
        "[null]", "[[]]", "[[],[]]", "[1,\"a\",null,true,false,{}]", "[[[[[[[[1]]]]]]]]", "[0,-0,0.0]",
        // Section 6: numbers.
        "-0", "-1", "10", "1234567890", "0.0", "0.5", "-0.5", "1.25", "10.01", "0e0", "0E0", "1e1", "1E1", "1e+1",
        "1e-1", "1.5e10", "-1.5E-10", "0.00000000000000000000001", "12345678901234567890123", "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1E400", "-1e-400", "1e0000001",
        "1e99999999999999999999999999999999", "3.141592653589793238462643383279502884197169399375105820974944",
        // Section 7: strings.
        "\"a\"", "\"\\\"\"", "\"\\\\\"", "\"\\/\"", "\"/\"", "\"\\b\\f\\n\\r\\t\"", "\"\\u0000\"", "\"\\u0041\"",
        "\"\\u00e9\"", "\"\\u00E9\"", "\"\\uABCD\"", "\"\\uabcd\"", "\"\\uFFFF\"", "\"\\ud83d\\ude00\"",
        "\"\\uD800\\uDC00\"", "\"\\uDBFF\\uDFFF\"", "\"\\uD7FF\\uE000\"", "\"\u{7F}\"", "\"\u{2028}\u{2029}\"",
        "\"é\"", "\"€\"", "\"😀\"", "\"\u{10FFFF}\"", "\"\u{800}\u{FFFF}\"", "\"\u{FEFF}\"", "\"\\\\u0041\"",
        "\"1234567\"", "\"12345678\"", "\"123456789\"", "\"1234567\\n\"", "\"12345678\\n90\"", "\"1234567é\"",
        "\"123456\\ud83d\\ude00é\"", "\"'\"", "\"[]{},:\"", "\"// no comment\"",
    ]

    static let refused: [(String, JSONError.Kind, Int)] = [
        // The text ends too early: nothing, or only a part.
        ("", .unexpectedEnd, 0), (" ", .unexpectedEnd, 1), ("[", .unexpectedEnd, 1), ("[1", .unexpectedEnd, 2),
        ("[1,", .unexpectedEnd, 3), ("{", .unexpectedEnd, 1), ("{\"a\"", .unexpectedEnd, 4),
        ("{\"a\":", .unexpectedEnd, 5), ("{\"a\":1", .unexpectedEnd, 6), ("{\"a\":1,", .unexpectedEnd, 7),
        ("\"", .unexpectedEnd, 1), ("\"abc", .unexpectedEnd, 4), ("\"abcdefghij", .unexpectedEnd, 11),
        ("\"\\", .unexpectedEnd, 2), ("\"\\u", .unexpectedEnd, 3), ("\"\\u00", .unexpectedEnd, 5),
        ("\"\\u0041", .unexpectedEnd, 7), ("\"\\ud83d", .unexpectedEnd, 7), ("\"\\ud83d\\", .unexpectedEnd, 8),
        ("\"\\ud83d\\u", .unexpectedEnd, 9), ("\"\\ud83d\\ude0", .unexpectedEnd, 12), ("t", .unexpectedEnd, 1),
        ("tru", .unexpectedEnd, 3), ("fals", .unexpectedEnd, 4), ("nul", .unexpectedEnd, 3), ("-", .unexpectedEnd, 1),
        ("1.", .unexpectedEnd, 2), ("1e", .unexpectedEnd, 2), ("1e+", .unexpectedEnd, 3), ("[[[]", .unexpectedEnd, 4),
        // A byte in the wrong place.
        ("]", .unexpectedByte, 0), ("}", .unexpectedByte, 0), (",", .unexpectedByte, 0), (":", .unexpectedByte, 0),
        ("[,]", .unexpectedByte, 1), ("[1,]", .unexpectedByte, 3), ("[1,,2]", .unexpectedByte, 3),
        ("[1 2]", .unexpectedByte, 3), ("[1:2]", .unexpectedByte, 2), ("[1}", .unexpectedByte, 2),
        ("{1:2}", .unexpectedByte, 1), ("{a:1}", .unexpectedByte, 1), ("{'a':1}", .unexpectedByte, 1),
        ("{\"a\"}", .unexpectedByte, 4), ("{\"a\" 1}", .unexpectedByte, 5), ("{\"a\":}", .unexpectedByte, 5),
        ("{\"a\":1,}", .unexpectedByte, 7), ("{\"a\":1 \"b\":2}", .unexpectedByte, 7), ("{,}", .unexpectedByte, 1),
        ("{\"a\":1]", .unexpectedByte, 6), ("{\"a\"::1}", .unexpectedByte, 5), ("{null:1}", .unexpectedByte, 1),
        ("{[]:1}", .unexpectedByte, 1), ("+1", .unexpectedByte, 0), (".5", .unexpectedByte, 0),
        ("NaN", .unexpectedByte, 0), ("Infinity", .unexpectedByte, 0), ("True", .unexpectedByte, 0),
        ("nil", .unexpectedByte, 1), ("trve", .unexpectedByte, 2), ("nULL", .unexpectedByte, 1),
        ("'a'", .unexpectedByte, 0), ("// x\n1", .unexpectedByte, 0), ("/* x */1", .unexpectedByte, 0),
        ("#1", .unexpectedByte, 0), ("\u{FEFF}1", .unexpectedByte, 0), ("\u{A0}1", .unexpectedByte, 0),
        ("\u{0B}1", .unexpectedByte, 0), ("\u{0C}1", .unexpectedByte, 0), ("\0", .unexpectedByte, 0),
        ("[1x]", .unexpectedByte, 2), ("[0x1]", .unexpectedByte, 2), ("[1_000]", .unexpectedByte, 2),
        ("[truefalse]", .unexpectedByte, 5), ("[\"a\"\"b\"]", .unexpectedByte, 4), ("[1.5.2]", .unexpectedByte, 4),
        // Something after the value.
        ("1 2", .trailingBytes, 2), ("[] x", .trailingBytes, 3), ("{}{}", .trailingBytes, 2),
        ("[]]", .trailingBytes, 2), ("nullx", .trailingBytes, 4), ("\"a\"b", .trailingBytes, 3),
        ("1,", .trailingBytes, 1), ("[]\0", .trailingBytes, 2), ("0x10", .trailingBytes, 1), ("1a", .trailingBytes, 1),
        ("truetrue", .trailingBytes, 4), ("1\u{A0}", .trailingBytes, 1),
        // Numbers.
        ("01", .invalidNumber, 1), ("-01", .invalidNumber, 2), ("00", .invalidNumber, 1), ("-a", .invalidNumber, 1),
        ("--1", .invalidNumber, 1), ("-.5", .invalidNumber, 1), ("1.a", .invalidNumber, 2), ("1.e1", .invalidNumber, 2),
        ("1ee1", .invalidNumber, 2), ("1e+-1", .invalidNumber, 3), ("1e.5", .invalidNumber, 2),
        ("[-]", .invalidNumber, 2),
        ("[1.]", .invalidNumber, 3), ("-Infinity", .invalidNumber, 1), ("- 1", .invalidNumber, 1),
        ("1e 5", .invalidNumber, 2), ("0123456", .invalidNumber, 1),
        // Strings.
        ("\"\\x41\"", .invalidEscape, 1), ("\"a\\'\"", .invalidEscape, 2), ("\"\\a\"", .invalidEscape, 1),
        ("\"\\0\"", .invalidEscape, 1), ("\"\\U0041\"", .invalidEscape, 1), ("\"\\u004g\"", .invalidEscape, 1),
        ("\"\\u 041\"", .invalidEscape, 1), ("\"\\u\"\"", .invalidEscape, 1), ("\"\\\n\"", .invalidEscape, 1),
        ("\"12345678\\u+123\"", .invalidEscape, 9), ("\"\\ud83d\\u00zz\"", .invalidEscape, 7),
        ("\"\n\"", .controlCharacter, 1), ("\"a\tb\"", .controlCharacter, 2), ("\"\0\"", .controlCharacter, 1),
        ("\"12345678\u{1F}\"", .controlCharacter, 9), ("{\"a\nb\":1}", .controlCharacter, 3),
        ("\"\\ud800\"", .loneSurrogate, 1), ("\"\\udc00\"", .loneSurrogate, 1), ("\"\\ud800a\"", .loneSurrogate, 1),
        ("\"\\ud800\\n\"", .loneSurrogate, 1), ("\"\\ud800\\u0041\"", .loneSurrogate, 1),
        ("\"\\ud800\\ud800\"", .loneSurrogate, 1), ("\"ab\\udfff\\ud800\"", .loneSurrogate, 3),
        ("\"\\udc00\\ud800\"", .loneSurrogate, 1), ("\"\\ud83d\\ude00\\ud83d\"", .loneSurrogate, 13),
        // Keys.
        ("{\"a\":1,\"a\":1}", .duplicateKey, 7), ("{\"\":1,\"b\":2,\"\":3}", .duplicateKey, 12),
        ("{\"a\":1,\"\\u0061\":1}", .duplicateKey, 7), ("{\"\\u0061\":1,\"a\":1}", .duplicateKey, 12),
        ("{\"é\":1,\"\\u00e9\":1}", .duplicateKey, 8), ("{\"\\ud83d\\ude00\":1,\"😀\":1}", .duplicateKey, 18),
        ("[{\"x\":{\"a\":1,\"b\":2,\"a\":3}}]", .duplicateKey, 19), ("{\"\\/\":1,\"/\":2}", .duplicateKey, 8),
        // A fault in the grammar is found before a duplicate key.
        ("{\"a\":1,\"a\":1,}", .unexpectedByte, 13), ("{\"a\":1,\"a\":01}", .invalidNumber, 12),
    ]

    static let refusedBytes: [([UInt8], JSONError.Kind, Int)] = [
        // Between quotes, one bad sequence after one good byte.
        ([0x80], .invalidUTF8, 2), ([0xBF], .invalidUTF8, 2), ([0xC0, 0x80], .invalidUTF8, 2),
        ([0xC1, 0xBF], .invalidUTF8, 2), ([0xC2, 0x41], .invalidUTF8, 2), ([0xC2, 0xC2], .invalidUTF8, 2),
        ([0xE0, 0x80, 0x80], .invalidUTF8, 2), ([0xE0, 0x9F, 0xBF], .invalidUTF8, 2),
        ([0xE2, 0x82], .invalidUTF8, 2), ([0xE2, 0x28, 0xA1], .invalidUTF8, 2),
        ([0xED, 0xA0, 0x80], .invalidUTF8, 2), ([0xED, 0xBF, 0xBF], .invalidUTF8, 2),
        ([0xF0, 0x80, 0x80, 0x80], .invalidUTF8, 2), ([0xF0, 0x8F, 0xBF, 0xBF], .invalidUTF8, 2),
        ([0xF0, 0x9F, 0x98], .invalidUTF8, 2), ([0xF0, 0x9F, 0x41, 0x80], .invalidUTF8, 2),
        ([0xF4, 0x90, 0x80, 0x80], .invalidUTF8, 2), ([0xF5, 0x80, 0x80, 0x80], .invalidUTF8, 2),
        ([0xFE], .invalidUTF8, 2), ([0xFF], .invalidUTF8, 2), ([0xC3, 0xA9, 0xA9], .invalidUTF8, 4),
        ([0x41, 0x41, 0x41, 0x41, 0x41, 0x41, 0x41, 0x41, 0xFF], .invalidUTF8, 10),
    ]

    @Test("every text that RFC 8259 permits is accepted, and its bytes are kept")
    func takes() {
        for text in Self.accepted {
            let bytes: [UInt8] = Array(text.utf8)
            do {
                let document = try JSONDocument(parsing: bytes)
                let value = document.root.value
                #expect(try JSONValue(parsing: value.serialized()) == value, "\(text)")
                #expect(
                    try JSONDocument(parsing: [UInt8]("[".utf8) + bytes + [0x5D]).root.elements.first { _ in true }
                        == document.root, "\(text)")
            } catch {
                Issue.record("\(text): \(error)")
            }
        }
    }

    @Test("every other text is refused with the kind of fault and its place")
    func refuses() {
        for (text, kind, offset) in Self.refused {
            #expect(fault(Array(text.utf8)) == JSONError(kind, at: offset), "\(text)")
        }
    }

    @Test("bytes that are not UTF-8 are refused with their place")
    func refusesBytes() {
        for (bytes, kind, offset) in Self.refusedBytes {
            #expect(fault([0x22, 0x61] + bytes + [0x22]) == JSONError(kind, at: offset), "\(bytes)")
            #expect(fault([0x7B, 0x22, 0x61] + bytes + [0x22, 0x3A, 0x30, 0x7D])?.kind == kind, "\(bytes)")
        }
        // A text that ends within a valid sequence has simply ended.
        #expect(fault([0x22, 0xE2, 0x82]) == JSONError(.unexpectedEnd, at: 3))
        #expect(fault([0x22, 0xF0, 0x9F, 0x98]) == JSONError(.unexpectedEnd, at: 4))
    }

    @Test("the tables have at least 150 cases")
    func size() {
        #expect(Self.accepted.count + Self.refused.count + Self.refusedBytes.count >= 150)
    }

    @Test("nesting is bounded, by the caller and by the ceiling")
    func depth() throws {
        func nested(_ depth: Int) -> [UInt8] {
            .init(repeating: 0x5B, count: depth) + .init(repeating: 0x5D, count: depth)
        }
        #expect(fault(nested(Limits.jsonDepthMax)) == nil)
        #expect(fault(nested(Limits.jsonDepthMax + 1)) == JSONError(.tooDeep, at: Limits.jsonDepthMax))
        #expect(fault([UInt8](repeating: 0x5B, count: 100_000)) == JSONError(.tooDeep, at: Limits.jsonDepthMax))
        #expect(throws: JSONError(.tooDeep, at: 1)) { try JSONDocument(parsing: nested(2), maxDepth: 1) }
        #expect(throws: JSONError(.tooDeep, at: 0)) { try JSONDocument(parsing: nested(1), maxDepth: 0) }
        #expect(try JSONDocument(parsing: Array("7".utf8), maxDepth: 0).root.int64 == 7)
        #expect(try JSONDocument(parsing: nested(1_024), maxDepth: .max).root.value.serialized() == nested(1_024))
        #expect(throws: JSONError(.tooDeep, at: 1_024)) { try JSONDocument(parsing: nested(1_025), maxDepth: .max) }
        // Depth counts the open levels: a thousand lists side by side are one level.
        #expect(fault(Array(("[" + String(repeating: "[],", count: 1_000) + "{}]").utf8)) == nil)
    }

    @Test("a duplicate key among thousands is found, with and without escapes")
    func manyKeys() {
        for count in [2, 12, 13, 14, 100, 5_000] {
            for twin in ["key1", "\\u006bey1"] {
                let pairs = (0..<count).map { "\"key\($0)\":[{}]" }
                let good = "{" + pairs.joined(separator: ",") + "}"
                #expect(fault(Array(good.utf8)) == nil)
                let bad = "{" + pairs.joined(separator: ",") + ",\"\(twin)\":0}"
                #expect(fault(Array(bad.utf8)) == JSONError(.duplicateKey, at: good.utf8.count), "\(count) \(twin)")
            }
        }
    }

    @Test("fifty thousand keys, plain or escaped, in one object or in a chain of small ones, need no quadratic time")
    func manyMoreKeys() throws {
        // Pair by pair this would be more than a thousand million comparisons, and the test would not end.
        for prefix in ["key", "\\u006bey"] {
            let pairs = (0..<50_000).map { "\"\(prefix)\($0)\":0" }
            #expect(fault(Array(("{" + pairs.joined(separator: ",") + "}").utf8)) == nil)
        }
        let small = "{" + (0..<12).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        #expect(fault(Array(("[" + String(repeating: small + ",", count: 2_000) + "0]").utf8)) == nil)
        // Reading and emptying a large object costs time in proportion to its keys, too.
        var object = JSONObject((0..<20_000).map { (key: "key \($0)", value: .null) })
        for number in 0..<20_000 { object["key \(number)"] = nil }
        #expect(object.isEmpty)
    }

    @Test("offsets count from the start of a slice, not of its array")
    func slices() {
        let bytes: [UInt8] = Array("0:c:{\"a\":01}".utf8)
        #expect(throws: JSONError(.invalidNumber, at: 6)) { try JSONDocument(parsing: bytes[4...]) }
    }

    private func fault(_ bytes: [UInt8]) -> JSONError? {
        do throws(JSONError) {
            _ = try JSONDocument(parsing: bytes)
            return nil
        } catch {
            return error
        }
    }
}
