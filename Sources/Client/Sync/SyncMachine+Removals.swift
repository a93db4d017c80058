package import ThicketProtocol

/// Requests for removals, which an index does not list.
extension SyncMachine {
    /// Requests removals; the answer is the action `removals`.
    ///
    /// - Throws: `offline` when the bucket is not connected.
    package mutating func askRemovals(
        _ bucket: BucketName, _ request: RemovedRequest, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let number = try number(bucket)
        guard turn.link.isOpen, buckets[number].phase == .live else {
            throw ClientError(.offline, "only the server knows removals")
        }
        return try runTurn(now) { machine throws(ClientError) in
            machine.buckets[number].removalsAsked += 1
            var writer = JSONWriter()
            request.write(to: &writer)
            machine.turn.send(Messages.onChannel(number, "removed:", writer.bytes))
        }
    }
}
