import Testing
import ThicketProtocol

@testable import ThicketCLI

@Suite("Files and objects")
struct FileContentTests {
    @Test("a JSON file is the whole object, a text file its text; the object's other fields stay")
    func reading() throws {
        let existing: JSONObject = ["text": "old", "tags": ["a"]]
        let json: JSONObject = try FileContent.object(Array(#"{"a": 1}"#.utf8), kind: .json, existing: existing)
        #expect(json == ["a": 1])
        let text: JSONObject = try FileContent.object(Array("new\r\n".utf8), kind: .text, existing: existing)
        #expect(text == ["text": "new\r\n", "tags": ["a"]])
    }

    @Test(
        "a file that cannot be an object is refused with the reason",
        arguments: [
            ("[1]", .json, "not an object"), ("{", .json, "it ends too early (line 1, column 2)"),
            ("a\u{0}b", .text, "not text"),
        ] as [(String, FileKind, String)])
    func problems(text: String, kind: FileKind, message: String) {
        let problem = #expect(throws: FileContent.Problem.self) {
            try FileContent.object(Array(text.utf8), kind: kind, existing: nil)
        }
        #expect(problem?.text.contains(message) == true, "\(String(describing: problem))")
    }

    @Test("bytes that are not UTF-8 are not a text")
    func binary() {
        #expect(throws: FileContent.Problem.self) { try FileContent.object([0xFF, 0xFE], kind: .text, existing: nil) }
    }

    @Test(
        "an object that is one text becomes a text file, any other object JSON",
        arguments: [
            (["text": "x"], .text), (["text": ""], .text), (["text": "x", "a": 1], .json), (["text": 1], .json),
            ([:], .json), (["text": "a\u{0}b"], .json), (["title": "x"], .json),
        ] as [(JSONObject, FileKind)])
    func kinds(object: JSONObject, kind: FileKind) throws {
        #expect(FileContent.kind(of: object) == kind)
        let bytes = try #require(FileContent.bytes(object, kind: kind))
        #expect(try FileContent.object(bytes, kind: kind, existing: nil) == object)
    }

    @Test("a line feed that an editor adds at the end is not an edit of a text that had none")
    func lastLineFeed() {
        #expect(EditSheet.kept(Array("a\n".utf8), Array("a".utf8), isText: true) == Array("a".utf8))
        #expect(EditSheet.kept(Array("a\n\n".utf8), Array("a".utf8), isText: true) == Array("a\n".utf8))
        #expect(EditSheet.kept(Array("b\n".utf8), Array("a\n".utf8), isText: true) == Array("b\n".utf8))
        #expect(EditSheet.kept(Array("{}\n".utf8), Array("{}".utf8), isText: false) == Array("{}\n".utf8))
    }
}
