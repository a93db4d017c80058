import ThicketProtocol

/// A change that may take long to decide, with all data needed to decide it on another thread while the shard's thread
/// decides other users' changes.
///
/// The shard accepts the result only if the object is unchanged. No answer is given before; until then the change
/// counts as waiting.
public struct DeferredChange: Sendable {
    /// The change and its author.
    public let submitted: SubmittedChange
    let change: CheckedChange
    /// Number of earlier attempts that were discarded because another change modified the object meanwhile.
    let tries: Int
    let engine: ChangeEngine
    let keyframes: KeyframePolicy
    let object: Object

    /// The location of the object on which the change is decided.
    enum Object: Sendable {
        /// The key never existed.
        case none
        case inMemory(Known)
        /// The object is large and was evicted; reading it is part of the work that takes long.
        case stored(BucketRow, history: LateHistory.Bounds)
    }

    /// The object before the change.
    struct Known: Sendable {
        var state: ObjectState
        let history: LateHistory
        /// The counters of the keyframe policy.
        let diffsSinceKeyframe: Int
        let diffBytesSinceKeyframe: Int
    }

    /// Identifies one state of one object among all that the shard ever loaded.
    enum Basis: Equatable, Sendable {
        case nothing
        /// `serial` identifies the loaded object; an object that was dropped and loaded again has another serial.
        case inMemory(serial: UInt64, version: Version)
        case stored(EntityRecord)
    }
    let basis: Basis?

    /// Maximum attempts on another thread. After them the shard's thread decides, regardless of the cost, so that
    /// changes of several users to one object cannot delay each other forever.
    static let triesMax = 3

    /// Decides the change with the same result that the shard would give for this state of the object.
    /// - Parameter reader: for edits that are older than the history in memory; without a reader the shard decides
    ///   those itself.
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

    /// nil when the shard must read the object itself, to report the error.
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

    /// The store or a stored change cannot be read here; the shard reads it itself and reports the error.
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

    /// The result, and the state it is based on.
    public struct Result: Sendable {
        /// The change that was decided.
        public let submitted: SubmittedChange
        /// Processor time used, in nanoseconds, for the accounting of CPU budgets.
        public var nanoseconds: Int64 = 0
        let tries: Int
        var basis: Basis?
        /// The object before the change, parsed if it was held as text.
        var state: ObjectState?
        /// The object before the change, as it was read from the store.
        var head: EntityHead?
        /// nil: only the shard can decide the change.
        var outcome: ChangeEngine.Outcome?
        /// The body after the change if its row must be a keyframe.
        var keyframe: [UInt8]?
    }
}

extension DeferredChange {
    /// Approximate cost of deciding a change, in bytes processed: a megabyte takes at most a millisecond, usually much
    /// less.
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
        // Two whole objects are compared, which grows faster than linearly.
        if whole != nil { work += compareCost * (bytes(whole) + state.size) }
        return work
    }

    /// Each sent byte is parsed, counted and written again.
    private static let sentCost = 16
    /// Each member of the object is copied when another member changes.
    private static let memberCost = 128
    /// Each byte of an object that is held as text must be parsed.
    private static let parseCost = 16
    private static let compareCost = 256

    private static func bytes(_ sent: JSONFragment?) -> Int {
        // A fragment without text was created by the server and is small.
        if case .node(let node)? = sent { node.rawBytes.count } else { 0 }
    }

    private static func bytes(_ whole: CheckedChange.WholeObject?) -> Int {
        switch whole {
        case .object(let sent), .members(let sent): bytes(sent)
        case .ghostRecord, nil: 0
        }
    }
}

/// Access to all changes made to an object after one of its versions: the newest ones in memory, the earlier ones in
/// the store.
struct LateHistory: Sendable {
    let key: EntityKey
    /// The bucket's row; nil while the store does not have the bucket.
    let row: BucketRow?
    let recent: RecentChanges
    let newest: Version
    /// The store has the changes up to this version; later ones are in `recent`.
    let durable: Version
    /// Maximum number of changes that an edit may be late by.
    let changesMax: Int

    /// Bounds on how late an edit may be.
    struct Bounds: Sendable {
        let changes: Int
        /// Maximum number of changes times the bytes of the object.
        let bytes: Int
        /// Number of changes that are allowed regardless of `bytes`.
        let changesAlways: Int

        func changesMax(size: Int) -> Int { min(changes, max(bytes / max(size, 1), changesAlways)) }
    }

    /// Whether the history in memory does not reach back to `version`.
    func asksStore(after version: Version) -> Bool {
        newest - version <= Version(changesMax) && version < durable && !recent.reaches(back: version)
    }

    /// - Returns: nil when the history is incomplete or exceeds the bounds.
    func changes(
        after version: Version, reading reader: (any StoreReader)?
    ) throws(ChangeRejection) -> LaterChanges? {
        guard newest - version <= Version(changesMax) else { return nil }
        if let recent = recent.changes(after: version) { return recent }
        guard version < durable, let row, let reader else { return nil }
        // A reader on another thread may see changes beyond `durable`.
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

    /// The durable changes, if their versions have no gaps: a restore raises versions, and earlier changes belong to
    /// another history.
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
