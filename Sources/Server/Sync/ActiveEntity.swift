import ThicketProtocol

/// One object in the shard's memory: its newest, possibly not yet durable state, and what the next row needs.
final class ActiveEntity: RecencyNode {
    let key: EntityKey
    /// No other that the shard ever held has it, of the same key neither.
    let serial: UInt64
    unowned let bucket: ActiveBucket
    private(set) var state: ObjectState
    /// Newest change.
    private(set) var gid: GlobalID
    /// Newest row with a whole body; 0 when there is none.
    private(set) var keyframe: GlobalID
    /// Changes since then, and the bytes of their diffs.
    private(set) var diffsSinceKeyframe: Int
    private(set) var diffBytesSinceKeyframe: Int
    /// Version up to which the store has the history; the rest is in `recent`.
    private(set) var durableVersion: Version
    private(set) var recent = RecentChanges()
    /// Version that the newest creation made, as far as that is known: always in sealed buckets.
    private(set) var born: Version?
    /// The open group changes it.
    var isInGroup = false

    /// An object as the store has it.
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

    /// An object that never existed; its first change is about to be taken.
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

    /// Bytes of an object in memory up to which one more state of it is kept, however few `recentBytesMax` allows.
    private static let keptBesideMax = 4 << 20

    /// True while a change of the open group is not durable.
    var isTentative: Bool { durableVersion != state.version }

    /// Bytes held, roughly.
    var memory: Int { 400 + state.memory + recent.size }

    /// Makes the object that the next change is decided on.
    func makeValue() { state.makeValue() }

    /// The same state, made elsewhere.
    func take(made state: ObjectState) {
        guard !self.state.isMade, state.isMade, state.version == self.state.version else { return }
        self.state = state
    }

    /// Whether it is still as the store had it.
    func isAs(_ record: EntityRecord) -> Bool {
        gid == record.gid && state.version == record.version && !isTentative
    }

    /// The state that a change is decided on.
    var basis: LongDecision.Basis { .inMemory(serial: serial, version: state.version) }

    /// Takes a decided change.
    ///
    /// - Parameters:
    ///   - diffBytes: bytes of the diff in the log.
    ///   - isKeyframe: its row carries the whole body.
    func take(_ decision: Decision, gid: GlobalID, diffBytes: Int, isKeyframe: Bool) {
        let action: RecentChanges.Action =
            switch decision.edit {
            case _ where decision.isRemoval: .value(.remove)
            case .value(let diff): .value(.modify(diff))
            case .text(let text): .text(text)
            }
        // What a diff holds beside its text, as far as it does not share it with the object.
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

    /// The open group is durable.
    /// - Returns: what is given up and takes long to let go of.
    func settle(recentCountMax: Int, recentBytesMax: Int) -> [any Sendable] {
        durableVersion = state.version
        // Room for the state before, for an edit that is late by one; of very large objects the log is asked instead.
        let room = state.memory <= Self.keptBesideMax ? 2 * state.memory : 0
        recent.trim(countMax: recentCountMax, bytesMax: max(recentBytesMax, room))
        return recent.takeLarge()
    }

    /// The head as the store is to have it.
    var record: EntityRecord {
        EntityRecord(
            key: key, version: state.version, gid: gid, keyframe: keyframe, isDeleted: state.isDeleted,
            born: bucket.mode == .sealed ? born : nil)
    }
}
