import ThicketCrypto
import ThicketOnions

/// The full-screen view of encrypted notes, without the terminal and the notes: keys and answers are its input, actions
/// and frames its output. Tests drive it without a terminal or a vault.
struct NotesScreen: Sendable {
    /// A note of the list.
    struct Row: Sendable, Equatable {
        let id: String
        let title: String
        /// The note may be opened and changed.
        let isReadable: Bool
    }

    enum Key: Sendable, Equatable {
        case letter(Unicode.Scalar)
        /// Ctrl and a lower-case letter.
        case control(Unicode.Scalar)
        case enter, escape, tab, up, down, left, right, home, end, pageUp, pageDown, backspace, delete
        case shiftLeft, shiftRight
        /// The begin and end marks of a paste, on terminals that send them.
        case pasteBegin, pasteEnd
    }

    enum Event: Sendable {
        case key(Key)
        case size(rows: Int, columns: Int)
        /// Time has passed.
        case tick
        /// The present notes, oldest first.
        case rows([Row])
        /// A requested note.
        case opened(id: String, NoteText)
        /// The note that was being written is at the server.
        case saved
        case removed
        case loggedIn
        /// A text that could not be saved before a lock.
        case draft(NoteText)
        /// An action failed; the user may try again.
        case failed(String)
        /// A notice for the user.
        case notice(String)
        /// A note needs so many rounds that the user is asked first.
        case costly(id: String, rounds: Int)
        /// The session has ended without a request of the user.
        case ended(String)
    }

    /// What the caller has to do.
    enum Action: Sendable {
        /// Without a name: as the user for which the view was started.
        case login(name: SecureBytes?, password: SecureBytes)
        case open(id: String, consents: Bool)
        /// `before`: the texts that the user saw; nil creates a note.
        case save(id: String?, NoteText, before: NoteText?, thenLocks: Bool)
        case remove(id: String)
        /// Log out, drop everything, overwrite the screen.
        case lock
        /// After the lock: stop the program until it is continued.
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

    /// A question that is answered with y or n.
    enum Question: Sendable, Equatable {
        case remove(id: String)
        case discard
        case open(id: String, rounds: Int)
    }

    var mode: Mode
    var rows = [Row]()
    /// The list has arrived: an empty list now means that no notes exist.
    private(set) var isListed = false
    var selected = 0
    var top = 0
    /// Shown in the last row until the next key.
    var message = ""
    var question: Question?
    /// An action is running outside: until it ends, only locking and leaving are possible.
    var isBusy = false
    /// The pasted text so far; nil: no paste is in progress.
    var pasted: String?
    var size: (rows: Int, columns: Int)
    let width: TextLayout.Width
    /// Milliseconds without a key after which the view locks itself.
    let lockAfter: Int64
    private(set) var lastKey: Int64
    private let asksName: Bool
    /// The name of the secret that opens the notes, as the beginning of a line.
    let secretName: String
    let standing: @Sendable () -> String

    /// - Parameters:
    ///   - asksName: the user name is not given.
    ///   - now: milliseconds of a monotonic clock.
    ///   - standing: the text about the number of notes.
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
        // While locked, an answer must not show a note: only the outcome of a login or of the last save counts.
        if isLocked { return answeredLocked(event) }
        return answered(event)
    }

    /// A text has other rows on a screen of another size: the cursor's row stays visible.
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
        // Only while a login is awaited: a login that a lock has cancelled leaves no trace.
        case .loggedIn where isBusy:
            (mode, isBusy, message) = (.list, false, "")
            (rows, isListed, selected, top) = ([], false, 0, 0)
        case .failed(let text), .ended(let text):
            // Starts from the beginning: the name may be the wrong part, and it was not visible.
            if isBusy { mode = .locked(LoginEntry(asksName: asksName)) }
            (isBusy, message) = (false, text)
        case .saved where !isBusy: message = "locked; what was being written is saved"
        default: break
        }
        return []
    }

    private mutating func answered(_ event: Event) -> [Action] {
        switch event {
        case .rows(let rows): replaceRows(rows)
        case .opened(let id, let text):
            (isBusy, message) = (false, "")
            mode = .reading(Reading(id: id, text: text))
        case .saved:
            (isBusy, mode, message) = (false, .list, "saved")
        case .removed: (isBusy, message) = (false, "removed")
        case .draft(let text):
            // Becomes a separate note: the original one may have changed.
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

    /// Shows a new list; the same note stays selected.
    private mutating func replaceRows(_ new: [Row]) {
        let id = rows.indices.contains(selected) ? rows[selected].id : nil
        (rows, isListed) = (new, true)
        if let id, let place = rows.firstIndex(where: { $0.id.utf8.elementsEqual(id.utf8) }) { selected = place }
        selected = min(selected, max(0, rows.count - 1))
    }

    /// Drops everything. A note that is being written is saved first, so that a lock does not lose an edit.
    mutating func lock(_ reason: String, then last: Action? = nil) -> [Action] {
        var actions = [Action]()
        endPaste()
        // Also while a save is running: it may fail, and the user would not see that any more.
        if case .editing(let editing) = mode, editing.isChanged {
            actions.append(.save(id: editing.id, editing.text, before: editing.before, thenLocks: true))
        } else if !isLocked || isBusy {
            // Also while a login is running: the lock is queued after it, so the login has ended when the program
            // stops.
            actions.append(.lock)
        }
        mode = .locked(LoginEntry(asksName: asksName))
        (rows, selected, top, question, isBusy, message) = ([], 0, 0, nil, false, reason)
        return actions + (last.map { [$0] } ?? [])
    }
}

/// Name and password while they are typed: neither is shown, and no copies are made.
///
/// `@unchecked`: belongs to the screen's thread.
final class LoginEntry: @unchecked Sendable {
    private(set) var asksName: Bool
    private var line = SecretLine()
    private var name: SecureBytes?

    init(asksName: Bool) { self.asksName = asksName }

    /// - Returns: the login, once it is complete.
    func enter(_ byte: UInt8) -> (name: SecureBytes?, password: SecureBytes)? {
        guard line.enter(byte) == .done else { return nil }
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
