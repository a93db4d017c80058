import ThicketProtocol
import ThicketSQLite

/// Puts a backup in a data folder whose server does not run.
///
/// Clients have seen more than the backup holds. So that none of them takes old for new, the cv epoch is raised (every
/// cv is then unknown, every client lists its buckets again) and a random multiple of 1,000,000 is added to every
/// version, in the log too: what a client holds as version 9 never comes again with other content, and a change made on
/// it is answered 405.
///
/// The copy is made beside the store, finished and synced before it gets a name that counts; then only names change.
/// A crash at any moment leaves the old store or, at the next start, the new one (`finishInterrupted`).
public enum StoreRestore {
    public struct Report: Hashable, Sendable {
        public let epoch: UInt32
        /// What was added to every version.
        public let versionsAdded: Version
        /// Where the store that stood in the folder is kept; nil when there was none.
        public let replaced: String?
    }

    /// What became of a restore that a crash had interrupted.
    public enum Interrupted: Hashable, Sendable {
        /// It was as good as done, and is done now; with the name under which the old store is kept, if there was one.
        case finished(replaced: String?)
        /// It had hardly begun: its half-made copy is gone, the old store is as it was.
        case undone
    }

    /// The copy while it is made: worth nothing.
    private static func partial(_ path: String) -> String { path + ".restoring" }
    /// The copy when it is whole and on disk. From the moment that it has this name, the restore has happened: whoever
    /// comes next under the folder's lock finishes it.
    private static func ready(_ path: String) -> String { path + ".restored" }

    /// Whether a restore was interrupted when all that it had left to do was to change names.
    public static func isToBeFinished(_ path: String) -> Bool { Files.exists(ready(path)) }

    /// - Parameters:
    ///   - backup: made by `StoreBackup`; any store file that no server writes will do.
    ///   - path: the store's file in the data folder. The caller holds the folder's lock.
    public static func run(
        from backup: String, to path: String, settings: StoreSettings = .init()
    ) throws(StoreError) -> Report { try run(from: backup, to: path, settings: settings) {} }

    /// - Parameter observe: called between any two steps that a crash may come between.
    static func run(
        from backup: String, to path: String, settings: StoreSettings, observe: () -> Void
    ) throws(StoreError) -> Report {
        let files = Files(settings)
        _ = try finishInterrupted(path, settings: settings)
        let (partial, ready) = (partial(path), ready(path))
        let epoch: UInt32
        let added: Version
        do {
            let source = try SQLiteStore.connect(backup, .readOnly, settings)
            try StoreBackup.copy(source, to: partial, files)
            observe()
            (epoch, added) = try renew(partial, replacing: path, settings)
            _ = try StoreBackup.verify(partial, settings)
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
        return Report(epoch: epoch, versionsAdded: added, replaced: kept)
    }

    /// Ends what a restore that was interrupted has left in a folder: before the store is opened, under the folder's
    /// lock.
    /// - Returns: nil when there was nothing to end.
    public static func finishInterrupted(
        _ path: String, settings: StoreSettings = .init()
    ) throws(StoreError) -> Interrupted? {
        let files = Files(settings)
        let isHalfMade = Files.exists(partial(path))
        removeCopy(partial(path), files)
        guard isToBeFinished(path) else { return isHalfMade ? .undone : nil }
        return .finished(replaced: try putInPlace(path, files) {})
    }

    /// Keeps the old store under another name and gives the new one its own. May be begun again wherever it stopped.
    private static func putInPlace(
        _ path: String, _ files: Files, _ observe: () -> Void
    ) throws(StoreError) -> String? {
        if Files.exists(path) {
            try files.move(path, to: replaced(path, lastNumber(path) + 1))
            observe()
        }
        let number = lastNumber(path)
        // A store that could not be made one plain file is kept as it lies, log and all.
        if number > 0, Files.exists(path + "-wal") {
            try files.move(path + "-wal", to: replaced(path, number) + "-wal")
            observe()
        }
        // A log that stayed would be read into the new store.
        for name in [path + "-wal", path + "-shm", path + "-journal"] { try files.remove(name) }
        try files.move(ready(path), to: path)
        return number > 0 ? replaced(path, number) : nil
    }

    /// After a failed change of names: back to what was, as far as the disk lets us. What cannot be undone is finished
    /// at the next start.
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

    /// Number of the store kept last; 0 when there is none.
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

    /// Brings a sound store into one plain file, without a log beside it.
    private static func makePlain(_ path: String, _ settings: StoreSettings) {
        guard Files.exists(path), let database = try? SQLiteStore.connect(path, .readWrite, settings) else {
            return
        }
        _ = try? database.text("PRAGMA journal_mode=DELETE")
    }

    /// Raises epoch and versions of the copy above both its own and those of the store it replaces.
    private static func renew(
        _ copy: String, replacing path: String, _ settings: StoreSettings
    ) throws(StoreError) -> (UInt32, Version) {
        let database = try SQLiteStore.connect(copy, .readWrite, settings)
        try Schema.check(database, orOlder: true)
        try Schema.prepare(database) { () throws(SQLiteError) in try Meta.seed(database, random: settings.random) }
        let restored = try Meta.identity(database)
        let old = identityOfOld(path, settings)
        // The jump makes it improbable that a second restore of the same backup, after the first was lost, uses an
        // epoch twice.
        let jump = settings.random(2).reduce(0) { $0 << 8 | UInt32($1) }
        let epoch = max(restored.epoch, old?.epoch ?? 0) &+ 1 &+ jump
        let base =
            max(restored.versionBase, old?.versionBase ?? 0) + StoreIdentity.versionStep * stepCount(settings.random(2))
        let added = base - restored.versionBase
        try storing("raising the versions") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try LateHeads.settle(database)
                try raise(added, database)
                try Meta.set(Meta.epoch, Int64(epoch), database)
                try Meta.set(Meta.versionBase, base, database)
            }
            // Back to one plain file, which can be renamed as a whole.
            _ = try database.text("PRAGMA journal_mode=DELETE")
        }
        return (epoch, added)
    }

    /// Steps to raise the versions by, 1...65,536. Random for the same reason as the epoch's jump: a folder that lost
    /// its store says nothing of the versions that an earlier restore of the same backup gave out. JavaScript's exact
    /// integers (2^53) still have room for 137,000 restores.
    private static func stepCount(_ random: [UInt8]) -> Version {
        1 + random.prefix(2).reduce(0) { $0 << 8 | Version($1) }
    }

    private static func raise(_ added: Version, _ database: Database) throws(SQLiteError) {
        try database.statement("UPDATE ent SET ver = ver + ?1, born = born + ?1").bind(1, added).run()
        try database.statement("UPDATE chg SET ev = ev + ?1, sv = sv + ?1").bind(1, added).run()
        // In two steps, so that no version meets another's on its way.
        try database.statement("UPDATE ver SET ver = -(ver + ?1)").bind(1, added).run()
        try database.statement("UPDATE ver SET ver = -ver").run()
        // Segments name versions and are only copies: they are built again.
        try database.statement(
            """
            UPDATE bucket SET fresh = fresh + (SELECT sum(bytes) FROM seg WHERE b = bucket.id)
            WHERE id IN (SELECT b FROM seg)
            """
        ).run()
        try database.statement("DELETE FROM seg").run()
    }

    /// nil when there is no old store or nothing can be read from it.
    private static func identityOfOld(_ path: String, _ settings: StoreSettings) -> StoreIdentity? {
        guard Files.exists(path), let database = try? SQLiteStore.connect(path, .readWrite, settings) else {
            return nil
        }
        return try? Meta.identity(database)
    }
}
