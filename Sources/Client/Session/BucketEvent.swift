public import ThicketProtocol

/// A change of a bucket's state as the app sees it. Events arrive in the order in which they happened.
public enum BucketEvent: Sendable, Equatable {
    /// An object was added or changed.
    case changed(ObjectChange)
    /// An object was removed.
    case removed(ObjectRemoval)
    /// The server refused an edit; it is kept locally and not sent. A new reader gets one such event for each edit that
    /// is refused when the reader starts, including those of earlier runs. `Bucket.refused` lists them;
    /// `discardRefused`, `retryRefused` or another edit of the object resolves one. When the token does not permit
    /// changes, only one edit is reported.
    case refused(RefusedEdit)
    /// In a sealed bucket: two edits conflicted. The report holds the value that gave way; it is also in the history.
    case conflict(ConflictReport)
    /// In a sealed bucket: data failed verification. Such data is never presented as valid.
    case integrity(IntegrityReport)
    /// The server does not open the bucket, for the given reason. The client tries again after a pause; edits wait.
    case unavailable(ClientError)
    /// The server has sent everything it has: apart from local edits, the bucket equals the server's.
    case caughtUp
    /// This reader was too slow and missed this many events: read the objects again. Conflicts and integrity reports
    /// among them that no other reader took are not lost: they follow when the buffer has room, or `Bucket.undelivered`
    /// returns them.
    case overrun(missed: Int)
}

extension BucketEvent {
    /// Whether the event's information is lost with the event, because the objects' state does not show it.
    package var comesOnce: Bool {
        switch self {
        case .conflict, .integrity: true
        case .changed, .removed, .refused, .unavailable, .caughtUp, .overrun: false
        }
    }
}

/// The origin of a change.
public enum ChangeOrigin: Sendable, Equatable {
    /// This session's own calls.
    case local
    /// Another session; received from the server.
    case remote
}

/// An added or changed object.
public struct ObjectChange: Sendable, Equatable {
    /// The object's key.
    public let key: String
    /// The object as the app sees it now: the server's state with all local edits.
    public let object: JSONObject
    /// The difference from the previously seen object to `object`; editors use it to move their carets.
    ///
    /// For a new object it is the difference from the empty object.
    public let diff: ObjectDiff
    /// Whether this session or another one made the change.
    public let origin: ChangeOrigin
    /// Whether the object did not exist before.
    public let isNew: Bool
    /// A counter that grows with every change of the bucket that the app sees; `Bucket.edit` passes the same counter.
    public let revision: Int64
}

/// A removed object.
public struct ObjectRemoval: Sendable, Equatable {
    /// The object's key.
    public let key: String
    /// Whether this session or another one removed the object.
    public let origin: ChangeOrigin
    /// As in `ObjectChange`.
    public let revision: Int64
}
