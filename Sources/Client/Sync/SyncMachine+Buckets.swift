package import ThicketProtocol
package import ThicketSealed

/// Opening buckets.
extension SyncMachine {
    /// Syncs a bucket from now on. Does nothing when it is already open.
    ///
    /// - Parameter keys: the keys of a sealed bucket; nil for an open one. A bucket's mode never changes after the
    ///   first opening.
    /// - Throws: `limit` when too many buckets are open, `sealed` when the bucket was opened in the other mode before,
    ///   `store`.
    package mutating func open(
        _ name: BucketName, keys: SealedBucketKeys? = nil, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        if let number = numbers[name] { return try reopen(number, keys, now: now) }
        let sealing = try keys.map { (keys) throws(ClientError) in try makeSealing(keys) }
        guard buckets.count < SyncLimits.bucketsMax else {
            throw ClientError(.limit, "a session syncs at most \(SyncLimits.bucketsMax) buckets")
        }
        let count = buckets.count
        do {
            return try runTurn(now) { machine throws(ClientError) in
                try machine.addBucket(BucketRecord(name: name, isSealed: sealing != nil))
                let number = machine.buckets.count - 1
                machine.buckets[number].sealing = sealing
                machine.turn.touch(number)
                if machine.turn.link.isOpen { machine.buckets[number].open(&machine.turn) }
            }
        } catch {
            // The bucket was not stored, so it is not open.
            if buckets.count > count {
                buckets.removeLast()
                numbers[name] = nil
            }
            throw error
        }
    }

    mutating func makeSealing(_ keys: SealedBucketKeys) throws(ClientError) -> Sealing {
        if let kept = try turn.store.namedValue("author") {
            guard let author = UInt64(kept, radix: 16) else {
                throw ClientError(.store, "this device's id in the local store is damaged")
            }
            return Sealing(keys: keys, author: AuthorID(rawValue: author))
        }
        let author = turn.random.next()
        try turn.store.setNamedValue("author", to: hexText(author))
        return Sealing(keys: keys, author: AuthorID(rawValue: author))
    }

    /// Handles another call to open a bucket that is already in the store.
    private mutating func reopen(
        _ number: Int, _ keys: SealedBucketKeys?, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        if let keys, !buckets[number].record.isSealed, let drafts = try drafts(number) {
            return try seal(number, keys, drafts, now: now)
        }
        guard buckets[number].record.isSealed == (keys != nil) else {
            throw ClientError(
                .sealed,
                keys == nil
                    ? "the bucket is sealed in this store: open it with its secret"
                    : "the bucket is open in this store: a sealed bucket needs another name")
        }
        guard let keys, buckets[number].isLocked else { return [] }
        let sealing = try makeSealing(keys)
        return try runTurn(now) { machine throws(ClientError) in
            machine.buckets[number].sealing = sealing
            if machine.turn.link.isOpen { machine.buckets[number].open(&machine.turn) }
        }
    }

    /// The objects that were queued again since the last call, in order of their keys; recording starts with the first
    /// call.
    package mutating func takeBroughtBack(_ bucket: BucketName) throws(ClientError) -> [String] {
        let number = try number(bucket)
        let keys = buckets[number].broughtBack ?? []
        buckets[number].broughtBack = []
        return keys.sorted().map { buckets[number].shownKey($0, &turn) }
    }
}
