import Glibc
import ThicketSQLite

/// Why the key file was not replaced.
public enum KeyChangeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file, old or new, cannot be used.
    case file(ServerKeyError)
    /// The database is sealed by a key file other than the one at the path.
    case foreign(path: String)
    /// The key file to replace does not exist.
    case missing(path: String)
    /// The database has had as many key files as it can (`KeyHistory.peppersMax`).
    case tooMany
    /// The database could not be read or written.
    case store(StoreError)

    /// One line for the operator.
    public var description: String {
        switch self {
        case .file(let error): error.description
        case .foreign(let path): "\(path) is not the key file by which this database is sealed"
        case .missing(let path): "\(path) does not exist"
        case .tooMany: "the database has had \(KeyHistory.peppersMax) key files, which is the limit"
        case .store(let error): error.description
        }
    }
}

/// Replaces the server's key file: everything that the old one seals is sealed again, in one transaction.
///
/// The new file is complete and on disk, beside the old one, before the transaction begins; files are renamed after
/// it. Until the commit the old file is the right one, after it the new one; the database's mark says which. The
/// next process under the folder's lock can therefore finish or undo an interrupted change (`finishInterrupted`).
/// The old file is kept for backups made before.
enum KeyRotation {
    struct Report: Sendable, Hashable {
        let resealed: KeyReseal.Report
        /// Path under which the old key file is kept.
        let replaced: String
    }

    /// What became of an interrupted change.
    enum Interrupted: Sendable, Hashable {
        case finished(replaced: String?)
        /// Nothing had been resealed: the old file is the right one.
        case undone
    }

    /// Path of the new file until it is renamed.
    static func fresh(_ path: String) -> String { path + ".new" }

    /// Whether a change is in progress or was interrupted.
    static func isUnderWay(_ path: String) -> Bool { Files.exists(fresh(path)) }

    /// Makes a new key, seals everything under it, and renames its file to `path`. The caller holds the folder's lock.
    /// - Parameter observe: called between any two steps between which a crash is possible.
    static func inPlace(
        _ path: String, database: String, settings: StoreSettings = .init(), observe: () -> Void = {}
    ) throws(KeyChangeError) -> Report {
        _ = try finishInterrupted(path, database: database, settings: settings)
        let old = try existing(path)
        guard try standing(of: old, database, settings) != .foreign else { throw .foreign(path: path) }
        observe()
        let new = try making(fresh(path))
        observe()
        let resealed: KeyReseal.Report
        do throws(KeyChangeError) {
            resealed = try reseal(from: old, path, to: new, database, settings)
        } catch {
            // A failed commit may be on disk all the same: the mark shows the outcome.
            _ = try? finishInterrupted(path, database: database, settings: settings)
            throw error
        }
        observe()
        let replaced = try putInPlace(path, Files(settings), observe)
        observe()
        return Report(resealed: resealed, replaced: replaced)
    }

    /// Seals everything under the key in another file, which is created if it does not exist. The old file stays at
    /// its path and opens nothing any more. The caller holds the folder's lock.
    /// - Returns: nil when the database is sealed by that file already, perhaps by an interrupted call.
    static func to(
        _ newPath: String, from path: String, database: String, settings: StoreSettings = .init()
    ) throws(KeyChangeError) -> KeyReseal.Report? {
        _ = try finishInterrupted(path, database: database, settings: settings)
        let new = try making(newPath)
        if try standing(of: new, database, settings) == .own { return nil }
        return try reseal(from: try existing(path), path, to: new, database, settings)
    }

    /// Adopts the key file at `path`, or a new one, although another file has sealed the database and is lost. Data
    /// sealed by the lost file stays as it is, in case the file is found. The caller holds the folder's lock.
    /// - Returns: false when the database is sealed by the file at `path`, so that nothing was lost.
    static func abandonOld(
        _ path: String, database: String, settings: StoreSettings = .init()
    ) throws(KeyChangeError) -> Bool {
        _ = try finishInterrupted(path, database: database, settings: settings)
        let new = try making(path)
        return try storing(database, settings, "changing the mark of the key file") { (database) throws(SQLiteError) in
            guard try ServerKeyMark.standing(of: new, database) == .foreign else { return false }
            try Meta.set(Meta.serverKey, new.mark, database)
            try Meta.set(Meta.partners, (try Meta.integer(Meta.partners, database) ?? 0) + 1, database)
            return true
        }
    }

