import ThicketProtocol
import ThicketTreeShape

/// One bucket in the shard's memory: its newest head (which may not be durable yet), its ccids, and the objects in use.
final class ActiveBucket: RecencyNode {
    let id: BucketID
    /// The cache of its user's objects.
    let owner: UserObjects
    /// The bucket's tag, which is part of its cvs.
    let tag: UInt32
    /// Row, head, floor and mode; nil while the bucket has no row (its first change, or the choice of its mode, makes
    /// the row).
    var record: BucketRecord?
    /// True from the first change until that change is durable.
    var isNew = false
    /// Ccids of all changes above `archived`, by keyed hash. The log row confirms or refutes a match.
    private(set) var changeIDs = [UInt64: GlobalID]()
    /// The store looks up ccids of changes up to this position.
    private var archived: GlobalID = 0
    /// Objects in memory.
    private(set) var entities = [EntityKey: ActiveEntity]()
    /// From the bucket's row; without a row, the mode that an operator set for new buckets.
    private(set) var mode: BucketMode
    /// Bound on the number of its objects; nil: unlimited.
    var capacity: BucketCapacity?
    /// The open group's changes to the places of nodes; empty in buckets that are not trees.
    private(set) var tree: ActiveTree
    /// The open group's batches, with their answers.
    private(set) var batches = [BatchID: BatchAnswer]()
    /// The policy of the owner's inbox, if it was needed.
    var policy: InboxPolicy?
    /// Number of notes, including the changes of the open group; nil where notes are not limited.
    var noteCount: Int?
    /// Whether the bucket has the name of encrypted notes. The rule of the app is read with each change.
    let mayHoldNotes: Bool
    /// Whether the bucket holds the options of its app's other buckets.
    let isOptions: Bool
    /// Whether `entities` contains every object that the bucket ever had: the bucket was created in this memory, and no
    /// object was dropped. A key that is missing then never existed.
    private(set) var hasAllEntities: Bool
    /// Large objects that are not in memory: reading one takes long.
    private(set) var large = Set<EntityKey>()
    /// Index among the open group's buckets; nil when the group does not touch the bucket.
    var groupIndex: Int?

    init(
        id: BucketID, owner: UserObjects, tag: UInt32, record: BucketRecord?, mode: BucketMode,
        changeIDs: ChangeIDTail?, shared: Set<NodeID> = []
    ) {
        tree = ActiveTree(shared: shared)
        self.mode = mode
        self.id = id
        self.owner = owner
        self.tag = tag
        self.record = record
        hasAllEntities = record == nil
        isOptions = BucketOptions.isBucket(id.name)
        mayHoldNotes = NoteRule.isBucket(id.name)
        super.init()
        guard let changeIDs else { return }
        archived = changeIDs.archived
        self.changeIDs.reserveCapacity(changeIDs.entries.count)
        for entry in changeIDs.entries { self.changeIDs[entry.hash] = entry.gid }
    }

    /// Records where the open group has placed nodes.
    func write(_ tree: ActiveTree) { self.tree = tree }

    /// A single change was decided.
    func write(_ node: NodeID, at place: NodePlace?) { tree.write(node, at: place, isShared: false) }

    /// Messages of a sender were decided.
    func deliver(_ count: Int, from sender: UserID) { tree.deliver(count, from: sender) }

    /// A batch was decided.
    func record(_ answer: BatchAnswer) { batches[answer.batch] = answer }

    /// The open group is durable: the store has what it changed in the tree.
    func forgetTree() {
        if !tree.isEmpty { tree.removeAll() }
        if !batches.isEmpty { batches = [:] }
    }

    /// Must be called before the first change.
    func choose(_ mode: BucketMode) {
        self.mode = mode
        record?.mode = mode
    }

    func add(_ entity: ActiveEntity) {
        entities[entity.key] = entity
        if !large.isEmpty { large.remove(entity.key) }
    }

    /// Maximum number of large keys that are remembered; further large objects are read on the shard's thread.
    private static let largeMax = 1_024

    /// Drops a large object from memory and remembers that it is large.
    func dropLarge(_ key: EntityKey) {
        drop(key)
        if large.count < Self.largeMax { large.insert(key) }
    }

    func drop(_ key: EntityKey) {
        hasAllEntities = false
        entities[key] = nil
    }

    func dropEntities() {
        hasAllEntities = false
        entities = [:]
    }

    /// Newest change; 0 when there is none.
    var head: GlobalID { record?.head ?? 0 }

    /// Approximate bytes in memory, without the objects.
    var memory: Int { 1_000 + 40 * changeIDs.count + 200 * large.count + (capacity?.memory ?? 0) }

    /// Result of a look-up in the set of ccids.
    enum Sighting: Equatable {
        case new
        /// Known; retention has cut the row, so the hash alone decides.
        case known
        /// Known if the row `gid` has this ccid.
        case perhaps(GlobalID)
        /// Not among the newest ccids; the store has the older ones.
        case notInTail
    }

    func sighting(ofHash hash: UInt64) -> Sighting {
        let floor = record?.floor ?? 0
        guard let gid = changeIDs[hash] else { return archived > 0 || floor > 0 ? .notInTail : .new }
        return gid <= floor ? .known : .perhaps(gid)
    }

    /// Applies the marks of the bucket that background work has moved.
    /// - Parameter run: the archived ccids; if given, only these entries are visited instead of the whole set.
    func apply(_ move: BucketMove, by run: MaintenanceBatch.ChangeIDRun? = nil) {
        record?.floor = move.floor
        guard move.archived > archived else { return }
        defer { archived = move.archived }
        guard let run, run.archivedBefore == archived, run.archived == move.archived,
            let block = try? ChangeIDBlock(run.block), Int64(block.count) == run.count
        else {
            changeIDs = changeIDs.filter { $0.value > move.archived }
            return
        }
        for entry in block.entries where changeIDs[entry.hash] ?? .max <= move.archived {
            changeIDs[entry.hash] = nil
        }
    }

    func recordChangeID(hash: UInt64, gid: GlobalID) { changeIDs[hash] = gid }

    /// The oldest ccids in memory as one block, if there are enough of them.
    /// - Parameters:
    ///   - length: minimum number in a block; at most twice as many are taken.
    ///   - first: the first change that is not durable yet; ccids from there on stay in memory.
    func run(of length: Int, before first: GlobalID) -> MaintenanceBatch.ChangeIDRun? {
        guard changeIDs.count >= length, let row = record?.row else { return nil }
        var entries = [ChangeIDEntry]()
        entries.reserveCapacity(changeIDs.count)
        for (hash, gid) in changeIDs where gid < first {
            entries.append(ChangeIDEntry(hash: hash, gid: gid))
        }
        guard entries.count >= length else { return nil }
        if entries.count > 2 * length {
            entries.sort { $0.gid < $1.gid }
            entries.removeLast(entries.count - length)
        }
        let newest = entries.reduce(0) { max($0, $1.gid) }
        return MaintenanceBatch.ChangeIDRun(
            bucket: row, archivedBefore: archived, archived: newest,
            block: ChangeIDBlock(sorted: entries.sorted { $0.hash < $1.hash }).bytes, count: Int64(entries.count))
    }
}
