import ThicketProtocol

/// How many buckets users may have.
struct BucketSpace {
    private let shard: ShardCore

    init(of shard: ShardCore) { self.shard = shard }

    /// Whether the user of a bucket has it already, or may have one more.
    func has(_ bucket: ActiveBucket) throws(ChangeRejection) -> Bool {
        guard bucket.record == nil else { return true }
        let (id, shard) = (bucket.id, shard)
        let stored = try shard.reading { () throws(StoreError) in
            try shard.store.buckets(of: id.app, user: id.user).count
        }
        let tentative = shard.group.buckets.count { $0.isNew && $0.id.app == id.app && $0.id.user == id.user }
        return stored + tentative < shard.settings.bucketsPerUserMax
    }
}
