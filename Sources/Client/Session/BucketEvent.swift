public import ThicketProtocol

/// Something that happened to what the app sees in a bucket, in the order it happened.
public enum BucketEvent: Sendable, Equatable {
    /// An object is new or different.
    case changed(ObjectChange)
    /// An object is gone.
    case removed(ObjectRemoval)
    /// The server refused an edit: the edit stays here, unsent. A new reader is told of each that is refused when it
    /// begins, also in an earlier life of the program; `Bucket.refused` lists them, and `discardRefused`,
    /// `retryRefused` and another edit of the object are the ways out. Where the token permits no changes, one edit is
    /// told as it happens, and stands for all.
    case refused(RefusedEdit)
    /// In a sealed bucket: two edits met, and only one value could stand. The other is told here, and is in the
    /// history.
    case conflict(ConflictReport)
    /// In a sealed bucket: something does not fit together. What is told is never shown as genuine.
    case integrity(IntegrityReport)
    /// The server does not open the bucket, for the reason given; tried again after a pause. Edits wait.
    case unavailable(ClientError)
    /// The server told everything it has: the bucket is as the server's, local edits aside.
    case caughtUp
    /// This reader was too slow and missed this many events: read the objects anew. Conflicts and alarms among them
    /// that no other reader has got either are not lost: they follow when there is room, or are given to whoever asks
    /// first (`Bucket.unheard`).
    case overrun(missed: Int)
}

extension BucketEvent {
    /// Whoever misses it is not told by the state of the objects.
    package var comesOnce: Bool {
        switch self {
        case .conflict, .integrity: true
        case .changed, .removed, .refused, .unavailable, .caughtUp, .overrun: false
        }
    }
}

/// Who made a change.
public enum ChangeOrigin: Sendable, Equatable {
    /// This session, by its own calls.
    case local
    /// Somebody else, told by the server.
    case remote
}

/// An object that is new or different.
public struct ObjectChange: Sendable, Equatable {
    public let key: String
    /// The object as the app sees it now: the server's state and all local edits.
    public let object: JSONObject
    /// What turned the object as seen before into `object`. Editors move their carets by it.
    ///
    /// For a new object it is the difference from the empty object.
    public let diff: ObjectDiff
    public let origin: ChangeOrigin
    /// The object was not there before.
    public let isNew: Bool
    /// Grows with every change of the bucket that the app sees; `Bucket.edit` hands out the same count.
    public let revision: Int64
}

/// An object that is gone.
public struct ObjectRemoval: Sendable, Equatable {
    public let key: String
    public let origin: ChangeOrigin
    /// As in `ObjectChange`.
    public let revision: Int64
}
