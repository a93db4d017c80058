import Glibc
import Synchronization
import ThicketProtocol

/// The newest heads of objects whose changes are in the log but not yet in `ent` (decision 0008).
///
/// A group writes only its log rows. Its heads are added here before it commits; later groups write them into `ent`,
/// many at once and in order. `meta` records the change up to which `ent` is complete (`Meta.heads`); a start rebuilds
/// later heads from the log.
///
/// The writer modifies this; readers on all threads look heads up. A reader sees the state of its transaction: heads of
/// later changes are skipped.
final class WriteBehindHeads: Sendable {
    private struct State {
        /// The stretch whose heads are being written to `ent`, or `current` when none is.
        var oldest: Stretch
        var current: Stretch
        /// `ent` is complete up to this change.
        var mark: GlobalID
    }

    /// Heads of the oldest stretch that are still to be written: `buckets` not started yet, and `next`, the heads to
    /// write next.
    private struct Rest {
        var buckets = ArraySlice<BucketRow>()
        var next = ArraySlice<WriteBatch.EntityWrite>()
    }

    /// Heads that are written per change of the group that takes them along. At this ratio a stretch is written before
    /// the next one is full.
    static let headsPerChange = 2
    /// Maximum backlog, in stretches of changes, while no heads can be written to the table (`isFarBehind`).
    private static let stretchesMax = 16

    /// Number of changes after which a stretch is full.
    private let changesMax: Int
    private let state: Mutex<State>
    /// Used by the writer only.
    private let rest = Mutex<Rest>(Rest())
    /// Used by the writer only.
    private let backoff = Mutex<GroupBackoff>(GroupBackoff())

    /// - Parameters:
    ///   - mark: `ent` is complete up to this change.
    ///   - changesMax: number of changes after which writing of their heads begins; one group may exceed it. While the
    ///     table takes the heads, a start reads at most about 1.5 times as many rows of the log.
    init(mark: GlobalID, changesMax: Int) {
        self.changesMax = max(changesMax, 1)
        let stretch = Stretch()
        state = Mutex(State(oldest: stretch, current: stretch, mark: mark))
    }

    /// `ent` is complete up to this change.
    var mark: GlobalID { state.withLock { $0.mark } }

    /// Whether so many changes wait for their heads to be written that the table cannot have taken any for a long time.
    var isFarBehind: Bool {
        state.withLock { $0.current }.changes > Self.stretchesMax * changesMax
    }

    /// Number of heads here (an object changed by several groups counts once per group), and the newest change among
    /// them.
    var all: (count: Int, through: GlobalID) {
        let origin = self.origin
        var (count, through): (Int, GlobalID) = (0, 0)
        var stretch: Stretch? = origin
        while let each: Stretch = stretch {
            let (own, last, next) = each.measure
            count += own
            through = max(through, last)
            stretch = next
        }
        return (count, through)
    }

    /// Start of a reader's look-ups. Taken before its transaction begins, it reaches all heads that may be missing in
    /// `ent`.
    var origin: Stretch { state.withLock { $0.oldest } }

    // MARK: Groups

    /// Commits a group that takes heads of earlier groups along into the table. A group is retried once without them,
    /// because a broken page in the table of heads should affect only those objects, not the changes of others: the log
    /// contains all heads, and the backlog is bounded.
    ///
    /// - Parameters:
    ///   - entities: the heads of the group's own changes.
    ///   - changes: number of changes in the group.
    ///   - commit: writes the group with these heads in one transaction.
    /// - Returns: why the table did not take the heads, when the group was committed without them.
    func carry(
        _ entities: [WriteBatch.EntityWrite], changes: Int, commit: (Slice) throws(StoreError) -> Void
    ) throws(StoreError) -> StoreError? {
        let slice = nextSlice(changes)
        // Published before a reader can see the group.
        publish(entities, changes)
        do throws(StoreError) {
            let failure = try committed(slice, commit)
            written(failure == nil ? slice : Slice())
            return failure
        } catch {
            unpublish(entities, changes)
            throw error
        }
    }

    /// - Returns: the failure with the heads when the group was committed without them.
    private func committed(
        _ slice: Slice, _ commit: (Slice) throws(StoreError) -> Void
    ) throws(StoreError) -> StoreError? {
        do throws(StoreError) {
            try commit(slice)
            if !slice.heads.isEmpty { backoff.withLock { $0.succeeded() } }
            return nil
        } catch {
            guard !slice.heads.isEmpty, error.mayBeOfOneTable else { throw error }
            guard !isFarBehind else {
                throw StoreError(.io, "the table of heads cannot be written, and too many heads wait: \(error.detail)")
            }
            try commit(Slice())
            backoff.withLock { $0.failed() }
            return error
        }
    }

    private func nextSlice(_ changes: Int) -> Slice {
        let mustWait = !isFarBehind && backoff.withLock { $0.excludesNext() }
        return mustWait ? Slice() : slice(limit: Self.headsPerChange * changes)
    }

    /// How many groups carry no heads after heads could not be written.
    private struct GroupBackoff {
        private static let pauseMin = 8
        private static let pauseMax = 256

