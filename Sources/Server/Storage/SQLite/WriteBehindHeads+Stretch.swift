import Synchronization
import ThicketProtocol

extension WriteBehindHeads {
    /// The heads of consecutive groups. Each stretch links to the next one, so a transaction that holds a stretch
    /// reaches all later ones for its whole duration.
    final class Stretch: Sendable {
        /// The heads of one object, one for each group that changed it.
        private struct History {
            var newest: EntityRecord
            /// Oldest first.
            var older = [EntityRecord]()

            func record(upTo gid: GlobalID) -> EntityRecord? {
                newest.gid <= gid ? newest : older.last { $0.gid <= gid }
            }
        }

        /// The heads of one bucket. Accessed only while `content` is locked.
        private final class Heads {
            var objects = [EntityKey: History]()

            func put(_ record: EntityRecord) {
                guard let place = objects.index(forKey: record.key) else {
                    objects[record.key] = History(newest: record)
                    return
                }
                objects.values[place].older.append(objects.values[place].newest)
                objects.values[place].newest = record
            }

            /// Reverts the last `put` of this object.
            func revert(_ record: EntityRecord) -> Bool {
                guard var history = objects[record.key], history.newest.gid == record.gid else { return false }
                let before = history.older.popLast()
                if let before { history.newest = before }
                objects[record.key] = before == nil ? nil : history
                return true
            }
        }

        private struct Content {
            var buckets = [BucketRow: Heads]()
            /// Number of heads here, and number of changes in the groups they belong to.
            var count = 0
            var changes = 0
            var through: GlobalID = 0
            var next: Stretch?

            mutating func put(_ entity: WriteBatch.EntityWrite) {
                let heads: Heads
                if let known = buckets[entity.bucket] {
                    heads = known
                } else {
                    heads = Heads()
                    buckets[entity.bucket] = heads
                }
                heads.put(entity.record)
                count += 1
                through = max(through, entity.record.gid)
            }
        }

        private let content = Mutex<Content>(Content())

        /// Number of heads here, the newest change among them, and the next stretch.
        var measure: (count: Int, through: GlobalID, next: Stretch?) {
            content.withLock { ($0.count, $0.through, $0.next) }
        }

        /// Number of changes in the groups whose heads are here.
        var changes: Int { content.withLock { $0.changes } }

        var buckets: [BucketRow] { content.withLock { Array($0.buckets.keys) } }

        func lead(to next: Stretch) { content.withLock { $0.next = next } }

        func add(_ entities: [WriteBatch.EntityWrite], _ changes: Int) {
            content.withLock { content in
                content.changes += changes
                for entity in entities { content.put(entity) }
            }
        }

        func remove(_ entities: [WriteBatch.EntityWrite], _ changes: Int) {
            content.withLock { content in
                content.changes -= changes
                for entity in entities {
                    guard let heads = content.buckets[entity.bucket], heads.revert(entity.record) else { continue }
                    content.count -= 1
                    if heads.objects.isEmpty { content.buckets[entity.bucket] = nil }
                }
                // The positions of a failed group are used again, so `through` is recomputed from the heads that
                // remain.
                content.through = content.buckets.values.reduce(0) { newest, heads in
                    heads.objects.values.reduce(newest) { max($0, $1.newest.gid) }
                }
            }
        }

        func forget(_ buckets: Set<BucketRow>) {
            content.withLock { content in
                for bucket in buckets {
                    guard let heads = content.buckets.removeValue(forKey: bucket) else { continue }
                    content.count -= heads.objects.values.reduce(0) { $0 + 1 + $1.older.count }
                }
            }
        }

        /// The head after the newest group up to `gid`, and the next stretch.
        func head(of key: EntityKey, in bucket: BucketRow, upTo gid: GlobalID) -> (
            record: EntityRecord?, next: Stretch?
        ) {
            content.withLock { ($0.buckets[bucket]?.objects[key]?.record(upTo: gid), $0.next) }
        }

        /// The same for all objects of a bucket, or for those whose keys are after `key`.
        func heads(
            of bucket: BucketRow, after key: EntityKey? = nil, upTo gid: GlobalID
        ) -> (records: [EntityRecord], next: Stretch?) {
            content.withLock { content in
                var records = [EntityRecord]()
                for history in content.buckets[bucket]?.objects.values ?? [:].values {
                    if let key, !key.precedes(history.newest.key) { continue }
                    if let record = history.record(upTo: gid) { records.append(record) }
                }
                return (records, content.next)
            }
        }

        /// The newest heads of a bucket, in table order.
        func heads(of bucket: BucketRow) -> [WriteBatch.EntityWrite] {
            let records = heads(of: bucket, upTo: .max).records
            return WriteBehindHeads.sorted(records, bucket)
        }
    }

    /// The heads that one transaction sees.
    struct View {
        /// `WriteBehindHeads.origin` before the transaction began.
        let origin: Stretch
        /// The newest change that the transaction sees.
        let upTo: GlobalID

        /// nil: the row in `ent` is current.
        func head(of key: EntityKey, in bucket: BucketRow) -> EntityRecord? {
            var found: EntityRecord?
            var stretch: Stretch? = origin
            while let each: Stretch = stretch {
                let (record, next) = each.head(of: key, in: bucket, upTo: upTo)
                found = record ?? found
                stretch = next
            }
            return found
        }

        /// The objects of a bucket whose rows in `ent` may be outdated; only those with keys after `key`, if it is
        /// given.
        func heads(of bucket: BucketRow, after key: EntityKey? = nil) -> [EntityKey: EntityRecord] {
            var found = [EntityKey: EntityRecord]()
            var stretch: Stretch? = origin
            while let each: Stretch = stretch {
                let (records, next) = each.heads(of: bucket, after: key, upTo: upTo)
                for record in records { found[record.key] = record }
                stretch = next
            }
            return found
        }

        /// Buckets that have such objects at this moment.
        var buckets: Set<BucketRow> {
            var found = Set<BucketRow>()
            var stretch: Stretch? = origin
            while let each: Stretch = stretch {
                found.formUnion(each.buckets)
                stretch = each.measure.next
            }
            return found
        }
    }
}
