public import ThicketProtocol
import ThicketSealed

/// Two edits of one value met and only one could stand. Where both were ordered by the server every device finds the
/// same one, and is told; where an edit had waited on a device, and prevails over what came meanwhile, that device is
/// told.
public struct ConflictReport: Sendable, Equatable {
    public let key: String
    /// Keys and list indexes from the outermost in; empty for the object itself.
    public let path: [String]
    /// The value that gave way; nil when that was a deletion.
    public let losing: JSONValue?
    /// The value that stands; nil when that is a deletion.
    public let winning: JSONValue?

    init(key: String, _ conflict: SealedConflict) {
        self.init(key: key, path: conflict.path, losing: conflict.losing, winning: conflict.winning)
    }

    init(key: String, path: [String], losing: JSONValue?, winning: JSONValue?) {
        self.key = key
        (self.path, self.losing, self.winning) = (path, losing, winning)
    }
}

/// An object of a sealed bucket is not what it should be: the server, or somebody with its powers, does not tell the
/// truth, or something is broken.
public struct IntegrityReport: Sendable, Equatable {
    /// More may come: show `detail` for those you do not know.
    public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public var description: String { rawValue }

        /// One operation is not what an honest device has written. It changes nothing, and the object goes on.
        public static let misfit = Kind(rawValue: "misfit")
        /// Others have seen another history.
        public static let forked = Kind(rawValue: "forked")
        /// The server shows an older state than this device has seen; also after a restore from a backup.
        public static let rolledBack = Kind(rawValue: "rolled-back")
        /// The object is gone from the server, and nobody has deleted it.
        public static let removed = Kind(rawValue: "removed")
        /// The object is not sealed.
        public static let clear = Kind(rawValue: "clear")
        /// A snapshot does not open, or holds something else than the operations give.
        public static let snapshotMismatch = Kind(rawValue: "snapshot-mismatch")
        /// Somebody writes under rules, or in a shape, that this program does not know: the object stops here until it
        /// is updated.
        public static let unknownRules = Kind(rawValue: "unknown-rules")
        /// The server says that the bucket is an open one.
        public static let modeChanged = Kind(rawValue: "mode-changed")
    }

    /// The app's key; the server's where the app's is not known, empty for the bucket as a whole.
    public let key: String
    public let kind: Kind
    /// The operation at which it shows, counted from the object's creation.
    public let position: Int?
    /// The object is read-only until `Bucket.keepMine` or `Bucket.takeServers`.
    public let needsChoice: Bool
    /// What happened, for a person. No content.
    public let detail: String

    init(key: String, _ integrity: SealedIntegrity) {
        self.key = key
        needsChoice = integrity.needsChoice
        detail = integrity.description
        switch integrity {
        case .misfit(let place, _): (kind, position) = (.misfit, place)
        case .forked(let place): (kind, position) = (.forked, place)
        case .rolledBack(let place): (kind, position) = (.rolledBack, place)
        case .removed: (kind, position) = (.removed, nil)
        case .clear: (kind, position) = (.clear, nil)
        case .snapshotMismatch(let place): (kind, position) = (.snapshotMismatch, place)
        }
    }

    /// - Parameter position: nil: the whole object is of a newer shape.
    init(key: String, stoppedAfter position: Int?) {
        self.key = key
        (kind, self.position, needsChoice) = (.unknownRules, position, false)
        let what =
            position.map { "operation \($0 + 1) was written under newer rules" }
            ?? "the object was written in a newer shape"
        detail = "\(what): update this program"
    }

    init(modeChanged detail: String) {
        self.init(key: "", kind: .modeChanged, position: nil, needsChoice: false, detail: detail)
    }

    init(key: String, kind: Kind, position: Int?, needsChoice: Bool, detail: String) {
        (self.key, self.kind, self.position) = (key, kind, position)
        (self.needsChoice, self.detail) = (needsChoice, detail)
    }
}
