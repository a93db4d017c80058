public import ThicketClient
import ThicketCrypto
import ThicketPlatform
public import ThicketTree
public import ThicketTreeShape

/// What a store has of the sections that were asked for.
public enum DiskFinding: Sendable {
    /// A file with these sections, and perhaps others.
    case file(RetainedFile)
    /// The sections are empty, or are known not to exist.
    case absent
    /// They must be downloaded.
    case none
}

/// A folder of sealed files: the cache of downloads, and the content that waits for its upload. The sealed bytes are
/// the files; keys are in the records only.
///
/// An index beside the files says what each is. A file without a row, a row without its file and a draft are removed
/// when the store is opened; so a crash leaves nothing half visible. Each pool stays within its limit, except by files
/// that tokens retain. One program opens a folder at a time. The work blocks, so the actor has its own thread.
public actor DiskStore {
    /// The index's file in the folder; SQLite's own files begin with it.
    static let indexName = "index.db"
    /// Uses that are not in the index yet; a crash forgets them.
    static let unwrittenUsesMax = 64

    let folder: String
    let files: any ContentFiles
    let rows: DiskRows
    let retainers = Retainers()
    let now: @Sendable () -> Int64
    var index: DiskIndex
    var evicted = 0
    /// The contents that waited for their upload when the folder was opened: what a crash left, and no later ones.
    package nonisolated let waitedAtOpening: [DataID]
    private let writer: SpoolWriter
    private var unwrittenUses = Set<DiskKey>()
    private let loop: EngineLoop
    /// The store's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Opens a folder, which is created if it is missing, and removes what a crash left.
    ///
    /// - Parameters:
    ///   - folder: its path.
    ///   - key: the index is sealed under it.
    ///   - limits: what the cache may take.
    /// - Throws: `index` for a damaged index, one under another key, or a folder that another program has open; `disk`,
    ///   `diskFull`.
    public init(folder: String, key: StoreKey, limits: DiskLimits = DiskLimits()) throws(ContentError) {
        try self.init(folder: folder, indexKey: key, limits: limits)
    }

    /// - Parameters:
    ///   - indexKey: nil: the index is not sealed, for tests.
    ///   - now: milliseconds since 1970.
    ///   - vfs: a file system of SQLite for the index, for tests.
    package init(
        folder: String, indexKey: StoreKey?, limits: DiskLimits = DiskLimits(), files: any ContentFiles = SystemFiles(),
        random: TreeRandom = .system, padding: ContentPadding = .standard,
        now: @escaping @Sendable () -> Int64 = SystemClock.unixMilliseconds, vfs: String? = nil
    ) throws(ContentError) {
        try files.makeFolder(folder)
        (self.folder, self.files, self.now) = (folder, files, now)
        rows = try DiskRows("\(folder)/\(Self.indexName)", key: indexKey, vfs: vfs)
        index = try Self.cleaned(folder, files, rows, limits)
        waitedAtOpening = index.waitingUploads
        writer = try SpoolWriter(
            folder: folder, files: files, random: random, padding: padding, now: { now() * 1_000_000 })
        do throws(ClientError) { loop = try EngineLoop() } catch { throw .tooManyFiles }
    }

    deinit { loop.stop() }

    /// Reads the rows and the folder, and removes what does not belong together.
    private static func cleaned(
        _ folder: String, _ files: any ContentFiles, _ rows: DiskRows, _ limits: DiskLimits
    ) throws(ContentError) -> DiskIndex {
        var index = DiskIndex(limits)
        var lost = [(DiskKey, DiskEntry?)]()
        var known = Set<String>()
        for (key, row) in try rows.all() {
            var entry = row
            if entry.state != .absent {
                let size = try files.open("\(folder)/\(key.fileName)", writable: false)?.identity().size
                guard let size, entry.state == .partial || size == entry.bytes else {
                    lost.append((key, nil))
                    continue
                }
                entry.bytes = size
                known.insert(key.fileName)
            }
            index.set(key, entry)
        }
        for name in try files.names(in: folder) where !name.hasPrefix(indexName) && !known.contains(name) {
            try files.remove("\(folder)/\(name)")
        }
        try rows.write(lost)
        return index
    }

    func path(_ key: DiskKey) -> String { "\(folder)/\(key.fileName)" }

    // MARK: - Reading

    /// Looks for sections of a content, and retains the file.
    ///
    /// - Throws: `disk`, `index`.
    public func find(_ reference: BlobReference, _ components: ContentComponents) throws(ContentError) -> DiskFinding {
        try trim()
        if components.sections.allSatisfy({ reference.map.sizes[$0] == 0 }) { return .absent }
        let needed = ChunkSpan(components, of: reference.map)
        for bits in UInt8(1)...ContentComponents.all.rawValue {
            let key = DiskKey(reference.id, ContentComponents(rawValue: bits))
            guard let entry = index[key] else { continue }
            if entry.state == .absent, key.components.isSuperset(of: components) { return .absent }
            let span = ChunkSpan(key.components, of: reference.map)
            guard entry.state == .whole, span.contains(needed) else { continue }
            try countUse(key, entry)
            return .file(retained(key, reference, span))
        }
        return .none
    }

    func retained(_ key: DiskKey, _ reference: BlobReference, _ span: ChunkSpan) -> RetainedFile {
        let file = SealedFile(path: path(key), key: reference.key, map: reference.map, span: span, files: files)
        return RetainedFile(file: file, token: RetainToken(retainers, key))
    }

    /// Finds a file with all chunks of a content that waits for its upload: it was spooled or downloaded.
    ///
    /// - Returns: nil when it is not there: the content must be sealed again, under a new plan.
    public func spooled(_ id: DataID, key: ContentKey, map: SectionMap) -> RetainedFile? {
        guard key.dataID == id.octets else { return nil }
        let all = ChunkSpan(.all, of: map)
        for bits in (1...ContentComponents.all.rawValue).reversed() {
            let file = DiskKey(id, ContentComponents(rawValue: bits))
            guard index[file]?.state == .whole, ChunkSpan(file.components, of: map).contains(all) else { continue }
            let sealed = SealedFile(path: path(file), key: key, map: map, files: files)
            return RetainedFile(file: sealed, token: RetainToken(retainers, file))
        }
        return nil
    }

    private func countUse(_ key: DiskKey, _ entry: DiskEntry) throws(ContentError) {
        var entry = entry
        entry.used = index.nextUse()
        index.set(key, entry)
        unwrittenUses.insert(key)
        if unwrittenUses.count >= Self.unwrittenUsesMax { try writeUses() }
    }

    /// Writes uses that are in memory only.
    ///
    /// - Throws: `diskFull`, `index`.
    public func writeUses() throws(ContentError) {
        let used = unwrittenUses.compactMap { key in index[key].map { (key, DiskEntry?.some($0)) } }
        unwrittenUses = []
        try rows.write(used)
    }

    // MARK: - Storing

    /// Seals a content for its upload. The file is on disk when it returns.
    ///
    /// - Parameters:
    ///   - sections: the content.
    ///   - node: its node.
    ///   - options: persistent by default, and a file of the cache after the upload.
    /// - Throws: as `SpoolWriter.write`; `index`, `tooManyFiles`. No file is left then.
    public func spool(
        _ sections: NodeSections, node: NodeID, options: DiskOptions = .migrateAfterUpload
    ) async throws(ContentError) -> SpooledContent {
        let content = try await writer.write(sections) { DiskKey($0, .all).fileName }
        guard case .blob(let blob) = content else { return content }
        let key = DiskKey(blob.plan.id, .all)
        do throws(ContentError) {
            try add(key, node, .whole, bytes: blob.plan.map.layout.sealedLength, options)
        } catch {
            try? files.remove(path(key))
            throw error
        }
        return content
    }

    /// Remembers that sections of a content do not exist, so that they are not asked for again.
    ///
    /// - Throws: `index`, `diskFull`, `tooManyFiles`.
    public func storeAbsent(
        _ id: DataID, _ components: ContentComponents, node: NodeID, options: DiskOptions = .cache
    ) throws(ContentError) {
        try add(DiskKey(id, components), node, .absent, bytes: 0, options)
    }

    /// Writes the row of a new entry, then removes what the pools have no space for.
    func add(
        _ key: DiskKey, _ node: NodeID, _ state: DiskEntry.State, bytes: UInt64, _ options: DiskOptions
    ) throws(ContentError) {
        let isRetained = retainers.isRetained
        if index[key] == nil, let victim = try index.victim(isRetained: isRetained) { try remove([victim]) }
        let entry = DiskEntry(
            node: node, state: state, isPersistent: options.isPersistent, afterUpload: options.afterUpload,
            bytes: bytes, used: index.nextUse(), expires: index.expiry(options, key.pool, now: now()))
        try rows.write([(key, entry)])
        index.set(key, entry)
        try trim()
    }

    // MARK: - Changes

    /// Makes the files of a content persistent, or files of the cache. A file that waits for its upload stays until
    /// then in any case.
    ///
    /// - Parameters:
    ///   - isPersistent: whether they are not evicted.
    ///   - id: the content.
    ///   - end: milliseconds since 1970 until which they are persistent at least; nil: they never expire, also if they
    ///     were persistent for a time before.
    /// - Throws: `index`, `diskFull`, `disk`.
    public func setPersistent(_ isPersistent: Bool, _ id: DataID, until end: Int64? = nil) throws(ContentError) {
        try change(id) { entry, key, index, now in
            if isPersistent {
                entry.pin(until: end)
            } else {
                entry.unpin(until: index.expiry(.cache, key.pool, now: now))
            }
        }
    }

    /// Does with the file of a content what its options say for the time after its upload.
    ///
    /// - Throws: `index`, `diskFull`, `disk`.
    public func uploaded(_ id: DataID) throws(ContentError) {
        try change(id) { entry, key, index, now in
            switch entry.afterUpload {
            case .keep: return
            case .migrate:
                entry.isPersistent = false
                entry.expires = index.expiry(.cache, key.pool, now: now)
            case .delete: entry.expires = .min
            case .pin: (entry.isPersistent, entry.expires) = (true, nil)
            }
            entry.afterUpload = .keep
        }
    }

    /// Makes the files with all chunks of a content wait for an upload, as a spooled one does: they are not evicted,
    /// and are files of the cache again after `uploaded(_:)`. A file that is persistent without an expiry stays as it
    /// is, and so does one with some sections, from which no content can be sent.
    ///
    /// - Throws: `index`, `diskFull`, `disk`.
    public func keepUntilUploaded(_ id: DataID, of map: SectionMap) throws(ContentError) {
        let all = ChunkSpan(.all, of: map)
        try change(id) { entry, key, _, _ in
            guard entry.state == .whole, ChunkSpan(key.components, of: map).contains(all),
                !entry.isPersistent || entry.expires != nil
            else { return }
            (entry.isPersistent, entry.expires, entry.afterUpload) = (true, nil, .migrate)
        }
    }

    private func change(
        _ id: DataID, _ body: (inout DiskEntry, DiskKey, DiskIndex, Int64) -> Void
    ) throws(ContentError) {
        var changed = [(DiskKey, DiskEntry?)]()
        for (key, old) in index.entries where key.id == id {
            var entry = old
            body(&entry, key, index, now())
            guard entry != old else { continue }
            entry.used = index.nextUse()
            changed.append((key, entry))
        }
        try rows.write(changed)
        for (key, entry) in changed { index.set(key, entry) }
        try trim()
    }

    /// Removes the files of a content that nothing retains; the others as soon as they are released.
    ///
    /// - Throws: `index`, `diskFull`, `disk`.
    public func remove(_ id: DataID) throws(ContentError) {
        try change(id) { entry, _, _, _ in entry.expires = .min }
    }

    /// Removes all files of a node, as `remove(_:)`.
    ///
    /// - Throws: `index`, `diskFull`, `disk`.
    public func remove(node: NodeID) throws(ContentError) {
        for id in Set(index.entries.filter { $0.value.node == node }.map(\.key.id)) { try remove(id) }
    }

    /// Releases a file, and removes what the pools have no space for.
    ///
    /// - Throws: `index`, `diskFull`, `disk`.
    public func release(_ token: RetainToken) throws(ContentError) {
        token.release()
        try trim()
    }

    /// Removes expired files, and what the pools have no space for. Each operation calls it.
    ///
    /// - Throws: `index`, `diskFull`, `disk`.
    public func trim() throws(ContentError) {
        let victims = index.victims(now: now(), isRetained: retainers.isRetained)
        guard !victims.isEmpty else { return }
        try remove(victims)
        evicted += victims.count
    }

    /// The file is removed before its row: a crash between leaves a row without a file, which opening removes.
    func remove(_ keys: [DiskKey]) throws(ContentError) {
        for key in keys where index[key]?.state != .absent { try files.remove(path(key)) }
        try rows.write(keys.map { ($0, nil) })
        for key in keys {
            index.set(key, nil)
            unwrittenUses.remove(key)
        }
    }

    /// Closes the folder, so that it can be opened again or removed. Later operations throw `index`; files that were
    /// found can still be read.
    public func close() {
        // Lost uses only change what is evicted first.
        try? writeUses()
        rows.close()
    }

    // MARK: - Figures

    /// What the store has.
    public var usage: DiskUsage {
        var usage = DiskUsage()
        for pool in DiskPool.allCases { usage.pools[pool] = index.bytes(of: pool) }
        usage.persistent = index.entries.values.reduce(0) { $0 + ($1.isPersistent ? $1.bytes : 0) }
        (usage.entries, usage.evicted) = (index.entries.count, evicted)
        return usage
    }

    /// The contents that are persistent without an end and wait for no upload, and their nodes, so that a caller finds
    /// those that their nodes have no longer.
    public var pinned: [(content: DataID, node: NodeID)] {
        var nodes = [DataID: NodeID]()
        for (key, entry) in index.entries where entry.isPersistent && entry.expires == nil && !entry.waits {
            nodes[key.id] = entry.node
        }
        return nodes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The contents that wait for their upload, so that a caller finds those that no operation names.
    public var waitingUploads: [DataID] { index.waitingUploads }
}
