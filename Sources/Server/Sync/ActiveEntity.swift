import ThicketProtocol

/// One object in the shard's memory: its newest state (which may not be durable yet), and the data needed for its next
/// log row.
final class ActiveEntity: RecencyNode {
    let key: EntityKey
    /// Unique among all objects that the shard ever loaded, also among loads of the same key.
    let serial: UInt64
    unowned let bucket: ActiveBucket
    private(set) var state: ObjectState
    /// Newest change.
    private(set) var gid: GlobalID
    /// Newest row with a whole body; 0 when there is none.
    private(set) var keyframe: GlobalID
    /// Changes since the keyframe, and the bytes of their diffs.
    private(set) var diffsSinceKeyframe: Int
    private(set) var diffBytesSinceKeyframe: Int
    /// The store has the history up to this version; later changes are in `recent`.
    private(set) var durableVersion: Version
    private(set) var recent = RecentChanges()
    /// Version that the newest creation made, if known; always known in sealed buckets.
    private(set) var born: Version?
    /// Whether the open group changes the object.
    var isInGroup = false

    /// Creates an object from the store's state.
    init(key: EntityKey, bucket: ActiveBucket, state: ObjectState, head: EntityHead, serial: UInt64) {
        self.key = key
        self.serial = serial
        self.bucket = bucket
        self.state = state
        gid = head.record.gid
        keyframe = head.record.keyframe
        diffsSinceKeyframe = head.diffsSinceKeyframe
        diffBytesSinceKeyframe = head.diffBytesSinceKeyframe
        durableVersion = state.version
        born = head.record.born
    }

    /// Creates an object that never existed, for its first change.
    init(newKey key: EntityKey, bucket: ActiveBucket, versionBase: Version, serial: UInt64) {
        self.key = key
        self.serial = serial
        self.bucket = bucket
        state = .nothing(version: versionBase)
        gid = 0
        keyframe = 0
        diffsSinceKeyframe = 0
        diffBytesSinceKeyframe = 0
        durableVersion = versionBase
    }

    /// Maximum bytes of an object for which one previous state is kept regardless of `recentBytesMax`.
    private static let keptBesideMax = 4 << 20

    /// Whether a change of the open group is not durable yet.
    var isTentative: Bool { durableVersion != state.version }

    /// Approximate bytes in memory.
    var memory: Int { 400 + state.memory + recent.size }

    /// Parses the object if it is held as text, for the next decision.
    func makeValue() { state.makeValue() }

    /// Replaces the text by the same state, parsed on another thread.
    func adopt(made state: ObjectState) {
        guard !self.state.isMade, state.isMade, state.version == self.state.version else { return }
        self.state = state
    }

    /// Whether the object is still in the state that the store had.
    func isAs(_ record: EntityRecord) -> Bool {
        gid == record.gid && state.version == record.version && !isTentative
    }

    /// Identifies the state on which a change is decided.
    var basis: DeferredChange.Basis { .inMemory(serial: serial, version: state.version) }

    /// Applies a decided change.
    ///
    /// - Parameters:
    ///   - diffBytes: bytes of the diff in the log.
    ///   - isKeyframe: whether the row carries the whole body.
    func apply(_ decision: Decision, gid: GlobalID, diffBytes: Int, isKeyframe: Bool) {
        let action: RecentChanges.Action =
            switch decision.edit {
            case _ where decision.isRemoval: .value(.remove)
            case .value(let diff): .value(.modify(diff))
            case .text(let text): .text(text)
            }
        // The part of a diff, besides its text, that it does not share with the object.
        let operations = if case .value(.modify(let diff)) = action { diff.operations.count } else { 0 }
        recent.append(
            action, before: state.value, beforeSize: state.memory, makes: decision.state.version,
            diffSize: diffBytes + operations * DocumentMeasure.nodeBytes)
        if decision.source == nil { born = decision.isRemoval ? nil : decision.state.version }
        state = decision.state
        self.gid = gid
        if isKeyframe { keyframe = gid }
        if isKeyframe || decision.isRemoval {
            diffsSinceKeyframe = 0
            diffBytesSinceKeyframe = 0
        } else {
            diffsSinceKeyframe += 1
            diffBytesSinceKeyframe += diffBytes
        }
    }

    /// Records that the open group is durable.
    /// - Returns: dropped values that take long to deallocate.
    func markDurable(recentCountMax: Int, recentBytesMax: Int) -> [any Sendable] {
        durableVersion = state.version
        // Allows one previous state, for an edit that is late by one version; for very large objects the log is read
        // instead.
        let room = state.memory <= Self.keptBesideMax ? 2 * state.memory : 0
        recent.trim(countMax: recentCountMax, bytesMax: max(recentBytesMax, room))
        return recent.takeLarge()
    }

    /// The head to be written to the store.
    var record: EntityRecord {
        EntityRecord(
            key: key, version: state.version, gid: gid, keyframe: keyframe, isDeleted: state.isDeleted,
            born: bucket.mode.recordsBirth ? born : nil)
    }
}
