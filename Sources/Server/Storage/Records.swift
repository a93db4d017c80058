import ThicketProtocol

/// Number by which rows name their bucket; assigned once by `StoreWriter.newBucketRow()`.
public typealias BucketRow = Int64

/// A bucket as it stands in the store. Written at its first change, not when it is opened, unless it is to be sealed.
public struct BucketRecord: Hashable, Sendable {
    public let row: BucketRow
    public let id: BucketID
    /// Newest change; 0 when there is none.
    public var head: GlobalID
    /// Changes at or below are forgotten by the log retention: a cv below it is unknown. 0 when nothing was cut.
    public var floor: GlobalID
    /// Never changes while the bucket has objects.
    public var mode: BucketMode

    public init(row: BucketRow, id: BucketID, head: GlobalID = 0, floor: GlobalID = 0, mode: BucketMode = .open) {
        self.row = row
        self.mode = mode
        self.id = id
        self.head = head
        self.floor = floor
    }
}

/// The thin head of an object: where its newest change stands. Stays after a deletion, so that versions go on.
public struct EntityRecord: Hashable, Sendable {
    public let key: EntityKey
    /// Version after the newest change; a deletion counts too.
    public var version: Version
    /// Newest change.
    public var gid: GlobalID
    /// Newest log row that carries a whole body, 0 when there is none in this entity's chain.
    public var keyframe: GlobalID
    public var isDeleted: Bool
    /// Version that the newest creation made, in sealed buckets; nil elsewhere, and of what is deleted.
    public var born: Version?

    public init(
        key: EntityKey, version: Version, gid: GlobalID, keyframe: GlobalID, isDeleted: Bool, born: Version? = nil
    ) {
        self.born = born
        self.key = key
        self.version = version
        self.gid = gid
        self.keyframe = keyframe
        self.isDeleted = isDeleted
    }
}

/// What a logged change did.
public enum ChangeKind: Int64, Sendable, Hashable {
    /// `M`: created or edited.
    case modify = 0
    /// `-`: deleted.
    case remove = 1
}

/// One row of the change log: everything a catch-up, a rebase or a replay needs.
public struct ChangeRecord: Hashable, Sendable {
    public let gid: GlobalID
    public let bucket: BucketRow
    public let key: EntityKey
    public let kind: ChangeKind
    /// Version the diff applies to; nil for a creation (the diff is then one from `{}`) and for a deletion.
    public let sourceVersion: Version?
    /// Version after the change: always one more than the entity's version before.
    public let endVersion: Version
    /// Previous change of the entity (`pe`), 0 when this is its first.
    public let previousOfEntity: GlobalID
    /// Newest keyframe of the entity before this row (`pk`), 0 when there is none.
    public let previousKeyframe: GlobalID
    /// Previous change of the bucket (`pb`), 0 when this is its first.
    public let previousOfBucket: GlobalID
    public let clientID: ClientID
    public let changeID: ChangeID
    /// Milliseconds since 1970 by the server's clock.
    public let timestamp: Int64
    /// The `v` that was broadcast, as JSON; empty for a deletion.
    public let diff: [UInt8]
    /// Whole body after the change when the row is a keyframe, as JSON.
    public let keyframe: [UInt8]?

    public init(
        gid: GlobalID, bucket: BucketRow, key: EntityKey, kind: ChangeKind, sourceVersion: Version?,
        endVersion: Version, previousOfEntity: GlobalID, previousKeyframe: GlobalID, previousOfBucket: GlobalID,
        clientID: ClientID, changeID: ChangeID, timestamp: Int64, diff: [UInt8], keyframe: [UInt8]? = nil
    ) {
        self.gid = gid
        self.bucket = bucket
        self.key = key
        self.kind = kind
        self.sourceVersion = sourceVersion
        self.endVersion = endVersion
        self.previousOfEntity = previousOfEntity
        self.previousKeyframe = previousKeyframe
        self.previousOfBucket = previousOfBucket
        self.clientID = clientID
        self.changeID = changeID
        self.timestamp = timestamp
        self.diff = diff
        self.keyframe = keyframe
    }

    /// The row without its diff, body and author.
    public var link: ChangeLink {
        ChangeLink(
            gid: gid, bucket: bucket, kind: kind, sourceVersion: sourceVersion, endVersion: endVersion,
            previousOfEntity: previousOfEntity, previousKeyframe: previousKeyframe,
            previousOfBucket: previousOfBucket, timestamp: timestamp)
    }
}

/// The pointers of a log row: what the walks along the chains read, without touching its bodies.
public struct ChangeLink: Hashable, Sendable {
    public let gid: GlobalID
    public let bucket: BucketRow
    public let kind: ChangeKind
    public let sourceVersion: Version?
    public let endVersion: Version
    public let previousOfEntity: GlobalID
    public let previousKeyframe: GlobalID
    public let previousOfBucket: GlobalID
    /// Milliseconds since 1970.
    public let timestamp: Int64
}

/// A change's identity in a bucket's set of ccids.
public struct ChangeIDEntry: Hashable, Sendable {
    /// Keyed hash (`StoreIdentity.hash(of:)`).
    public let hash: UInt64
    /// The log row that tells whether a hit is real; 0 when retention has cut the row and the hash alone decides.
    public let gid: GlobalID

    public init(hash: UInt64, gid: GlobalID) {
        self.hash = hash
        self.gid = gid
    }
}

/// The part of a bucket's ccids that its owner holds in memory; the rest is looked up where it is needed.
public struct ChangeIDTail: Hashable, Sendable {
    public let entries: [ChangeIDEntry]
    /// Newest change whose ccid `StoreWriter.settledChange` finds; 0 when `entries` are all there are.
    public let settled: GlobalID

    public init(entries: [ChangeIDEntry], settled: GlobalID) {
        self.entries = entries
        self.settled = settled
    }
}

/// What a token admits to.
public struct TokenGrant: Hashable, Sendable {
    public let app: AppID
    /// Whose buckets they are.
    public let user: UserID
    public let isReadOnly: Bool
    /// What clients are told the user is called; that of an account may change.
    public let name: UserID
    /// Milliseconds since 1970; nil: good until it is revoked.
    public let expires: Int64?

    /// - Parameter name: nil where it is the same as `user`.
    public init(app: AppID, user: UserID, isReadOnly: Bool, name: UserID? = nil, expires: Int64? = nil) {
        self.app = app
        self.user = user
        self.isReadOnly = isReadOnly
        self.name = name ?? user
        self.expires = expires
    }

    /// - Parameter now: milliseconds since 1970.
    public func isGood(at now: Int64) -> Bool { expires.map { now < $0 } ?? true }
}
