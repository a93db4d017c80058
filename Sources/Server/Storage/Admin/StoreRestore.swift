import ThicketProtocol
import ThicketSQLite

/// Puts a backup in a data folder whose server does not run.
///
/// Clients have seen more than the backup holds. So that none of them takes old for new, the cv epoch is raised (every cv
/// is then unknown, every client lists its buckets again) and a random multiple of 1,000,000 is added to every version, in
/// the log too: what a client holds as version 9 never comes again with other content, and a change made on it is
/// answered 405.
public enum StoreRestore {
    public struct Report: Hashable, Sendable {
        public let epoch: UInt32
        /// What was added to every version.
        public let versionsAdded: Version
        /// Where the store that stood in the folder is kept; nil when there was none.
        public let replaced: String?
    }

    /// - Parameters:
    ///   - backup: made by `StoreBackup`; any store file that no server writes will do.
    ///   - path: the store's file in the data folder. The caller holds the folder's lock.
    public static func run(
        from backup: String, to path: String, settings: StoreSettings = .init()
    ) throws(StoreError) -> Report {
        let partial: String = path + ".restoring"
        for name: String in [partial, partial + "-wal", partial + "-shm", partial + "-journal"] { Files.remove(name) }
        do {
            let source: Database = try SQLiteStore.connect(backup, .readOnly, settings)
            try StoreBackup.copy(source, to: partial)
            let (epoch, added): (UInt32, Version) = try renew(partial, replacing: path, settings)
            _ = try StoreBackup.verify(partial, settings)
            try Files.sync(partial)
            let kept: String? = try keepOld(path, settings)
            try Files.move(partial, to: path)
            return Report(epoch: epoch, versionsAdded: added, replaced: kept)
        } catch {
            Files.remove(partial)
            throw error
        }
    }

    /// Raises epoch and versions of the copy above both its own and those of the store it replaces.
    private static func renew(
        _ copy: String, replacing path: String, _ settings: StoreSettings
    ) throws(StoreError) -> (UInt32, Version) {
        let database: Database = try SQLiteStore.connect(copy, .readWrite, settings)
        try Schema.check(database, orOlder: true)
        try Schema.prepare(database) { () throws(SQLiteError) in try Meta.seed(database, random: settings.random) }
        let restored: StoreIdentity = try Meta.identity(database)
        let old: StoreIdentity? = identityOfOld(path, settings)
        // The jump makes it improbable that a second restore of the same backup, after the first was lost, uses an
        // epoch twice.
        let jump: UInt32 = settings.random(2).reduce(0) { $0 << 8 | UInt32($1) }
        let epoch: UInt32 = max(restored.epoch, old?.epoch ?? 0) &+ 1 &+ jump
        let base: Version =
            max(restored.versionBase, old?.versionBase ?? 0) + StoreIdentity.versionStep * stepCount(settings.random(2))
        let added: Version = base - restored.versionBase
        try storing("raising the versions") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try raise(added, database)
                try Meta.set(Meta.epoch, Int64(epoch), database)
                try Meta.set(Meta.versionBase, base, database)
            }
            // Back to one plain file, which can be renamed as a whole.
            _ = try database.text("PRAGMA journal_mode=DELETE")
        }
        return (epoch, added)
    }

    /// Steps to raise the versions by, 1...65,536. Random for the same reason as the epoch's jump: a folder that lost its
    /// store says nothing of the versions that an earlier restore of the same backup gave out. JavaScript's exact
    /// integers (2^53) still have room for 137,000 restores.
    private static func stepCount(_ random: [UInt8]) -> Version {
        1 + random.prefix(2).reduce(0) { $0 << 8 | Version($1) }
    }

    private static func raise(_ added: Version, _ database: Database) throws(SQLiteError) {
        try database.statement("UPDATE ent SET ver = ver + ?1").bind(1, added).run()
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
        guard Files.exists(path), let database: Database = try? SQLiteStore.connect(path, .readWrite, settings) else {
            return nil
        }
        return try? Meta.identity(database)
    }

    /// Keeps the old store under another name beside the new one: a restore destroys nothing.
    private static func keepOld(_ path: String, _ settings: StoreSettings) throws(StoreError) -> String? {
        guard Files.exists(path) else { return nil }
        var number: Int = 1
        while Files.exists("\(path).replaced-\(number)") { number += 1 }
        let kept: String = "\(path).replaced-\(number)"
        // A sound store becomes one plain file. A broken one is kept as it lies, log and all.
        if let database: Database = try? SQLiteStore.connect(path, .readWrite, settings) {
            _ = try? database.text("PRAGMA journal_mode=DELETE")
        }
        try Files.keep(path, as: kept)
        if Files.exists(path + "-wal") { try Files.move(path + "-wal", to: kept + "-wal") }
        Files.remove(path + "-shm")
        return kept
    }
}
