import Glibc
import Synchronization
import ThicketPlatform

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
                let report = "level=warning event=log.dropped lines=\(lost)\n"
                guard put(Array(report.utf8)) else { return drop(&lost) }
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
