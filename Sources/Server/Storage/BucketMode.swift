import ThicketProtocol

/// What the server does with the objects of a bucket.
public enum BucketMode: Int64, Hashable, Sendable, CaseIterable {
    /// The server reads and merges objects.
    case open = 0
    /// The server orders changes that it cannot read and refuses changes in clear text (decision 0045).
    case sealed = 1
    /// The server keeps a tree of encrypted nodes: it checks records and their places and merges nothing (decision
    /// 0093).
    case tree = 2

    /// The word for this mode in `init` and in the `o` message; open and sealed also on the command line.
    public var word: String {
        switch self {
        case .open: "open"
        case .sealed: "sealed"
        case .tree: "tree"
        }
    }

    /// - Returns: nil if `word` is none of these words.
    public init?(word: String) {
        for mode in Self.allCases where word.utf8.elementsEqual(mode.word.utf8) {
            self = mode
            return
        }
        return nil
    }

    /// Whether an operator sets this mode for all buckets of a name. A tree is made by the `init` of a device.
    public var isSetByOperators: Bool {
        switch self {
        case .open, .sealed: true
        case .tree: false
        }
    }

    /// Whether the server may remove objects because there are too many. In the other modes devices would treat the
    /// removal as an attack, and in a tree it could remove a parent.
    var mayHaveCapacity: Bool {
        switch self {
        case .open: true
        case .sealed, .tree: false
        }
    }

    /// Whether heads contain the version that the newest creation made: only `SealedEngine` asks for it.
    var recordsBirth: Bool {
        switch self {
        case .sealed: true
        case .open, .tree: false
        }
    }

    /// Whether the first `init` of a new bucket of this name may choose the mode.
    func mayBeChosen(for name: BucketName) -> Bool {
        switch self {
        case .open: false
        case .sealed: !BucketOptions.isBucket(name)
        case .tree: name.text.utf8.elementsEqual(Self.treeName.utf8)
        }
    }

    /// The only bucket that becomes a tree: an app has one tree for each user (treesystem 4.1).
    static let treeName = "tree"
}
