internal import Synchronization
import ThicketPlatform

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The standard streams of the program.
public enum Terminal {
    /// Descriptor of standard output.
    public static let standardOutput: Int32 = 1
    /// Descriptor of standard error.
    public static let standardError: Int32 = 2

    /// The first error of writing to standard output; 0: none.
    private static let firstOutputError = Atomic<Int32>(0)

    /// The `errno` of the first write to standard output that failed; nil while all of it was written. `EPIPE`: its
    /// reader has closed the pipe.
    public static var outputError: Int32? {
        let error = firstOutputError.load(ordering: .relaxed)
        return error == 0 ? nil : error
    }

    /// Whether the descriptor is a terminal.
    public static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Columns of the terminal; 80 when the descriptor is not one or does not report them.
    public static func columns(_ descriptor: Int32 = standardError) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// Writes the whole text to standard output: unchanged, except on a terminal, where `Screen.safe` is applied.
    /// - Returns: false when the pipe is closed or the disk is full.
    @discardableResult
    public static func write(_ text: String) -> Bool { write(text, to: standardOutput) }

    /// Writes the whole text to standard error, in the same way.
    @discardableResult
    public static func writeError(_ text: String) -> Bool { write(text, to: standardError) }

    private static func write(_ text: String, to descriptor: Int32) -> Bool {
        write(Array((isTerminal(descriptor) ? Screen.safe(text) : text).utf8), to: descriptor)
    }

    /// Writes all bytes, waiting for a slow reader; returns false as `write(_:)` does.
    @discardableResult
    public static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { (all: UnsafeRawBufferPointer) in
                put(descriptor, all.baseAddress! + sent, all.count - sent)
            }
            if count >= 0 {
                sent += count
            } else if errno == EAGAIN {
                var watched = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&watched, 1, -1)
            } else if errno != EINTR {
                if descriptor == standardOutput {
                    _ = firstOutputError.compareExchange(expected: 0, desired: errno, ordering: .relaxed)
                }
                return false
            }
        }
        return true
    }
}

/// A progress line on standard error for long work; prints nothing when it is not a terminal.
///
/// ```swift
/// var bar = ProgressBar("importing", total: files.count)
/// for file in files { ...; bar.advance() }
/// bar.finish()
/// ```
///
/// Redrawn at most ten times a second.
public struct ProgressBar {
    private let label: String
    private let total: Int?
    private let descriptor: Int32
    private let isShown: Bool
    private let now: () -> Duration
    private let began: Duration
    private var lastDrawn: Duration?
    /// Units of work done so far.
    public private(set) var done = 0

    /// - Parameters:
    ///   - total: nil when it is not known.
    ///   - isShown: nil tests whether the descriptor is a terminal.
    ///   - now: a monotonic clock.
    public init(
        _ label: String, total: Int?, descriptor: Int32 = Terminal.standardError, isShown: Bool? = nil,
        now: @escaping () -> Duration = ProgressBar.steadyTime
    ) {
        self.label = label
        self.total = total
        self.descriptor = descriptor
        self.isShown = isShown ?? Terminal.isTerminal(descriptor)
        self.now = now
        self.began = now()
    }

    /// Adds work done.
    public mutating func advance(_ amount: Int = 1) { update(done + amount) }

    /// Sets the work done.
    public mutating func update(_ done: Int) {
        self.done = done
        guard isShown else { return }
        let time = now()
        if let last = lastDrawn, time - last < .milliseconds(100), done != total { return }
        lastDrawn = time
        draw(time)
    }

    /// Draws the last state and ends the line.
    public mutating func finish() {
        guard isShown else { return }
        draw(now())
        Terminal.write([0x0A], to: descriptor)
    }

    /// Erases the line, for work whose result needs no further report.
    public mutating func clear() {
        guard isShown, lastDrawn != nil else { return }
        Terminal.write(Array("\r\u{1B}[K".utf8), to: descriptor)
        lastDrawn = nil
    }

    private func draw(_ time: Duration) {
        let line = ProgressBar.line(
            label, done: done, total: total, elapsed: time - began, columns: Terminal.columns(descriptor))
        Terminal.write(Array("\r\(line)\u{1B}[K".utf8), to: descriptor)
    }

    /// The line itself: `importing  [#####     ]  50 %  500/1000  1200/s  1 s left`.
    static func line(_ label: String, done: Int, total: Int?, elapsed: Duration, columns: Int) -> String {
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        let rate = seconds > 0.2 ? Double(done) / seconds : 0
        let speed = rate >= 1 ? "  \(Int(rate))/s" : ""
        guard let total, total > 0 else { return String("\(label)  \(done)\(speed)".prefix(columns - 1)) }
        let share = min(1, max(0, Double(done) / Double(total)))
        let left = rate > 0 && done < total ? "  \(Int(Double(total - done) / rate) + 1) s left" : ""
        let tail = "  \(Int(share * 100)) %  \(done)/\(total)\(speed)\(left)"
        let room = min(40, columns - label.count - tail.count - 6)
        guard room >= 5 else { return String("\(label)\(tail)".prefix(columns - 1)) }
        let full = Int(Double(room) * share)
        let bar = String(repeating: "#", count: full) + String(repeating: " ", count: room - full)
        return "\(label)  [\(bar)]\(tail)"
    }

    /// Time on the monotonic clock.
    public static func steadyTime() -> Duration { SystemClock.steadyTime() }
}

/// The system's `write`, which `Terminal.write` hides.
private func put(_ descriptor: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    write(descriptor, bytes, count)
}
