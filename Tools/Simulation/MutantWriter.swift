import ThicketProtocol
import ThicketServer
import ThicketTreeShape

/// A reader with a bug.
class MutantReader: StoreReader {
    private let inner: any StoreReader
    let mutation: Mutation

    init(_ inner: any StoreReader, _ mutation: Mutation) {
        self.inner = inner
        self.mutation = mutation
    }

    private var mutant: Mutant { mutation.mutant }
    final var identity: StoreIdentity { inner.identity }

    final func lastGlobalID() throws(StoreError) -> GlobalID { try inner.lastGlobalID() }
    func bucket(_ id: BucketID) throws(StoreError) -> BucketRecord? { try inner.bucket(id) }

    final func mode(ofNew name: BucketName, in app: AppID) throws(StoreError) -> BucketMode {
        try inner.mode(ofNew: name, in: app)
    }

    final func buckets(of app: AppID, user: UserID) throws(StoreError) -> [BucketRecord] {
        try inner.buckets(of: app, user: user)
    }

    final func buckets(afterRow row: BucketRow, limit: Int) throws(StoreError) -> [BucketRecord] {
        try inner.buckets(afterRow: row, limit: limit)
    }

    final func changes(
        ofAll name: BucketName, in app: AppID, after: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> WidePage {
        try inner.changes(ofAll: name, in: app, after: after, limit: limit, byteLimit: byteLimit)
    }

    final func floor(ofAll name: BucketName, in app: AppID) throws(StoreError) -> GlobalID {
        try inner.floor(ofAll: name, in: app)
    }

    final func name(of user: UserID, in app: AppID) throws(StoreError) -> UserID? {
        try inner.name(of: user, in: app)
    }

    final func entity(_ key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityRecord? {
        try inner.entity(key, in: bucket)
    }

    final func inboxPolicy(of owner: BucketID) throws(StoreError) -> InboxPolicy { try inner.inboxPolicy(of: owner) }

    final func listRoots(in bucket: BucketRow) throws(StoreError) -> Set<NodeID> { try inner.listRoots(in: bucket) }
    final func readers(of root: NodeID, in bucket: BucketRow) throws(StoreError) -> [UserID]? {
        try inner.readers(of: root, in: bucket)
    }
    final func children(
        of parent: NodeID, by user: UserID, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> [NodeID] { try inner.children(of: parent, by: user, in: bucket, limit: limit) }
    final func inboxCount(of sender: UserID, in bucket: BucketRow) throws(StoreError) -> InboxCount {
        try inner.inboxCount(of: sender, in: bucket)
    }

    final func usage(of owner: BucketID, in bucket: BucketRow) throws(StoreError) -> TreeUsage {
        try inner.usage(of: owner, in: bucket)
    }

    final func length(of blob: BlobID, by owner: BucketID, in bucket: BucketRow?) throws(StoreError) -> Int64? {
        try inner.length(of: blob, by: owner, in: bucket)
    }

    final func place(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> NodePlace? {
        let place = try inner.place(of: node, in: bucket)
        // Each node seems to be below a trunk.
        if mutant == .noCycleCheck, let place { return NodePlace(parent: .trunk(.home), tag: place.tag) }
        return place
    }

    final func node(at place: NodePlace, in bucket: BucketRow) throws(StoreError) -> NodeID? {
        if mutant == .noNameCheck { return nil }
        return try inner.node(at: place, in: bucket)
    }

    final func children(of parent: NodeParent, in bucket: BucketRow, limit: Int) throws(StoreError) -> [NodeID] {
        try inner.children(of: parent, in: bucket, limit: limit)
    }

    final func children(_ read: ChildRead, in bucket: BucketRow) throws(StoreError) -> [StoredChildren] {
        try inner.children(read, in: bucket)
    }

    final func burningNodes(at time: Int64, limit: Int) throws(StoreError) -> [BurningNode] {
        try inner.burningNodes(at: time, limit: limit)
    }

    final func batchAnswer(_ batch: BatchID, in bucket: BucketRow) throws(StoreError) -> BatchAnswer? {
        if mutant == .unstoredAnswer { return nil }
        return try inner.batchAnswer(batch, in: bucket)
    }

    final func batchAnswers(before time: Int64, limit: Int) throws(StoreError) -> [BatchPlace] {
        try inner.batchAnswers(before: time, limit: limit)
    }

    final func head(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityHead? {
        guard mutant == .staleHead, let head = try inner.head(of: key, in: bucket), head.body != nil,
            let old = try inner.body(
                of: key, version: head.record.version - 1, in: bucket, upTo: head.record.gid)
        else { return try inner.head(of: key, in: bucket) }
        return EntityHead(
            record: head.record, body: old, diffsSinceKeyframe: head.diffsSinceKeyframe,
            diffBytesSinceKeyframe: head.diffBytesSinceKeyframe)
    }

    final func body(
        of key: EntityKey, version: Version, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> [UInt8]? {
        try inner.body(of: key, version: version, in: bucket, upTo: upTo)
    }

    final func history(
        of key: EntityKey, after version: Version, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> EntityHistory? {
        let history = try inner.history(of: key, after: version, in: bucket, limit: limit)
        guard mutant == .rebaseMisplaces, let history, let newest = history.changes.last
        else { return history }
        return EntityHistory(base: history.base, changes: history.changes.dropLast() + [Self.misplaced(newest)])
    }

    /// The change with all its insertions into the text `t` at the beginning.
    private static func misplaced(_ row: ChangeRecord) -> ChangeRecord {
        guard let value = try? JSONValue(parsing: row.diff), let diff = try? ObjectDiff(value),
            case .text(let delta)? = diff["t"]
        else { return row }
        var (front, rest) = (TextDelta(), TextDelta())
        for operation in delta.operations {
            switch operation {
            case .insert(let units): front.insert(units)
            case .retain(let count): rest.retain(count)
            case .delete(let count): rest.delete(count)
            }
        }
        for operation in rest.operations {
            switch operation {
            case .insert(let units): front.insert(units)
            case .retain(let count): front.retain(count)
            case .delete(let count): front.delete(count)
            }
        }
        var writer = JSONWriter()
        ObjectDiff([(key: "t", operation: .text(front))]).write(to: &writer)
        return ChangeRecord(
            gid: row.gid, bucket: row.bucket, key: row.key, kind: row.kind, sourceVersion: row.sourceVersion,
            endVersion: row.endVersion, previousOfEntity: row.previousOfEntity, previousKeyframe: row.previousKeyframe,
            previousOfBucket: row.previousOfBucket, clientID: row.clientID, changeID: row.changeID,
            timestamp: row.timestamp, diff: writer.bytes, keyframe: row.keyframe)
    }

    final func liveKeys(in bucket: BucketRow, after key: EntityKey?, limit: Int) throws(StoreError) -> [EntityKey] {
        try inner.liveKeys(in: bucket, after: key, limit: limit)
    }

    final func removedHeads(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityRecord] {
        try inner.removedHeads(in: bucket, after: key, limit: limit)
    }

    final func link(_ gid: GlobalID) throws(StoreError) -> ChangeLink? { try inner.link(gid) }

    final func change(_ gid: GlobalID) throws(StoreError) -> ChangeRecord? { try inner.change(gid) }

    final func changes(
        in bucket: BucketRow, after: GlobalID, upTo: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> ChangePage? {
        let bound = mutant == .readsAhead ? .max : upTo
        let page = try inner.changes(
            in: bucket, after: after, upTo: bound, limit: limit, byteLimit: byteLimit)
        guard let page, let first = page.changes.first else { return page }
        if mutant == .catchUpSkipsOne, page.changes.count > 1 {
            return ChangePage(changes: Array(page.changes.dropFirst()), hasMore: page.hasMore)
        }
        if mutant == .catchUpRepeatsOne, let before = try inner.change(first.previousOfBucket) {
            return ChangePage(changes: [before] + page.changes, hasMore: page.hasMore)
        }
        return page
    }

    final func indexPage(_ query: IndexQuery) throws(StoreError) -> IndexSlice? {
        let slice = try inner.indexPage(query)
        guard mutant == .indexLeavesOut, let slice, slice.entries.count > 1 else { return slice }
        return IndexSlice(entries: slice.entries.dropLast(), next: slice.next, total: slice.total)
    }

    final func confirms(_ changeID: ChangeID, at gid: GlobalID) throws(StoreError) -> Bool {
        if mutant == .noDuplicateCheck { return false }
        return try inner.confirms(changeID, at: gid)
    }

    final func hasApp(_ app: AppID) throws(StoreError) -> Bool { try inner.hasApp(app) }
    final func isAdminKey(hash: [UInt8], of app: AppID) throws(StoreError) -> Bool {
        try inner.isAdminKey(hash: hash, of: app)
    }
    final func grant(tokenHash: [UInt8]) throws(StoreError) -> TokenGrant? {
        let grant = try inner.grant(tokenHash: tokenHash)
        guard mutant == .wrongGrant, let grant, mutation.strikes(oneIn: 5),
            let other = mutation.accounts.first(where: { $0.app == grant.app && $0.user != grant.user })
        else { return grant }
        return TokenGrant(app: other.app, user: other.user, isReadOnly: grant.isReadOnly)
    }
}

/// A writer with a bug.
final class MutantWriter: MutantReader, StoreWriter {
    private let inner: any StoreWriter

    init(_ inner: any StoreWriter, _ mutation: Mutation) {
        self.inner = inner
        super.init(inner, mutation)
    }

    func newBucketRow() -> BucketRow { inner.newBucketRow() }

    override func bucket(_ id: BucketID) throws(StoreError) -> BucketRecord? {
        var record = try super.bucket(id)
        if mutation.mutant == .acceptsClear { record?.mode = .open }
        return record
    }

    func changeIDTail(of bucket: BucketRow) throws(StoreError) -> ChangeIDTail { try inner.changeIDTail(of: bucket) }

    func archivedChange(hash: UInt64, in bucket: BucketRecord) throws(StoreError) -> GlobalID? {
        if mutation.mutant == .noDuplicateCheck { return nil }
        return try inner.archivedChange(hash: hash, in: bucket)
    }

    func liveCount(in bucket: BucketRow) throws(StoreError) -> Int { try inner.liveCount(in: bucket) }

    func leastRecent(in bucket: BucketRow, limit: Int) throws(StoreError) -> [LiveEntity] {
        try inner.leastRecent(in: bucket, limit: limit)
    }

    var changeIDRunLength: Int? { inner.changeIDRunLength }
    func beginReads() { inner.beginReads() }
    func endReads() { inner.endReads() }
    func refreshReads() { inner.refreshReads() }
    func beginCommit() -> Bool { inner.beginCommit() }

    func commit(_ batch: WriteBatch) throws(StoreError) {
        switch mutation.mutant {
        case .forgottenCommit:
            if !mutation.strikes(oneIn: 20) { try inner.commit(batch) }
        case .broadcastBeforeCommit:
            if let late = mutation.late { try inner.commit(late) }
            mutation.late = batch
        case .uncountedReference:
            var batch = batch
            batch.nodes = batch.nodes.map { node in
                WriteBatch.NodeWrite(
                    bucket: node.bucket, node: node.node,
                    row: node.row.map { row in
                        NodeRow(
                            place: row.place, gid: row.gid, changed: row.changed, burnTime: row.burnTime, blob: nil,
                            bytes: row.bytes)
                    })
            }
            try inner.commit(batch)
        default: try inner.commit(batch)
        }
    }

    func probe() throws(StoreError) { try inner.probe() }

    func apply(_ work: MaintenanceBatch) throws(StoreError) -> [BucketMove] { try inner.apply(work) }
}
