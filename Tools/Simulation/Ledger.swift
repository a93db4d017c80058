import ThicketProtocol
import ThicketSealed
import ThicketServer
import ThicketTreeShape

/// An independent copy of the store's content, made by replaying its log as it grows: each row must follow from the
/// previous rows.
final class Ledger {
    /// One bucket, replayed.
    struct Mirror {
        var head: GlobalID = 0
        /// The previous row of each row of the bucket; 0 before the first.
        var previous = [GlobalID: GlobalID]()
        var changeIDs = [String: GlobalID]()
        var rows = [GlobalID: Row]()
        var entities = [EntityKey: Entity]()
        /// Versions of new objects begin above this one.
        var base: Version = 0
        /// A sealed bucket: its objects are read with the keys.
        var isSealed = false
        var sealed = [EntityKey: SealedTruth]()
        /// The tree that the rows make; empty in other buckets.
        var tree = TreeTruth()
        var isTree = false
    }

    /// What is sent of a change besides its difference.
    struct Row {
        let source: Version?
        let version: Version
    }

    struct Entity {
        var version: Version = 0
        /// nil: removed.
        var object: JSONObject?
        /// The states by version; a removal has none.
        var history = [Version: JSONObject]()
    }

    private(set) var mirrors = [BucketID: Mirror]()
    private let names: WorldNames
    /// The changes that clients sent, by ccid.
    private var insertions = Insertions()

    /// Versions of objects that never existed begin above this one.
    private var base: Version = 0

    /// The server continues from the state of an earlier moment, with higher versions.
    func restore(_ kept: [BucketID: Mirror], adding versions: Version, base: Version) {
        self.base = base
        mirrors = kept.mapValues { $0.raised(by: versions, base: base) }
    }

    func sent(_ changeID: String, insertsOnly: Bool) { insertions.sent(changeID, insertsOnly: insertsOnly) }

    init(_ names: WorldNames) { self.names = names }

    func mirror(_ bucket: BucketID) -> Mirror { mirrors[bucket] ?? Mirror() }

    /// Reads the rows that were added to the log since the last call.
    func observe(_ server: SimulatedServer) {
        guard let reader = server.auditor else { return }
        do {
            for bucket in names.ids {
                guard let record = try reader.bucket(bucket) else {
                    if mirrors[bucket] != nil { server.world.problem("the bucket \(bucket.name.text) is gone") }
                    continue
                }
                try observe(bucket, record, reader, server.world)
            }
        } catch {
            server.world.problem("the log cannot be read: \(error)")
        }
    }

    private func observe(
        _ bucket: BucketID, _ record: BucketRecord, _ reader: any StoreReader, _ world: World
    ) throws(StoreError) {
        guard record.head != mirrors[bucket]?.head else { return }
        // Taken out of the dictionary while it grows, otherwise each row would copy all of it.
        var mirror = mirrors.removeValue(forKey: bucket) ?? Mirror(base: base)
        let keys = names.keys(bucket)
        (mirror.isSealed, mirror.isTree) = (keys != nil, bucket.name == names.tree)
        if keys != nil, record.mode != .sealed { world.problem("the sealed bucket \(bucket.name.text) is an open one") }
        if record.head < mirror.head { world.problem("durable changes of \(bucket.name.text) are gone") }
        while mirror.head < record.head {
            let page = try reader.changes(
                in: record.row, after: mirror.head, upTo: record.head, limit: 1_000, byteLimit: 1 << 20)
            guard let page, !page.changes.isEmpty else {
                world.problem("the log of \(bucket.name.text) ends at \(mirror.head), its head is \(record.head)")
                break
            }
            for row in page.changes {
                let isInsertion = insertions.isInsertion(row.changeID.text)
                if let flaw = mirror.replay(row, isInsertion: isInsertion, keys, world) {
                    world.problem("change \(row.gid): \(flaw)")
                }
                if mirror.isTree { follow(row, of: bucket, &mirror, world) }
                world.tally.applied += 1
            }
        }
        if mirror.tree.isHalf { world.problem("the log ends within a batch, at \(mirror.head)") }
        mirrors[bucket] = mirror
    }

