public import ThicketKeyLog
public import ThicketProtocol

/// The newest keys of users in the key logs, for parts of the server that verify what users have signed.
public protocol KeyDirectory: Sendable {
    /// The keys of a user's newest entry on disk; nil when the log of the app has none, or the account has ended.
    /// Quick, from any thread.
    func newestKeys(of user: UserID, in app: AppID) -> PublicKeys?
}
