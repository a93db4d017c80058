import CThicketSpawn
import Glibc

/// A program that runs at its own terminal, as if a person used it.
///
/// For a program that writes line after line, a test waits for its printed text; for one that draws on the whole
/// screen, it waits for the text that is shown at that moment, which the program may have drawn in any order and in any
/// pieces.
///
/// Used by one thread at a time; ends with its owner.
public final class PseudoTerminal {
    public let id: pid_t
    private let keyboard: Int32
    private var bytes: [UInt8] = []
    private var isOver = false
    /// The present screen.
    public private(set) var screen = TerminalScreen()

    /// Starts it with the terminal as its controlling one, for input, output and errors.
    /// - Parameter variables: as in `ChildProcess`; the kind and size of the terminal are added here.
    public init(_ words: [String], variables: [String: String] = [:]) throws(ProcessError) {
        keyboard = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        let (rows, columns) = (TerminalScreen.rowsUsual, TerminalScreen.columnsUsual)
        var size = winsize(ws_row: UInt16(rows), ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
        var (lock, number): (Int32, UInt32) = (0, 0)
        guard keyboard >= 0, ioctl(keyboard, Self.setLock, &lock) == 0, ioctl(keyboard, Self.getNumber, &number) == 0,
            ioctl(keyboard, UInt(TIOCSWINSZ), &size) == 0
        else { throw ProcessError("no terminal: \(String(cString: strerror(errno)))") }
        // ncurses prefers the last two to the terminal's size.
        let own = ["TERM": "xterm-256color", "LINES": "\(rows)", "COLUMNS": "\(columns)"]
        guard let id = Self.start(words, variables.merging(own) { $1 }, at: "/dev/pts/\(number)") else {
            throw ProcessError("cannot start \(words.first ?? "nothing")")
        }
        self.id = id
    }

    deinit {
        if !isOver {
            kill(id, SIGKILL)
            waitpid(id, nil, 0)
        }
        close(keyboard)
    }

    /// `TIOCSPTLCK`, `TIOCGPTN` and `POSIX_SPAWN_SETSID`, which Swift does not import (Linux only).
    private static let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
    private static let newSession: Int16 = 0x80

    /// The whole output, for a program that writes line after line.
    public var printed: String { String(decoding: bytes, as: UTF8.self) }

    /// Whether a text was visible at any moment up to now, in one row, or was written in one piece.
    public func everShowed(_ text: String) -> Bool {
        var screen = TerminalScreen()
        return printed.contains(text)
            || bytes.contains { (byte: UInt8) in
                screen.feed([byte])
                return screen.row(screen.cursor.row).contains(text)
            }
    }

    /// Whether the terminal echoes typed text.
    public var echoes: Bool {
        var settings = termios()
        return tcgetattr(keyboard, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    public func type(_ text: String) {
        let bytes: [UInt8] = Array(text.utf8)
        _ = write(keyboard, bytes, bytes.count)
    }

    /// Waits until a program that writes line after line has written a text.
    public func wait(forPrinted text: String, seconds: Int = 120) throws(ProcessError) {
        try wait(until: "'\(text)' is printed", seconds, onScreen: false) { printed.contains(text) }
    }

    /// Waits until one row of the present screen shows a text; earlier screens do not count.
    public func wait(forShown text: String, seconds: Int = 120) throws(ProcessError) {
        try wait(until: "'\(text)' is shown", seconds: seconds) { screen.shows(text) }
    }

    /// Waits for any other condition of the screen or of the process, and reads the program's output meanwhile.
    public func wait(until what: String, seconds: Int = 120, _ holds: () -> Bool) throws(ProcessError) {
        try wait(until: what, seconds, onScreen: true, holds)
    }

    private func wait(until what: String, _ seconds: Int, onScreen: Bool, _ holds: () -> Bool) throws(ProcessError) {
        let deadline = Steady.milliseconds() + Int64(seconds) * 1_000
        while true {
            guard !onScreen || screen.unknown.isEmpty else {
                throw ProcessError("nobody knows what the terminal shows: \(shown)")
            }
            guard onScreen || !screen.isAlternate else {
                throw ProcessError("it draws on the whole screen: wait(forShown:) is for that")
            }
            if holds() { return }
            guard Steady.milliseconds() < deadline, read(until: deadline) else {
                throw ProcessError("waited in vain until \(what): \(onScreen ? shown : printed)")
            }
        }
    }

    /// The terminal's rows and its unknown sequences, for the message of a failure.
    private var shown: String {
        let rows = screen.rows
        let last: Int = rows.lastIndex { !$0.isEmpty } ?? -1
        var lines = rows[...last].map { (row: String) in "| " + row }
        lines.insert(
            "cursor at \(screen.cursor.row + 1);\(screen.cursor.column + 1), modes \(screen.modes.sorted())", at: 0)
        if !screen.unknown.isEmpty { lines[0] += ", unknown: " + screen.unknown.joined(separator: "  ") }
        return lines.joined(separator: "\n")
    }

    public func signal(_ number: Int32) { kill(id, number) }

    /// Waits for the end and returns the exit code; nil if a signal ended it.
    public func finish(seconds: Int = 120) throws(ProcessError) -> Int32? {
        let deadline = Steady.milliseconds() + Int64(seconds) * 1_000
        while read(until: deadline) {
            guard Steady.milliseconds() < deadline else { throw ProcessError("it did not end: \(shown)") }
        }
        // The program may close the terminal before it ends.
        var status: Int32 = 0
        while waitpid(id, &status, WNOHANG) == 0 {
            guard Steady.milliseconds() < deadline else { throw ProcessError("it did not end: \(shown)") }
            _ = poll(nil, 0, 1)
        }
        isOver = true
        return status & 0x7F == 0 ? status >> 8 & 0xFF : nil
    }

    /// False when no process has the terminal open any more.
    private func read(until deadline: Int64) -> Bool {
        var watched = pollfd(fd: keyboard, events: Int16(POLLIN), revents: 0)
        guard poll(&watched, 1, Int32(clamping: min(50, max(0, deadline - Steady.milliseconds())))) > 0 else {
            return true
        }
        var chunk = [UInt8](repeating: 0, count: 4_096)
        let count = Glibc.read(keyboard, &chunk, chunk.count)
        guard count > 0 else { return count < 0 && errno == EINTR }
        bytes += chunk[..<count]
        screen.feed(chunk[..<count])
        return true
    }

    private static func start(_ words: [String], _ variables: [String: String], at name: String) -> pid_t? {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // The first terminal that the leader of a new session opens becomes its controlling one.
        posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
        posix_spawn_file_actions_adddup2(&actions, 0, 1)
        posix_spawn_file_actions_adddup2(&actions, 0, 2)
        guard thicket_keep_three(&actions) == 0 else { return nil }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, newSession)
        var arguments = words.map { (word: String) in strdup(word) } + [nil]
        var environment =
            ChildProcess.merged(variables).map { strdup($0) } + [nil]
        defer { (arguments + environment).forEach { (text: UnsafeMutablePointer<CChar>?) in free(text) } }
        var id: pid_t = 0
        let result = posix_spawn(&id, words.first ?? "", &actions, &attributes, &arguments, &environment)
        return result == 0 ? id : nil
    }
}