    private func follow(_ row: ChangeRecord, of bucket: BucketID, _ mirror: inout Mirror, _ world: World) {
        guard let account = names.accounts.first(where: { $0.app == bucket.app && $0.user == bucket.user }) else {
            return
        }
        let flaw = mirror.tree.replay(row, mirror.entities[row.key]?.object) {
            world.treeRecords[account.number].batch($0)
        }
        if let flaw { world.problem("change \(row.gid): \(flaw)") }
        if row.kind == .remove, let node = NodeID(text: row.key.text) {
            world.treeRecords[account.number].lose([node])
        }
    }
}

extension Ledger.Mirror {
    fileprivate func raised(by versions: Version, base: Version) -> Ledger.Mirror {
        var raised = self
        raised.base = base
        raised.tree = tree.raised(by: versions)
        raised.rows = rows.mapValues { row in
            Ledger.Row(source: row.source.map { $0 + versions }, version: row.version + versions)
        }
        raised.entities = entities.mapValues { entity in
            var history = [Version: JSONObject]()
            for (version, object) in entity.history { history[version + versions] = object }
            return Ledger.Entity(version: entity.version + versions, object: entity.object, history: history)
        }
        return raised
    }

    /// Replays one row.
    /// - Returns: the violation; nil: none.
    fileprivate mutating func replay(
        _ row: ChangeRecord, isInsertion: Bool, _ keys: SealedBucketKeys?, _ world: World
    ) -> String? {
        guard row.gid > head, row.previousOfBucket == head else {
            return "it follows \(row.previousOfBucket), the bucket stood at \(head)"
        }
        previous[row.gid] = head
        head = row.gid
        rows[row.gid] = Ledger.Row(source: row.sourceVersion, version: row.endVersion)
        guard changeIDs.updateValue(row.gid, forKey: row.changeID.text) == nil else {
            return "its ccid was applied before"
        }
        var entity = entities.removeValue(forKey: row.key) ?? Ledger.Entity(version: base)
        guard row.endVersion == entity.version + 1 else {
            return "version \(row.endVersion) of \(row.key.text) after \(entity.version)"
        }
        if let source = row.sourceVersion, source != entity.version || entity.object == nil {
            return "sv \(source) of \(row.key.text), which stood at \(entity.version)"
        }
        entity.version = row.endVersion
        switch row.kind {
        case .remove:
            guard entity.object != nil else { return "a removal of \(row.key.text), which was not there" }
            entity.object = nil
            if let keys, let flaw = replaySealed(row, nil, nil, keys, world) { return flaw }
        case .modify:
            guard let value = try? JSONValue(parsing: row.diff),
                let diff = try? ObjectDiff(value)
            else { return "its diff cannot be read" }
            let base = row.sourceVersion == nil ? JSONObject() : entity.object ?? JSONObject()
            guard let object = try? JSONDiff.apply(diff, to: base) else { return "its diff does not fit" }
            if let keyframe = row.keyframe, !isSame(keyframe, object) {
                return "its keyframe is not what its diff makes"
            }
            if isInsertion, let lost = Self.missing(in: object, from: base) {
                return "its author only inserted, and '\(lost)' is gone"
            }
            if let keys, let flaw = replaySealed(row, diff, object, keys, world) { return flaw }
            entity.object = object
            entity.history[row.endVersion] = object
        }
        entities[row.key] = entity
        return nil
    }

    /// Records of a tree have their members in a fixed order, which differences do not keep.
    func isSame(_ bytes: [UInt8], _ object: JSONObject) -> Bool {
        isTree ? (try? JSONValue(parsing: bytes)) == .object(object) : bytes == JSONValue.object(object).serialized()
    }

    /// A character that occurs less often in the text now than before.
    private static func missing(in object: JSONObject, from base: JSONObject) -> Unicode.Scalar? {
        var counts = [Unicode.Scalar: Int]()
        for scalar in (object["t"]?.stringValue ?? "").unicodeScalars {
            counts[scalar, default: 0] += 1
        }
        return (base["t"]?.stringValue ?? "").unicodeScalars.first { scalar in
            counts[scalar, default: 0] -= 1
            return counts[scalar, default: 0] < 0
        }
    }
}
