package import ThicketProtocol
package import ThicketSealed

/// The newest state of an object that the client knows the server holds.
package struct Ghost: Sendable, Equatable {
    /// 0: the server never had the object, as far as this client knows.
    package var version: Version
    /// nil: the object does not exist (it never did, or it was removed at `version`).
    package var object: JSONObject?

    package init(version: Version = 0, object: JSONObject? = nil) {
        self.version = version
        self.object = object
    }

    /// A bucket confirmed the state, but the server's current bucket may be a different one.
    package var isUnproven: Bool { version == 0 && object != nil }
}

/// A change that was sent, or may have been sent, and whose result is not known yet.
package struct PendingChange: Sendable, Equatable {
    package let changeID: ChangeID
    /// The change's effect on the current ghost: rebased over every change that the server ordered before it. nil: no
    /// effect remains.
    package var edit: Edit?
    /// The version on which the change was based; nil when it was sent without one.
    package let source: Version?
    /// The JSON of the change as sent. A resend is byte-identical, so that the server recognises the duplicate (409).
    package let bytes: [UInt8]
    /// The version that the server gave the change, when it is known but could not be applied here yet.
    package var appliedAt: Version?
    /// The server has the change (409), but its version is not known yet.
    package var isConfirmed: Bool

    /// The change comes from replacing the whole object (`EditState.isWhole`).
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

/// The edits of an object that the server has not confirmed.
package struct EditState: Sendable, Equatable {
    package var pending: PendingChange?
    /// Everything done after `pending`, as one exact edit.
    package var later: Edit? { didSet { if later == nil { isWhole = false } } }
    /// All of `later` comes from replacing the whole object, none from an edit at a position: a value that another
    /// device has set to the same result is not changed again (docs/decisions/0086).
    package internal(set) var isWhole = false
    /// A newer ghost that cannot be applied until it is known whether it includes `pending`.
    package var held: Ghost?
    /// The version of the object that was requested, because a change did not fit the ghost.
    package var wanted: Version?
    /// The code with which the server refused the edit; it is sent again after the next edit.
    package var refusal: Int?
    /// How often the edit was refused and sent again in another form.
    package var attempts = 0
    /// The next change carries the whole object in `d` besides the diff.
    package var sendsWhole = false
    /// `pending` and `later` come from replacing the whole object.
    var isAllWhole: Bool { hasEdits && pending?.isWhole != false && (later == nil || isWhole) }
    /// The edits of an object in a sealed bucket: `later` is not used, and `pending` has an edit only for a removal.
    package var sealed = SealedKept()

    package init() {}
    package var isEmpty: Bool { self == EditState() }
    /// Whether the server has not confirmed everything.
    package var hasEdits: Bool { pending != nil || later != nil || sealed.later != nil }
    /// The next change is another edit or based on another version: earlier refusals do not count for it.
    mutating func forgetRefusals() { (attempts, sendsWhole) = (0, false) }
    /// Whether nothing is sent before the app acts.
    package var isRefused: Bool { refusal != nil || isReadOnly }
    /// For a sealed object: the user has to choose a version first, or a newer program wrote the server's state and the
    /// edits wait for an update.
    var isReadOnly: Bool { sealed.problem != nil || (sealed.isStopped && hasEdits) }
}

/// The stored state of one object. The app sees the ghost with `pending` and `later` applied, in this order.
package struct EntityRecord: Sendable, Equatable {
    package var ghost: Ghost
    package var edits: EditState
    /// Whether the app sees an object under this key.
    package var isLive: Bool
    /// The number of the last index scan that listed this object.
    package var scanID: Int64
    /// In a sealed bucket, the app's key, which differs from the server's; nil in open buckets.
    package var name: String?

    package init(
        ghost: Ghost = Ghost(), edits: EditState = EditState(), isLive: Bool = false, scanID: Int64 = 0,
        name: String? = nil
    ) {
        self.ghost = ghost
        self.edits = edits
        self.isLive = isLive
        self.scanID = scanID
        self.name = name
    }
}

/// An index scan of a bucket that has not ended; it continues after a restart.
package struct IndexScan: Sendable, Equatable {
    /// Grows with each scan of the bucket.
    package var id: Int64
    /// The start of the next page; nil for the first page.
    package var mark: String?
    /// `current` of the first page: the position from which changes are requested when the scan has ended.
    package var current: ChangeVersion?
    package var objectsRead: Int64
    /// The number of objects that the server reported; nil when it reported none.
    package var objectsTotal: Int64?
    /// The bucket's identity that the server reported when the scan began; nil when it reported none.
    package var store: String?
    /// The ghosts belong to the bucket being scanned, so an object that its index does not list was removed. If false,
    /// the position was lost, and an unlisted object exists on this device only (docs/decisions/0083).
    package var isSame = false

    package init(id: Int64) {
        self.id = id
        objectsRead = 0
    }
}

/// The stored state of one bucket, without its objects.
package struct BucketRecord: Sendable, Equatable {
    package let name: BucketName
    /// The ghosts include the changes up to this position; nil before the first index scan.
    package var changeVersion: ChangeVersion?
    package var indexScan: IndexScan?
    package var scansStarted: Int64
    /// The app has opened the bucket as a sealed one: it stays sealed, whatever the server reports.
    package var isSealed: Bool
    /// The identity of the server's bucket to which all ghosts belong; nil when unknown or when they belong to several.
    package var store: String?
    /// The number of the last scan that met a bucket which may differ from the previous one; 0 when none did.
    package var generation: Int64 = 0

    package init(
        name: BucketName, changeVersion: ChangeVersion? = nil, indexScan: IndexScan? = nil, scansStarted: Int64 = 0,
        isSealed: Bool = false
    ) {
        self.isSealed = isSealed
        self.name = name
        self.changeVersion = changeVersion
        self.indexScan = indexScan
        self.scansStarted = scansStarted
    }
}

/// The address of an object within an account.
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
