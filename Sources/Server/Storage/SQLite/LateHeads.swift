import Glibc
import Synchronization
import ThicketProtocol

/// The newest heads of objects that the log has and `ent` not yet (decision 0075).
///
/// A group writes its log alone; the heads it leads to are put here before it commits, and go into `ent` many at once
/// and in order, with later groups. `meta` says up to which change `ent` is whole (`Meta.heads`); what lies beyond is
/// in the log, so a start reads it from there.
///
/// The writer changes this; readers of all threads look things up. A reader sees the state of the store that its
/// transaction has: heads of later changes are passed over.
final class LateHeads: Sendable {
    private struct State {
        /// The stretch whose heads go into `ent`, or `current` when there is none.
        var oldest: Stretch
        var current: Stretch
        /// `ent` is whole up to this change.
        var mark: GlobalID
    }

    /// Heads of the oldest stretch that are still to be written: those of its buckets that come later, and those that
    /// come next.
    private struct Rest {
        var buckets: ArraySlice<BucketRow> = []
        var next: ArraySlice<WriteBatch.EntityWrite> = []
    }

    /// Heads that a slice writes for each change of the group that takes it along: a stretch is written before the next
    /// is full.
    static let headsPerChange = 2
    /// Stretches' worth of changes that may come while the table takes no heads (`isFarBehind`).
    private static let stretchesMax = 16

    /// Changes in a stretch.
    private let changesMax: Int
    private let state: Mutex<State>
    /// The writer's alone.
    private let rest = Mutex<Rest>(Rest())

    /// - Parameters:
    ///   - mark: `ent` is whole up to this change.
    ///   - changesMax: changes after which their heads begin to be written; a group may add more at once. A start reads
    ///     so many rows of the log, and half as many again, where the table takes the heads.
    init(mark: GlobalID, changesMax: Int) {
        self.changesMax = max(changesMax, 1)
        let stretch = Stretch()
        state = Mutex(State(oldest: stretch, current: stretch, mark: mark))
    }

    /// `ent` is whole up to this change.
    var mark: GlobalID { state.withLock { $0.mark } }

    /// So many changes wait for their heads to be written that the table has not taken any for long.
    var isFarBehind: Bool {
        state.withLock { $0.current }.changes > Self.stretchesMax * changesMax
    }

    /// The heads that are here, an object's of several groups each counted, and the newest change among them.
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

    /// Where a reader's look begins: taken before its transaction does, it reaches all that this may miss in `ent`.
    var origin: Stretch { state.withLock { $0.oldest } }

    // MARK: Groups

    /// Adds the heads of a group that is about to be committed: a reader may see it from that moment on.
    /// - Parameter changes: those of the group.
    func publish(_ entities: [WriteBatch.EntityWrite], _ changes: Int) {
        guard !entities.isEmpty else { return }
        // The writer alone replaces it.
        let (oldest, current) = state.withLock { ($0.oldest, $0.current) }
        let isFull = oldest === current && current.changes >= changesMax
        (isFull ? rotate(current) : current).add(entities, changes)
    }

    /// Takes back what `publish` has added: the group was not committed.
    func unpublish(_ entities: [WriteBatch.EntityWrite], _ changes: Int) {
        guard !entities.isEmpty else { return }
        state.withLock { $0.current }.remove(entities, changes)
    }

    /// Begins the next stretch.
    private func rotate(_ current: Stretch) -> Stretch {
        let fresh = Stretch()
        current.lead(to: fresh)
        rest.withLock { $0 = Rest(buckets: current.buckets.sorted()[...]) }
        state.withLock { $0.current = fresh }
        return fresh
    }

    // MARK: Into the table

    /// Heads to be written into `ent` together.
    struct Slice {
        var heads = [WriteBatch.EntityWrite]()
        /// `ent` is whole up to this change with them; nil when more have to be written first.
        var mark: GlobalID?
        /// These are all heads that there are.
        fileprivate var isAll = false
    }

    /// The next heads of a stretch that is full, at most `limit`. The same again until they were `written`.
    /// - Parameter always: a stretch that is not full is taken, too.
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

    /// All heads, in the order of the table.
    func whole() -> Slice {
        let origin = self.origin
        let (count, through) = all
        guard count > 0 else { return Slice() }
        let view = View(origin: origin, upTo: .max)
        var heads = [WriteBatch.EntityWrite]()
        for bucket in view.buckets.sorted() { heads += Self.sorted(view.heads(of: bucket).values, bucket) }
        return Slice(heads: heads, mark: through, isAll: true)
    }

    /// The slice stands in the table, durably.
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
        // What is over is let go of after the lock: it is thousands of small things.
        let over = state.withLock { state in
            let over = state.oldest
            if let fresh { state.current = fresh }
            state.oldest = state.current
            state.mark = max(state.mark, mark)
            return over
        }
        _ = over
    }

    /// Heads of buckets that are being erased, and are nobody's: a start finds what is left of them in the log, and
    /// they are forgotten again with the next step.
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
