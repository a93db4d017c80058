public import ThicketKeyLog
public import ThicketProtocol

/// The keys of other accounts, as a tree needs them: each call returns verified keys or says why there are none.
public protocol PeopleKeys: Sendable {
    /// The newest keys of a user, to which content may be sealed now.
    ///
    /// - Throws: `absent`, `needsConfirmation`, `alarm`, `refused`, `offline` when the user was never looked up,
    ///   `server`, `store`.
    func keys(of user: UserID) async throws(PeopleError) -> PublicKeys
    /// Keys that the user has now or had before, for signatures from that time.
    ///
    /// - Parameter id: `PublicKeys.id`.
    /// - Returns: nil when the user's entries have no such keys.
    /// - Throws: as `keys(of:)`.
    func earlierKeys(of user: UserID, id: String) async throws(PeopleError) -> PublicKeys?
    /// The newest head of the log that this device knows, for statements to other users; nil: none.
    func newestHead() async -> KeyLogHead?
    /// Compares a head that came with another user's statement. A contradiction is an alarm, reported by events.
    func heard(_ head: KeyLogHead, from user: UserID) async
}
