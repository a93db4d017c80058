import ThicketTreeShape

/// A file or a placeholder of the store.
struct DiskEntry: Sendable, Hashable {
    enum State: Int, Sendable {
        /// Some of the chunks are there: a download that is not complete.
        case partial
        case whole
        /// There is nothing to download, and no file.
        case absent
    }

    let node: NodeID
    var state: State
    var isPersistent: Bool
    var afterUpload: DiskOptions.AfterUpload
    /// Bytes of the file.
    var bytes: UInt64
    /// Grows with each use: the entry with the lowest number is evicted first.
    var used: Int64
    /// Milliseconds since 1970.
    var expires: Int64?

    /// Whether the file must stay until its content is uploaded.
    var waits: Bool { afterUpload != .keep }

    /// Makes the file persistent. It stays at least as long as it would have stayed before.
    ///
    /// - Parameter end: milliseconds since 1970; nil: it never expires.
    mutating func pin(until end: Int64?) {
        expires = isPersistent ? DiskOptions.later(expires, end) : end
        isPersistent = true
        if waits, end == nil { afterUpload = .pin }
    }

    /// Makes the file one of the cache; one that waits for its upload, afterwards.
    ///
    /// - Parameter end: milliseconds since 1970; nil: it never expires.
    mutating func unpin(until end: Int64?) {
        if waits {
            if afterUpload == .pin { afterUpload = .migrate }
        } else if isPersistent {
            (isPersistent, expires) = (false, end)
        }
    }
}

/// What the store has and what it evicts. Pure: the store executes the decisions.
struct DiskIndex: Sendable {
    let limits: DiskLimits
    private(set) var entries = [DiskKey: DiskEntry]()
    private var pools = [DiskPool: UInt64]()
    private var uses: Int64 = 0

    init(_ limits: DiskLimits) { self.limits = limits }

    subscript(key: DiskKey) -> DiskEntry? { entries[key] }

    /// Bytes of a pool.
    func bytes(of pool: DiskPool) -> UInt64 { pools[pool] ?? 0 }

    /// The whole contents that wait for their upload.
    var waitingUploads: [DataID] {
        entries.filter { $0.value.afterUpload != .keep && $0.value.state == .whole }.map(\.key.id).sorted()
    }

    /// The next number of use.
    mutating func nextUse() -> Int64 {
        uses += 1
        return uses
    }

    /// Adds, replaces or removes an entry.
    mutating func set(_ key: DiskKey, _ entry: DiskEntry?) {
        if let old = entries[key], !old.isPersistent { pools[key.pool, default: 0] -= old.bytes }
        entries[key] = entry
        guard let entry else { return }
        if !entry.isPersistent { pools[key.pool, default: 0] += entry.bytes }
        uses = max(uses, entry.used)
    }

    /// When a file expires that is stored now.
    func expiry(_ options: DiskOptions, _ pool: DiskPool, now: Int64) -> Int64? {
        if let expires = options.expires { return expires }
        return options.isPersistent ? nil : limits[pool].age.map { now + $0 }
    }

    /// The entries to remove now: expired ones, and in each pool above its limit the least recently used ones until it
    /// is within. Retained entries are left, so a pool can stay above its limit by their bytes only.
    func victims(now: Int64, isRetained: (DiskKey) -> Bool) -> [DiskKey] {
        var victims = entries.filter { key, entry in
            if let expires = entry.expires, expires <= now { !isRetained(key) } else { false }
        }.map(\.key)
        let expired = Set(victims)
        for pool in DiskPool.allCases {
            var excess = bytes(of: pool)
            for key in victims where key.pool == pool {
                if let entry = entries[key], !entry.isPersistent { excess -= entry.bytes }
            }
            guard excess > limits[pool].bytes else { continue }
            let candidates = entries.filter { key, entry in
                key.pool == pool && !entry.isPersistent && entry.bytes > 0 && !expired.contains(key)
                    && !isRetained(key)
            }.sorted { $0.value.used < $1.value.used }
            for (key, entry) in candidates where excess > limits[pool].bytes {
                victims.append(key)
                excess -= entry.bytes
            }
        }
        return victims
    }

    /// The entry to remove so that another one fits below `DiskLimits.entriesMax`.
    ///
    /// - Throws: `tooManyFiles` when all are persistent or retained.
    func victim(isRetained: (DiskKey) -> Bool, most: Int = DiskLimits.entriesMax) throws(ContentError) -> DiskKey? {
        guard entries.count >= most else { return nil }
        let candidates = entries.filter { !$0.value.isPersistent && !isRetained($0.key) }
        guard let oldest = candidates.min(by: { $0.value.used < $1.value.used }) else { throw .tooManyFiles }
        return oldest.key
    }
}
