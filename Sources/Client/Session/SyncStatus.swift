/// The state of a session with respect to its server, over all its buckets.
public enum SyncStatus: Sendable, Equatable {
    /// A connection is being made, or buckets are being opened on it.
    case connecting
    /// Objects are read for the first time, or again because the server no longer has the changes since the last
    /// connection.
    ///
    /// - Parameters:
    ///   - done: objects read so far, in all buckets.
    ///   - total: objects in total; nil when the server does not report it.
    case indexing(done: Int64, of: Int64?)
    /// Connected; this many objects have edits that the server has not confirmed.
    case syncing(pending: Int)
    /// Connected, and both sides are equal, except for objects whose edits the server refused.
    case upToDate
    /// Not connected. Edits are kept and sent later.
    case offline(OfflineReason)
}

/// Why there is no connection.
public enum OfflineReason: Sendable, Equatable {
    /// The app called `goOffline()`.
    case requested
    /// The network or the server cannot be reached; the client tries again after a pause. The text is for the user.
    case unreachable(String)
    /// The peer cannot prove that it is the server: its certificate or key is not valid, or it does not speak secure
    /// TLS. Nothing was sent to it; the client tries again after a pause. The text says what to do.
    case untrusted(String)
    /// The server does not accept the token. The client does not try again until `goOnline()` or a new token.
    case unauthorized(String)
    /// The token belongs to another user than the local store. The client does not try again until a new token.
    case wrongAccount(String)
    /// The local store failed; the client opens it again after a pause.
    case storeFailed(String)
    /// The session is closed.
    case closed
}

extension SyncStatus {
    /// A text for the user.
    package var text: String {
        switch self {
        case .connecting: "connecting"
        case .indexing(let done, of: let total): "reading objects, \(done)\(total.map { " of \($0)" } ?? "") so far"
        case .syncing(pending: 1): "1 object waits for the server"
        case .syncing(let pending): "\(pending) objects wait for the server"
        case .upToDate: "this device and the server are in sync"
        case .offline(let reason): reason.text
        }
    }
}

extension OfflineReason {
    /// A text for the user.
    package var text: String {
        switch self {
        case .requested: "offline, as requested"
        case .unreachable(let text), .untrusted(let text): text
        case .unauthorized(let text): "the server does not accept the login: \(text)"
        case .wrongAccount: "the login belongs to another user than the local copy"
        case .storeFailed(let text): "the local copy failed: \(text)"
        case .closed: "the session is closed"
        }
    }
}
