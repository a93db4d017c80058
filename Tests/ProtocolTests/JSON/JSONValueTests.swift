import Testing
import ThicketProtocol

@Suite struct JSONValueTests {
    @Test(
        "equality is by value: numbers by decimal value, objects in any order, strings byte by byte",
        arguments: [
            ("1", "1.0", true), ("1", "1e0", true), ("100", "1E+2", true), ("-0", "0.00e9", true), ("1", "-1", false),
            ("0.1", "1e-1", true), ("0.1", "0.10000000000000000000000000000000001", false), ("1", "true", false),
            ("12345678901234567890123", "1.2345678901234567890123e22", true), ("0", "false", false),
            ("12345678901234567890123", "12345678901234567890124", false), ("null", "{}", false),
            ("1e99999999999999999999999999", "10e99999999999999999999999998", true), ("[]", "{}", false),
            ("1e99999999999999999999999999", "1e99999999999999999999999998", false), ("[1,2]", "[2,1]", false),
            ("0.001e1000000000000000000", "1e999999999999999997", true), (#""a""#, #""\u0061""#, true),
            ("1e-1000000000000000000", "1000e-1000000000000000003", true), (#""é""#, "\"e\u{301}\"", false),
            (#"{"a":1,"b":[2]}"#, #"{"b":[2.0],"a":1}"#, true), (#"{"a":1}"#, #"{"a":1,"b":1}"#, false),
            (#"{"é":1}"#, "{\"e\u{301}\":1}", false), (#"{"a":1,"b":2}"#, #"{"a":1,"c":2}"#, false),
        ])
    func equality(_ left: String, _ right: String, _ isEqual: Bool) throws {
        let (left, right): (JSONValue, JSONValue) = (try JSONValue(parsing: left), try JSONValue(parsing: right))
        #expect((left == right) == isEqual)
        #expect((right == left) == isEqual)
        if isEqual { #expect(left.hashValue == right.hashValue) }
    }

    @Test("literals build the values they look like")
    func literals() throws {
        let value: JSONValue = ["text": "T", "n": nil, "yes": true, "list": [1, 2.5, -3], "map": [:]]
        #expect(value.serializedText == #"{"text":"T","n":null,"yes":true,"list":[1,2.5,-3],"map":{}}"#)
        #expect(value["list"]?[1]?.doubleValue == 2.5)
        #expect(value["list"]?[0]?.intValue == 1)
        #expect(value["list"]?[3] == nil)
        #expect(value["none"] == nil)
        #expect(value["n"]?.isNull == true)
        #expect(value["yes"]?.boolValue == true)
        #expect(value["text"]?.stringValue == "T")
        #expect(value["map"]?.objectValue?.isEmpty == true)
    }

    @Test("a value is read from text and written as it was")
    func round() throws {
        let text: String = #"{"a":[1.0,-0,1e400,"\u0000\n\"\\ü😀"],"":{"b":null,"c":false}}"#
        #expect(try JSONValue(parsing: text).serializedText == text)
    }
}
