import ThicketClient
import ThicketCrypto
import ThicketProtocol

/// Creating, changing and removing notes. Each call returns when the server has acknowledged it.
extension Vault {
    /// Creates a note.
    /// - Parameters:
    ///   - createdAt: milliseconds since 1970, for a note that was made before; nil: now.
    ///   - id: 32 random hex digits; a caller that chooses them can look for the note after a `client`.
    /// - Returns: its id.
    /// - Throws: `full`, `tooLong`, `refused`, `ended`; `changedMeanwhile` when a note has this id; `client`: it is not
    ///   known then whether the server has the note.
    @discardableResult
    public func create(
        _ text: NoteText, createdAt: Int64? = nil, id: String = RandomBytes.hex(16)
    ) async throws(OnionError) -> String {
        let keys = try theKeys()
        if let most = standing.notesMax, try await list().count >= most { throw .full(notesMax: most) }
        var members = try await seal(text, id, keys.format, rounds: NoteRounds.usual)
        members[StoredNote.Member.owner] = .string(keys.user)
        members[StoredNote.Member.created] = .number(JSONNumber(createdAt ?? now))
        guard try await write(members, to: id, over: nil) else { throw .changedMeanwhile }
        return id
    }

    /// Replaces the texts of a note.
    /// - Parameter before: the texts that the user saw: if the note has others by now, nothing is written.
    /// - Throws: `unreadable` for a note that does not open, which is never overwritten; `changedMeanwhile`, `tooLong`,
    ///   `notFound`, `needsConsent`, `refused`, `ended`, `client`.
    public func save(
        _ text: NoteText, in id: String, over before: NoteText, consents: Bool = false
    ) async throws(OnionError) {
        let note = try await note(id)
        // A note that does not open has unknown content, which must not be lost.
        let current = try await read(id, consents: consents)
        guard current == before else { throw .changedMeanwhile }
        try await save(text, in: note)
    }

    /// - Parameter format: the new format; nil: the present one. The first format becomes the second with the first
    ///   save.
    func save(_ text: NoteText, in note: StoredNote, as format: NoteFormat? = nil) async throws(OnionError) {
        let format = format ?? (note.format == .first ? .second : note.format)
        let rounds = NoteRounds.toWrite(after: note.rounds ?? NoteRounds.usual)
        let members = try await seal(text, note.id, format, rounds: rounds)
        guard try await write(members, to: note.id, over: note) else { throw .changedMeanwhile }
    }

    /// Removes a note, also one that does not open.
    /// - Throws: `notFound`, `refused`, `ended`, `client`.
    public func remove(_ id: String) async throws(OnionError) {
        _ = try await note(id)
        try await asking { () throws(ClientError) in try await notes.remove(id) }
        try await confirm(id)
        forget(id)
    }

    /// Removes every note, also those that do not open.
    /// - Throws: as `remove`; `changedMeanwhile` when another device added notes at the same time, which remain.
    public func removeAll() async throws(OnionError) {
        for onion in try await list() {
            do throws(OnionError) { try await remove(onion.id) } catch {
                // Another device has already removed it.
                guard error == .notFound else { throw error }
            }
        }
        guard try await list().isEmpty else { throw .changedMeanwhile }
    }

    /// Converts notes of the first format to the second. A note that does not open, or that was changed meanwhile,
    /// stays unchanged.
    public func migrate() async throws(OnionError) -> OnionMigration {
        var outcome = OnionMigration()
        for note in try await stored() where note.format == .first {
            do throws(OnionError) {
                try await save(try await read(note.id), in: note)
                outcome.migrated += 1
            } catch {
                switch error {
                case .unreadable, .tooLong, .noKey: outcome.unreadable += 1
                case .needsConsent: outcome.awaitingConsent += 1
                case .ended: throw error
                default: outcome.failed += 1
                }
            }
        }
        return outcome
    }

    private func seal(
        _ text: NoteText, _ id: String, _ format: NoteFormat, rounds: Int
    ) async throws(OnionError) -> JSONObject {
        let keys = try theKeys()
        let result: Result<JSONObject, OnionError> = await workers.run {
            do throws(OnionError) { return .success(try keys.seal(text, id: id, format, rounds: rounds)) } catch {
                return .failure(error)
            }
        }
        _ = try theKeys()
        return try result.get()
    }

    /// Writes a whole note: each member replaces the old one. Differences of sealed texts would be merged letter by
    /// letter into a text that cannot be opened.
    ///
    /// - Parameter base: the note as it was; nil for a new one.
    /// - Returns: false, without writing anything, when the note has changed.
    private func write(_ members: JSONObject, to id: String, over base: StoredNote?) async throws(OnionError) -> Bool {
        let diff = ObjectDiff(members.pairs.map { (key: $0.key, operation: .replace($0.value)) })
        let isWritten = try await asking { () throws(ClientError) in
            try await notes.edit(id) { object, _ in
                switch (object, base) {
                case (nil, nil): diff
                case (let object?, let base?): StoredNote(id: id, object: object).isSame(as: base) ? diff : nil
                default: nil
                }
            }
        }
        forget(id)
        if isWritten { try await confirm(id) }
        return isWritten
    }

    /// Waits until the server has acknowledged everything. A waiting caller needs an attempt now, regardless of the
    /// back-off; an app that has gone offline on purpose stays offline.
    private func arrive() async throws(ClientError) {
        if case .offline(.unreachable) = await session.sync.currentStatus { await session.sync.goOnline() }
        try await notes.waitUntilSynced(timeout: timeout)
    }

    /// Waits for the server; a refused edit is undone.
    private func confirm(_ id: String) async throws(OnionError) {
        do throws(ClientError) { try await arrive() } catch {
            guard error.code == .refused || error.code == .unauthorized else { throw .client(error) }
            let isUndone = try await asking { () throws(ClientError) in try await notes.discardRefused(id) }
            guard isUndone else {
                // The refusal was about other objects.
                if error.code == .refused { return }
                throw .client(error)
            }
            throw error.number == 413
                ? .refused("the server accepts no more notes from this account, or none of this length")
                : .refused("the server refused the note")
        }
    }
}
