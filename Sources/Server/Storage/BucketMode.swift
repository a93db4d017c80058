/// Who may know what stands in a bucket.
public enum BucketMode: Int64, Hashable, Sendable {
    /// The server reads objects, and merges them.
    case open = 0
    /// The server orders what it cannot read; anything else is refused (decision 0045).
    case sealed = 1

    /// The word of `init`, of the `o` message and of the command line.
    public var word: String {
        switch self {
        case .open: "open"
        case .sealed: "sealed"
        }
    }

    /// - Returns: nil for any other word.
    public init?(word: String) {
        for mode: BucketMode in [.open, .sealed] where word.utf8.elementsEqual(mode.word.utf8) {
            self = mode
            return
        }
        return nil
    }
}
