public import ThicketKeyLog
public import ThicketProtocol

/// The newest keys of users in the key logs, for parts of the server that verify what users have signed.
public protocol KeyDirectory: Sendable {
    /// The keys of a user's newest entry on disk; nil when the log of the app has none, or the account has ended.
    /// Quick, from any thread.
    func newestKeys(of user: UserID, in app: AppID) -> PublicKeys?
    /// The keys with an id that an account has or had; nil when no entry of its chain has them. Quick, from any thread.
    func keys(of user: UserID, id: String, in app: AppID) -> PublicKeys?
}
