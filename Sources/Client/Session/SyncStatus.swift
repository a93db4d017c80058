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
    /// Something answers and cannot prove that it is the server: its certificate or key is not good, or it speaks no
    /// TLS that is. Nothing was sent to it; tried again after a pause. The text says what to do.
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

extension SyncStatus {
    /// For a person.
    package var text: String {
        switch self {
        case .connecting: "connecting"
        case .indexing(let done, of: let total): "reading objects, \(done)\(total.map { " of \($0)" } ?? "") so far"
        case .syncing(pending: 1): "1 object waits for the server"
        case .syncing(let pending): "\(pending) objects wait for the server"
        case .upToDate: "everything is the same here and at the server"
        case .offline(let reason): reason.text
        }
    }
}

extension OfflineReason {
    /// For a person.
    package var text: String {
        switch self {
        case .requested: "offline, as was asked for"
        case .unreachable(let text), .untrusted(let text): text
        case .unauthorized(let text): "the server does not accept the login: \(text)"
        case .wrongAccount: "the login is another user's than the local copy"
        case .storeFailed(let text): "the local copy failed: \(text)"
        case .closed: "the session is closed"
        }
    }
}
