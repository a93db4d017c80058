import ThicketProtocol

/// The rules of a kind of objects: how their edits are merged, sent and stored. A bucket's objects are all of one kind.
///
/// The rules have no state of their own: everything is in the bucket and in the turn. Each function is called by
/// the bucket, and works on it.
protocol ObjectRules {
    // MARK: - Objects

    /// Restores an object from its record.
    static func entity(
        _ record: EntityRecord, _ key: EntityKey, _ bucket: inout BucketMachine
    ) throws(ClientError) -> LocalEntity
    /// An old version as the app sees objects; its object is nil when it cannot be opened.
    static func version(
        _ bucket: inout BucketMachine, of value: JSONObject?, _ key: EntityKey
    ) throws(ClientError) -> FetchedVersion

    // MARK: - The app's edits

    /// Appends an edit to the app's earlier edits.
    ///
    /// - Parameters:
    ///   - name: the app's key.
    ///   - isWhole: the edit replaces the whole object.
    static func add(
        _ bucket: inout BucketMachine, _ edit: Edit, _ key: EntityKey, name: String, isWhole: Bool,
        _ turn: inout SyncTurn
    ) throws(ClientError)
    /// Drops the object's edits, so that it equals the server's state.
    static func discard(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError)

    /// Queues an edit that was refused for good to be sent once more.
    static func retryRefused(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)

    // MARK: - The server's changes

    /// The server has applied a change, of this client or another one.
    static func applied(
        _ bucket: inout BucketMachine, _ change: RemoteChange, _ entity: LocalEntity, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// The server's state is known at a version to which no known steps lead from the ghost.
    static func jump(
        _ bucket: inout BucketMachine, _ key: EntityKey, to next: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// The requested state of the object has arrived; `jump` follows.
    static func gotRequested(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// The server does not have the requested version.
    static func wantNoMore(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// The pending change is included in `target`.
    static func confirm(
        _ bucket: inout BucketMachine, _ key: EntityKey, at target: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError)

    // MARK: - Sending

    /// Queues the object if it has edits that are not yet a change.
    static func queue(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
    /// Turns the object's waiting edit into a change, stores it, and sends it.
    static func sendNew(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// Sends the pending change again: unchanged, or in the form that fits what is known now.
    static func resend(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ pending: PendingChange, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// The server refused the object's change for good or because of its form: codes below 500 other than 401.
    static func refused(
        _ bucket: inout BucketMachine, _ key: EntityKey, code: Int, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// The server refused a change with one of these ccids.
    ///
    /// - Returns: whether it was a change that concerns no edit.
    static func refusedUpkeep(
        _ bucket: inout BucketMachine, _ key: EntityKey, code: Int, changeIDs: [String], _ turn: inout SyncTurn
    ) -> Bool
    /// Does what is due besides sending edits, on a live channel.
    static func pump(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError)

    // MARK: - Index scans

    /// Receives the objects of a page; those that are new are stored as received, unparsed and bypassing the cache.
    ///
    /// - Parameter known: the keys of the page that have a record in the store.
    static func receiveNew(
        _ bucket: inout BucketMachine, _ entries: [IndexPage.Entry], _ known: Set<EntityKey>, scanID: Int64,
        _ turn: inout SyncTurn
    ) throws(ClientError)
    /// An index that may belong to another bucket than the ghosts lists the object: versions cannot be compared, so the
    /// objects are.
    static func indexedElsewhere(
        _ bucket: inout BucketMachine, _ object: IndexPage.Entry, scanID: Int64, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// The index of the scan does not list an object that the server had.
    static func unlisted(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ indexScan: IndexScan, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// Whether the changes since the position are requested once more when the position was lost.
    static var keepsLostPosition: Bool { get }
    /// Versions, and answers that the server has a change, no longer apply to the object.
    ///
    /// - Returns: the changed parts.
    static func forgetProof(_ entity: inout LocalEntity) -> EntityParts
    /// Takes the objects out of `gone` that are decided only when the changes since the last connection have arrived.
    ///
    /// - Returns: whether these changes are requested.
    static func setAside(
        _ bucket: inout BucketMachine, _ gone: inout Set<EntityKey>, _ turn: inout SyncTurn
    ) throws(ClientError) -> Bool
    /// Objects without a ghost that no index lists any more.
    static func missUnread(
        _ bucket: inout BucketMachine, _ indexScan: IndexScan, _ turn: inout SyncTurn
    ) throws(ClientError)
    /// The server no longer has the changes for which `setAside` waits.
    ///
    /// - Returns: whether any object waited; the changes since the index are then requested.
    static func missedForGood(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) -> Bool
    /// The changes for which `setAside` waits have arrived.
    static func reportMissing(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError)
    /// Everything the server has was read.
    static func caughtUp(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError)
}

/// What only some kinds of objects need.
extension ObjectRules {
    static var keepsLostPosition: Bool { false }
    static func gotRequested(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError) {}
    static func wantNoMore(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError) {}
    static func refusedUpkeep(
        _ bucket: inout BucketMachine, _ key: EntityKey, code: Int, changeIDs: [String], _ turn: inout SyncTurn
    ) -> Bool { false }
    static func pump(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {}
    static func setAside(
        _ bucket: inout BucketMachine, _ gone: inout Set<EntityKey>, _ turn: inout SyncTurn
    ) throws(ClientError) -> Bool { false }
    static func missUnread(
        _ bucket: inout BucketMachine, _ indexScan: IndexScan, _ turn: inout SyncTurn
    ) throws(ClientError) {}
    static func missedForGood(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) -> Bool {
        false
    }
    static func reportMissing(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {}
    static func caughtUp(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {}
}
