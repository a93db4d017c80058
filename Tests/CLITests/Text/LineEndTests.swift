import Testing
import ThicketProtocol

@testable import ThicketCLI

/// Line ends and byte order marks of files that users and editors write.
@Suite("Line ends and byte order marks")
struct LineEndTests {
    private let mark = "\u{FEFF}"

    @Test(
        "an editor's line end is removed as a whole from a text that had none; the text's own line ends stay",
        arguments: [
            ("x", "one\r\ntwo\r\n", "one\r\ntwo"), ("x", "one\n", "one"), ("x", "one", "one"),
            ("x\n", "one\r\n", "one\r\n"),
            ("", "\r\n", ""), ("x\r", "one\r\n", "one\r"), ("x", "\u{FEFF}one\n", "one"),
            ("\u{FEFF}x", "\u{FEFF}y", "\u{FEFF}y"),
        ])
    func edited(start: String, saved: String, kept: String) {
        #expect(EditSheet.kept(Array(saved.utf8), Array(start.utf8), isText: true) == Array(kept.utf8))
        #expect(EditSheet.kept(Array(saved.utf8), Array(start.utf8), isText: false) == Array(saved.utf8))
    }

    @Test(
        "a note is read with either line end, and without a leading byte order mark",
        arguments: [
            ("Title\r\n\r\none\r\ntwo\r\n", "Title", "one\r\ntwo"), ("Title\none\n", "Title", "one"),
            ("\u{FEFF}Title\r\none", "Title", "one"), ("Title\r\n", "Title", ""),
        ])
    func note(input: String, title: String, text: String) {
        let note = NoteInput.parts(Array(input.utf8))
        #expect(note.title.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } == title)
        #expect(note.info.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } == text)
    }

    @Test("a text file loses the byte order mark, and a JSON file that has one is refused with the reason")
    func files() throws {
        let text = try FileContent.object(Array("\(mark)one".utf8), kind: .text, existing: nil)
        #expect(text == ["text": "one"])
        do throws(FileContent.Problem) {
            _ = try FileContent.object(Array("\(mark){}".utf8), kind: .json, existing: nil)
            Issue.record("taken")
        } catch { #expect(error.text.contains("a byte order mark")) }
    }
}
