import ThicketCrypto
import ThicketOnions

/// The full-screen view of encrypted notes, but for the terminal and the notes: keys and answers go in, what is to be
/// done and what is to be shown come out. Tests drive it without either.
struct NotesScreen: Sendable {
    /// A note of the list.
    struct Row: Sendable, Equatable {
        let id: String
        let title: String
        /// It may be opened and changed.
        let isReadable: Bool
    }

    enum Key: Sendable, Equatable {
        case letter(Unicode.Scalar)
        /// Ctrl and a small letter.
        case control(Unicode.Scalar)
        case enter, escape, tab, up, down, left, right, home, end, pageUp, pageDown, backspace, delete
        case shiftLeft, shiftRight
        /// Around what is pasted, where the terminal says so.
        case pasteBegin, pasteEnd
    }

    enum Event: Sendable {
        case key(Key)
        case size(rows: Int, columns: Int)
        /// Time has passed.
        case tick
        /// The notes as they are now, the oldest first.
        case rows([Row])
        /// A note that was asked for.
        case opened(id: String, NoteText)
        /// The note that was being written is at the server.
        case saved
        case removed
        case loggedIn
        /// What was being written when it locked, and could not be saved then.
        case draft(NoteText)
        /// Something did not work; whoever was writing may try again.
        case failed(String)
        /// Something that is good to know.
        case notice(String)
        /// A note asks for so many rounds that the user is asked.
        case costly(id: String, rounds: Int)
        /// The session has ended by itself.
        case ended(String)
    }

    /// What is to be done outside.
    enum Action: Sendable {
        /// Without a name: as whom the view was begun.
        case login(name: SecureBytes?, password: SecureBytes)
        case open(id: String, consents: Bool)
        /// `before`: the texts that the user saw; nil makes a new note.
        case save(id: String?, NoteText, before: NoteText?, thenLocks: Bool)
        case remove(id: String)
        /// Log out, drop everything, overwrite the screen.
        case lock
        /// When the lock is done: stop the program until it is continued.
        case suspend
        case quit
    }

    enum Mode: Sendable {
        case locked(LoginEntry)
        case list
        case reading(Reading)
        case editing(Editing)
    }

    struct Reading: Sendable {
        let id: String
        let text: NoteText
        var top = 0
    }

    struct Editing: Sendable {
        /// nil: a new note.
        let id: String?
        let before: NoteText?
        var title: TypedText
        var info: TypedText
        var field = NoteField.title
        var top = 0

        var isChanged: Bool {
            title.text.utf8.elementsEqual(before?.title.shownText.utf8 ?? "".utf8) == false
                || info.text.utf8.elementsEqual(before?.info.shownText.utf8 ?? "".utf8) == false
        }
        var text: NoteText {
            NoteText(
                title: SecureBytes(copying: Array(title.text.utf8)), info: SecureBytes(copying: Array(info.text.utf8)))
        }
        var typed: TypedText {
            get { field == .title ? title : info }
            set { if field == .title { title = newValue } else { info = newValue } }
        }
    }

    /// Something that is answered by y or n.
    enum Question: Sendable, Equatable {
        case remove(id: String)
        case discard
        case open(id: String, rounds: Int)
    }

    var mode: Mode
    var rows = [Row]()
    /// The list has come: that it is empty says something.
    private(set) var isListed = false
    var selected = 0
    var top = 0
    /// Shown in the last row until the next key.
    var message = ""
    var question: Question?
    /// Something is being done outside: until it is, only locking and leaving are possible.
    var isBusy = false
    /// What has come of a paste; nil: nothing is being pasted.
    var pasted: String?
    var size: (rows: Int, columns: Int)
    let width: TextLayout.Width
    /// Milliseconds without a key after which it locks itself.
    let lockAfter: Int64
    private(set) var lastKey: Int64
    private let asksName: Bool
    /// What opens the notes is called, at the beginning of a line.
    let secretName: String
    let standing: @Sendable () -> String

    /// - Parameters:
    ///   - asksName: nobody has said whose notes they are.
    ///   - now: milliseconds of a clock that never goes back.
    ///   - standing: what is said of the number of notes.
    init(
        rows: Int, columns: Int, asksName: Bool, secretName: String = "Password", lockAfter: Int64, now: Int64,
        width: @escaping TextLayout.Width,
        standing: @escaping @Sendable () -> String = { "" }
    ) {
        mode = .locked(LoginEntry(asksName: asksName))
        size = (rows, columns)
        self.secretName = secretName
        (self.asksName, self.lockAfter, self.width, self.standing) = (asksName, lockAfter, width, standing)
        lastKey = now
    }

