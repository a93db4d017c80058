public import ThicketClient
import ThicketTreeShape

/// An error of the treesystem.
///
/// `description` is safe to log: it never contains a name, a key or content.
public struct TreeError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of error. Later versions may add codes.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The code as a stable text, such as `name-taken`.
        public let rawValue: String
        /// Makes a code from its text; the text need not be a known code.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The same as `rawValue`.
        public var description: String { rawValue }

        /// A sibling has the same name; case does not count.
        public static let nameTaken = Code(rawValue: "name-taken")
        /// The parent does not exist. Parents are not created implicitly.
        public static let parentMissing = Code(rawValue: "parent-missing")
        /// The node does not exist.
        public static let notFound = Code(rawValue: "not-found")
        /// The parent is the node itself, or below it.
        public static let cycle = Code(rawValue: "cycle")
        /// The node, or one below it, would be deeper than 64 levels.
        public static let depth = Code(rawValue: "depth")
        /// A trunk cannot be written, moved or removed.
        public static let trunk = Code(rawValue: "trunk")
        /// The name is empty, longer than 255 bytes, or contains NUL.
        public static let invalidName = Code(rawValue: "invalid-name")
        /// The content is in the way: too large, or not what was expected.
        public static let content = Code(rawValue: "content")
        /// Stored content does not open: it is damaged or was changed.
        public static let contentDamaged = Code(rawValue: "content-damaged")
        /// Stored content belongs to another node or version.
        public static let contentMismatch = Code(rawValue: "content-mismatch")
        /// The server has lost the content of the node; another device may still have it.
        public static let contentLost = Code(rawValue: "content-lost")
        /// The record of the node does not open.
        public static let quarantined = Code(rawValue: "quarantined")
        /// The server refused a change for good; `reason` is its word.
        public static let refused = Code(rawValue: "refused")
        /// The session has no keys of its account.
        public static let noKeys = Code(rawValue: "no-keys")
        /// A message has no receiver, too many, or this account among them.
        public static let receiver = Code(rawValue: "receiver")
        /// There are no keys of another account that may be used; `reason` says why.
        public static let keys = Code(rawValue: "keys")
        /// The list of a shared branch does not permit the change, or cannot be changed so; `reason` says why.
        public static let sharing = Code(rawValue: "sharing")
        /// A link to a branch cannot be used; `reason` says why.
        public static let link = Code(rawValue: "link")
        /// A limit of this library was reached.
        public static let limit = Code(rawValue: "limit")
        /// The local store failed: full disk, I/O error, damaged file.
        public static let store = Code(rawValue: "store")
        /// The server or the network failed; `detail` says how.
        public static let network = Code(rawValue: "network")
        /// The operation needs the server, and there is no connection.
        public static let offline = Code(rawValue: "offline")
        /// The operation did not complete in time.
        public static let deadline = Code(rawValue: "deadline")
        /// The tree is closed.
        public static let closed = Code(rawValue: "closed")
        /// The operation was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")
    }

    /// The kind of the error.
    public let code: Code
    /// A text for the user, without names and content.
    public let detail: String
    /// The server's word, where it gave one.
    public let reason: String?

    /// Makes an error.
    public init(_ code: Code, _ detail: String, reason: String? = nil) {
        (self.code, self.detail, self.reason) = (code, detail, reason)
    }

    /// The same failure as the client library reports it.
    public init(_ error: ClientError) {
        let code: Code =
            switch error.code {
            case .store, .storeInUse, .storeMismatch, .locked: .store
            case .closed: .closed
            case .offline: .offline
            case .deadline: .deadline
            case .limit: .limit
            case .noKeys: .noKeys
            default: .network
            }
        self.init(code, error.detail, reason: error.code.rawValue)
    }

    /// The same failure of content.
    public init(_ error: ContentError) {
        let code: Code =
            switch error {
            case .contentDamaged, .newerFormat: .contentDamaged
            case .contentMismatch: .contentMismatch
            case .lost: .contentLost
            case .disk, .diskFull, .index: .store
            case .cancelled: .cancelled
            case .tooManyCallers, .tooManyFiles: .limit
            case .unreachable, .serverFull: .network
            case .refused: .refused
            case .missing, .notFound, .outOfRange, .promiseFailed, .promiseTooDeep, .sourceChanged, .sourceUnreadable,
                .tooLarge:
                .content
            }
        self.init(code, error.description)
    }

    /// The code and the text.
    public var description: String { "\(code): \(detail)" }
}

extension TreeError {
    static let closed = TreeError(.closed, "the tree is closed")

    static func missing(_ id: NodeID) -> TreeError { TreeError(.notFound, "no node \(id.text)") }
}
