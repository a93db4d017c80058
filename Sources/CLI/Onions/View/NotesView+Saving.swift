import ThicketOnions
import ThicketProtocol

/// Reports the outcome of a save, and keeps a text that could not be saved before a lock.
extension NotesView {
    /// Saves at the user's request and reports the outcome.
    func saveAndTell(_ id: String?, _ text: NoteText, _ before: NoteText?) async throws(OnionError) {
        let outcome: NoteSaver.Outcome
        do throws(OnionError) {
            outcome = try await saver.save(id, text, before: before, on: try open())
        } catch {
            throw Self.later(error, "not saved yet", "; Ctrl-S asks again")
        }
        report(.saved)
        switch outcome {
        case .saved: break
        case .besideChanged: report(.notice("the note was changed elsewhere meanwhile: yours is a separate note now"))
        case .besideRemoved: report(.notice("the note was removed elsewhere meanwhile: yours is a new one now"))
        }
    }

    func remove(_ id: String) async throws(OnionError) {
        do throws(OnionError) { try await open().remove(id) } catch { throw Self.later(error, "not removed yet", "") }
        report(.removed)
    }

    /// An edit that was not acknowledged is sent again and again until the view locks.
    private static func later(_ error: OnionError, _ what: String, _ advice: String) -> OnionError {
        guard case .client(let reason) = error else { return error }
        return .refused("\(what): \(reason.detail). It is sent when the server answers again\(advice)")
    }

    /// A text that cannot be saved is kept sealed until the next login.
    func saveAndLock(_ id: String?, _ text: NoteText, _ before: NoteText?) async {
        do throws(OnionError) {
            try await saver.saveLast(id, text, before: before, on: try open())
            report(.saved)
        } catch {
            await keep(text, because: error)
        }
        await end()
    }

    private func keep(_ text: NoteText, because reason: OnionError) async {
        do throws(OnionError) {
            let sealed: JSONObject = try await open().sealDraft(text)
            drafts.withLock { $0.append(sealed) }
            report(.failed("not saved, comes again after the login: \(reason)"))
        } catch {
            // The keys are gone: the text cannot be sealed.
            report(.failed("what was being written is lost: \(error)"))
        }
    }

    /// The first text that a lock has kept for this account; texts of another account stay.
    func takeDraft(_ vault: Vault) async throws(OnionError) -> [NotesScreen.Event] {
        for (place, sealed) in drafts.withLock({ $0 }).enumerated() {
            do throws(OnionError) {
                let text = try await vault.openDraft(sealed)
                // Actions run one after the other, so the list has not changed meanwhile.
                _ = drafts.withLock { $0.remove(at: place) }
                return [.draft(text)]
            } catch {
                guard error == .unreadable else { throw error }
            }
        }
        return []
    }
}
