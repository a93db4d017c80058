import ThicketProtocol

/// Names one bucket on the server: its app, its owner and its name.
///
/// Every change carries a bucket id from thread to thread, and each thread looks it up. It is therefore a single
/// reference with a precomputed hash.
public struct BucketID: Sendable, Hashable {
    private final class Names: Sendable {
        let app: AppID
        let user: UserID
        let name: BucketName
        let hash: Int

        init(_ app: AppID, _ user: UserID, _ name: BucketName) {
            self.app = app
            self.user = user
            self.name = name
            var hasher = Hasher()
            hasher.combine(app)
            hasher.combine(user)
            hasher.combine(name)
            hash = hasher.finalize()
        }
    }

    private let names: Names

    /// The application.
    public var app: AppID { names.app }
    /// The owner.
    public var user: UserID { names.user }
    /// The name that the owner's clients use.
    public var name: BucketName { names.name }

    /// Computes the hash once, for all copies of this value.
    public init(app: AppID, user: UserID, name: BucketName) { names = Names(app, user, name) }

    /// Compares references first, then hashes, then the names.
    public static func == (left: Self, right: Self) -> Bool {
        let (left, right) = (left.names, right.names)
        if left === right { return true }
        return left.hash == right.hash && left.app == right.app && left.user == right.user && left.name == right.name
    }

    /// Feeds the precomputed hash.
    public func hash(into hasher: inout Hasher) { hasher.combine(names.hash) }
}

/// Position of a change in the server-wide log, from 1; 0 means "before the first change". The positions of one bucket
/// ascend, with gaps.
public typealias GlobalID = Int64