        /// Number of further groups that carry none.
        private var left = 0
        /// Number of groups that the next failure excludes.
        private var pause = pauseMin

        mutating func succeeded() { self = GroupBackoff() }

        mutating func failed() {
            left = pause
            pause = min(2 * pause, Self.pauseMax)
        }

        mutating func excludesNext() -> Bool {
            guard left > 0 else { return false }
            left -= 1
            return true
        }
    }

    /// Adds the heads of a group that is about to be committed, because a reader may see the group from the commit on.
    /// - Parameter changes: number of changes in the group.
    func publish(_ entities: [WriteBatch.EntityWrite], _ changes: Int) {
        guard !entities.isEmpty else { return }
        // Only the writer replaces `current`.
        let (oldest, current) = state.withLock { ($0.oldest, $0.current) }
        let isFull = oldest === current && current.changes >= changesMax
        (isFull ? rotate(current) : current).add(entities, changes)
    }

    /// Reverts `publish` for a group that was not committed.
    func unpublish(_ entities: [WriteBatch.EntityWrite], _ changes: Int) {
        guard !entities.isEmpty else { return }
        state.withLock { $0.current }.remove(entities, changes)
    }

    /// Begins a new stretch.
    private func rotate(_ current: Stretch) -> Stretch {
        let fresh = Stretch()
        current.lead(to: fresh)
        rest.withLock { $0 = Rest(buckets: current.buckets.sorted()[...]) }
        state.withLock { $0.current = fresh }
        return fresh
    }

    // MARK: Into the table

    /// Heads that are written into `ent` together.
    struct Slice {
        var heads = [WriteBatch.EntityWrite]()
        /// After this slice, `ent` is complete up to this change; nil when more slices must be written first.
        var mark: GlobalID?
        /// Whether the slice contains all heads.
        fileprivate var isAll = false
    }

    /// The next heads of a full stretch, at most `limit`. Returns the same slice until `written` is called.
    /// - Parameter always: also starts a stretch that is not full.
    func slice(limit: Int, always: Bool = false) -> Slice {
        let (oldest, current) = state.withLock { ($0.oldest, $0.current) }
        if oldest === current {
            guard always, current.measure.count > 0 else { return Slice() }
            _ = rotate(current)
        }
        return rest.withLock { rest in
            while rest.next.count < limit, let bucket = rest.buckets.popFirst() {
                rest.next += oldest.heads(of: bucket)
            }
            let heads = rest.next.prefix(limit)
            let isLast = heads.count == rest.next.count && rest.buckets.isEmpty
            return Slice(heads: Array(heads), mark: isLast ? oldest.measure.through : nil)
        }
    }

    /// All heads, in table order.
    func whole() -> Slice {
        let origin = self.origin
        let (count, through) = all
        guard count > 0 else { return Slice() }
        let view = View(origin: origin, upTo: .max)
        var heads = [WriteBatch.EntityWrite]()
        for bucket in view.buckets.sorted() { heads += Self.sorted(view.heads(of: bucket).values, bucket) }
        return Slice(heads: heads, mark: through, isAll: true)
    }

    /// Records that the slice is durable in the table.
    func written(_ slice: Slice) {
        rest.withLock { rest in
            if slice.isAll { rest = Rest() } else { rest.next = rest.next.dropFirst(slice.heads.count) }
        }
        guard let mark = slice.mark else { return }
        var fresh: Stretch?
        if slice.isAll {
            let next = Stretch()
            state.withLock { $0.current }.lead(to: next)
            fresh = next
        }
        // The old stretch is released outside the lock, because it consists of thousands of small objects.
        let over = state.withLock { state in
            let over = state.oldest
            if let fresh { state.current = fresh }
            state.oldest = state.current
            state.mark = max(state.mark, mark)
            return over
        }
        _ = over
    }

    /// Removes the heads of buckets that are being erased. After a restart, heads that are rebuilt from the rest of the
    /// log are removed again by the next erasure step.
    func forget(_ buckets: Set<BucketRow>) {
        guard !buckets.isEmpty else { return }
        var stretch: Stretch? = origin
        while let each: Stretch = stretch {
            each.forget(buckets)
            stretch = each.measure.next
        }
        rest.withLock { rest in
            rest.buckets.removeAll { buckets.contains($0) }
            rest.next.removeAll { buckets.contains($0.bucket) }
        }
    }

    static func sorted(
        _ records: some Sequence<EntityRecord>, _ bucket: BucketRow
    ) -> [WriteBatch.EntityWrite] {
        records.sorted { $0.key.precedes($1.key) }.map { WriteBatch.EntityWrite(bucket: bucket, record: $0) }
    }
}

extension EntityKey {
    /// SQLite's order: byte by byte.
    func precedes(_ other: EntityKey) -> Bool {
        text.withBytes { (left) in
            other.text.withBytes { (right) in
                guard let first = left.baseAddress,
                    let second = right.baseAddress
                else { return left.count < right.count }
                let order = memcmp(first, second, min(left.count, right.count))
                return order == 0 ? left.count < right.count : order < 0
            }
        }
    }
}
