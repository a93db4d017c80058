import Synchronization
import ThicketCommandLine
import ThicketCrypto

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Asks at the terminal for a secret: typed characters are not shown, and the terminal's settings are restored however
/// the question ends.
enum SecretPrompt {
    enum Answer: Sendable, Equatable {
        case typed(String)
        case cancelled
        case noTerminal
    }

    /// The terminal's original settings, for a signal that ends the program; -1: no question is open.
    ///
    /// Written before `terminal` is stored and read after it was loaded.
    nonisolated(unsafe) private static var before = termios()
    private static let terminal: Atomic<Int32> = Atomic(-1)

    /// The same for a secret that is never a `String`.
    enum SecretAnswer: Sendable {
        case typed(SecureBytes)
        case cancelled
        case noTerminal
    }

    /// Waits for a line. It uses the terminal itself, so that standard input and output may be pipes.
    static func ask(_ label: String) -> Answer {
        guard let line = line(label) else { return .noTerminal }
        return line?.text.map(Answer.typed) ?? .cancelled
    }

    /// The same, into memory that is wiped.
    static func askSecret(_ label: String) -> SecretAnswer {
        guard var line = line(label) else { return .noTerminal }
        return (line?.takeSecret()).map(SecretAnswer.typed) ?? .cancelled
    }

    /// - Returns: nil without a terminal; a nil line when the question was cancelled.
    private static func line(_ label: String) -> SecretLine?? {
        let file: Int32 = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var settings = termios()
        guard tcgetattr(file, &settings) == 0 else { return nil }
        before = settings
        terminal.store(file, ordering: .sequentiallyConsistent)
        let (interrupt, end) = (signal(SIGTERM, restoreAndEnd), signal(SIGHUP, restoreAndEnd))
        // Ctrl-C arrives as a byte, so that the settings are restored before the program ends.
        settings.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | ISIG | IEXTEN)
        tcsetattr(file, TCSAFLUSH, &settings)
        Terminal.write(Array(label.utf8), to: file)
        let line = read(file)
        // Input that was pasted after the line is discarded: it must not become the shell's next command.
        tcsetattr(file, TCSAFLUSH, &before)
        terminal.store(-1, ordering: .sequentiallyConsistent)
        _ = (signal(SIGTERM, interrupt), signal(SIGHUP, end))
        Terminal.write([0x0A], to: file)
        return .some(line)
    }

    private static func read(_ file: Int32) -> SecretLine? {
        var line = SecretLine()
        while true {
            var byte: UInt8 = 0
            let count = systemRead(file, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { return nil }
            switch line.enter(byte) {
            case .more: break
            case .done: return line
            case .cancelled: return nil
            }
        }
    }

    /// A signal handler: only async-signal-safe calls.
    fileprivate static func restore() {
        let file: Int32 = terminal.load(ordering: .sequentiallyConsistent)
        if file >= 0 { tcsetattr(file, TCSANOW, &before) }
    }
}

private func restoreAndEnd(_ number: Int32) {
    SecretPrompt.restore()
    _ = signal(number, SIG_DFL)
    raise(number)
}

/// A line that is typed without echo: the effect of each key.
struct SecretLine {
    enum Step: Equatable { case more, done, cancelled }

    /// Most bytes of a line; more bytes end the question.
    static let bytesMax = 4_096
    private var bytes: [UInt8]
    /// Inside the escape sequence of a cursor key.
    private var escape = Escape.none
    private enum Escape { case none, begun, sequence }

    init() {
        // Reserved at once: growing would leave copies behind.
        bytes = []
        bytes.reserveCapacity(Self.bytesMax)
    }

    /// nil: it is not UTF-8.
    var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The bytes, which are overwritten here.
    mutating func takeSecret() -> SecureBytes { SecureBytes(taking: &bytes) }

    /// Removes the last byte and overwrites it.
    private mutating func drop() -> UInt8? {
        guard let last = bytes.last else { return nil }
        bytes[bytes.count - 1] = 0
        bytes.removeLast()
        return last
    }

    mutating func enter(_ byte: UInt8) -> Step {
        if skips(byte) { return .more }
        switch byte {
        case 0x0A, 0x0D: return .done
        case 0x03: return .cancelled
        case 0x04: return bytes.isEmpty ? .cancelled : .done
        case 0x08, 0x7F:
            while let last = drop(), last & 0xC0 == 0x80 {}
        case 0x15, 0x17: while drop() != nil {}
        case 0x1B: escape = .begun
        case 0x00..<0x20: break
        default:
            guard bytes.count < Self.bytesMax else { return .cancelled }
            bytes.append(byte)
        }
        return .more
    }

    private mutating func skips(_ byte: UInt8) -> Bool {
        switch escape {
        case .none: return false
        case .begun: escape = byte == 0x5B || byte == 0x4F ? .sequence : .none
        case .sequence: if (0x40...0x7E).contains(byte) { escape = .none }
        }
        return true
    }
}

/// The system call, which a method of this type would shadow.
private func systemRead(_ file: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(file, bytes, count)
}
