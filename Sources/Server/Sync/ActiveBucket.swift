import ThicketProtocol

/// One bucket in the shard's memory: its newest, possibly not yet durable head, its ccids, and the objects in use.
final class ActiveBucket: RecencyNode {
    let id: BucketID
    /// The tag of its cvs.
    let tag: UInt32
    /// Head and floor; nil row until the first change is decided.
    var record: BucketRecord?
    /// True from the first change until it is durable.
    var isNew: Bool = false
    /// Every ccid of the retained log and what retention left, by keyed hash; the row tells whether a hit is real.
    private(set) var changeIDs: [UInt64: GlobalID]
    /// Objects in use.
    var entities: [EntityKey: ActiveEntity] = [:]
    /// Place among the open group's buckets; nil when the group does not touch it.
    var groupIndex: Int?

    init(id: BucketID, tag: UInt32, record: BucketRecord?, changeIDs: [ChangeIDEntry]) {
        self.id = id
        self.tag = tag
        self.record = record
        self.changeIDs = .init(minimumCapacity: changeIDs.count)
        super.init()
        for entry: ChangeIDEntry in changeIDs { self.changeIDs[entry.hash] = entry.gid }
    }

    /// Newest change, 0 when there is none.
    var head: GlobalID { record?.head ?? 0 }

    /// Bytes held apart from the objects, roughly.
    var memory: Int { 1_000 + 40 * changeIDs.count }

    /// What the set says about a ccid.
    enum Sighting: Equatable {
        case new
        /// Retention has cut the row: the hash alone decides.
        case known
        /// The row `gid` tells.
        case perhaps(GlobalID)
    }

    func sighting(ofHash hash: UInt64) -> Sighting {
        guard let gid: GlobalID = changeIDs[hash] else { return .new }
        return gid <= (record?.floor ?? 0) ? .known : .perhaps(gid)
    }

    func noteChangeID(hash: UInt64, gid: GlobalID) { changeIDs[hash] = gid }
}
