import Testing
import ThicketClient
import ThicketCrypto
import ThicketOnions

@testable import ThicketCLI

/// How the view saves notes, with a shelf that answers as the test says.
@Suite("Saving a note in the view")
struct NoteSaverTests {
    /// Notes in memory.
    private actor Shelf: NoteShelf {
        /// What happens to a write.
        enum Line: Sendable { case answers, isLostBefore, isLostBehind }

        private(set) var notes: [String: String]
        private(set) var writes = 0
        var line = Line.answers
        /// No new note is accepted.
        var isFull = false

        init(_ notes: [String: String] = [:]) { self.notes = notes }

        func will(_ line: Line, isFull: Bool = false) { (self.line, self.isFull) = (line, isFull) }
        func put(_ title: String?, in id: String) { notes[id] = title }
        var titles: [String] { notes.values.sorted() }

        func save(_ text: NoteText, in id: String, over before: NoteText) throws(OnionError) {
            guard let current = notes[id] else { throw .notFound }
            guard current == title(before) else { throw .changedMeanwhile }
            try write(text, id)
        }

        func create(_ text: NoteText, id: String) throws(OnionError) {
            guard notes[id] == nil else { throw .changedMeanwhile }
            guard !isFull else { throw .full(notesMax: 10) }
            try write(text, id)
        }

        private func title(_ text: NoteText) -> String {
            text.title.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }

        private func write(_ text: NoteText, _ id: String) throws(OnionError) {
            writes += 1
            if line != .isLostBefore { notes[id] = title(text) }
            guard line == .answers else { throw .client(ClientError(.network, "no answer")) }
        }
    }

    private static func text(_ title: String) -> NoteText {
        NoteText(title: SecureBytes(copying: Array(title.utf8)), info: SecureBytes(copying: []))
    }

    /// Saves while the line does not answer.
    private func lose(_ saver: NoteSaver, _ id: String?, _ title: String, before: String?, on shelf: Shelf) async {
        do throws(OnionError) {
            _ = try await saver.save(id, Self.text(title), before: before.map(Self.text), on: shelf)
            Issue.record("no answer came, and it was taken for saved")
        } catch {
            guard case .client = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test("a new note whose answer was lost is one note after the next save", arguments: [true, false])
    func newNote(hasArrived: Bool) async throws {
        let (saver, shelf): (NoteSaver, Shelf) = (.init(), .init())
        await shelf.will(hasArrived ? .isLostBehind : .isLostBefore)
        await lose(saver, nil, "a", before: nil, on: shelf)
        await lose(saver, nil, "ab", before: nil, on: shelf)
        await shelf.will(.answers)
        #expect(try await saver.save(nil, Self.text("abc"), before: nil, on: shelf) == .saved)
        #expect(await shelf.titles == ["abc"])
        // The next new note is a separate one.
        #expect(try await saver.save(nil, Self.text("x"), before: nil, on: shelf) == .saved)
        #expect(await shelf.titles == ["abc", "x"])
    }

    @Test(
        "a change whose answer was lost is not taken for another device's change at the next save",
        arguments: [true, false])
    func change(hasArrived: Bool) async throws {
        let (saver, shelf): (NoteSaver, Shelf) = (.init(), .init(["n": "a"]))
        await shelf.will(hasArrived ? .isLostBehind : .isLostBefore)
        await lose(saver, "n", "ab", before: "a", on: shelf)
        await lose(saver, "n", "abc", before: "a", on: shelf)
        await shelf.will(.answers)
        #expect(try await saver.save("n", Self.text("abcd"), before: Self.text("a"), on: shelf) == .saved)
        #expect(await shelf.notes == ["n": "abcd"])
    }

    @Test("a note that was changed or removed elsewhere is kept beside the written one, and this is reported")
    func both() async throws {
        let (saver, shelf): (NoteSaver, Shelf) = (.init(), .init(["n": "theirs"]))
        #expect(try await saver.save("n", Self.text("mine"), before: Self.text("a"), on: shelf) == .besideChanged)
        #expect(await shelf.titles == ["mine", "theirs"])
        #expect(try await saver.save("gone", Self.text("too"), before: Self.text("a"), on: shelf) == .besideRemoved)
        #expect(await shelf.titles == ["mine", "theirs", "too"])
    }

    @Test("the note kept beside is a single note, also when its answer was lost")
    func bothAgain() async throws {
        let (saver, shelf): (NoteSaver, Shelf) = (.init(), .init(["n": "theirs"]))
        await shelf.will(.isLostBehind)
        await lose(saver, "n", "mine", before: "a", on: shelf)
        await shelf.will(.answers)
        #expect(try await saver.save("n", Self.text("mine!"), before: Self.text("a"), on: shelf) == .saved)
        #expect(await shelf.titles == ["mine!", "theirs"])
    }

    @Test("another device's change after a lost answer is not overwritten")
    func changedAfterwards() async throws {
        let (saver, shelf): (NoteSaver, Shelf) = (.init(), .init(["n": "a"]))
        await shelf.will(.isLostBehind)
        await lose(saver, "n", "ab", before: "a", on: shelf)
        await shelf.will(.answers)
        await shelf.put("theirs", in: "n")
        #expect(try await saver.save("n", Self.text("abc"), before: Self.text("a"), on: shelf) == .besideChanged)
        #expect(await shelf.titles == ["abc", "theirs"])
    }

    @Test("a refused save says why, and touches neither note")
    func refused() async throws {
        let (saver, shelf): (NoteSaver, Shelf) = (.init(), .init(["n": "theirs"]))
        await shelf.will(.answers, isFull: true)
        await #expect(throws: OnionError.full(notesMax: 10)) {
            try await saver.save("n", Self.text("mine"), before: Self.text("a"), on: shelf)
        }
        #expect(await shelf.notes == ["n": "theirs"])
    }

    @Test(
        "the last save before a lock writes nothing twice, and tries no second save without a line"
    )
    func last() async throws {
        let (saver, shelf): (NoteSaver, Shelf) = (.init(), .init())
        _ = try await saver.save(nil, Self.text("a"), before: nil, on: shelf)
        try await saver.saveLast(nil, Self.text("a"), before: nil, on: shelf)
        #expect(await shelf.titles == ["a"])
        #expect(await shelf.writes == 1)
        saver.forget()
        try await saver.saveLast("gone", Self.text("b"), before: Self.text("x"), on: shelf)
        #expect(await shelf.titles == ["a", "b"])
        await shelf.put("c", in: "n")
        await shelf.will(.isLostBefore)
        await #expect(throws: OnionError.self) {
            try await saver.saveLast("n", Self.text("d"), before: Self.text("c"), on: shelf)
        }
        #expect(await shelf.writes == 3)
    }
}