    /// Finishes or undoes an interrupted change. The caller holds the folder's lock.
    /// - Returns: nil when no change was interrupted, or the database is sealed by neither file.
    static func finishInterrupted(
        _ path: String, database: String, settings: StoreSettings = .init()
    ) throws(KeyChangeError) -> Interrupted? {
        guard isUnderWay(path) else { return nil }
        let files = Files(settings)
        if let new = try reading(fresh(path)), try standing(of: new, database, settings) == .own {
            return .finished(replaced: try putInPlace(path, files) {})
        }
        guard let old = try reading(path), try standing(of: old, database, settings) != .foreign else {
            return nil
        }
        do throws(StoreError) {
            try files.remove(fresh(path))
        } catch {
            throw .store(error)
        }
        return .undone
    }

    // MARK: Parts

    private static func reseal(
        from old: ServerKey, _ path: String, to new: ServerKey, _ database: String, _ settings: StoreSettings
    ) throws(KeyChangeError) -> KeyReseal.Report {
        var refusal: KeyChangeError?
        let connection: Database
        do throws(StoreError) {
            connection = try SQLiteStore.connect(database, .readWrite, settings)
            try Schema.check(connection)
        } catch {
            throw .store(error)
        }
        do throws(SQLiteError) {
            // Data under the old key must not stay in freed pages: an attacker with that key may have a copy of the
            // file too.
            try connection.execute("PRAGMA secure_delete=ON")
            let report = try connection.transaction(.immediate) { () throws(SQLiteError) in
                guard try ServerKeyMark.standing(of: old, connection) != .foreign else {
                    refusal = .foreign(path: path)
                    throw SQLiteError.refused("the key file")
                }
                let adoptingPrevious = try KeyHistory.adoptingPrevious(old, connection)
                guard adoptingPrevious.keyHistory.peppers.count <= KeyHistory.peppersMax else {
                    refusal = .tooMany
                    throw SQLiteError.refused("another key file")
                }
                var reseal = KeyReseal(from: adoptingPrevious, to: new, connection)
                return try reseal.run()
            }
            // The write-ahead log holds it too. If another process still reads the log, the next start truncates it.
            _ = try? connection.checkpoint(.truncate)
            return report
        } catch {
            throw refusal ?? .store(StoreError(error, "resealing the keys"))
        }
    }

    /// Keeps the old file under another name and renames the new one to `path`. Can be repeated after an
    /// interruption at any step; a file exists at `path` at every moment.
    /// - Returns: the path under which the old file is kept.
    private static func putInPlace(
        _ path: String, _ files: Files, _ observe: () -> Void
    ) throws(KeyChangeError) -> String {
        do throws(StoreError) {
            let kept = try files.keep(path, as: { "\(path).replaced-\($0)" })
            observe()
            try files.move(fresh(path), to: path)
            return kept
        } catch {
            throw .store(error)
        }
    }

    private static func standing(
        of key: ServerKey, _ database: String, _ settings: StoreSettings
    ) throws(KeyChangeError) -> ServerKeyMark.Standing {
        try storing(database, settings, "reading the mark of the key file") { (database) throws(SQLiteError) in
            try ServerKeyMark.standing(of: key, database)
        }
    }

    private static func storing<Result>(
        _ path: String, _ settings: StoreSettings, _ what: StaticString,
        _ body: (Database) throws(SQLiteError) -> Result
    ) throws(KeyChangeError) -> Result {
        do throws(StoreError) {
            let database = try SQLiteStore.connect(path, .readWrite, settings)
            do throws(SQLiteError) {
                return try database.transaction(.immediate) { () throws(SQLiteError) in try body(database) }
            } catch {
                throw StoreError(error, "\(what)")
            }
        } catch {
            throw .store(error)
        }
    }

    private static func existing(_ path: String) throws(KeyChangeError) -> ServerKey {
        guard let key = try reading(path) else { throw .missing(path: path) }
        return key
    }

    private static func reading(_ path: String) throws(KeyChangeError) -> ServerKey? {
        do throws(ServerKeyError) {
            return try ServerKey.read(path)
        } catch {
            throw .file(error)
        }
    }

    private static func making(_ path: String) throws(KeyChangeError) -> ServerKey {
        do throws(ServerKeyError) {
            return try ServerKey.load(path)
        } catch {
            throw .file(error)
        }
    }
}
