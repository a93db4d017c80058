import Synchronization
import ThicketProtocol
import ThicketTreeShape

/// Reads of a `MemoryStore`. Each call sees one state.
class MemoryReader: StoreReader {
    let store: MemoryStore
    let generation: Int
    private var scan: (query: IndexQuery, scan: IndexScan)?

    init(_ store: MemoryStore, generation: Int) {
        self.store = store
        self.generation = generation
    }

    final var identity: StoreIdentity { store.identity }

    final func state() throws(StoreError) -> MemoryState {
        let generation = generation
        let state = store.shared.withLock { $0.generation == generation ? $0.state : nil }
        guard let state else { throw StoreError(.closed, "the store has crashed") }
        return state
    }

    final func lastGlobalID() throws(StoreError) -> GlobalID {
        let state = try state()
        return max(state.changes.keys.max() ?? 0, state.buckets.values.map(\.head).max() ?? 0, state.erased)
    }

    final func bucket(_ id: BucketID) throws(StoreError) -> BucketRecord? {
        let state = try state()
        return state.rows[id].flatMap { state.buckets[$0] }
    }

    final func mode(ofNew name: BucketName, in app: AppID) throws(StoreError) -> BucketMode {
        try state().mode(ofNew: name, in: app)
    }

    final func buckets(of app: AppID, user: UserID) throws(StoreError) -> [BucketRecord] {
        try state().buckets.values.filter { $0.id.app == app && $0.id.user == user }.sorted { $0.row < $1.row }
    }

    final func buckets(afterRow row: BucketRow, limit: Int) throws(StoreError) -> [BucketRecord] {
        Array(try state().buckets.values.filter { $0.row > row }.sorted { $0.row < $1.row }.prefix(limit))
    }

