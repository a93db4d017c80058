import ThicketProtocol

extension StoreReader {
    /// The answer to `removed`, from published changes only.
    ///
    /// - Parameter upTo: the newest published change. An object with a newer change is left out, because the client
    ///   will receive that change.
    func removedPage(
        _ request: RemovedRequest, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> RemovedPage {
        switch request.scope {
        case .bucket(let after):
            return try removedObjects(after: after, limit: request.boundedLimit, in: bucket, upTo: upTo)
        case .object(let text):
            guard let key = try? EntityKey(text) else { return RemovedPage(request.scope, entries: []) }
            let entries = try removals(of: key, limit: request.boundedLimit, in: bucket, upTo: upTo)
            return RemovedPage(request.scope, entries: entries)
        }
    }

    private func removedObjects(
        after: String, limit: Int, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> RemovedPage {
        let heads = try removedHeads(in: bucket, after: try? EntityKey(after), limit: limit + 1)
        var entries = [RemovedPage.Entry]()
        for head in heads.prefix(limit) where head.gid <= upTo {
            let timestamp = try link(head.gid)?.timestamp
            entries.append(RemovedPage.Entry(key: head.key.text, version: head.version, timestamp: timestamp))
        }
        let mark = heads.count > limit ? heads[limit - 1].key.text : nil
        return RemovedPage(.bucket(after: after), entries: entries, mark: mark)
    }

    /// The removals of one object, newest first, as far back as the log reaches.
    private func removals(
        of key: EntityKey, limit: Int, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> [RemovedPage.Entry] {
        guard let head = try entity(key, in: bucket) else { return [] }
        var entries = [RemovedPage.Entry]()
        // The head records the newest removal even when the log no longer has its row.
        if head.isDeleted, head.gid <= upTo, try link(head.gid) == nil {
            return [RemovedPage.Entry(key: key.text, version: head.version, timestamp: nil)]
        }
        var gid = head.gid
        for _ in 0..<Limits.removalsMax where gid > 0 && entries.count < limit {
            guard let row = try link(gid) else { break }
            if row.kind == .remove, gid <= upTo {
                entries.append(
                    RemovedPage.Entry(key: key.text, version: row.endVersion, timestamp: row.timestamp))
            }
            gid = row.previousOfEntity
        }
        return entries
    }
}
