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
    var isNew: Bool = false
    /// Ccids of the newest changes by keyed hash: all above `settled`. The row tells whether a hit is real.
    private(set) var changeIDs: [UInt64: GlobalID] = [:]
    /// Ccids of changes up to here the store looks up.
    private var settled: GlobalID = 0
    /// Objects in use.
    private(set) var entities: [EntityKey: ActiveEntity] = [:]
    /// How many objects it may have; nil: as many as come.
    var room: BucketRoom?
    /// It holds the options of the others of its app.
    let isOptions: Bool
    /// Every object that the bucket ever had is among `entities`: the bucket began in this memory, and nothing of it was
    /// dropped. A key that is not there has never been.
    private(set) var hasAllEntities: Bool
    /// Place among the open group's buckets; nil when the group does not touch it.
    var groupIndex: Int?

    init(id: BucketID, owner: UserObjects, tag: UInt32, record: BucketRecord?, changeIDs: ChangeIDTail?) {
        self.id = id
        self.owner = owner
        self.tag = tag
        self.record = record
        hasAllEntities = record == nil
        isOptions = BucketOptions.isBucket(id.name)
        super.init()
        guard let changeIDs: ChangeIDTail else { return }
        settled = changeIDs.settled
        self.changeIDs.reserveCapacity(changeIDs.entries.count)
        for entry: ChangeIDEntry in changeIDs.entries { self.changeIDs[entry.hash] = entry.gid }
    }

    func add(_ entity: ActiveEntity) { entities[entity.key] = entity }

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
    var memory: Int { 1_000 + 40 * changeIDs.count + (room?.memory ?? 0) }

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
        let floor: GlobalID = record?.floor ?? 0
        guard let gid: GlobalID = changeIDs[hash] else { return settled > 0 || floor > 0 ? .notInTail : .new }
        return gid <= floor ? .known : .perhaps(gid)
    }

    /// Background work has moved the bucket's marks.
    /// - Parameter run: the ccids that it settled: of many in memory only those are looked at.
    func take(_ move: BucketMove, by run: MaintenanceBatch.ChangeIDRun? = nil) {
        record?.floor = move.floor
        guard move.settled > settled else { return }
        defer { settled = move.settled }
        guard let run, run.settledBefore == settled, run.settled == move.settled,
            let block: ChangeIDBlock = try? ChangeIDBlock(run.block), Int64(block.count) == run.count
        else {
            changeIDs = changeIDs.filter { $0.value > move.settled }
            return
        }
        for entry: ChangeIDEntry in block.entries where changeIDs[entry.hash] ?? .max <= move.settled {
            changeIDs[entry.hash] = nil
        }
    }

    func noteChangeID(hash: UInt64, gid: GlobalID) { changeIDs[hash] = gid }

    /// The oldest ccids in memory as one block, when there are enough of them.
    /// - Parameters:
    ///   - length: how many make a block; up to twice as many are taken.
    ///   - first: the first change that is not durable yet: those from there on stay.
    func run(of length: Int, before first: GlobalID) -> MaintenanceBatch.ChangeIDRun? {
        guard changeIDs.count >= length, let row: BucketRow = record?.row else { return nil }
        var entries: [ChangeIDEntry] = []
        entries.reserveCapacity(changeIDs.count)
        for (hash, gid): (UInt64, GlobalID) in changeIDs where gid < first {
            entries.append(ChangeIDEntry(hash: hash, gid: gid))
        }
        guard entries.count >= length else { return nil }
        if entries.count > 2 * length {
            entries.sort { $0.gid < $1.gid }
            entries.removeLast(entries.count - length)
        }
        let newest: GlobalID = entries.reduce(0) { max($0, $1.gid) }
        return MaintenanceBatch.ChangeIDRun(
            bucket: row, settledBefore: settled, settled: newest,
            block: ChangeIDBlock(sorted: entries.sorted { $0.hash < $1.hash }).bytes, count: Int64(entries.count))
    }
}
