import ThicketProtocol
import ThicketTreeShape

/// Counts what accounts send into inboxes in the current minute of the server's clock. In memory only: a restart counts
/// from zero.
struct DeliveryMeter {
    /// Sender and receiver.
    struct Pair: Hashable {
        let app: AppID
        let sender: UserID
        let receiver: UserID
    }

    /// Pairs that are counted at once. When there are more in a minute, all are counted from zero.
    static let pairsMax = 65_536
    private static let minute: Int64 = 60_000

    private var current: Int64 = 0
    private var counts = [Pair: Int]()

    /// Messages of the pair in the minute of `now`, milliseconds since 1970.
    func count(of pair: Pair, at now: Int64) -> Int { now / Self.minute == current ? counts[pair] ?? 0 : 0 }

    /// Counts messages that were decided.
    mutating func add(_ count: Int, of pair: Pair, at now: Int64) {
        if now / Self.minute != current || counts.count >= Self.pairsMax { counts.removeAll() }
        current = now / Self.minute
        counts[pair, default: 0] += count
    }
}
