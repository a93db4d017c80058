import ThicketCrypto
import ThicketProtocol

/// Exported and imported notes, sealed in the format of the old notes app.
extension Vault {
    /// A note as an object that the old notes app can read, sealed with the password of this session: as stored, or as
    /// version 2 for a note of version 3.
    /// - Throws: as `read`; `noKey` for a note of version 3 without a password.
    public func sealedCopy(of id: String, consents: Bool = false) async throws(OnionError) -> JSONObject {
        let note = try await note(id)
        guard note.format == .sealed else {
            guard note.format != .unknown else { throw .unreadable }
            return note.object
        }
        let (keys, text) = (try theKeys(), try await read(id, consents: consents))
        let result: Result<JSONObject, OnionError> = await workers.run {
            do throws(OnionError) {
                return .success(try keys.seal(text, id: id, .second, rounds: NoteRounds.usual))
            } catch {
                return .failure(error)
            }
        }
        var copy = try result.get()
        for name in [StoredNote.Member.owner, StoredNote.Member.created] { copy[name] = note.object[name] }
        return copy
    }

    /// Seals a text that could not be saved with this session's keys, for the time of a lock.
    /// - Throws: `tooLong`, `noKey`, `ended`.
    public func sealDraft(_ text: NoteText) async throws(OnionError) -> JSONObject {
        let keys = try theKeys()
        let result: Result<JSONObject, OnionError> = await workers.run {
            do throws(OnionError) {
                return .success(try keys.seal(text, id: Self.draftID, keys.format, rounds: NoteRounds.usual))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Opens the result of `sealDraft`.
    /// - Throws: `unreadable` for another account's text, `ended`.
    public func openDraft(_ draft: JSONObject) async throws(OnionError) -> NoteText {
        try await open(StoredNote(id: Self.draftID, object: draft), consents: false)
    }

    /// Not the id of a note: those consist of letters and digits.
    private static let draftID = "(draft)"

    /// Opens a note that is not in the vault: one that the old notes app has written, with this session's password.
    /// - Throws: `unreadable`, `needsConsent`, `ended`.
    public func open(_ copy: JSONObject, consents: Bool = false) async throws(OnionError) -> NoteText {
        let note = StoredNote(id: "", object: copy)
        // Notes of version 3 are bound to their id, so they cannot have been moved.
        guard note.format == .first || note.format == .second else { throw .unreadable }
        return try await open(note, consents: consents)
    }

    private func open(_ note: StoredNote, consents: Bool) async throws(OnionError) -> NoteText {
        let keys = try theKeys()
        let result: Result<NoteText, OnionError> = await workers.run {
            do throws(OnionError) {
                return .success(
                    NoteText(
                        title: try keys.open(.title, of: note, consents: consents),
                        info: try keys.open(.info, of: note, consents: consents)))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
