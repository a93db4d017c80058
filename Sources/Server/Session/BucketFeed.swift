import ThicketProtocol

/// The loop's state of one bucket: its published position, its newest changes in encoded form, and its subscribers.
///
/// Owned by the hub. Exists while a channel is open on the bucket or waits for it to be opened.
final class BucketFeed {
    /// A change in the form in which every receiver gets it.
    struct Entry {
        let gid: GlobalID
        let key: EntityKey
        let isRemoval: Bool
        let element: [UInt8]
        /// How members of shared branches get it; nil for a change outside of them.
        var branch: BranchDelivery?

        var bytes: Int { element.count + (branch?.bytes ?? 0) }
    }

    let bucket: BucketID
    /// The bucket's tag inside a cv.
    let tag: UInt32
    /// False while a reader looks the bucket up; outcomes that arrive in that time are kept in the tail.
    private(set) var isOpen = false
    /// The bucket's row; nil while it has no change.
    private(set) var row: BucketRow?
    /// The identity computed last, with the row it belongs to.
    private var known: (row: BucketRow, text: String)?
    /// Newest change that clients may know of. Reads go up to it; changes above it are sent as broadcasts.
    private(set) var published: GlobalID = 0
    /// Channels that wait for the bucket to be opened, in order.
    var waiters = [Channel]()
    /// Channels that wait until the bucket has its mode or the shard reports that it cannot be written.
    var choosing = [Channel]()
    /// Channels of members whose rights are being looked up.
    var joining = [Channel]()
    /// The bucket's mode, as last reported to the loop.
    var mode = BucketMode.open
    /// Channels on the bucket. `Channel.place` is the index here.
    private(set) var subscribers = [Channel]()
    /// How many of them are of members of shared branches.
    private(set) var members = 0

    /// The newest changes, oldest first: all above `tailFloor`.
    private var tail = [Entry]()
    /// Entries at the front of `tail` that are removed already; they are cut off now and then.
    private var tailStart = 0
    private(set) var tailFloor: GlobalID = 0
    private(set) var tailBytes = 0

    init(bucket: BucketID, tag: UInt32) {
        self.bucket = bucket
        self.tag = tag
    }

    /// Takes a reader's view of the bucket. Commits that the reader did not see arrive as outcomes, earlier or later.
    func open(_ record: BucketRecord?, mode: BucketMode) {
        let seen = record?.head ?? 0
        self.mode = mode
        // A row without a change only carries the bucket's mode.
        if seen > 0 { row = record?.row ?? row }
        while tailStart < tail.count && tail[tailStart].gid <= seen { dropOldest() }
        tailFloor = max(tailFloor, seen)
        published = max(seen, tailFloor, tail.last?.gid ?? 0)
        isOpen = true
    }

    /// `ChangeVersionCodec.identity`; nil while the bucket has no row. Computed once for each row.
    func identity(_ codec: ChangeVersionCodec) -> String? {
        guard let row else { return nil }
        if let known, known.row == row { return known.text }
        let text = codec.identity(of: bucket, row: row)
        known = (row, text)
        return text
    }

    /// Takes what one commit group changed in the bucket.
    ///
    /// - Returns: the entries not yet sent to subscribers; empty while the bucket is not open.
    func publish(_ outcome: BucketOutcome, limits: ServerLimits) -> [Entry] {
        if let row = outcome.row { self.row = row }
        var fresh = [Entry]()
        let before = published
        for case .applied(let applied) in outcome.events where applied.gid > before {
            let entry = Entry(
                gid: applied.gid, key: applied.key, isRemoval: applied.isRemoval, element: applied.element,
                branch: applied.branch)
            fresh.append(entry)
            tail.append(entry)
            tailBytes += entry.bytes
        }
        defer { trim(limits) }
        guard isOpen else { return [] }
        published = max(before, fresh.last?.gid ?? 0)
        return fresh
    }

    /// Frees the memory of the tail; an older `cv` is then answered from disk.
    func dropTail() {
        tailFloor = max(tailFloor, tail.last?.gid ?? 0)
        tail = []
        tailStart = 0
        tailBytes = 0
    }

    /// All changes above `gid`, oldest first; nil when `gid` is older than the tail.
    func tail(after gid: GlobalID) -> ArraySlice<Entry>? {
        guard gid >= tailFloor else { return nil }
        var low = tailStart
        var high = tail.count
        while low < high {
            let middle = (low + high) / 2
            if tail[middle].gid <= gid { low = middle + 1 } else { high = middle }
        }
        return tail[low...]
    }

    /// Channels that are on the bucket or wait to be.
    var channelCount: Int { subscribers.count + waiters.count + choosing.count + joining.count }

    func add(_ channel: Channel) {
        channel.place = subscribers.count
        if channel.isMember { members += 1 }
        subscribers.append(channel)
    }

    func remove(_ channel: Channel) {
        guard channel.place < subscribers.count, subscribers[channel.place] === channel else { return }
        if channel.isMember { members -= 1 }
        let last = subscribers.removeLast()
        guard last !== channel else { return }
        last.place = channel.place
        subscribers[last.place] = last
    }

    private func trim(_ limits: ServerLimits) {
        while tail.count - tailStart > limits.tailChangesMax || tailBytes > limits.tailBytesMax {
            tailFloor = tail[tailStart].gid
            dropOldest()
        }
        guard tailStart > 64 && tailStart * 2 > tail.count else { return }
        tail.removeFirst(tailStart)
        tailStart = 0
    }

    private func dropOldest() {
        let oldest = tail[tailStart]
        tailBytes -= oldest.bytes
        tail[tailStart] = Entry(gid: oldest.gid, key: oldest.key, isRemoval: oldest.isRemoval, element: [])
        tailStart += 1
    }
}
