public import ThicketKeyLog

/// An account that another account has made for a link (decision 0067). It opens one branch of its owner, until it
/// ends.
public struct Guest: Sendable, Hashable {
    /// What the link is for.
    public enum Kind: Int64, Sendable, Hashable, CaseIterable {
        /// Putting nodes into the branch; neither listing nor reading it.
        case deposit = 0
        /// Reading the branch.
        case reading = 1

        /// The word in requests and answers.
        public var word: String {
            switch self {
            case .deposit: "deposit"
            case .reading: "read"
            }
        }
    }

    /// Bounds of what a guest's owner may choose.
    public enum Bounds {
        /// Milliseconds of a day.
        public static let day: Int64 = 86_400_000
        /// Days until the guest ends.
        public static let days: ClosedRange<Int64> = 1...90
        /// Days when the request names none.
        public static let daysUsual: Int64 = 7
        /// Deposits of a deposit link.
        public static let deposits: ClosedRange<Int64> = 1...10_000
        /// Bytes of all of its deposits together, with their attachments.
        public static let bytes: ClosedRange<Int64> = 1...1 << 40
        /// Bytes when the request names none.
        public static let bytesUsual: Int64 = 100 << 20
    }

    /// The guest's user id, which is its name (`GuestName`).
    public let user: String
    /// The app's id.
    public let app: String
    /// The account that has made it.
    public let owner: String
    /// The root of the branch that it is for: 26 letters.
    public let root: String
    /// What the link is for.
    public let kind: Kind
    /// Milliseconds since 1970.
    public let created: Int64
    /// When it ends, milliseconds since 1970.
    public let expires: Int64
    /// Deposits that it may make; 0 for reading.
    public let depositsMax: Int64
    /// Bytes that it may write, with attachments; 0 for reading.
    public let bytesMax: Int64
    /// Deposits that it has made.
    public var deposits: Int64 = 0
    /// Bytes that it has written.
    public var bytes: Int64 = 0

    /// A guest that has written nothing.
    public init(
        user: String, app: String, owner: String, root: String, kind: Kind, created: Int64, expires: Int64,
        depositsMax: Int64, bytesMax: Int64
    ) {
        (self.user, self.app, self.owner, self.root, self.kind) = (user, app, owner, root, kind)
        (self.created, self.expires, self.depositsMax, self.bytesMax) = (created, expires, depositsMax, bytesMax)
    }
}

/// What became of a new guest.
public enum GuestVerdict: Sendable, Hashable {
    /// It is stored.
    case added
    /// An account has the name.
    case nameTaken
    /// Its owner has as many guests as it may have.
    case tooMany
}

/// The guests of accounts. A change is on disk when the call returns, completely or not at all.
public protocol GuestDirectory: AnyObject {
    /// The guest with this user id; nil when the app has none.
    func guest(_ user: String, in app: String) throws(DirectoryError) -> Guest?
    /// The guests of an account, the newest first, those that have ended and are not removed yet included.
    func guests(of owner: String, in app: String) throws(DirectoryError) -> [Guest]
    /// Adds a guest with its account, which has no token yet.
    /// - Parameters:
    ///   - entries: its entries in the key log, added in the same step.
    ///   - max: guests that the owner may have.
    func add(
        _ guest: Guest, _ account: Account, bundle: [UInt8], entries: [KeyLogEntry], max: Int
    ) throws(DirectoryError) -> GuestVerdict
    /// Removes a guest of an account as its account is removed.
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: false when the account has no such guest.
    func removeGuest(_ user: String, of owner: String, in app: String, now: Int64) throws(DirectoryError) -> Bool
}
