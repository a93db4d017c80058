/// Whether the server can read the objects of a bucket.
public enum BucketMode: Int64, Hashable, Sendable {
    /// The server reads and merges objects.
    case open = 0
    /// The server orders changes that it cannot read and refuses changes in clear text (decision 0045).
    case sealed = 1

    /// The word for this mode in `init`, in the `o` message and on the command line.
    public var word: String {
        switch self {
        case .open: "open"
        case .sealed: "sealed"
        }
    }

    /// - Returns: nil if `word` is neither `open` nor `sealed`.
    public init?(word: String) {
        for mode: BucketMode in [.open, .sealed] where word.utf8.elementsEqual(mode.word.utf8) {
            self = mode
            return
        }
        return nil
    }
}
