import Synchronization
import ThicketCrypto
import ThicketOnions

/// Where the view's notes are kept: a vault, or something like it in tests.
protocol NoteShelf: Sendable {
    /// As `Vault.save`.
    func save(_ text: NoteText, in id: String, over before: NoteText) async throws(OnionError)
    /// As `Vault.create`.
    func create(_ text: NoteText, id: String) async throws(OnionError)
}

/// How what was written gets to the server so that nothing is lost and nothing is there twice: after an answer that
/// never came, and where somebody else has touched the note.
final class NoteSaver: Sendable {
    /// A save that was written here and not confirmed: it is still under way, or was lost on it.
    private struct Unconfirmed {
        /// What the editor has open; nil: a new note.
        let opened: String?
        /// The note that was written.
        let id: String
        let text: NoteText

        func isOf(_ opened: String?) -> Bool {
            switch (self.opened, opened) {
            case (nil, nil): true
            case (let own?, let other?): own.utf8.elementsEqual(other.utf8)
            default: false
            }
        }
    }

    enum Outcome: Sendable, Equatable {
        case saved
        /// The note was changed or removed elsewhere meanwhile: what was written is a note of its own.
        case besideChanged
        case besideRemoved
    }

    /// What the last save has put there: a lock that comes while it does saves it no second time.
    private let lastSaved: Mutex<NoteText?> = Mutex(nil)
    private let unconfirmed: Mutex<Unconfirmed?> = Mutex(nil)

    /// Drops what is known of earlier saves.
    func forget() {
        lastSaved.withLock { $0 = nil }
        unconfirmed.withLock { $0 = nil }
    }

    /// Saves what somebody is looking at.
    /// - Parameters:
    ///   - id: the note that is open; nil: a new one.
    ///   - before: its texts as the user saw them.
    func save(
        _ id: String?, _ text: NoteText, before: NoteText?, on shelf: any NoteShelf
    ) async throws(OnionError) -> Outcome {
        var outcome = Outcome.saved
        do throws(OnionError) {
            try await put(id, text, before, shelf)
        } catch {
            guard id != nil, error == .changedMeanwhile || error == .notFound else { throw error }
            outcome = error == .notFound ? .besideRemoved : .besideChanged
            try await put(id, text, nil, shelf)
        }
        lastSaved.withLock { $0 = text }
        return outcome
    }

    /// Saves what is about to be dropped. Nobody is there to decide: where it cannot be saved it becomes a note of its
    /// own.
    func saveLast(_ id: String?, _ text: NoteText, before: NoteText?, on shelf: any NoteShelf) async throws(OnionError)
    {
        let isSaved = lastSaved.withLock { $0 == text }
        guard !isSaved else { return }
        do throws(OnionError) {
            try await put(id, text, before, shelf)
        } catch {
            // A server that does not answer takes a note of its own no sooner.
            guard id != nil, !error.isOfTheLine else { throw error }
            try await put(id, text, nil, shelf)
        }
    }

    /// - Parameters:
    ///   - opened: what the editor has open.
    ///   - before: nil: as a note of its own.
    private func put(
        _ opened: String?, _ text: NoteText, _ before: NoteText?, _ shelf: any NoteShelf
    ) async throws(OnionError) {
        let last = unconfirmed.withLock { last in
            defer { last = nil }
            return last
        }
        if let last, last.isOf(opened) {
            let isPut = try await noting(opened, last.id, text) { () throws(OnionError) in
                try await Self.isPut(text, over: last, shelf)
            }
            if isPut { return }
        }
        if let opened, let before {
            try await noting(opened, opened, text) { () throws(OnionError) in
                try await shelf.save(text, in: opened, over: before)
            }
        } else {
            let new: String = RandomBytes.hex(16)
            try await noting(opened, new, text) { () throws(OnionError) in try await shelf.create(text, id: new) }
        }
    }

    /// Puts a text over what was written last, which perhaps has arrived.
    /// - Returns: false when that is not there any more, or is another by now.
    private static func isPut(
        _ text: NoteText, over last: Unconfirmed, _ shelf: any NoteShelf
    ) async throws(OnionError) -> Bool {
        do throws(OnionError) {
            try await shelf.save(text, in: last.id, over: last.text)
            return true
        } catch {
            guard error == .notFound || error == .changedMeanwhile else { throw error }
            return false
        }
    }

    /// Remembers what `body` writes where it cannot tell what became of it.
    private func noting<Value>(
        _ opened: String?, _ id: String, _ text: NoteText, _ body: () async throws(OnionError) -> Value
    ) async throws(OnionError) -> Value {
        do throws(OnionError) { return try await body() } catch {
            if error.isOfTheLine { unconfirmed.withLock { $0 = .init(opened: opened, id: id, text: text) } }
            throw error
        }
    }
}

extension OnionError {
    /// The server did not answer: it is not known what it has.
    fileprivate var isOfTheLine: Bool { if case .client = self { true } else { false } }
}

/// Whoever changes a note in the view has agreed to its rounds when it was opened.
extension Vault: NoteShelf {
    func save(_ text: NoteText, in id: String, over before: NoteText) async throws(OnionError) {
        try await save(text, in: id, over: before, consents: true)
    }
    func create(_ text: NoteText, id: String) async throws(OnionError) {
        try await create(text, createdAt: nil, id: id)
    }
}