    final func entity(_ key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityRecord? {
        try state().entityRecord(key, bucket)
    }

    final func head(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityHead? {
        try state().entityHead(key, bucket)
    }

    final func body(
        of key: EntityKey, version: Version, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> [UInt8]? {
        try state().bodyAt(key, version, bucket, upTo: upTo)
    }

    final func history(
        of key: EntityKey, after version: Version, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> EntityHistory? {
        try state().entityHistory(key, version, bucket, limit: limit)
    }

    final func liveKeys(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityKey] {
        let live = (try state().entities[bucket] ?? [:]).values.filter { !$0.isDeleted }.map(\.key)
        let later = live.filter { candidate in
            guard let key else { return true }
            return key.text.utf8.lexicographicallyPrecedes(candidate.text.utf8)
        }
        return Array(later.sorted { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }.prefix(limit))
    }

    final func place(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> NodePlace? {
        try state().nodes[bucket]?.rows[node]?.place
    }

    final func node(at place: NodePlace, in bucket: BucketRow) throws(StoreError) -> NodeID? {
        try state().nodes[bucket]?.node(at: place)
    }

    final func children(of parent: NodeParent, in bucket: BucketRow, limit: Int) throws(StoreError) -> [NodeID] {
        try state().nodes[bucket]?.children(of: parent, limit: limit) ?? []
    }

    final func children(_ read: ChildRead, in bucket: BucketRow) throws(StoreError) -> [StoredChildren] {
        try state().childLists(read, in: bucket)
    }

    final func burningNodes(at time: Int64, limit: Int) throws(StoreError) -> [BurningNode] {
        let state = try state()
        var burning = [(time: Int64, node: BurningNode)]()
        for (bucket, table) in state.nodes {
            guard let id = state.buckets[bucket]?.id else { continue }
            for (node, row) in table.rows {
                guard let burns = row.burnTime, burns <= time else { continue }
                burning.append((burns, BurningNode(bucket: id, node: node)))
            }
        }
        return burning.sorted { ($0.time, $0.node.node) < ($1.time, $1.node.node) }.prefix(limit).map(\.node)
    }

    final func batchAnswer(_ batch: BatchID, in bucket: BucketRow) throws(StoreError) -> BatchAnswer? {
        try state().answers[bucket]?[batch]
    }

    final func batchAnswers(before time: Int64, limit: Int) throws(StoreError) -> [BatchPlace] {
        let old = try state().answers.values.flatMap(\.values).filter { $0.time < time }
        return old.sorted { ($0.time, $0.batch) < ($1.time, $1.batch) }.prefix(limit).map {
            BatchPlace(bucket: $0.bucket, batch: $0.batch, bytes: $0.answer.count)
        }
    }

    final func inboxPolicy(of owner: BucketID) throws(StoreError) -> InboxPolicy {
        try state().policies[MemoryState.Owner(app: owner.app, user: owner.user)] ?? InboxPolicy()
    }

    final func listRoots(in bucket: BucketRow) throws(StoreError) -> Set<NodeID> {
        Set(try state().nodes[bucket]?.rows.filter { $0.value.readers != nil }.keys.map { $0 } ?? [])
    }

    final func readers(of root: NodeID, in bucket: BucketRow) throws(StoreError) -> [UserID]? {
        try state().nodes[bucket]?.rows[root]?.readers
    }

    final func children(
        of parent: NodeID, by user: UserID, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> [NodeID] {
        let rows = try state().nodes[bucket]?.rows ?? [:]
        let found = rows.filter { $0.value.place.parent == .node(parent) && $0.value.member == user }.keys
        return Array(found.sorted().prefix(limit))
    }

    final func inboxCount(of sender: UserID, in bucket: BucketRow) throws(StoreError) -> InboxCount {
        let senders = try state().nodes[bucket]?.rows.values.compactMap(\.sender) ?? []
        return InboxCount(all: senders.count, ofSender: senders.count { $0 == sender })
    }

    final func usage(of owner: BucketID, in bucket: BucketRow) throws(StoreError) -> TreeUsage {
        let state = try state()
        let rows = state.nodes[bucket]?.rows ?? [:]
        return TreeUsage(
            nodes: rows.count, bytes: rows.values.reduce(0) { $0 + Int64($1.bytes) },
            blobs: state.blobs.usage { $0 == owner.app && $1 == owner.user })
    }

    final func length(of blob: BlobID, by owner: BucketID, in bucket: BucketRow?) throws(StoreError) -> Int64? {
        let state = try state()
        guard let known = state.blobs.blobs[blob] else { return nil }
        if known.app == owner.app, known.user == owner.user { return known.length }
        return bucket.flatMap { state.nodes[$0] }?.refers(to: blob) == true ? known.length : nil
    }

    final func removedHeads(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityRecord] {
        let removed = (try state().entities[bucket] ?? [:]).values.filter { head in
            head.isDeleted && (key?.precedes(head.key) ?? true)
        }
        return Array(removed.sorted { $0.key.precedes($1.key) }.prefix(limit))
    }

    final func link(_ gid: GlobalID) throws(StoreError) -> ChangeLink? { try state().changeLink(gid) }

    final func change(_ gid: GlobalID) throws(StoreError) -> ChangeRecord? { try state().changeRecord(gid) }

    final func changes(
        in bucket: BucketRow, after: GlobalID, upTo: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> ChangePage? {
        let state = try state()
        guard let record = state.buckets[bucket], after >= record.floor, after <= record.head else {
            return nil
        }
        let gids = try state.logPositions(from: record.head, after: after, upTo: upTo)
        return try state.changePage(gids[...], limit: limit, byteLimit: byteLimit)
    }

    final func indexPage(_ query: IndexQuery) throws(StoreError) -> IndexSlice? {
        let state = try state()
        guard let record = state.buckets[query.bucket], query.current >= record.floor,
            query.current <= record.head
        else { return nil }
        if let known = scan, known.query.bucket == query.bucket, known.query.current == query.current {
            return try state.page(query, of: known.scan)
        }
        var builder = IndexScan.Builder()
        for entity in (state.entities[query.bucket] ?? [:]).values {
            guard let found = try state.listed(entity, at: query.current) else { continue }
            builder.add(key: entity.key.text.utf8, version: found.version, gid: found.gid)
        }
        let made = builder.scan()
        scan = (query, made)
        return try state.page(query, of: made)
    }

    final func changes(
        ofAll name: BucketName, in app: AppID, after: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> WidePage {
        let state = try state()
        let end = try lastGlobalID()
        var changes = [WideChange]()
        var bytes = 0
        for gid in state.changes.keys.filter({ $0 > after }).sorted() {
            guard let change = try state.changeRecord(gid),
                let id = state.buckets[change.bucket]?.id, id.app == app, id.name == name
            else { continue }
            guard changes.count < limit, bytes < byteLimit else {
                return WidePage(changes: changes, through: changes.last?.change.gid ?? after, isAtEnd: false)
            }
            bytes += change.diff.count
            changes.append(WideChange(change: change, user: id.user))
        }
        return WidePage(changes: changes, through: end, isAtEnd: true)
    }

    final func floor(ofAll name: BucketName, in app: AppID) throws(StoreError) -> GlobalID {
        try state().buckets.values.filter { $0.id.app == app && $0.id.name == name }.map(\.floor).max() ?? 0
    }

    final func name(of user: UserID, in app: AppID) throws(StoreError) -> UserID? { nil }

    final func confirms(_ changeID: ChangeID, at gid: GlobalID) throws(StoreError) -> Bool {
        try state().changes[gid]?.changeID == changeID
    }

    final func hasApp(_ app: AppID) throws(StoreError) -> Bool { try state().apps.contains(app) }

    final func grant(tokenHash: [UInt8]) throws(StoreError) -> TokenGrant? { try state().grants[tokenHash] }
    final func isAdminKey(hash: [UInt8], of app: AppID) throws(StoreError) -> Bool {
        try state().adminKeys[hash] == app
    }
}

extension MemoryReader: RetentionSource {
    final func withState<Result>(
        _ body: (any LogSource) throws(StoreError) -> Result
    ) throws(StoreError) -> Result { try body(try state()) }

    final func oldChangeIDs(
        in bucket: BucketRow, before: Int64, limit: Int
    ) throws(StoreError) -> [UInt64] {
        let old = try state().oldChangeIDs[bucket] ?? [:]
        return Array(old.filter { $0.value < before }.keys.sorted().prefix(limit))
    }

    final func keptVersions(
        of key: EntityKey, in bucket: BucketRow
    ) throws(StoreError) -> [(version: Version, bytes: Int)] {
        try state().keptBodies.filter { $0.key.bucket == bucket && $0.key.key == key }
            .map { ($0.key.version, $0.value.count) }.sorted { $0.0 < $1.0 }
    }
}

/// The writer of a `MemoryStore`.
final class MemoryWriter: MemoryReader, StoreWriter {
    func newBucketRow() -> BucketRow {
        store.shared.withLock {
            $0.lastRow += 1
            return $0.lastRow
        }
    }

    /// All ccids: this store archives none.
    func changeIDTail(of bucket: BucketRow) throws(StoreError) -> ChangeIDTail {
        let state = try state()
        var entries = (state.oldChangeIDs[bucket] ?? [:]).keys.map { ChangeIDEntry(hash: $0, gid: 0) }
        for change in state.changes.values where change.bucket == bucket {
            entries.append(ChangeIDEntry(hash: identity.hash(of: change.changeID), gid: change.gid))
        }
        return ChangeIDTail(entries: entries, archived: 0)
    }

    func liveCount(in bucket: BucketRow) throws(StoreError) -> Int {
        try (state().entities[bucket] ?? [:]).values.count { !$0.isDeleted }
    }

    func leastRecent(in bucket: BucketRow, limit: Int) throws(StoreError) -> [LiveEntity] {
        let live: [EntityRecord] = try (state().entities[bucket] ?? [:]).values.filter { !$0.isDeleted }
        return live.sorted { $0.gid < $1.gid }.prefix(limit).map { LiveEntity(key: $0.key, gid: $0.gid) }
    }

    func archivedChange(hash: UInt64, in bucket: BucketRecord) throws(StoreError) -> GlobalID? { nil }

    var changeIDRunLength: Int? { nil }

    func commit(_ batch: WriteBatch) throws(StoreError) {
        if batch.isEmpty { return }
        _ = try store.commit(generation: generation, changes: batch.count) {
            (state: inout MemoryState) throws(StoreError) in
            try state.write(batch)
            return []
        }
    }

    func probe() throws(StoreError) {
        _ = try store.commit(generation: generation, changes: 0) { (_: inout MemoryState) throws(StoreError) in [] }
    }

    func apply(_ work: MaintenanceBatch) throws(StoreError) -> [BucketMove] {
        if work.isEmpty { return [] }
        return try store.commit(generation: generation, changes: 0) { (state: inout MemoryState) throws(StoreError) in
            state.write(work)
        }
    }
}
