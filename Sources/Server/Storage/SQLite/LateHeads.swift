import Glibc
import Synchronization
import ThicketProtocol

/// The newest heads of objects that the log has and `ent` not yet (decision 0075).
///
/// A group writes its log alone; the heads it leads to are put here before it commits, and go into `ent` many at once and in
/// order, with later groups. `meta` says up to which change `ent` is whole (`Meta.heads`); what lies beyond is in the log, so a
/// start reads it from there.
///
/// The writer changes this; readers of all threads look things up. A reader sees the state of the store that its transaction
/// has: heads of later changes are passed over.
final class LateHeads: Sendable {
    private struct State {
        /// The stretch whose heads go into `ent`, or `current` when there is none.
        var oldest: Stretch
        var current: Stretch
        /// `ent` is whole up to this change.
        var mark: GlobalID
        /// Heads of `oldest` that are still to be written: those of its buckets that come later, and those that come next.
        var bucketsLeft: ArraySlice<BucketRow> = []
        var next: ArraySlice<WriteBatch.EntityWrite> = []
    }

    /// Heads that a slice writes for each change of the group that takes it along: a stretch is written before the next is full.
    static let headsPerChange: Int = 2

    /// Heads of groups in a stretch.
    private let countMax: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - mark: `ent` is whole up to this change.
    ///   - countMax: heads after which they begin to be written; a group may add more at once.
    init(mark: GlobalID, countMax: Int) {
        self.countMax = max(countMax, 1)
        let stretch: Stretch = .init()
        state = Mutex(State(oldest: stretch, current: stretch, mark: mark))
    }

    /// `ent` is whole up to this change.
    var mark: GlobalID { state.withLock { $0.mark } }

    /// The heads that are here, an object's of several groups each counted.
    var count: Int { all.count }

    /// Everything that is here, and the newest change that is.
    var all: (count: Int, through: GlobalID) {
        let origin: Stretch = self.origin
        var (count, through): (Int, GlobalID) = (0, 0)
        var stretch: Stretch? = origin
        while let each: Stretch = stretch {
            let (own, last, next): (Int, GlobalID, Stretch?) = each.measure
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
    func publish(_ entities: [WriteBatch.EntityWrite]) {
        guard !entities.isEmpty else { return }
        state.withLock { state in
            if state.oldest === state.current, state.current.measure.count >= countMax { Self.rotate(&state) }
            state.current.add(entities)
        }
    }

    /// Takes back what `publish` has added: the group was not committed.
    func unpublish(_ entities: [WriteBatch.EntityWrite]) {
        guard !entities.isEmpty else { return }
        state.withLock { $0.current.remove(entities) }
    }

    // MARK: Into the table

    /// Heads to be written into `ent` together.
    struct Slice {
        var heads: [WriteBatch.EntityWrite] = []
        /// `ent` is whole up to this change with them; nil when more have to be written first.
        var mark: GlobalID?
        /// These are all heads that there are.
        fileprivate var isAll: Bool = false

        var isEmpty: Bool { heads.isEmpty && mark == nil }
    }

    /// The next heads of a stretch that is full, at most `limit`. The same again until they were `written`.
    /// - Parameter always: a stretch that is not full is taken, too.
    func slice(limit: Int, always: Bool = false) -> Slice {
        state.withLock { state in
            if always, state.oldest === state.current, state.current.measure.count > 0 { Self.rotate(&state) }
            guard state.oldest !== state.current else { return Slice() }
            while state.next.count < limit, let bucket: BucketRow = state.bucketsLeft.popFirst() {
                state.next += state.oldest.heads(of: bucket)
            }
            let heads: ArraySlice<WriteBatch.EntityWrite> = state.next.prefix(limit)
            let isLast: Bool = heads.count == state.next.count && state.bucketsLeft.isEmpty
            return Slice(heads: Array(heads), mark: isLast ? state.oldest.measure.through : nil)
        }
    }

    /// All heads, in the order of the table.
    func whole() -> Slice {
        let origin: Stretch = self.origin
        let (count, through): (Int, GlobalID) = all
        guard count > 0 else { return Slice() }
        let view: View = .init(origin: origin, upTo: .max)
        var heads: [WriteBatch.EntityWrite] = []
        for bucket: BucketRow in view.buckets.sorted() { heads += Self.sorted(view.heads(of: bucket).values, bucket) }
        return Slice(heads: heads, mark: through, isAll: true)
    }

    /// The slice stands in the table, durably.
    func written(_ slice: Slice) {
        state.withLock { state in
            if slice.isAll {
                let fresh: Stretch = .init()
                state.current.lead(to: fresh)
                (state.oldest, state.current) = (fresh, fresh)
                (state.next, state.bucketsLeft) = ([], [])
            } else {
                state.next = state.next.dropFirst(slice.heads.count)
                if slice.mark != nil { state.oldest = state.current }
            }
            if let mark: GlobalID = slice.mark { state.mark = max(state.mark, mark) }
        }
    }

    private static func rotate(_ state: inout State) {
        let fresh: Stretch = .init()
        state.current.lead(to: fresh)
        state.bucketsLeft = state.current.buckets.sorted()[...]
        state.next = []
        state.current = fresh
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
                guard let first: UnsafePointer<UInt8> = left.baseAddress,
                    let second: UnsafePointer<UInt8> = right.baseAddress
                else { return left.count < right.count }
                let order: Int32 = memcmp(first, second, min(left.count, right.count))
                return order == 0 ? left.count < right.count : order < 0
            }
        }
    }
}
