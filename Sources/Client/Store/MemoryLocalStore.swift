package import ThicketProtocol

/// Keeps everything in memory, for tests and for clients that need no persistence.
package final class MemoryLocalStore: LocalStore {
    private var identity: ClientID?
    private var namedValues = [String: String]()
    private var bucketRecords = [BucketName: BucketRecord]()
    private var entities = [BucketName: [EntityKey: EntityRecord]]()
    private var undelivered = [BucketName: [Int: BucketEvent]]()
    /// For tests: the next commit fails and changes nothing.
    package var failsNextCommit = false
    /// For tests: this many commits succeed, and the next one fails; nil: none fails, or it has failed already.
    package var commitsUntilFailure: Int?
    /// Number of commits, and of those that had to reach the disk.
    package private(set) var commits = 0
    package private(set) var commitsOnDisk = 0

    /// How often all undelivered events of a bucket were read.
    package private(set) var undeliveredReads = 0

    /// The object writes of the last commit.
    package private(set) var newest = [EntityWrite]()
    /// Stores the result of a batch's steps where it has any, as a file store does, and checks that they lead to the
    /// record.
    private let replaysSteps: Bool

    package init(replaysSteps: Bool = false) { self.replaysSteps = replaysSteps }

    package func clientID(fresh: ClientID) -> ClientID {
        if let identity { return identity }
        identity = fresh
        return fresh
    }
    package func namedValue(_ name: String) -> String? { namedValues[name] }
    package func setNamedValue(_ name: String, to value: String) { namedValues[name] = value }

    package func buckets() -> [BucketRecord] { bucketRecords.values.sorted { $0.name < $1.name } }
    package func entity(_ address: EntityAddress) -> EntityRecord? { entities[address.bucket]?[address.key] }
    package func known(_ bucket: BucketName, among keys: [EntityKey]) -> Set<EntityKey> {
        Set(keys.filter { entities[bucket]?[$0] != nil })
    }

    package func liveKeys(_ bucket: BucketName, after: EntityKey?, limit: Int) -> [EntityKey] {
        let keys = keys(bucket) { $0.isLive }
        guard let after else { return Array(keys.prefix(limit)) }
        return Array(keys.drop { !(after < $0) }.prefix(limit))
    }
    package func liveNames(_ bucket: BucketName, after: String?, limit: Int) -> [String] {
        let names = (entities[bucket] ?? [:]).values.compactMap { $0.isLive ? $0.name : nil }
        let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        guard let after else { return Array(sorted.prefix(limit)) }
        return Array(sorted.drop { !after.utf8.lexicographicallyPrecedes($0.utf8) }.prefix(limit))
    }
    package func edited(_ bucket: BucketName) -> [EditedKey] {
        keys(bucket) { !$0.edits.isEmpty }.compactMap { key in
            entities[bucket]?[key].map { EditedKey(key, $0.edits) }
        }
    }
    package func keysHeld(_ bucket: BucketName) -> [EntityKey] { keys(bucket) { $0.edits.held != nil } }
    package func keysUnseen(_ bucket: BucketName, scanID: Int64) -> [EntityKey] {
        keys(bucket) { $0.ghost.object != nil && $0.scanID != scanID }
    }
    package func versions(_ bucket: BucketName, limit: Int) -> [(key: EntityKey, version: Version)] {
        keys(bucket) { $0.ghost.object != nil }.prefix(limit).map { ($0, entities[bucket]?[$0]?.ghost.version ?? 0) }
    }
    package func undelivered(_ bucket: BucketName) -> [BucketEvent] {
        undeliveredReads += 1
        return (undelivered[bucket] ?? [:]).sorted { $0.key < $1.key }.map(\.value)
    }

    package func commit(_ batch: LocalBatch) throws(ClientError) {
        if failsNextCommit || commitsUntilFailure == 0 {
            (failsNextCommit, commitsUntilFailure) = (false, nil)
            throw ClientError(.store, "a failure ordered by a test")
        }
        commits += 1
        commitsUntilFailure = commitsUntilFailure.map { $0 - 1 }
        newest = batch.entities
        if batch.isOnDisk { commitsOnDisk += 1 }
        for record in batch.buckets { bucketRecords[record.name] = record }
        for bucket in batch.delivered { undelivered[bucket] = nil }
        for write in batch.undelivered { undelivered[write.bucket, default: [:]][write.place] = write.event }
        for bucket in batch.forgottenRemovals {
            for (key, record) in entities[bucket] ?? [:] where record.ghost.object == nil {
                entities[bucket]?[key]?.ghost.version = 0
            }
        }
        for object in batch.arrivals {
            assert(entities[object.address.bucket]?[object.address.key] == nil, "a new object is known")
            entities[object.address.bucket, default: [:]][object.address.key] = try object.record()
        }
        for write in batch.entities {
            var kept = entities[write.address.bucket]?[write.address.key] ?? EntityRecord()
            let record = replayed(write, kept) ?? write.record
            if write.parts.contains(.marks) {
                (kept.isLive, kept.scanID, kept.name) = (record.isLive, record.scanID, record.name)
            }
            if write.parts.contains(.ghost) { kept.ghost = record.ghost }
            if write.parts.contains(.edits) { kept.edits = record.edits }
            entities[write.address.bucket, default: [:]][write.address.key] = kept
        }
    }

    private func replayed(_ write: EntityWrite, _ kept: EntityRecord) -> EntityRecord? {
        guard replaysSteps, write.ghostSteps != nil || write.laterSteps != nil else { return nil }
        var result = write.record
        do {
            if let steps = write.ghostSteps { result.ghost = try kept.ghost.after(steps) }
            if let steps = write.laterSteps { result.edits = try kept.edits.after(steps) }
        } catch {
            assertionFailure("steps do not fit what is kept: \(error)")
        }
        assert(result == write.record, "steps do not lead to the record")
        return result
    }

    package func close() {}

    private func keys(_ bucket: BucketName, where admits: (EntityRecord) -> Bool) -> [EntityKey] {
        (entities[bucket] ?? [:]).filter { admits($0.value) }.keys.sorted()
    }
}
