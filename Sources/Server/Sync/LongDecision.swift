import ThicketProtocol

/// A change that may take long to decide, with all that it takes to decide it on another thread: the shard's goes on
/// with everybody else's meanwhile.
///
/// The shard takes the result only if the object is still as it was. Nothing is promised before: until then the change
/// counts as one that waits.
public struct LongDecision: Sendable {
    /// Whose change it is, and what it asks for.
    public let submitted: SubmittedChange
    let change: CheckedChange
    /// How often it was decided before on an object that somebody else had changed meanwhile.
    let tries: Int
    let engine: ChangeEngine
    let keyframes: KeyframePolicy
    let object: Object

    /// Where the object is that it is decided on.
    enum Object: Sendable {
        /// There never was one.
        case none
        case inMemory(Known)
        /// It is large and was forgotten: to read it is a part of what takes long.
        case stored(BucketRow, history: LateHistory.Bounds)
    }

    /// An object before the change.
    struct Known: Sendable {
        var state: ObjectState
        let history: LateHistory
        /// What the rule for keyframes counts.
        let diffsSinceKeyframe: Int
        let diffBytesSinceKeyframe: Int
    }

    /// One state of one object, of all that the shard ever held.
    enum Basis: Equatable, Sendable {
        case nothing
        /// `serial` is of the object in memory: one that was dropped and read again has another.
        case inMemory(serial: UInt64, version: Version)
        case stored(EntityRecord)
    }
    let basis: Basis?

    /// Tries on another thread; after them the shard's decides, whatever it takes, so that changes of several users to
    /// one object cannot keep each other from being decided for ever.
    static let triesMax = 3

    /// Decides it: as the shard would have, in the same state of the object.
    /// - Parameter reader: for edits that are later than memory goes back; without one the shard decides those itself.
    public func decide(reading reader: (any StoreReader)?) -> Result {
        var result = Result(submitted: submitted, tries: tries + 1, basis: basis)
        var known: Known?
        switch object {
        case .none: break
        case .inMemory(let inMemory):
            known = inMemory
            known?.state.makeValue()
        case .stored(let row, let bounds):
            guard let reader, let read = Self.read(change.key, row, bounds, reader) else {
                return result
            }
            (result.basis, result.head, known) = (.stored(read.0.record), read.0, read.1)
        }
        result.state = known?.state
        let found = try? engine.decide(change, state: known?.state) {
            version throws(Unreadable) in try later(than: version, known?.history, reader)
        }
        guard case .success(var decision)? = found else {
            result.outcome = found
            return result
        }
        if !decision.isRemoval, decision.sent == nil { decision.sent = decision.diffText }
        result.keyframe = keyframe(decision, after: known)
        result.outcome = .success(decision)
        return result
    }

    /// nil when the shard is to find out for itself what is wrong.
    private static func read(
        _ key: EntityKey, _ row: BucketRow, _ bounds: LateHistory.Bounds, _ reader: any StoreReader
    ) -> (EntityHead, Known)? {
        guard let head = try? reader.head(of: key, in: row),
            let state = try? ShardCore.objectState(head)
        else { return nil }
        let history = LateHistory(
            key: key, row: row, recent: RecentChanges(), newest: state.version, durable: state.version,
            changesMax: bounds.changesMax(size: state.size))
        return (
            head,
            Known(
                state: state, history: history, diffsSinceKeyframe: head.diffsSinceKeyframe,
                diffBytesSinceKeyframe: head.diffBytesSinceKeyframe)
        )
    }

    /// The store cannot be read here, or a stored change cannot: the shard finds out for itself.
    private struct Unreadable: Error {}

    private func later(
        than version: Version, _ history: LateHistory?, _ reader: (any StoreReader)?
    ) throws(Unreadable) -> LaterChanges? {
        guard let history else { return nil }
        if history.asksStore(after: version), reader == nil { throw Unreadable() }
        do {
            return try history.changes(after: version, reading: reader)
        } catch {
            throw Unreadable()
        }
    }

    private func keyframe(_ decision: Decision, after known: Known?) -> [UInt8]? {
        guard let known, !decision.isRemoval,
            keyframes.isDue(
                diffs: known.diffsSinceKeyframe + 1,
                diffBytes: known.diffBytesSinceKeyframe + (decision.sent?.count ?? 0),
                bodyBytes: decision.state.size)
        else { return nil }
        return decision.state.value.serialized()
    }

    /// What was decided, and on what.
    public struct Result: Sendable {
        public let submitted: SubmittedChange
        /// Processor time that it took, nanoseconds: for whoever shares a thread out.
        public var nanoseconds: Int64 = 0
        let tries: Int
        var basis: Basis?
        /// The object before, made from its text if it was kept as that.
        var state: ObjectState?
        /// The same as it was read from the store.
        var head: EntityHead?
        /// nil: it can only be decided where the store is written.
        var outcome: ChangeEngine.Outcome?
        /// The object after it, if its row is to carry it.
        var keyframe: [UInt8]?
    }
}

