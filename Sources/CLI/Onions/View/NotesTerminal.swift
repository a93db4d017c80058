internal import CThicketScreen

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif
import Synchronization

/// The terminal through ncurses: keys in, frames out. One instance at a time in a process, on the thread that made it.
final class NotesTerminal {
    private let screen: OpaquePointer
    private var shown: ScreenFrame?

    /// - Returns: nil when standard input and output are not a terminal that ncurses can draw on.
    init?() {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1, let screen = thicket_screen_begin()
        else { return nil }
        self.screen = screen
        // Installed after ncurses, whose handlers would end the program at once.
        for number in [SIGTERM, SIGHUP] { _ = signal(number, wasSignaled) }
    }

    deinit {
        thicket_screen_end(screen)
        // SIGHUP stays caught: for a closed terminal it comes from the kernel and from the shell, while the last save
        // is still running.
        _ = signal(SIGTERM, SIG_DFL)
    }

    var size: (rows: Int, columns: Int) { (Int(thicket_screen_rows()), Int(thicket_screen_columns())) }

    /// The cells of a scalar on this terminal, as the C library and therefore ncurses count them.
    static let width: TextLayout.Width = { scalar in Int(thicket_screen_cells(scalar.value)) }

    enum Input: Sendable, Equatable {
        case key(NotesScreen.Key)
        case resized
        case nothing
        /// The terminal is gone, or a signal told the program to end.
        case lost
    }

    /// Waits for a key.
    func input(milliseconds: Int32) -> Input {
        guard !mustEnd.load(ordering: .relaxed), !isGone else { return .lost }
        var code: UInt32 = 0
        switch thicket_screen_key(milliseconds, &code) {
        case thicket_key_letter: return Self.letter(code).map(Input.key) ?? .nothing
        case thicket_key_named: return Self.named(Int32(bitPattern: code))
        default: return .nothing
        }
    }

    /// Whether the terminal was closed: reads then return nothing, at once and for ever.
    private var isGone: Bool {
        var watched = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        return poll(&watched, 1, 0) > 0 && watched.revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0
    }

    private static func letter(_ code: UInt32) -> NotesScreen.Key? {
        switch code {
        case 0x0A, 0x0D: return .enter
        case 0x09: return .tab
        case 0x1B: return .escape
        case 0x08, 0x7F: return .backspace
        case 0x01...0x1A: return Unicode.Scalar(code + 0x60).map(NotesScreen.Key.control)
        case 0x00..<0x20: return nil
        default: return Unicode.Scalar(code).map(NotesScreen.Key.letter)
        }
    }

    private static func named(_ code: Int32) -> Input {
        switch code {
        case KEY_RESIZE: .resized
        case KEY_UP: .key(.up)
        case KEY_DOWN: .key(.down)
        case KEY_LEFT: .key(.left)
        case KEY_RIGHT: .key(.right)
        case KEY_SLEFT: .key(.shiftLeft)
        case KEY_SRIGHT: .key(.shiftRight)
        case KEY_HOME: .key(.home)
        case KEY_END: .key(.end)
        case KEY_PPAGE: .key(.pageUp)
        case KEY_NPAGE: .key(.pageDown)
        case KEY_BACKSPACE: .key(.backspace)
        case KEY_DC: .key(.delete)
        case KEY_ENTER: .key(.enter)
        case thicket_key_paste_begin: .key(.pasteBegin)
        case thicket_key_paste_end: .key(.pasteEnd)
        default: .nothing
        }
    }

    /// Shows a frame; one that is already shown costs nothing.
    func show(_ frame: ScreenFrame) {
        guard frame != shown else { return }
        shown = frame
        thicket_screen_clear()
        for (row, line) in frame.rows.enumerated() {
            var letters = line.text.unicodeScalars.map { wchar_t(bitPattern: $0.value) }
            thicket_screen_row(Int32(row), letters, Int32(letters.count), line.style.rawValue)
            for place in letters.indices { letters[place] = 0 }
        }
        if let cursor = frame.cursor {
            thicket_screen_show(Int32(cursor.row), Int32(cursor.column))
        } else {
            thicket_screen_show(-1, 0)
        }
    }

    /// Overwrites what was shown, in ncurses' copies of the screen and at the terminal. Best effort: the terminal may
    /// remember more than it shows, and laid-out texts are freed, not overwritten.
    func wipe() {
        shown = nil
        thicket_screen_wipe()
    }

    /// Stops the program, as Ctrl-Z does, until it is continued.
    func suspend() {
        thicket_screen_pause()
        raise(SIGSTOP)
        thicket_screen_mark_pastes(1)
        shown = nil
    }
}

/// SIGTERM or SIGHUP has arrived.
private let mustEnd = Atomic<Bool>(false)

/// A second SIGTERM ends the program at once.
private func wasSignaled(_ number: Int32) {
    mustEnd.store(true, ordering: .relaxed)
    if number == SIGTERM { _ = signal(number, SIG_DFL) }
}
