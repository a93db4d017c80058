import Synchronization
import ThicketCrypto
import ThicketPlatform

/// Severity of a line.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
    /// Details for a developer.
    case debug
    /// Events an operator may want to look up later.
    case info
    /// A fault that the server handles by itself.
    case warning
    /// A fault that points to a bug or needs the operator.
    case error

    /// The word in the line and in the setting `log-level`.
    public var word: String {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warning: "warning"
        case .error: "error"
        }
    }

    /// By severity.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Destination of finished lines.
public protocol LogSink: Sendable {
    /// Takes one line that ends with a line feed. May be called from any thread at once.
    func write(_ line: [UInt8])
}

/// Structured log: one line for one event, `time=… level=info event=session.closed channels=3 reason=idle`.
///
/// Callers keep user content out: names of users, apps, buckets and objects are passed as `.hashed(…)`, tokens and
/// object bodies never. A value type: copies share the sink and the level. Any thread may log.
public struct Log: Sendable {
    /// The level, shared by all copies: it may change while the server runs.
    private final class Threshold: Sendable {
        let number: Atomic<Int>
        init(_ level: LogLevel) { number = Atomic(level.rawValue) }
    }

    private let threshold: Threshold
    private let sink: any LogSink
    private let clock: @Sendable () -> UnixTime
    private let idKey: [UInt8]

    /// - Parameters:
    ///   - level: lines below it are not made.
    ///   - idKey: key of the hash that hides ids. The same key gives the same hash, so lines of one user can be
    ///     matched; without the key, guessed names cannot be tested.
    public init(
        level: LogLevel = .info, sink: any LogSink, idKey: [UInt8],
        clock: @escaping @Sendable () -> UnixTime = UnixTime.now
    ) {
        threshold = Threshold(level)
        self.sink = sink
        self.idKey = idKey
        self.clock = clock
    }

    /// A log that writes nothing; for tests and tools.
    public static let silent = Log(level: .error, sink: NoSink(), idKey: [])

    /// Logs at level `debug`.
    public func debug(_ event: StaticString, _ fields: LogFields = [:]) { write(.debug, event, fields) }
    /// Logs at level `info`.
    public func info(_ event: StaticString, _ fields: LogFields = [:]) { write(.info, event, fields) }
    /// Logs at level `warning`.
    public func warning(_ event: StaticString, _ fields: LogFields = [:]) { write(.warning, event, fields) }
    /// Logs at level `error`.
    public func error(_ event: StaticString, _ fields: LogFields = [:]) { write(.error, event, fields) }

    /// Whether a line of this level would be written; to be asked before computing an expensive field.
    public func writes(_ level: LogLevel) -> Bool { level.rawValue >= threshold.number.load(ordering: .relaxed) }

    /// Lines below this level are not made.
    public var level: LogLevel { LogLevel(rawValue: threshold.number.load(ordering: .relaxed)) ?? .info }

    /// Changes the level of this log and of all its copies, from any thread.
    public func setLevel(_ level: LogLevel) { threshold.number.store(level.rawValue, ordering: .relaxed) }

    private func write(_ level: LogLevel, _ event: StaticString, _ fields: LogFields) {
        guard writes(level) else { return }
        var line = LogLine()
        line.append(name: "time", bare: clock().text)
        line.append(name: "level", bare: level.word)
        line.append(name: "event", bare: event.description)
        for (name, value) in fields.pairs {
            line.append(name: name.description, value: value, idKey: idKey)
        }
        sink.write(line.finished())
    }

    private struct NoSink: LogSink {
        func write(_ line: [UInt8]) {}
    }
}

/// The fields of a line, in order: `["session": .int(7), "reason": .text("idle")]`.
public struct LogFields: Sendable, ExpressibleByDictionaryLiteral {
    let pairs: [(StaticString, LogValue)]
    /// The fields in the order of the literal.
    public init(dictionaryLiteral elements: (StaticString, LogValue)...) { self.pairs = elements }
}

/// One value of a line.
public enum LogValue: Sendable, ExpressibleByIntegerLiteral, ExpressibleByStringLiteral {
    /// A number.
    case int(Int64)
    /// Written as seconds with milliseconds, `31.204s`.
    case duration(Duration)
    /// Text that is known to be safe: fixed words, error descriptions, paths given by the operator. Quoted when
    /// needed, control characters escaped, cut after 300 bytes.
    case text(String)
    /// A name of a user, app, bucket, object or client: 12 hex digits of a keyed hash are written.
    case hashed(String)

    /// As `int`.
    public init(integerLiteral value: Int64) { self = .int(value) }
    /// As `text`.
    public init(stringLiteral value: String) { self = .text(value) }
    /// As `int`, from an `Int`.
    public static func int(_ value: Int) -> LogValue { .int(Int64(value)) }
}

/// Builds one line, short enough that one `write` to a pipe is never split.
private struct LogLine {
    /// Longest line, the line feed included. A pipe takes up to 4,096 bytes in one piece (POSIX, PIPE_BUF).
    static let bytesMax = 4_000
    static let valueBytesMax = 300
    private var bytes = [UInt8]()

    init() { bytes.reserveCapacity(256) }

    mutating func append(name: String, bare value: String) {
        if !bytes.isEmpty { bytes.append(0x20) }
        bytes += name.utf8
        bytes.append(0x3D)
        bytes += value.utf8
    }

    mutating func append(name: String, value: LogValue, idKey: [UInt8]) {
        switch value {
        case .int(let number): append(name: name, bare: String(number))
        case .duration(let duration): append(name: name, bare: LogLine.text(of: duration))
        case .text(let text): append(name: name, bare: LogLine.quoted(text))
        case .hashed(let text):
            let digest = Hash.hmacSHA256(key: idKey, Array(text.utf8))
            append(name: name, bare: Hex.encode(Array(digest[..<6])))
        }
    }

    mutating func finished() -> [UInt8] {
        if bytes.count >= LogLine.bytesMax { bytes.removeSubrange((LogLine.bytesMax - 1)...) }
        bytes.append(0x0A)
        return bytes
    }

    /// Seconds with milliseconds, `31.204s`.
    static func text(of duration: Duration) -> String {
        let parts = duration.components
        let milliseconds = String(parts.attoseconds.magnitude / 1_000_000_000_000_000)
        let zeros = String(repeating: "0", count: 3 - milliseconds.utf8.count)
        let sign = parts.seconds < 0 || parts.attoseconds < 0 ? "-" : ""
        return "\(sign)\(parts.seconds.magnitude).\(zeros)\(milliseconds)s"
    }

    /// Unchanged when it has only plain printable characters, otherwise in quotes with `\"`, `\\`, `\n` and `\xNN`.
    static func quoted(_ text: String) -> String {
        let plain =
            !text.isEmpty && text.utf8.count <= valueBytesMax
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x3D && $0 != 0x5C }
        if plain { return text }
        var result = "\""
        var room = valueBytesMax
        for scalar in text.unicodeScalars {
            room -= UTF8.width(scalar)
            if room < 0 {
                result += "…"
                break
            }
            switch scalar.value {
            case 0x22: result += "\\\""
            case 0x5C: result += "\\\\"
            case 0x0A: result += "\\n"
            case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029:
                let code = String(scalar.value, radix: 16)
                result += "\\x" + (code.utf8.count < 2 ? "0" + code : code)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
