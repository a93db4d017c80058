import Testing
import ThicketCommandLine
import ThicketProtocol

@testable import ThicketCLI

@Suite("Texts on the screen")
struct ScreenTests {
    @Test("JSON is laid out for reading and parses back to the same value, numbers as written")
    func pretty() throws {
        let text: String = #"{"a":[1.50,{"b":[]},[]],"c":{},"d":"x\ny"}"#
        let shown = Pretty.text(try JSONValue(parsing: text))
        #expect(
            shown == """
                {
                  "a": [
                    1.50,
                    {
                      "b": []
                    },
                    []
                  ],
                  "c": {},
                  "d": "x\\ny"
                }

                """)
        #expect(try JSONValue(parsing: shown).serializedText == text)
    }

    @Test(
        "a stored text cannot drive the terminal",
        arguments: [
            ("plain\tä€😀\n", "plain\tä€😀\n"), ("\u{1b}[31mred", "\\u{1b}[31mred"), ("\u{9b}2J", "\\u{9b}2J"),
            ("a\u{202e}b", "a\\u{202e}b"), ("\r", "\\u{d}"), ("\u{7f}", "\\u{7f}"),
        ])
    func safe(text: String, shown: String) {
        #expect(Screen.safe(text).utf8.elementsEqual(shown.utf8))
    }

    @Test("a long line is cut with an ellipsis, and line feeds become spaces")
    func line() {
        #expect(Screen.line("one\ntwo three", columns: 8) == "one two…")
        #expect(Screen.line("short", columns: 8) == "short")
    }

    @Test(
        "a path leads to a value",
        arguments: [
            ("a", "1"), ("o.x", #""y""#), ("l.1", "20"), (#"d\.t"#, "true"), ("o.nope", nil), ("l.2", nil),
            ("a.b", nil), ("o", #"{"x":"y"}"#),
        ] as [(String, String?)])
    func paths(text: String, expected: String?) throws {
        let object: JSONObject = ["a": 1, "o": ["x": "y"], "l": [10, 20], "d.t": true]
        let path: FieldPath = try #require(FieldPath(text))
        #expect(path.value(in: object)?.serializedText == expected)
    }

    @Test("a path with an empty part is refused", arguments: ["", ".", "a.", ".a", "a..b"])
    func noPaths(text: String) { #expect(FieldPath(text) == nil) }

    @Test("a value is put at a path, and another value in the way is not destroyed")
    func replacing() throws {
        let object: JSONObject = ["a": 1, "o": ["x": "y"]]
        let inner = try #require(FieldPath("o.z"))
        #expect(inner.replaced(in: object, by: "new") == ["a": 1, "o": ["x": "y", "z": "new"]])
        let fresh = try #require(FieldPath("p.q"))
        #expect(fresh.replaced(in: object, by: 2) == ["a": 1, "o": ["x": "y"], "p": ["q": 2]])
        let blocked: FieldPath = try #require(FieldPath("a.b"))
        #expect(blocked.replaced(in: object, by: 2) == nil)
    }

    @Test("a difference is shown in lines")
    func diff() {
        let before: JSONObject = ["gone": 1, "n": 1, "t": "Plant it in spring.", "o": ["x": 1]]
        let after: JSONObject = ["n": 2, "t": "Plant the tree in spring.", "o": ["x": 1, "y": 2], "new": true]
        let lines = DiffText.lines(JSONDiff.diff(from: before, to: after), from: before, columns: 80)
        #expect(lines.contains("- gone") && lines.contains("~ n: 1 → 2") && lines.contains("+ o.y: 2"))
        #expect(lines.contains("+ new: true"))
        let text = lines.first { $0.hasPrefix("~ t:") }
        #expect(text?.contains("{+") == true && text?.hasSuffix("in spring.") == true, "\(lines)")
    }

    @Test("the place of a fault in JSON is reported by line and column")
    func place() {
        #expect(throws: Failure("f is not JSON: an unexpected character (line 2, column 8)", .usage)) {
            try Inputs.object(Array("{\n  \"a\": x}".utf8), "f")
        }
        #expect(throws: Failure.self) { try Inputs.object(Array("[1]".utf8), "f") }
    }
}
