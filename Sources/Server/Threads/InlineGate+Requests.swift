import ThicketProtocol
import ThicketScheduling

extension InlineGate {
    /// Whether the requests are few, small and cheap to decide.
    static func admits(_ requests: [ShardRequest]) -> Bool {
        guard (1...changesMax).contains(requests.count) else { return false }
        var bytes = 0
        for request in requests {
            // Clearing a bucket removes many objects; forgetting a bucket is not urgent.
            guard case .change(let submitted) = request else { return false }
            if case .empty = submitted.request.operation { return false }
            // A short batch may remove a large branch.
            if submitted.batch != nil || submitted.policy != nil { return false }
            bytes += submitted.reservation.bytes
        }
        return bytes <= bytesMax
    }
}
