import ThicketProtocol

/// One incarnation of a sealed object: the result of all its operations in the order that the server gave them.
///
/// Every device that has read the same operations holds an equal value, wherever it began to read.
public struct SealedLog: Sendable, Equatable {
    /// An operation of the last 64 positions that changed something. Later operations with an older base are
    /// transformed over it.
    public struct Entry: Sendable, Equatable {
        /// The operation's author.
        public var author: AuthorID
        /// Its transformed edit of the whole object, with the values that it replaced and removed.
        public var edit: Edit

        /// An operation of the window.
        public init(author: AuthorID, edit: Edit) {
            self.author = author
            self.edit = edit
        }
    }

    /// The object's place, to which all hashes are bound.
    public let place: SealedPlace
    /// The app's own key, which the server never sees.
    public let appKey: String
    /// 16 random bytes, drawn at the creation.
    public let incarnation: [UInt8]
    /// The object; nil when it is deleted.
    public internal(set) var object: JSONObject?
    /// The hash chain over the operations.
    public internal(set) var chain: HeadChain
    /// Position of each author's last operation that was not void.
    public internal(set) var lastPositions: [AuthorID: Int]
    /// Operations max(1, n − 63) … n; nil for those that changed nothing.
    public internal(set) var window: [Entry?]
    /// The greatest version of a list of readers under which the creation, or an operation that counts, was written; 0
    /// where the bucket is not shared by accounts. A later operation under an older list does not count.
    public internal(set) var list: Int

    /// A new object at position 0.
    /// - Parameter list: version of the list of readers under which it is made, `Sealer.listVersion`.
    public init(place: SealedPlace, appKey: String, incarnation: [UInt8], object: JSONObject, list: Int = 0) {
        precondition(incarnation.count == Self.incarnationBytes, "an incarnation id has 16 bytes")
        self.place = place
        self.appKey = appKey
        self.incarnation = incarnation
        self.object = object
        chain = HeadChain(place, incarnation: incarnation)
        lastPositions = [:]
        window = []
        self.list = list
    }

    /// Restores a log from a snapshot.
    init(
        place: SealedPlace, appKey: String, incarnation: [UInt8], object: JSONObject?, chain: HeadChain,
        lastPositions: [AuthorID: Int], window: [Entry?], list: Int
    ) {
        self.place = place
        self.appKey = appKey
        self.incarnation = incarnation
        self.object = object
        self.chain = chain
        self.lastPositions = lastPositions
        self.window = window
        self.list = list
    }

    /// Bytes of an incarnation id.
    public static let incarnationBytes = 16

    /// Number of operations since the creation.
    public var position: Int { chain.position }

    /// The form in which operations name the incarnation: its first 8 bytes.
    public var incarnationTag: UInt64 { incarnation.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

    /// The operation at a position of the window.
    public func entry(at position: Int) -> Entry? {
        let index = position - (self.position - window.count + 1)
        return window.indices.contains(index) ? window[index] : nil
    }

    /// Whether the window reaches back to the operation after `base`.
    public func reaches(_ base: Int) -> Bool { base >= position - window.count }

    /// Whether both are at the same point of the same history with the same object.
    public static func == (left: SealedLog, right: SealedLog) -> Bool {
        left.chain == right.chain && left.incarnation == right.incarnation && left.place == right.place
            && left.appKey.utf8.elementsEqual(right.appKey.utf8) && left.object == right.object
            && left.lastPositions == right.lastPositions && left.window == right.window && left.list == right.list
    }
}
