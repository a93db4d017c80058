import ThicketProtocol
import ThicketSQLite

/// Restores a backup into a data folder whose server is not running.
///
/// Clients have seen newer states than the backup holds. To prevent a client from mistaking old data for new, a restore
/// raises the cv epoch (every cv becomes unknown, so that every client lists its buckets again) and adds a random
/// multiple of 1,000,000 to every version, in the log too. A version 9 that a client holds is never reused with other
/// content, and a change made on it is answered with 405.
///
/// The copy is written beside the store, completed and synced before it gets a name that counts; the remaining steps
/// only rename files. A crash at any moment leaves the old store or, at the next start, the new one
/// (`finishInterrupted`).
public enum StoreRestore {
    /// The result of a restore.
    public struct Report: Hashable, Sendable {
        /// The new cv epoch.
        public let epoch: UInt32
        /// Number added to every version.
        public let versionsAdded: Version
        /// Path under which the previous store is kept; nil when the folder had none.
        public let replaced: String?
        /// Number of blobs that the restored store refers to and the backup does not have.
        public let missingBlobs: Int
    }

    /// The outcome of a restore that a crash had interrupted.
    public enum Interrupted: Hashable, Sendable {
        /// The copy was complete, and the restore is now finished; with the path of the previous store if one existed.
        case finished(replaced: String?)
        /// The copy was incomplete and has been removed; the previous store is unchanged.
        case undone
    }

    /// Name of the copy while it is incomplete; a start deletes it.
    private static func partial(_ path: String) -> String { path + ".restoring" }
    /// Name of the copy when it is complete and durable. From this rename on the restore has happened: the next process
    /// that holds the folder's lock finishes it.
    private static func ready(_ path: String) -> String { path + ".restored" }

    /// Whether an interrupted restore has only renames left to do.
    public static func isToBeFinished(_ path: String) -> Bool { Files.exists(ready(path)) }

    /// Restores `backup` to `path`.
    /// - Parameters:
    ///   - backup: a file made by `StoreBackup`; any store file that no server is writing works.
    ///   - path: the store's file in the data folder. The caller holds the folder's lock.
    public static func run(
        from backup: String, to path: String, settings: StoreSettings = .init()
    ) throws(StoreError) -> Report { try run(from: backup, to: path, settings: settings) {} }

    /// - Parameter observe: called between any two steps between which a crash may occur.
    static func run(
        from backup: String, to path: String, settings: StoreSettings, observe: () -> Void
    ) throws(StoreError) -> Report {
        let files = Files(settings)
        _ = try finishInterrupted(path, settings: settings)
        let (partial, ready) = (partial(path), ready(path))
        let epoch: UInt32
        let added: Version
        let blobs: BlobCopies.Report
        do {
            let source = try SQLiteStore.connect(backup, .readOnly, settings)
            try StoreBackup.copy(source, to: partial, files)
            observe()
            (epoch, added) = try renew(partial, replacing: path, settings)
            _ = try StoreBackup.verify(partial, settings)
            observe()
            // Blobs are only added: if the restore is not finished, the next sweep removes those that are not needed.
            blobs = try BlobCopies(files).copy(
                of: partial, from: BlobCopies.source(of: backup), to: FolderBlobStore.blobs(Files.folder(of: path)),
                settings)
            observe()
            makePlain(path, settings)
            observe()
            try files.sync(partial)
            try files.move(partial, to: ready)
        } catch {
            removeCopy(partial, files)
            throw error
        }
        observe()
        let kept: String?
        do {
            kept = try putInPlace(path, files, observe)
        } catch {
            undo(path, files)
            throw error
        }
        observe()
        return Report(epoch: epoch, versionsAdded: added, replaced: kept, missingBlobs: blobs.missing)
    }

    /// Finishes or removes what an interrupted restore has left in a folder. Must be called before the store is opened,
    /// under the folder's lock.
    /// - Returns: nil when no restore was interrupted.
    public static func finishInterrupted(
        _ path: String, settings: StoreSettings = .init()
    ) throws(StoreError) -> Interrupted? {
        let files = Files(settings)
        let isHalfMade = Files.exists(partial(path))
        removeCopy(partial(path), files)
        guard isToBeFinished(path) else { return isHalfMade ? .undone : nil }
        return .finished(replaced: try putInPlace(path, files) {})
    }

    /// Renames the old store and gives the new one its name. Can be repeated after an interruption at any step.
    private static func putInPlace(
        _ path: String, _ files: Files, _ observe: () -> Void
    ) throws(StoreError) -> String? {
        if Files.exists(path) {
            try files.move(path, to: replaced(path, lastNumber(path) + 1))
            observe()
        }
        let number = lastNumber(path)
        // A store whose log could not be merged into the file is kept together with its log.
        if number > 0, Files.exists(path + "-wal") {
            try files.move(path + "-wal", to: replaced(path, number) + "-wal")
            observe()
        }
        // A remaining log would be applied to the new store.
        for name in [path + "-wal", path + "-shm", path + "-journal"] { try files.remove(name) }
        try files.move(ready(path), to: path)
        return number > 0 ? replaced(path, number) : nil
    }

