public import ThicketProtocol
import ThicketSealed

/// A conflict of two edits of one value. When the server ordered both edits, every device finds the same losing value
/// and reports it; when an edit waited on a device and prevailed over changes received meanwhile, that device reports
/// it.
public struct ConflictReport: Sendable, Equatable {
    /// The object's key.
    public let key: String
    /// Keys and list indexes, from the outermost in; empty for the object itself.
    public let path: [String]
    /// The value that gave way; nil when it was a deletion.
    public let losing: JSONValue?
    /// The value that prevailed; nil when it is a deletion.
    public let winning: JSONValue?

    init(key: String, _ conflict: SealedConflict) {
        self.init(key: key, path: conflict.path, losing: conflict.losing, winning: conflict.winning)
    }

    init(key: String, path: [String], losing: JSONValue?, winning: JSONValue?) {
        self.key = key
        (self.path, self.losing, self.winning) = (path, losing, winning)
    }
}

/// An object of a sealed bucket failed verification: the server, or an attacker with its powers, is not truthful, or
/// data is damaged.
public struct IntegrityReport: Sendable, Equatable {
    /// The kind of report. Later versions may add kinds: show `detail` for unknown ones.
    public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The kind as a stable text, such as `forked`.
        public let rawValue: String
        /// Makes a kind from its text; the text need not be a known kind.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The same as `rawValue`.
        public var description: String { rawValue }

        /// An honest device could not have written one operation. The operation is ignored, and the object stays
        /// usable.
        public static let misfit = Kind(rawValue: "misfit")
        /// Other devices have seen a different history.
        public static let forked = Kind(rawValue: "forked")
        /// The server shows an older state than this device has seen; also after a restore from a backup.
        public static let rolledBack = Kind(rawValue: "rolled-back")
        /// The object is gone from the server although no device removed it.
        public static let removed = Kind(rawValue: "removed")
        /// The object is not sealed.
        public static let clear = Kind(rawValue: "clear")
        /// A snapshot cannot be opened, or differs from the result of the operations.
        public static let snapshotMismatch = Kind(rawValue: "snapshot-mismatch")
        /// A device writes under rules, or in a format, that this program does not know: the object stops here until
        /// the program is updated.
        public static let unknownRules = Kind(rawValue: "unknown-rules")
        /// The server reports the bucket as an open one.
        public static let modeChanged = Kind(rawValue: "mode-changed")
    }

    /// The app's key; the server's key where the app's is unknown; empty for the bucket as a whole.
    public let key: String
    /// The kind of failure.
    public let kind: Kind
    /// The operation at which the failure was found, counted from the object's creation; nil when not known.
    public let position: Int?
    /// Whether the object is read-only until `Bucket.keepMine` or `Bucket.takeServers`.
    public let needsChoice: Bool
    /// A text for the user. Holds no content.
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

    /// - Parameter position: the last operation in a known format; nil when the whole object has a newer format.
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