    var isLocked: Bool { if case .locked = mode { true } else { false } }

    /// - Parameter now: milliseconds of the same clock.
    mutating func handle(_ event: Event, now: Int64) -> [Action] {
        switch event {
        case .key(let key):
            lastKey = now
            message = ""
            return pressed(key)
        case .size(let rows, let columns):
            size = (max(1, rows), max(1, columns))
            refit()
            return []
        case .tick: return !isLocked && now - lastKey >= lockAfter ? lock("locked after a while without a key") : []
        default: break
        }
        // An answer that comes after the lock says nothing any more, and shows nothing.
        if isLocked { return answeredLocked(event) }
        return answered(event)
    }

    /// Texts have other rows on a screen of another size: the cursor's row stays in sight.
    private mutating func refit() {
        switch mode {
        case .editing(var editing):
            scroll(&editing)
            mode = .editing(editing)
        case .reading(var reading):
            reading.top = min(reading.top, max(0, layout(reading.text.info.shownText).rows.count - textRows))
            mode = .reading(reading)
        case .locked, .list: break
        }
    }

    private mutating func answeredLocked(_ event: Event) -> [Action] {
        switch event {
        // Only for who waits for it: of a login that a lock has overtaken nothing is left.
        case .loggedIn where isBusy:
            (mode, isBusy, message) = (.list, false, "")
            (rows, isListed, selected, top) = ([], false, 0, 0)
        case .failed(let text), .ended(let text):
            // From the beginning: it may be the name that was wrong, and nobody has seen it.
            if isBusy { mode = .locked(LoginEntry(asksName: asksName)) }
            (isBusy, message) = (false, text)
        case .saved where !isBusy: message = "locked; what was being written is saved"
        default: break
        }
        return []
    }

    private mutating func answered(_ event: Event) -> [Action] {
        switch event {
        case .rows(let rows): take(rows)
        case .opened(let id, let text):
            (isBusy, message) = (false, "")
            mode = .reading(Reading(id: id, text: text))
        case .saved:
            (isBusy, mode, message) = (false, .list, "saved")
        case .removed: (isBusy, message) = (false, "removed")
        case .draft(let text):
            // A note of its own: the one that it was is perhaps another by now.
            begin(nil, text, isNew: true)
            (isBusy, message) = (false, "not saved before the lock; it is here again, as a new note")
        case .failed(let text): (isBusy, message) = (false, text)
        case .notice(let text): message = text
        case .costly(let id, let rounds): (isBusy, question) = (false, .open(id: id, rounds: rounds))
        case .ended(let text): return lock(text)
        default: break
        }
        return []
    }

    /// Another list: the same note stays selected.
    private mutating func take(_ new: [Row]) {
        let id = rows.indices.contains(selected) ? rows[selected].id : nil
        (rows, isListed) = (new, true)
        if let id, let place = rows.firstIndex(where: { $0.id.utf8.elementsEqual(id.utf8) }) { selected = place }
        selected = min(selected, max(0, rows.count - 1))
    }

    /// Drops everything. What was being written goes to the server first, so that a pause costs nobody an edit.
    mutating func lock(_ reason: String, then last: Action? = nil) -> [Action] {
        var actions = [Action]()
        endPaste()
        // Also while a save is under way: it may fail, and nobody would be there to see it.
        if case .editing(let editing) = mode, editing.isChanged {
            actions.append(.save(id: editing.id, editing.text, before: editing.before, thenLocks: true))
        } else if !isLocked || isBusy {
            // Also behind a login that is under way: it is over when the program stops.
            actions.append(.lock)
        }
        mode = .locked(LoginEntry(asksName: asksName))
        (rows, selected, top, question, isBusy, message) = ([], 0, 0, nil, false, reason)
        return actions + (last.map { [$0] } ?? [])
    }
}

/// Name and password while they are typed: nothing of them is shown, and nothing is copied on the way.
///
/// `@unchecked`: belongs to the thread that has the screen.
final class LoginEntry: @unchecked Sendable {
    private(set) var asksName: Bool
    private var line = SecretLine()
    private var name: SecureBytes?

    init(asksName: Bool) { self.asksName = asksName }

    /// - Returns: what to log in with, once it is complete.
    func take(_ byte: UInt8) -> (name: SecureBytes?, password: SecureBytes)? {
        guard line.take(byte) == .done else { return nil }
        let typed = line.takeSecret()
        line = SecretLine()
        guard typed.count > 0, typed.isUTF8 else { return nil }
        if asksName {
            (name, asksName) = (typed, false)
            return nil
        }
        return (name, typed)
    }
}
