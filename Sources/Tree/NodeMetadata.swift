public import ThicketCrypto
package import ThicketTreeShape

/// What only devices know of a node: the clear form of `m`.
public struct NodeMetadata: Sendable {
    /// Bytes of the child salt.
    public static let saltBytes = 32

    /// The name as people see it.
    public var name: NodeName
    /// Tags the names of the nodes below; random, 32 bytes, never changes.
    public let childSalt: SecureBytes
    /// What opens the content; nil for a node without content.
    public var content: ContentAccess?
    /// Milliseconds since 1970 at which a device last changed the content; nil if the app says nothing.
    public var modified: Int64?
    /// What an app attaches to the node, in the order of the bytes of the keys, each key once.
    public private(set) var appTags: [AppTag]
    /// The statement of a message's origin as its author wrote it (`OriginStatement`), not verified; nil for a node
    /// that is not a message. It stays with the node.
    public let origin: [UInt8]?
    /// Keys that the node had in earlier epochs, the newest first: nodes below it that were not written since hang on
    /// them.
    var earlierKeys: [EarlierKey]
    /// The last list of the node, which was the root of a shared branch and is none now; nil for any other node.
    var endedList: EndedList?
    /// The ids that the content had before it was sealed again without a change, the newest first: a re-key is no edit.
    var sealedBefore = [DataID]()
    /// The version of the form: 1, or that of the newer program that wrote it.
    let format: UInt8
    /// Fields that a newer version has written, in the order of their numbers.
    let others: [(number: UInt16, content: SecureBytes)]

    /// A pair that an app attaches to a node. It is sealed with the metadata and synchronised.
    public struct AppTag: Sendable, Hashable {
        /// Bytes of a key at most.
        public static let keyBytesMax = 64
        /// Bytes of a value at most.
        public static let valueBytesMax = 1_024
        /// Pairs of a node at most.
        public static let countMax = 64

        /// 1 to 64 bytes of UTF-8.
        public let key: String
        /// At most 1,024 bytes.
        public let value: [UInt8]

        /// - Returns: nil for a key or value outside its bounds.
        public init?(_ key: String, _ value: [UInt8]) {
            guard (1...Self.keyBytesMax).contains(key.utf8.count), value.count <= Self.valueBytesMax else { return nil }
            (self.key, self.value) = (key, value)
        }

        /// Compares the bytes.
        public static func == (left: AppTag, right: AppTag) -> Bool {
            left.key.utf8.elementsEqual(right.key.utf8) && left.value == right.value
        }
        /// Hashes the bytes.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(Array(key.utf8))
            hasher.combine(value)
        }
    }

    init(
        name: NodeName, childSalt: SecureBytes, content: ContentAccess?, modified: Int64?, appTags: [AppTag],
        origin: [UInt8]? = nil, earlierKeys: [EarlierKey] = [], endedList: EndedList? = nil, format: UInt8 = 1,
        others: [(number: UInt16, content: SecureBytes)] = []
    ) {
        (self.name, self.childSalt, self.content, self.modified) = (name, childSalt, content, modified)
        (self.appTags, self.origin, self.earlierKeys) = (appTags, origin, earlierKeys)
        self.endedList = endedList
        (self.format, self.others) = (format, others)
    }

    /// Ids in `sealedBefore` at most.
    static let sealedBeforeMax = 8

    /// Whether the content is that of an earlier id, sealed again.
    package func isContent(of earlier: DataID) -> Bool { sealedBefore.contains(earlier) }

    /// Replaces the app's pairs.
    ///
    /// - Returns: false, and nothing is changed, for more than `AppTag.countMax` pairs or a key that is there twice.
    public mutating func setAppTags(_ tags: [AppTag]) -> Bool {
        guard let ordered = Self.ordered(tags) else { return false }
        appTags = ordered
        return true
    }

    /// The pairs in the order of their keys; nil if there are too many, or two with one key.
    static func ordered(_ tags: [AppTag]) -> [AppTag]? {
        guard tags.count <= AppTag.countMax else { return nil }
        let ordered = tags.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        let isDistinct = zip(ordered, ordered.dropFirst()).allSatisfy { !$0.key.utf8.elementsEqual($1.key.utf8) }
        return isDistinct ? ordered : nil
    }
}

extension NodeMetadata: Equatable {
    /// Compares the written forms in constant time.
    public static func == (left: NodeMetadata, right: NodeMetadata) -> Bool { left.octets == right.octets }
}

extension NodeMetadata: CustomStringConvertible, CustomReflectable {
    /// A fixed text: names and keys never reach a log.
    public var description: String { "(metadata of a node)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
