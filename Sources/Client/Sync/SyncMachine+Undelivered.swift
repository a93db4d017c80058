package import ThicketProtocol

/// Conflicts and integrity reports: each is delivered once.
extension SyncMachine {
    /// Returns the undelivered conflicts and integrity reports, also from earlier runs, the oldest first, and deletes
    /// them.
    package mutating func takeUndelivered(
        _ bucket: BucketName, now: Int64
    ) throws(ClientError) -> ([BucketEvent], [SyncAction]) {
        guard let number = numbers[bucket], !buckets[number].undelivered.isEmpty else { return ([], []) }
        let events = try undelivered(bucket)
        return (
            events,
            try runTurn(now) { machine throws(ClientError) in machine.buckets[number].forgetUndelivered(&machine.turn) }
        )
    }

    /// As `takeUndelivered`, without deleting the events.
    package func undelivered(_ bucket: BucketName) throws(ClientError) -> [BucketEvent] {
        guard let number = numbers[bucket], !buckets[number].undelivered.isEmpty else { return [] }
        return buckets[number].undelivered.left(of: try turn.store.undelivered(bucket))
    }

    /// Records that `count` conflicts and integrity reports of the bucket were delivered as they occurred. When none is
    /// left, all are deleted; otherwise the next reader gets the remaining ones, or, after a restart, all of them.
    package mutating func delivered(_ bucket: BucketName, count: Int, now: Int64) -> [SyncAction] {
        guard let number = numbers[bucket], buckets[number].undelivered.markDelivered(count) else { return [] }
        return runQuietTurn(now) { machine throws(ClientError) in
            machine.buckets[number].forgetUndelivered(&machine.turn)
        }
    }

    /// As above, for the first `count` events of `undelivered`.
    package mutating func gave(_ bucket: BucketName, count: Int, now: Int64) -> [SyncAction] {
        guard let number = numbers[bucket], buckets[number].undelivered.give(count) else { return [] }
        return runQuietTurn(now) { machine throws(ClientError) in
            machine.buckets[number].forgetUndelivered(&machine.turn)
        }
    }
}
