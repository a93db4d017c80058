import ThicketCrypto
import ThicketKeyLog
import ThicketSQLite

/// Replaces the secret that signs the key logs, and states that for each app, signed with the old and the new key.
///
/// As for the server's key file (`KeyRotation`): the new file is complete and on disk before the transaction, and is
/// renamed after it. The newest statements say which file is the right one, so that an interrupted change can be
/// finished or undone.
enum LogKeyChange {
    struct Report: Sendable, Hashable {
        /// Number of apps with a statement.
        let apps: Int
        /// Path under which the old file is kept.
        let replaced: String
    }

    /// Path of the new file until it is renamed.
    static func fresh(_ path: String) -> String { path + ".new" }

    /// The caller holds the folder's lock.
    /// - Parameter now: milliseconds since 1970.
    static func run(
        _ path: String, database: String, now: Int64, settings: StoreSettings = .init(), observe: () -> Void = {}
    ) throws(KeyChangeError) -> Report {
        _ = try finishInterrupted(path, database: database, settings: settings)
        guard let old = try reading(path) else { throw .missing(path: path) }
        guard try !isForeign(old, database, settings) else { throw .foreign(path: path) }
        let new: LogKey
        do throws(ServerKeyError) { new = try LogKey.load(fresh(path)) } catch { throw .file(error) }
        observe()
        let apps: Int
        do throws(StoreError) {
            apps = try state(from: old, to: new, database, now, settings)
        } catch { throw .store(error) }
        observe()
        return Report(apps: apps, replaced: try putInPlace(path, Files(settings)))
    }

    /// Finishes or undoes an interrupted change. The caller holds the folder's lock.
    /// - Returns: whether the new file is the right one now; nil when no change was interrupted.
    static func finishInterrupted(
        _ path: String, database: String, settings: StoreSettings = .init()
    ) throws(KeyChangeError) -> Bool? {
        guard Files.exists(fresh(path)) else { return nil }
        let files = Files(settings)
        if let new = try reading(fresh(path)), try isStated(new, database, settings) {
            _ = try putInPlace(path, files)
            return true
        }
        do throws(StoreError) { try files.remove(fresh(path)) } catch { throw .store(error) }
        return false
    }

    /// Writes the statements, and heads signed with the new key.
    private static func state(
        from old: LogKey, to new: LogKey, _ path: String, _ now: Int64, _ settings: StoreSettings
    ) throws(StoreError) -> Int {
        let database = try SQLiteStore.connect(path, .readWrite, settings)
        try Schema.check(database)
        let rows = KeyLogRows(database: database)
        let time = UInt64(max(0, now))
        var fault: StoreError?
        do throws(SQLiteError) {
            return try database.transaction(.immediate) { () throws(SQLiteError) in
                var apps = [String]()
                try database.statement("SELECT name FROM app ORDER BY name").forEach { (row) throws(SQLiteError) in
                    apps.append(row.text(0))
                }
                for app in apps {
                    do {
                        let (oldKey, newKey) = (old.key(of: app), new.key(of: app))
                        try rows.add(try LogKeyRotation(app: app, from: oldKey, to: newKey, time: time))
                        guard try rows.count(of: app) > 0 else { continue }
                        var log = try KeyLogs.load(app, rows, key: oldKey.verifyingKey)
                        try rows.keep(try log.resignedHead(time: time, key: newKey), of: app)
                    } catch {
                        fault = StoreError(.corrupt, "the key log of \(app): \(error)")
                        throw SQLiteError.refused("the key log")
                    }
                }
                return apps.count
            }
        } catch { throw fault ?? StoreError(error, "stating the change of the log's key") }
    }

    /// Whether the newest statements end at this key.
    private static func isStated(
        _ key: LogKey, _ path: String, _ settings: StoreSettings
    ) throws(KeyChangeError) -> Bool {
        do throws(StoreError) {
            let rows = KeyLogRows(database: try SQLiteStore.connect(path, .readWrite, settings))
            return try storing("reading the key logs") { () throws(SQLiteError) in
                let app = try rows.database.statement("SELECT app FROM key_rotation LIMIT 1").first { $0.text(0) }
                guard let app, let bytes = try rows.rotations(of: app).last else { return false }
                return (try? LogKeyRotation(bytes))?.new == key.key(of: app).verifyingKey
            }
        } catch { throw .store(error) }
    }

    private static func isForeign(
        _ key: LogKey, _ path: String, _ settings: StoreSettings
    ) throws(KeyChangeError) -> Bool {
        do throws(StoreError) {
            return try KeyLogAdmin(path: path, settings: settings).isForeign(key)
        } catch { throw .store(error) }
    }

    private static func reading(_ path: String) throws(KeyChangeError) -> LogKey? {
        do throws(ServerKeyError) { return try LogKey.read(path) } catch { throw .file(error) }
    }

    /// A file exists at `path` at every moment.
    private static func putInPlace(_ path: String, _ files: Files) throws(KeyChangeError) -> String {
        do throws(StoreError) {
            let kept = try files.keep(path, as: { "\(path).replaced-\($0)" })
            try files.move(fresh(path), to: path)
            return kept
        } catch { throw .store(error) }
    }
}
