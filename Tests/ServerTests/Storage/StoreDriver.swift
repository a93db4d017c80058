import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Writes to a store as a shard does, and keeps its own record of every version of every object.
final class StoreDriver {
    struct Version: Equatable {
        let gid: GlobalID
        let number: Int64
        /// nil: deleted.
        let body: JSONObject?
    }

    struct Object {
        var record: EntityRecord
        var versions: [Version] = []
        var diffs = 0
        var diffBytes = 0
        var body: JSONObject? { versions.last?.body }
    }

    struct Bucket {
        var record: BucketRecord
        var isNew = true
        var objects: [EntityKey: Object] = [:]
        var log: [ChangeRecord] = []
    }

    var writer: any StoreWriter
    var policy = KeyframePolicy()
    var buckets: [BucketID: Bucket] = [:]
    var batch = WriteBatch()
    var now: Int64 = 1_700_000_000_000
    private var lastGID: GlobalID = 0
    private var random: SeededRandom

    init(_ writer: any StoreWriter, seed: UInt64) throws {
        self.writer = writer
        random = SeededRandom(seed: seed)
        lastGID = try writer.lastGlobalID()
    }

    static func id(_ name: String, user: String = "ann@example.com") throws -> BucketID {
        BucketID(app: try AppID("notes"), user: try UserID(user), name: try BucketName(name))
    }

    // MARK: One change

    /// Queues a change that turns the object into `body`; nil deletes it.
    @discardableResult
    func put(_ key: EntityKey, _ body: JSONObject?, in id: BucketID, client: String = "c1") throws -> ChangeRecord {
        var bucket: Bucket = buckets[id] ?? Bucket(record: BucketRecord(row: writer.newBucketRow(), id: id))
        let old: Object? = bucket.objects[key]
        lastGID += 1
        let version: Int64 = (old?.record.version ?? writer.identity.versionBase) + 1
        var diff: [UInt8] = []
        if let body {
            diff = JSONDiff.diff(from: old?.body ?? JSONObject(), to: body).json.serialized()
        }
        var object: Object =
            old
            ?? Object(
                record: EntityRecord(key: key, version: 0, gid: 0, keyframe: 0, isDeleted: true))
        var keyframe: [UInt8]?
        if let body {
            if old?.body == nil { (object.diffs, object.diffBytes) = (0, 0) }
            object.diffs += 1
            object.diffBytes += diff.count
            let bytes: [UInt8] = body.serialized()
            if policy.isDue(diffs: object.diffs, diffBytes: object.diffBytes, bodyBytes: bytes.count) {
                keyframe = bytes
                (object.diffs, object.diffBytes) = (0, 0)
            }
        }
        let change = ChangeRecord(
            gid: lastGID, bucket: bucket.record.row, key: key, kind: body == nil ? .remove : .modify,
            sourceVersion: body == nil || old?.body == nil ? nil : object.record.version, endVersion: version,
            previousOfEntity: object.record.gid, previousKeyframe: object.record.keyframe,
            previousOfBucket: bucket.record.head, clientID: try ClientID(client),
            changeID: try ChangeID("change-\(lastGID)"), timestamp: now, diff: diff, keyframe: keyframe)
        object.record.version = version
        object.record.gid = lastGID
        if keyframe != nil { object.record.keyframe = lastGID }
        object.record.isDeleted = body == nil
        object.versions.append(Version(gid: lastGID, number: version, body: body))
        bucket.record.head = lastGID
        bucket.objects[key] = object
        bucket.log.append(change)
        batch.append(change, entity: object.record, bucket: bucket.record, isNewBucket: bucket.isNew)
        bucket.isNew = false
        buckets[id] = bucket
        return change
    }

    func commit() throws {
        // Every second group is committed as the loop does it, with the lock taken beforehand.
        if batch.changes.count % 2 == 1 { _ = writer.beginCommit() }
        defer { writer.endReads() }
        try writer.commit(batch)
        batch.removeAll()
    }

    /// Changes of the bucket whose ccids the store knows, as a shard asks for them.
    func knownChanges(in bucket: BucketRecord) throws -> Set<GlobalID> {
        let tail: ChangeIDTail = try writer.changeIDTail(of: bucket.row)
        let newest = [UInt64: GlobalID](tail.entries.map { ($0.hash, $0.gid) }) { first, _ in first }
        var known: Set<GlobalID> = []
        for change in buckets[bucket.id]?.log ?? [] {
            let hash: UInt64 = writer.identity.hash(of: change.changeID)
            let found: GlobalID? = try newest[hash] ?? writer.archivedChange(hash: hash, in: bucket)
            if found == change.gid || found == 0 { known.insert(change.gid) }
        }
        return known
    }

    // MARK: Random work

    /// One random edit, creation or deletion among `keys` objects.
    func step(in id: BucketID, keys: Int) throws {
        let key = try EntityKey("note.\(Int.random(in: 0..<keys, using: &random))")
        let old: JSONObject? = buckets[id]?.objects[key]?.body
        if let old, Int.random(in: 0..<20, using: &random) == 0 {
            _ = old
            try put(key, nil, in: id, client: "client-\(Int.random(in: 0..<5, using: &random))")
            return
        }
        var body: JSONObject = old ?? ["title": .string("note"), "content": ""]
        let text: String = body["content"]?.stringValue ?? ""
        let word: String = ["oak ", "é", "🌲 ", "\n", "a longer run of words "].randomElement(using: &random) ?? ""
        let place: Int = Int.random(in: 0...text.count, using: &random)
        body["content"] = .string(String(text.prefix(place)) + word + String(text.dropFirst(place)))
        body["count"] = .number(JSONNumber(Int64.random(in: 0..<1_000, using: &random)))
        try put(key, body, in: id, client: "client-\(Int.random(in: 0..<5, using: &random))")
    }

    /// Random changes in random groups.
    func run(_ count: Int, in ids: [BucketID], keys: Int = 8) throws {
        for _ in 0..<count {
            try step(in: ids.randomElement(using: &random) ?? ids[0], keys: keys)
            now += 1_000
            if Int.random(in: 0..<4, using: &random) == 0 { try commit() }
        }
        try commit()
    }

    /// What an index scan at `current` must list, newest first.
    func listing(_ id: BucketID, at current: GlobalID) -> [(EntityKey, Version)] {
        guard let bucket: Bucket = buckets[id] else { return [] }
        var found: [(EntityKey, Version)] = []
        for (key, object) in bucket.objects {
            guard let state: Version = object.versions.last(where: { $0.gid <= current }), state.body != nil else {
                continue
            }
            found.append((key, state))
        }
        return found.sorted { $0.1.gid > $1.1.gid }
    }

    /// Undoes what was queued but not committed, as a shard forgets the buckets of a failed group.
    func forgetBatch(_ saved: [BucketID: Bucket]) {
        buckets = saved
        batch.removeAll()
    }
}
