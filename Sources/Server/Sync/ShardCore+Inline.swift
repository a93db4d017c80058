import ThicketProtocol

extension ShardCore {
    /// Makes ready for a group that is to wait for nothing but its own commit.
    ///
    /// - Returns: false, and nothing has changed, when a bucket of these changes is not in memory yet or has a
    ///   capacity, which may take a look at all of its objects, when an `EMPTY` is
    ///   under way, or when the store has other things to do or to wait for first. After true they must be received and
    ///   committed at once.
    public func beginCommit(of requests: [ShardRequest]) -> Bool {
        guard !hasBacklog, group.requests.isEmpty else { return false }
        for request in requests {
            guard case .change(let submitted) = request, let bucket = buckets[submitted.bucket],
                bucket.room == nil
            else { return false }
        }
        return store.beginCommit()
    }
}
