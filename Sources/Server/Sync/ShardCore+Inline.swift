import ThicketProtocol

extension ShardCore {
    /// Prepares for a group that waits only for its own commit.
    ///
    /// - Returns: false, with nothing changed, when a bucket of these changes is not in memory or has a capacity (which
    ///   may require reading all of its objects), when an `EMPTY` is in progress, or when the store has other work or
    ///   locks to wait for. After true, the changes must be received and committed immediately.
    public func beginCommit(of requests: [ShardRequest]) -> Bool {
        guard !hasBacklog, group.requests.isEmpty else { return false }
        for request in requests {
            guard case .change(let submitted) = request, let bucket = buckets[submitted.bucket],
                bucket.capacity == nil
            else { return false }
        }
        return store.beginCommit()
    }
}
