package import ThicketProtocol
package import ThicketSealed

/// The last state of an object that server and client agreed on.
package struct Ghost: Sendable, Equatable {
    /// 0: the server never had it, as far as we know.
    package var version: Version
    /// nil: not there (never was, or removed at `version`).
    package var object: JSONObject?

    package init(version: Version = 0, object: JSONObject? = nil) {
        self.version = version
        self.object = object
    }

    /// It was confirmed by a bucket of which it is not known whether it is the one that the server has now.
    package var isUnproven: Bool { version == 0 && object != nil }
}

/// A change that was sent, or may have been sent, and whose fate we do not know yet.
package struct PendingChange: Sendable, Equatable {
    package let changeID: ChangeID
    /// What it does to today's ghost: carried over every change the server ordered before it. nil: nothing any more.
    package var edit: Edit?
    /// The version it was made for; nil when it was sent without one.
    package let source: Version?
    /// The JSON of the change as sent. A resend is byte for byte the same, which makes it safe (409).
    package let bytes: [UInt8]
    /// The version at which the server ordered it, when we know that but could not apply it yet.
    package var appliedAt: Version?
    /// The server has it (409), though we have not seen at which version.
    package var isConfirmed: Bool

    /// It comes from setting the object as a whole (`EditState.isWhole`).
    package var isWhole: Bool { Messages.isWhole(bytes) }

    package init(
        changeID: ChangeID, edit: Edit?, source: Version?, bytes: [UInt8], appliedAt: Version? = nil,
        isConfirmed: Bool = false
    ) {
        self.changeID = changeID
        self.edit = edit
        self.source = source
        self.bytes = bytes
        self.appliedAt = appliedAt
        self.isConfirmed = isConfirmed
    }
}

/// What the user did to an object and the server has not confirmed.
package struct EditState: Sendable, Equatable {
    package var pending: PendingChange?
    /// Everything done after `pending`, as one exact edit.
    package var later: Edit? { didSet { if later == nil { isWhole = false } } }
    /// All of `later` comes from setting the object as a whole, none from editing a place in it: what others have set
    /// to the same value is left as it is (docs/decisions/0086).
    package internal(set) var isWhole = false
    /// A newer ghost that cannot be taken over before we know whether `pending` is already inside it.
    package var held: Ghost?
    /// The version of the object we need and asked for, because a change did not fit our ghost.
    package var wanted: Version?
    /// The code by which the server refused the edit for good; it is sent again after the next edit.
    package var refusal: Int?
    /// How often the edit was refused in one form and sent in another.
    package var attempts: Int = 0
    /// The next change carries the whole object in `d` besides the diff.
    package var sendsWhole: Bool = false
    /// `pending` and `later` come from setting the object as a whole.
    var isAllWhole: Bool { hasEdits && pending?.isWhole != false && (later == nil || isWhole) }
    /// Of an object of a sealed bucket, where `later` and the edit of `pending` are not used.
    package var sealed: SealedKept = SealedKept()

    package init() {}
    package var isEmpty: Bool { self == EditState() }
    /// There is something the server has not confirmed.
    package var hasEdits: Bool { pending != nil || later != nil || sealed.later != nil }
    /// What comes next is another edit, or made from another version: no form of it has failed.
    mutating func forgetRefusals() { (attempts, sendsWhole) = (0, false) }
    /// Nothing of it is sent before the app does something.
    package var isRefused: Bool { refusal != nil || isReadOnly }
    /// Of a sealed object: the user has to choose first, or what the server holds was written under newer rules or in a
    /// newer shape, and edits wait for a newer program.
    var isReadOnly: Bool { sealed.problem != nil || (sealed.isStopped && hasEdits) }
}

/// Everything kept about one object. What the app sees is ghost, then pending, then later.
package struct EntityRecord: Sendable, Equatable {
    package var ghost: Ghost
    package var edits: EditState
    /// The app sees an object under this key.
    package var isLive: Bool
    /// The last walk through the index that met this object.
    package var walk: Int64
    /// The app's own key, in a sealed bucket, where the server knows the object by another; nil in open ones.
    package var name: String?

    package init(
        ghost: Ghost = Ghost(), edits: EditState = EditState(), isLive: Bool = false, walk: Int64 = 0,
        name: String? = nil
    ) {
        self.ghost = ghost
        self.edits = edits
        self.isLive = isLive
        self.walk = walk
        self.name = name
    }
}

/// A walk through a bucket's index that has not ended yet; it goes on after a restart.
package struct IndexWalk: Sendable, Equatable {
    /// Grows with each walk of the bucket.
    package var id: Int64
    /// Where the next page begins; nil: at the start.
    package var mark: String?
    /// `current` of the first page: what to ask changes from when the walk has ended.
    package var current: ChangeVersion?
    package var objectsRead: Int64
    /// As far as the server tells.
    package var objectsTotal: Int64?
    /// The identity that the server told of the bucket when the walk began; nil: it told none.
    package var store: String?
    /// The ghosts are of the bucket that is read: what its index does not list was removed. Otherwise the position was
    /// lost, and an absent object is one that only this device has (docs/decisions/0083).
    package var isSame = false

    package init(id: Int64) {
        self.id = id
        objectsRead = 0
    }
}

/// Everything kept about one bucket besides its objects.
package struct BucketRecord: Sendable, Equatable {
    package let name: BucketName
    /// Changes up to here are in the ghosts; nil before the first index was read.
    package var changeVersion: ChangeVersion?
    package var walk: IndexWalk?
    package var walksStarted: Int64
    /// The app has opened it as a sealed bucket: it stays one, whatever the server says.
    package var isSealed: Bool
    /// The identity of the server's bucket that all ghosts are of; nil: not known, or of more than one.
    package var store: String?
    /// The last walk that met a bucket which need not be the one known before; 0: there was none.
    package var generation: Int64 = 0

    package init(
        name: BucketName, changeVersion: ChangeVersion? = nil, walk: IndexWalk? = nil, walksStarted: Int64 = 0,
        isSealed: Bool = false
    ) {
        self.isSealed = isSealed
        self.name = name
        self.changeVersion = changeVersion
        self.walk = walk
        self.walksStarted = walksStarted
    }
}

/// An object of one account.
package struct EntityAddress: Sendable, Hashable, Comparable {
    package let bucket: BucketName
    package let key: EntityKey
    package init(bucket: BucketName, key: EntityKey) {
        self.bucket = bucket
        self.key = key
    }

    package static func < (left: Self, right: Self) -> Bool {
        left.bucket == right.bucket ? left.key < right.key : left.bucket < right.bucket
    }
}
