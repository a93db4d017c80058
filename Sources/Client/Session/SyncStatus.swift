/// Where a session stands with its server, all its buckets together.
public enum SyncStatus: Sendable, Equatable {
    /// A connection is being made, or the buckets are being opened on it.
    case connecting
    /// Objects are read for the first time, or anew because the server no longer has the changes since the last visit.
    ///
    /// - Parameters:
    ///   - done: objects read so far, in all buckets.
    ///   - total: objects there are; nil when the server does not tell.
    case indexing(done: Int64, of: Int64?)
    /// Connected; this many objects hold edits the server has not confirmed.
    case syncing(pending: Int)
    /// Connected, and everything on both sides is the same, but for objects the server refused.
    case upToDate
    /// Not connected. Edits are kept and go out later.
    case offline(OfflineReason)
}

/// Why there is no connection.
public enum OfflineReason: Sendable, Equatable {
    /// The app asked for it with `goOffline()`.
    case requested
    /// The network or the server cannot be reached; tried again after a pause. The text is for a person.
    case unreachable(String)
    /// Something answers and cannot prove that it is the server: its certificate or key is not good, or it speaks no TLS that
    /// is. Nothing was sent to it; tried again after a pause. The text says what to do.
    case untrusted(String)
    /// The server does not accept the token. Nothing is tried until `goOnline()` or a new token.
    case unauthorized(String)
    /// The token belongs to another user than the local store's objects. Nothing is tried until a new token.
    case wrongAccount(String)
    /// The local store failed; opened again after a pause.
    case storeFailed(String)
    /// The session is closed.
    case closed
}
