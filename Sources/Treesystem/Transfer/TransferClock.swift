internal import Synchronization

import ThicketCrypto
import ThicketPlatform

/// The time of transfers, passed in.
public struct TransferClock: Sendable {
    /// Milliseconds of a clock that never goes back.
    public let now: @Sendable () -> Int64
    /// Waits for a number of milliseconds; throws when the task is cancelled.
    public let sleep: @Sendable (Int64) async throws -> Void
    /// A random number for the jitter of pauses.
    public let random: @Sendable () -> UInt64

    /// A clock.
    public init(
        now: @escaping @Sendable () -> Int64, sleep: @escaping @Sendable (Int64) async throws -> Void,
        random: @escaping @Sendable () -> UInt64
    ) {
        (self.now, self.sleep, self.random) = (now, sleep, random)
    }

    /// The clock of the machine.
    public static let system = TransferClock(
        now: { SystemClock.monotonicWithSleep() / 1_000_000 },
        sleep: { try await Task.sleep(for: .milliseconds($0)) },
        random: { RandomBytes.make(8).reduce(0) { $0 << 8 | UInt64($1) } })
}

/// Bounds of uploads and downloads.
public enum TransferLimits {
    /// Bytes of a part of an upload, unless the content needs larger ones.
    public static let partBytes = 4 << 20
    /// Bytes of the largest part that a server accepts.
    public static let partBytesMax = 16 << 20
    /// Parts of one upload.
    public static let partsMax = 10_000
    /// Parts of one upload that are sent at one time; each is in memory. An interruption may cost each of them.
    public static let partsInFlightMax = 1
    /// Chunks that one request of a download asks for: 1 MiB, which is in memory.
    public static let pieceChunks: UInt64 = 16
    /// Downloads that run at one time; the others wait for their turn.
    public static let downloadsMax = 3
    /// Downloads that run or wait.
    public static let waitingMax = 1_024
    /// Tickets of downloads that are not complete.
    public static let ticketsMax = 16_384
    /// Failures in a row after which a transfer is tried once more; the next failure ends it.
    public static let failuresMax = 8
    /// How often an upload begins again because the server does not know it any more.
    public static let restartsMax = 4
    /// How often wrong bytes are asked for again.
    public static let wrongBytesMax = 1
    /// Shortest pause after a failure, in milliseconds; doubles with each.
    public static let pauseMin: Int64 = 250
    /// Longest pause after a failure, in milliseconds, unless the server asks for a longer one.
    public static let pauseMax: Int64 = 60_000
    /// Longest pause, in milliseconds, that an answer of the server can cause.
    public static let askedPauseMax: Int64 = 600_000
}

/// Counts the large buffers that transfers hold.
final class BufferCount: Sendable {
    private let counts = Mutex((now: 0, most: 0))

    func acquire() {
        counts.withLock { counts in
            counts.now += 1
            counts.most = max(counts.most, counts.now)
        }
    }

    func release() { counts.withLock { $0.now -= 1 } }

    /// Buffers now, and at most at any time.
    var value: (now: Int, most: Int) { counts.withLock { $0 } }
}
