import Glibc
import Synchronization

/// Writes each line to a file descriptor, completely or not at all.
///
/// A slow reader must not stop the loop: when a pipe is full the line is lost and counted, and the next line that
/// can be written is preceded by one with the number of lost lines.
public final class DescriptorSink: LogSink {
    private let descriptor: Int32
    private let dropped: Counter
    /// Lines lost since the last one written; the lock also keeps lines of several threads apart.
    private let lost = Mutex<Int>(0)

    /// - Parameters:
    ///   - descriptor: 2 for standard error.
    ///   - dropped: counts the lines lost.
    public init(descriptor: Int32 = 2, dropped: Counter) {
        self.descriptor = descriptor
        self.dropped = dropped
    }

    /// Writes a line, or counts it as lost; never waits for the reader.
    public func write(_ line: [UInt8]) {
        lost.withLock { (lost: inout Int) in
            if lost > 0 {
                let note = "level=warning event=log.dropped lines=\(lost)\n"
                guard put(Array(note.utf8)) else { return drop(&lost) }
                lost = 0
            }
            if !put(line) { drop(&lost) }
        }
    }

    private func drop(_ lost: inout Int) {
        lost += 1
        dropped.add()
    }

    private func put(_ line: [UInt8]) -> Bool {
        var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard Glibc.poll(&poll, 1, 0) == 1, poll.revents & Int16(POLLOUT) != 0 else { return false }
        var sent = 0
        while sent < line.count {
            let count = line.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                Glibc.write(descriptor, bytes.baseAddress! + sent, bytes.count - sent)
            }
            if count < 0 {
                if errno == EINTR { continue }
                return false
            }
            sent += count
        }
        return true
    }
}

/// Keeps lines in memory, for tests.
public final class MemorySink: LogSink {
    private let kept = Mutex<[String]>([])
    /// An empty sink.
    public init() {}
    /// Appends a line.
    public func write(_ line: [UInt8]) { kept.withLock { $0.append(String(decoding: line.dropLast(), as: UTF8.self)) } }
    /// The lines so far, without their line feeds.
    public var lines: [String] { kept.withLock { $0 } }
}

/// A time, in milliseconds since 1970-01-01T00:00:00Z.
public struct UnixTime: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970; negative before.
    public var milliseconds: Int64
    /// A time from its milliseconds since 1970.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The wall clock.
    @Sendable public static func now() -> UnixTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UnixTime(milliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// The earlier time is less.
    public static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

    /// `2026-01-31T23:59:59.000Z` (RFC 3339).
    public var text: String {
        let day = milliseconds.dividedRoundingDown(by: 86_400_000)
        let inDay = milliseconds - day * 86_400_000
        let date = UnixTime.civil(fromDay: day)
        let clock =
            "\(pad(inDay / 3_600_000, 2)):\(pad(inDay / 60_000 % 60, 2)):\(pad(inDay / 1_000 % 60, 2))"
        return "\(pad(date.year, 4))-\(pad(date.month, 2))-\(pad(date.day, 2))T\(clock).\(pad(inDay % 1_000, 3))Z"
    }

    /// The date of a day counted from 1970-01-01, by counting 400-year eras that begin on a 1 March.
    private static func civil(fromDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468
        let era = shifted.dividedRoundingDown(by: 146_097)
        let inEra = shifted - era * 146_097
        let yearOfEra = (inEra - inEra / 1_460 + inEra / 36_524 - inEra / 146_096) / 365
        let dayOfYear = inEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }

    private func pad(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

extension Int64 {
    fileprivate func dividedRoundingDown(by divisor: Int64) -> Int64 {
        self >= 0 ? self / divisor : -((-self + divisor - 1) / divisor)
    }
}
