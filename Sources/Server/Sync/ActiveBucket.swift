import ThicketProtocol

/// One bucket in the shard's memory: its newest, possibly not yet durable head, its ccids, and the objects in use.
final class ActiveBucket: RecencyNode {
    let id: BucketID
    /// Its user's objects in memory.
    let owner: UserObjects
    /// The tag of its cvs.
    let tag: UInt32
    /// Head and floor; nil row until the first change is decided.
    var record: BucketRecord?
    /// True from the first change until it is durable.
    var isNew = false
    /// Ccids of the newest changes by keyed hash: all above `settled`. The row tells whether a hit is real.
    private(set) var changeIDs = [UInt64: GlobalID]()
    /// Ccids of changes up to here the store looks up.
    private var settled: GlobalID = 0
    /// Objects in use.
    private(set) var entities = [EntityKey: ActiveEntity]()
    /// Who may know what stands in it: as its row says, or an operator of those that have none yet.
    private(set) var mode: BucketMode
    /// How many objects it may have; nil: as many as come.
    var room: BucketRoom?
    /// Notes in it, with what the open group has made and removed; nil where nobody counts them.
    var noteCount: Int?
    /// Its name is that of encrypted notes: what that means in its app is asked for with each change.
    let mayHoldNotes: Bool
    /// It holds the options of the others of its app.
    let isOptions: Bool
    /// Every object that the bucket ever had is among `entities`: the bucket began in this memory, and nothing of it
    /// was dropped. A key that is not there has never been.
    private(set) var hasAllEntities: Bool
    /// Objects that are large and not in memory: it takes long to read them.
    private(set) var large = Set<EntityKey>()
    /// Place among the open group's buckets; nil when the group does not touch it.
    var groupIndex: Int?

    init(
        id: BucketID, owner: UserObjects, tag: UInt32, record: BucketRecord?, mode: BucketMode,
        changeIDs: ChangeIDTail?
    ) {
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
        settled = changeIDs.settled
        self.changeIDs.reserveCapacity(changeIDs.entries.count)
        for entry in changeIDs.entries { self.changeIDs[entry.hash] = entry.gid }
    }

    /// Before its first change.
    func seal() { mode = .sealed }

    func add(_ entity: ActiveEntity) {
        entities[entity.key] = entity
        if !large.isEmpty { large.remove(entity.key) }
    }

    /// Keys of large objects that are remembered; of more, some are read where changes are decided.
    private static let largeMax = 1_024

    /// The object leaves the memory, and is large.
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

    /// Newest change, 0 when there is none.
    var head: GlobalID { record?.head ?? 0 }

    /// Bytes held apart from the objects, roughly.
    var memory: Int { 1_000 + 40 * changeIDs.count + 200 * large.count + (room?.memory ?? 0) }

    /// What the set says about a ccid.
    enum Sighting: Equatable {
        case new
        /// Retention has cut the row: the hash alone decides.
        case known
        /// The row `gid` tells.
        case perhaps(GlobalID)
        /// It is not among the newest: the store knows the older ones.
        case notInTail
    }

    func sighting(ofHash hash: UInt64) -> Sighting {
        let floor = record?.floor ?? 0
        guard let gid = changeIDs[hash] else { return settled > 0 || floor > 0 ? .notInTail : .new }
        return gid <= floor ? .known : .perhaps(gid)
    }

    /// Background work has moved the bucket's marks.
    /// - Parameter run: the ccids that it settled: of many in memory only those are looked at.
    func take(_ move: BucketMove, by run: MaintenanceBatch.ChangeIDRun? = nil) {
        record?.floor = move.floor
        guard move.settled > settled else { return }
        defer { settled = move.settled }
        guard let run, run.settledBefore == settled, run.settled == move.settled,
            let block = try? ChangeIDBlock(run.block), Int64(block.count) == run.count
        else {
            changeIDs = changeIDs.filter { $0.value > move.settled }
            return
        }
        for entry in block.entries where changeIDs[entry.hash] ?? .max <= move.settled {
            changeIDs[entry.hash] = nil
        }
    }

    func noteChangeID(hash: UInt64, gid: GlobalID) { changeIDs[hash] = gid }

    /// The oldest ccids in memory as one block, when there are enough of them.
    /// - Parameters:
    ///   - length: how many make a block; up to twice as many are taken.
    ///   - first: the first change that is not durable yet: those from there on stay.
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
            bucket: row, settledBefore: settled, settled: newest,
            block: ChangeIDBlock(sorted: entries.sorted { $0.hash < $1.hash }).bytes, count: Int64(entries.count))
    }
}
