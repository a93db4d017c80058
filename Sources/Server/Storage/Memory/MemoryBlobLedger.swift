import Synchronization
import ThicketProtocol
import ThicketTreeShape

/// Blobs of a `MemoryStore`. Behaves like `SQLiteBlobLedger` for its callers.
final class MemoryBlobLedger: BlobLedger {
    private let store: MemoryStore
    private let generation: Int

    init(_ store: MemoryStore, generation: Int) { (self.store, self.generation) = (store, generation) }

    private func locked<Result: Sendable>(
        _ body: (inout MemoryState) -> Result
    ) throws(StoreError) -> Result {
        let generation = generation
        let result = store.shared.withLock { $0.generation == generation ? body(&$0.state) : nil }
        guard let result else { throw StoreError(.closed, "the store has crashed") }
        return result
    }

    func begin(_ upload: BlobUpload, within quota: BlobQuota) throws(StoreError) -> BlobQuota.Verdict {
        try locked { state in
            let verdict = quota.verdict(
                upload.length, user: state.blobs.usage { $0 == upload.app && $1 == upload.user },
                app: state.blobs.usage { app, _ in app == upload.app })
            if verdict == .accepted { state.blobs.uploads[upload.id] = upload }
            return verdict
        }
    }

    func upload(_ id: BlobID) throws(StoreError) -> BlobUpload? {
        // A nil of the dictionary is not a crashed store.
        try locked { [$0.blobs.uploads[id]] }.first ?? nil
    }

    func complete(_ id: BlobID, proof: [UInt8], now: Int64) throws(StoreError) -> Bool {
        try locked { state in
            guard let upload = state.blobs.uploads[id], upload.proof == nil else { return false }
            state.blobs.uploads[id]?.proof = proof
            state.blobs.completed[id] = now
            state.blobs.blobs[id] = MemoryBlobs.Blob(
                app: upload.app, user: upload.user, length: upload.length, orphaned: now)
            return true
        }
    }

    func remove(upload id: BlobID) throws(StoreError) {
        try locked { state in (state.blobs.uploads[id], state.blobs.completed[id]) = (nil, nil) }
    }

    func length(of blob: BlobID, in node: NodeID, of app: AppID, _ user: UserID) throws(StoreError) -> Int64? {
        try locked { state in
            let bucket = state.buckets.values.first {
                $0.id.app == app && $0.id.user == user && BucketMode.tree.mayBeChosen(for: $0.id.name)
            }
            guard let bucket, state.nodes[bucket.row]?.rows[node]?.blob == blob else { return [Int64?]() }
            return [state.blobs.blobs[blob]?.length]
        }.first ?? nil
    }

    func mayRead(_ user: UserID, _ node: NodeID, in branch: BranchName, of app: AppID) throws(StoreError) -> Bool {
        try locked { state in
            let bucket = state.buckets.values.first {
                $0.id.app == app && $0.id.user == branch.owner && BucketMode.tree.mayBeChosen(for: $0.id.name)
            }
            guard let rows = bucket.flatMap({ state.nodes[$0.row]?.rows }) else { return false }
            var (place, depth) = (NodeParent.node(node), 0)
            while case .node(let ancestor) = place, depth <= TreeLimits.depthMax, let row = rows[ancestor] {
                if ancestor == branch.root { return row.readers?.contains(user) ?? false }
                (place, depth) = (row.place.parent, depth + 1)
            }
            return false
        }
    }

    func usage(of app: AppID, _ user: UserID?) throws(StoreError) -> BlobUsage {
        try locked { $0.blobs.usage { $0 == app && (user == nil || $1 == user) } }
    }

    func total() throws(StoreError) -> BlobUsage { try locked { $0.blobs.usage { _, _ in true } } }

    func uploads(until time: Int64, limit: Int) throws(StoreError) -> [BlobID] {
        try locked { state in
            let due = state.blobs.uploads.values.filter { (state.blobs.completed[$0.id] ?? $0.begun) <= time }
            return Array(due.map(\.id).sorted().prefix(limit))
        }
    }

    func collect(until time: Int64, limit: Int) throws(StoreError) -> Int {
        try locked { state in
            let due = state.blobs.blobs.filter { $0.value.orphaned ?? .max <= time }.keys.sorted().prefix(limit)
            for blob in due { state.blobs.remove(blob) }
            return due.count
        }
    }

    func removed(after blob: BlobID?, limit: Int) throws(StoreError) -> [BlobID] {
        try locked { state in
            let later = state.blobs.removed.filter { candidate in blob.map { $0 < candidate } ?? true }
            return Array(later.sorted().prefix(limit))
        }
    }

    func forget(_ blobs: [BlobID]) throws(StoreError) { try locked { $0.blobs.removed.subtract(blobs) } }

    func known(among ids: [BlobID]) throws(StoreError) -> Set<BlobID> {
        try locked { state in
            Set(ids).filter { id in
                let isOpen = state.blobs.uploads[id].map { $0.proof == nil } ?? false
                return state.blobs.blobs[id] != nil || isOpen || state.blobs.removed.contains(id)
            }
        }
    }
}