    /// Reverts the renames after a failure, as far as the disk allows. The next start finishes what cannot be reverted.
    private static func undo(_ path: String, _ files: Files) {
        let number = lastNumber(path)
        if !Files.exists(path), number > 0 {
            let kept = replaced(path, number)
            if Files.exists(kept + "-wal"), (try? files.move(kept + "-wal", to: path + "-wal")) == nil { return }
            guard (try? files.move(kept, to: path)) != nil else { return }
        }
        files.discard(ready(path))
    }

    private static func replaced(_ path: String, _ number: Int) -> String { "\(path).replaced-\(number)" }

    /// Number of the store that was kept last; 0 when none was.
    private static func lastNumber(_ path: String) -> Int {
        var number = 0
        while Files.exists(replaced(path, number + 1)) { number += 1 }
        return number
    }

    private static func removeCopy(_ partial: String, _ files: Files) {
        for name in [partial, partial + "-wal", partial + "-shm", partial + "-journal"] {
            files.discard(name)
        }
    }

    /// Merges the log of a sound store into its file and removes the log.
    private static func makePlain(_ path: String, _ settings: StoreSettings) {
        guard Files.exists(path), let database = try? SQLiteStore.connect(path, .readWrite, settings) else {
            return
        }
        _ = try? database.text("PRAGMA journal_mode=DELETE")
    }

    /// Raises epoch and versions of the copy above its own and above those of the store it replaces.
    private static func renew(
        _ copy: String, replacing path: String, _ settings: StoreSettings
    ) throws(StoreError) -> (UInt32, Version) {
        let database = try SQLiteStore.connect(copy, .readWrite, settings)
        try Schema.check(database, orOlder: true)
        try Schema.prepare(database) { () throws(SQLiteError) in try Meta.seed(database, random: settings.random) }
        let restored = try Meta.identity(database)
        let old = identityOfOld(path, settings)
        // The random jump makes it improbable that a second restore of the same backup, after the first one was lost,
        // reuses an epoch.
        let jump = settings.random(2).reduce(0) { $0 << 8 | UInt32($1) }
        let epoch = max(restored.epoch, old?.epoch ?? 0) &+ 1 &+ jump
        let base =
            max(restored.versionBase, old?.versionBase ?? 0) + StoreIdentity.versionStep * stepCount(settings.random(2))
        let added = base - restored.versionBase
        try storing("raising the versions") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try WriteBehindHeads.writeAll(database)
                try raise(added, database)
                try Meta.set(Meta.epoch, Int64(epoch), database)
                try Meta.set(Meta.versionBase, base, database)
            }
            // Back to a single file, which can be renamed as a whole.
            _ = try database.text("PRAGMA journal_mode=DELETE")
        }
        return (epoch, added)
    }

    /// Number of steps by which versions are raised, 1...65,536. Random for the same reason as the epoch's jump: a
    /// folder that lost its store has no record of the versions that an earlier restore of the same backup used.
    /// JavaScript's exact integers (2^53) still suffice for 137,000 restores.
    private static func stepCount(_ random: [UInt8]) -> Version {
        1 + random.prefix(2).reduce(0) { $0 << 8 | Version($1) }
    }

    private static func raise(_ added: Version, _ database: Database) throws(SQLiteError) {
        try database.statement("UPDATE ent SET ver = ver + ?1, born = born + ?1").bind(1, added).run()
        try database.statement("UPDATE chg SET ev = ev + ?1, sv = sv + ?1").bind(1, added).run()
        // In two steps, because an updated version could otherwise collide with another row's version in the unique
        // index.
        try database.statement("UPDATE ver SET ver = -(ver + ?1)").bind(1, added).run()
        try database.statement("UPDATE ver SET ver = -ver").run()
        // Segments contain versions and are only copies, so they are dropped and built again.
        try database.statement(
            """
            UPDATE bucket SET fresh = fresh + (SELECT sum(bytes) FROM seg WHERE b = bucket.id)
            WHERE id IN (SELECT b FROM seg)
            """
        ).run()
        try database.statement("DELETE FROM seg").run()
    }

    /// nil when there is no old store or it cannot be read.
    private static func identityOfOld(_ path: String, _ settings: StoreSettings) -> StoreIdentity? {
        guard Files.exists(path), let database = try? SQLiteStore.connect(path, .readWrite, settings) else {
            return nil
        }
        return try? Meta.identity(database)
    }
}