extension LongDecision {
    /// About what a change costs to decide, in bytes gone through: a megabyte takes a millisecond at most, and usually
    /// much less.
    static func work(_ change: CheckedChange, on state: ObjectState?) -> Int {
        guard case .modify(let diff, let whole) = change.intent else { return 0 }
        var work = sentCost * (bytes(diff) + bytes(whole))
        guard let state, !state.isDeleted else { return work }
        work += memberCost * state.nodes + (state.isMade ? 0 : parseCost * state.size)
        if let source = change.source, source < state.version {
            let (late, isTooMuch) = Int(state.version - source)
                .multipliedReportingOverflow(by: LateEdit.stepWork + state.size)
            work = isTooMuch ? .max / 2 : work + min(late, .max / 2)
        }
        // Two wholes are compared: that grows faster than their length.
        if whole != nil { work += compareCost * (bytes(whole) + state.size) }
        return work
    }

    /// A byte that was sent is read, counted and written again.
    private static let sentCost = 16
    /// A member of the object is copied when another one changes.
    private static let memberCost = 128
    /// A byte of an object that is kept as text is made a tree.
    private static let parseCost = 16
    private static let compareCost = 256

    private static func bytes(_ sent: JSONFragment?) -> Int {
        // One that does not come from a text has been made here, and is small.
        if case .node(let node)? = sent { node.rawBytes.count } else { 0 }
    }

    private static func bytes(_ whole: CheckedChange.WholeObject?) -> Int {
        switch whole {
        case .object(let sent), .members(let sent): bytes(sent)
        case .ghostRecord, nil: 0
        }
    }
}

/// Where everything is found that was done to an object after one of its versions: the newest changes in memory, those
/// before them in the store.
struct LateHistory: Sendable {
    let key: EntityKey
    /// The bucket's row; nil while the store has nothing of it.
    let row: BucketRow?
    let recent: RecentChanges
    let newest: Version
    /// What the store has for certain; later changes are in `recent`.
    let durable: Version
    /// Changes that an edit may be late by.
    let changesMax: Int

    /// How late an edit may be.
    struct Bounds: Sendable {
        let changes: Int
        /// The same times the bytes of the object.
        let bytes: Int
        /// So many always.
        let changesAlways: Int

        func changesMax(size: Int) -> Int { min(changes, max(bytes / max(size, 1), changesAlways)) }
    }

    /// Whether memory does not go back so far.
    func asksStore(after version: Version) -> Bool {
        newest - version <= Version(changesMax) && version < durable && !recent.reaches(back: version)
    }

    /// - Returns: nil when not all of it is kept, or it is too much.
    func changes(
        after version: Version, reading reader: (any StoreReader)?
    ) throws(ChangeRejection) -> LaterChanges? {
        guard newest - version <= Version(changesMax) else { return nil }
        if let recent = recent.changes(after: version) { return recent }
        guard version < durable, let row, let reader else { return nil }
        // Other threads may see more than is certain here.
        let limit = changesMax + Int(newest - durable)
        let stored = try ShardCore.reading { () throws(StoreError) in
            try reader.history(of: key, after: version, in: row, limit: limit)
        }
        guard let stored, let sure = whole(stored, after: version) else { return nil }
        var later = LaterChanges(base: try stored.base.map(ShardCore.object) ?? JSONObject(), changes: [])
        later.changes.reserveCapacity(sure.count)
        for record in sure {
            later.changes.append(LaterChange(action: try Self.action(record), before: nil))
        }
        if newest != durable {
            guard let tentative = recent.changes(after: durable) else { return nil }
            later.changes.append(contentsOf: tentative.changes)
        }
        return later
    }

    /// What is durable, its versions without gaps: a restore raises them, and what came before it is another past.
    private func whole(_ history: EntityHistory, after version: Version) -> [ChangeRecord]? {
        let sure = history.changes.filter { $0.endVersion <= durable }
        var expected = version
        for record in sure {
            expected += 1
            guard record.endVersion == expected else { return nil }
        }
        return expected == durable ? sure : nil
    }

    private static func action(_ record: ChangeRecord) throws(ChangeRejection) -> LaterChange.Action {
        guard record.kind == .modify else { return .remove }
        do {
            return .modify(try ObjectDiff(JSONDocument(parsing: record.diff).root))
        } catch {
            throw ChangeRejection(.serverError, "the diff of change \(record.gid) cannot be read")
        }
    }
}
