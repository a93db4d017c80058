import ThicketProtocol

/// Names one bucket on the server: whose it is, and its name there.
public struct BucketID: Sendable, Hashable {
    /// The application.
    public let app: AppID
    /// The owner.
    public let user: UserID
    /// The name that the owner's clients use.
    public let name: BucketName

    public init(app: AppID, user: UserID, name: BucketName) {
        self.app = app
        self.user = user
        self.name = name
    }
}

/// Position of a change in the server-wide log, from 1; 0 stands before the first. Its bucket's positions rise.
public typealias GlobalID = Int64
