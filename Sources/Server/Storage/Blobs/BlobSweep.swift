import ThicketTreeShape

/// Removes what is not needed any more: expired uploads, orphans, and files without a row. Every step can be repeated,
/// also after a crash: rows are removed first, and a removed row is remembered until its file is gone.
public struct BlobSweep {
    /// What a sweep has removed.
    public struct Report: Sendable, Hashable {
        /// Uploads whose time was over.
        public var uploads = 0
        /// Blobs without a reference.
        public var orphans = 0
        /// Files of removed blobs.
        public var files = 0
        /// Files and uploads that the ledger does not know.
        public var unknown = 0
    }

    /// How long an upload is open, and how long a completed one is remembered, in milliseconds.
    public static let uploadAge: Int64 = 7 * 86_400_000
    /// How long a blob may have no reference, in milliseconds.
    public static let orphanAge: Int64 = 86_400_000
    /// Rows of one transaction.
    private static let rowsAtOnce = 100

    private let ledger: any BlobLedger
    private let store: any BlobStore
    private let uploadAge: Int64
    private let orphanAge: Int64

    /// - Parameters:
    ///   - ledger: used by the calling thread only.
    ///   - uploadAge: milliseconds; shorter in models of a server, whose time is short.
    ///   - orphanAge: as `uploadAge`.
    public init(
        ledger: any BlobLedger, store: any BlobStore, uploadAge: Int64 = Self.uploadAge,
        orphanAge: Int64 = Self.orphanAge
    ) {
        (self.ledger, self.store) = (ledger, store)
        (self.uploadAge, self.orphanAge) = (uploadAge, orphanAge)
    }

    /// Removes what is due.
    /// - Parameter now: milliseconds since 1970.
    public func run(now: Int64) throws(StoreError) -> Report {
        var report = Report()
        while true {
            let due = try ledger.uploads(until: now - uploadAge, limit: Self.rowsAtOnce)
            for upload in due {
                try ledger.remove(upload: upload)
                try store.abort(upload)
            }
            report.uploads += due.count
            if due.count < Self.rowsAtOnce { break }
        }
        while true {
            let count = try ledger.collect(until: now - orphanAge, limit: Self.rowsAtOnce)
            report.orphans += count
            if count < Self.rowsAtOnce { break }
        }
        report.files = try deleteRemoved()
        return report
    }

    /// Deletes the bytes of removed blobs.
    private func deleteRemoved() throws(StoreError) -> Int {
        var (count, last) = (0, BlobID?.none)
        while true {
            let removed = try ledger.removed(after: last, limit: Self.rowsAtOnce)
            guard let final = removed.last else { return count }
            var gone = [BlobID]()
            // A blob that is being copied stays until a later sweep.
            for blob in removed where try store.delete(blob) { gone.append(blob) }
            try ledger.forget(gone)
            count += gone.count
            last = final
        }
    }

    /// Removes files and uploads without a row. Rows are written before their files, so such a file is left over from
    /// a crash, or belongs to a store that was replaced.
    /// - Returns: how many were removed.
    public func removeUnknown() throws(StoreError) -> Int {
        guard !store.keepsUnknown else { return 0 }
        var (count, ids) = (0, [BlobID]())
        try store.list { (blob) throws(StoreError) in
            ids.append(blob.id)
            guard ids.count == Self.rowsAtOnce else { return }
            count += try removeUnknown(among: ids)
            ids = []
        }
        count += try removeUnknown(among: ids)
        for upload in try store.uploads() where try ledger.upload(upload).map({ $0.proof != nil }) ?? true {
            try store.abort(upload)
            count += 1
        }
        return count
    }

    private func removeUnknown(among ids: [BlobID]) throws(StoreError) -> Int {
        let known = try ledger.known(among: ids)
        var count = 0
        for id in ids where !known.contains(id) { if try store.delete(id) { count += 1 } }
        return count
    }
}
