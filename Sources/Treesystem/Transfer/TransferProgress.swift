/// How far a transfer is.
public struct TransferProgress: Sendable, Hashable {
    /// Bytes transferred; never fewer than in an earlier value, and `total` at the end.
    public let bytes: UInt64
    /// Bytes of the whole transfer.
    public let total: UInt64
    /// Bytes per second, averaged over the last seconds; 0 until it is known.
    public let rate: UInt64
    /// Milliseconds until the end at this rate; nil until the rate is known.
    public let remaining: Int64?
}

/// Makes progress values of the bytes that were transferred. Pure.
struct ProgressMeter: Sendable {
    /// Milliseconds over which the rate is averaged.
    static let window: Int64 = 5_000
    /// Moments that are kept for the rate.
    static let momentsMax = 64

    private let total: UInt64
    private var bytes: UInt64
    private var moments: [(time: Int64, bytes: UInt64)]

    /// - Parameters:
    ///   - bytes: already transferred before, which do not count for the rate.
    ///   - total: of the whole transfer.
    ///   - now: milliseconds.
    init(_ bytes: UInt64, of total: UInt64, now: Int64) {
        (self.total, self.bytes) = (total, min(bytes, total))
        moments = [(now, self.bytes)]
    }

    /// The progress at a number of bytes. A number below an earlier one, after a transfer began again, is ignored.
    mutating func update(_ count: UInt64, now: Int64) -> TransferProgress {
        bytes = min(total, max(bytes, count))
        moments.append((now, bytes))
        while moments.count > 2, moments[1].time < now - Self.window || moments.count > Self.momentsMax {
            moments.removeFirst()
        }
        let (first, time) = (moments[0], max(0, now - moments[0].time))
        let rate = time > 0 ? (bytes - first.bytes) * 1_000 / UInt64(time) : 0
        let isOver = bytes == total
        let remaining: Int64? = isOver ? 0 : rate > 0 ? Int64(clamping: (total - bytes) * 1_000 / rate) : nil
        return TransferProgress(bytes: bytes, total: total, rate: rate, remaining: remaining)
    }
}
