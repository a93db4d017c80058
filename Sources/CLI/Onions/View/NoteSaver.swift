import Synchronization
import ThicketCrypto
import ThicketOnions

/// Where the view stores its notes: a vault, or a substitute in tests.
protocol NoteShelf: Sendable {
    /// As `Vault.save`.
    func save(_ text: NoteText, in id: String, over before: NoteText) async throws(OnionError)
    /// As `Vault.create`.
    func create(_ text: NoteText, id: String) async throws(OnionError)
}

/// Saves notes so that nothing is lost or duplicated, even after an answer that never came, or when another device has
/// changed the note.
final class NoteSaver: Sendable {
    /// A save that was not acknowledged: it is still under way, or was lost.
    private struct Unconfirmed {
        /// The note open in the editor; nil: a new note.
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
        /// The note was changed or removed elsewhere meanwhile: the text was saved as a separate note.
        case besideChanged
        case besideRemoved
    }

    /// The text of the last save: a lock during the save does not save it a second time.
    private let lastSaved: Mutex<NoteText?> = Mutex(nil)
    private let unconfirmed: Mutex<Unconfirmed?> = Mutex(nil)

    /// Forgets earlier saves.
    func forget() {
        lastSaved.withLock { $0 = nil }
        unconfirmed.withLock { $0 = nil }
    }

    /// Saves at the user's request, while the user can see the outcome.
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

    /// Saves a text that is about to be dropped. The user cannot decide any more: if it cannot be saved over the note
    /// it becomes a separate note.
    func saveLast(_ id: String?, _ text: NoteText, before: NoteText?, on shelf: any NoteShelf) async throws(OnionError)
    {
        let isSaved = lastSaved.withLock { $0 == text }
        guard !isSaved else { return }
        do throws(OnionError) {
            try await put(id, text, before, shelf)
        } catch {
            // A server that does not answer would not take a separate note either.
            guard id != nil, !error.isOfTheLine else { throw error }
            try await put(id, text, nil, shelf)
        }
    }

    /// - Parameters:
    ///   - opened: the note open in the editor.
    ///   - before: nil: save as a separate note.
    private func put(
        _ opened: String?, _ text: NoteText, _ before: NoteText?, _ shelf: any NoteShelf
    ) async throws(OnionError) {
        let last = unconfirmed.withLock { last in
            defer { last = nil }
            return last
        }
        if let last, last.isOf(opened) {
            let isPut = try await recordingUnconfirmed(opened, last.id, text) { () throws(OnionError) in
                try await Self.isPut(text, over: last, shelf)
            }
            if isPut { return }
        }
        if let opened, let before {
            try await recordingUnconfirmed(opened, opened, text) { () throws(OnionError) in
                try await shelf.save(text, in: opened, over: before)
            }
        } else {
            let new: String = RandomBytes.hex(16)
            try await recordingUnconfirmed(opened, new, text) { () throws(OnionError) in
                try await shelf.create(text, id: new)
            }
        }
    }

    /// Saves a text over the last write, which may have arrived.
    /// - Returns: false when that note does not exist any more, or has changed since.
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

    /// Records what `body` writes if the outcome is unknown.
    private func recordingUnconfirmed<Value>(
        _ opened: String?, _ id: String, _ text: NoteText, _ body: () async throws(OnionError) -> Value
    ) async throws(OnionError) -> Value {
        do throws(OnionError) { return try await body() } catch {
            if error.isOfTheLine { unconfirmed.withLock { $0 = .init(opened: opened, id: id, text: text) } }
            throw error
        }
    }
}

extension OnionError {
    /// The server did not answer: its state is not known.
    fileprivate var isOfTheLine: Bool { if case .client = self { true } else { false } }
}

/// A user that changes a note in the view has accepted its number of rounds when the note was opened.
extension Vault: NoteShelf {
    func save(_ text: NoteText, in id: String, over before: NoteText) async throws(OnionError) {
        try await save(text, in: id, over: before, consents: true)
    }
    func create(_ text: NoteText, id: String) async throws(OnionError) {
        try await create(text, createdAt: nil, id: id)
    }
}
