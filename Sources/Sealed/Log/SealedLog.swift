import ThicketProtocol

/// One incarnation of a sealed object: what all its operations, in the order the server gave them, make of it.
///
/// Every device that has read the same operations holds an equal value, wherever it began to read.
public struct SealedLog: Sendable, Equatable {
    /// An operation of the last 64 positions that changed something: what a later operation with an older base is
    /// carried over.
    public struct Settled: Sendable, Equatable {
        public var author: AuthorID
        /// Its carried form, with what it replaced and removed; of the whole object.
        public var edit: Edit

        public init(author: AuthorID, edit: Edit) {
            self.author = author
            self.edit = edit
        }
    }

    public let place: SealedPlace
    /// The app's own key, which the server never sees.
    public let appKey: String
    /// 16 random bytes, drawn at the creation.
    public let incarnation: [UInt8]
    /// The object; nil when it is deleted.
    public internal(set) var object: JSONObject?
    public internal(set) var chain: HeadChain
    /// Position of each author's last operation that was not void.
    public internal(set) var lastPositions: [AuthorID: Int]
    /// Operations max(1, n − 63) … n; nil for those that changed nothing.
    public internal(set) var window: [Settled?]
    /// The greatest version of a list of readers that the creation, or an operation which counts, was written under; 0
    /// where no accounts share the bucket. What was written under an older one and comes behind it counts for nothing
    /// (decision 0067).
    public internal(set) var list: Int

    /// A new object, position 0.
    /// - Parameter list: version of the list of readers that it is made under, `Sealer.listVersion`.
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

    /// From a snapshot.
    init(
        place: SealedPlace, appKey: String, incarnation: [UInt8], object: JSONObject?, chain: HeadChain,
        lastPositions: [AuthorID: Int], window: [Settled?], list: Int
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

    public static let incarnationBytes = 16

    /// Operations since the creation.
    public var position: Int { chain.position }

    /// What operations name of the incarnation: its first 8 bytes.
    public var incarnationTag: UInt64 { incarnation.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }

    /// The settled operation at a position of the window.
    public func settled(at position: Int) -> Settled? {
        let index = position - (self.position - window.count + 1)
        return window.indices.contains(index) ? window[index] : nil
    }

    /// Whether the window reaches back to the operation after `base`.
    public func reaches(_ base: Int) -> Bool { base >= position - window.count }

    public static func == (left: SealedLog, right: SealedLog) -> Bool {
        left.chain == right.chain && left.incarnation == right.incarnation && left.place == right.place
            && left.appKey.utf8.elementsEqual(right.appKey.utf8) && left.object == right.object
            && left.lastPositions == right.lastPositions && left.window == right.window && left.list == right.list
    }
}
