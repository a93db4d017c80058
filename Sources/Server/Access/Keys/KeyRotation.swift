import Glibc
import ThicketSQLite

/// Why the key file was not changed for another.
public enum KeyChangeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file, old or new, cannot be used.
    case file(ServerKeyError)
    /// The database is sealed by another file than the one that is there.
    case foreign(path: String)
    /// There is no key file to change.
    case missing(path: String)
    /// The database has had as many key files as it can.
    case tooMany
    case store(StoreError)

    public var description: String {
        switch self {
        case .file(let error): error.description
        case .foreign(let path): "\(path) is not the key file by which this database is sealed"
        case .missing(let path): "\(path) is not there"
        case .tooMany: "the database has had \(KeyHeritage.peppersMax) key files, and can have no more"
        case .store(let error): error.description
        }
    }
}

/// Puts another key file in the place of the server's: all that the old one seals is sealed anew, in one transaction.
///
/// The new file lies beside the old one, whole and on disk, before the transaction begins; names change after it. Until
/// the commit the old file is the right one, from then on the new one is, and the database's mark tells which: so
/// whoever comes next under the folder's lock can finish or undo what was interrupted (`finishInterrupted`). The old
/// file is kept, for backups that were made before.
enum KeyRotation {
    struct Report: Sendable, Hashable {
        let resealed: KeyReseal.Report
        /// Where the old key file is kept.
        let replaced: String
    }

    /// What became of a change that was interrupted.
    enum Interrupted: Sendable, Hashable {
        case finished(replaced: String?)
        /// Nothing had been sealed anew: the old file is the right one.
        case undone
    }

    /// The new file while it is not in place yet.
    static func fresh(_ path: String) -> String { path + ".new" }

    /// Whether a change is under way, or was interrupted.
    static func isUnderWay(_ path: String) -> Bool { Files.exists(fresh(path)) }

    /// Makes a new key, seals everything under it, and gives it the old file's name. The caller holds the folder's
    /// lock.
    /// - Parameter observe: called between any two steps that a crash may come between.
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
            // What the disk says when a commit fails may be wrong: the mark tells what happened.
            _ = try? finishInterrupted(path, database: database, settings: settings)
            throw error
        }
        observe()
        let replaced = try putInPlace(path, Files(settings), observe)
        observe()
        return Report(resealed: resealed, replaced: replaced)
    }

    /// Seals everything under the key in another file, which is made where there is none. The old file stays where it
    /// is, and opens nothing any more. The caller holds the folder's lock.
    /// - Returns: nil when that file is the database's already, perhaps of a call that was interrupted.
    static func to(
        _ newPath: String, from path: String, database: String, settings: StoreSettings = .init()
    ) throws(KeyChangeError) -> KeyReseal.Report? {
        _ = try finishInterrupted(path, database: database, settings: settings)
        let new = try making(newPath)
        if try standing(of: new, database, settings) == .own { return nil }
        return try reseal(from: try existing(path), path, to: new, database, settings)
    }

    /// Goes on with the key file that is there, or a new one, though another one has sealed the database: that one is
    /// lost. What it sealed stays as it is, should it be found again. The caller holds the folder's lock.
    /// - Returns: false when the file is the database's, so that nothing was lost.
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

    /// Ends what an interrupted change has left. The caller holds the folder's lock.
    /// - Returns: nil when there was nothing to end, or neither file is the database's.
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
            // What the old key sealed is not to stay in the file: who finds that key may find a copy of the file too.
            try connection.execute("PRAGMA secure_delete=ON")
            let report = try connection.transaction(.immediate) { () throws(SQLiteError) in
                guard try ServerKeyMark.standing(of: old, connection) != .foreign else {
                    refusal = .foreign(path: path)
                    throw SQLiteError.refused("the key file")
                }
                let heir = try KeyHeritage.heir(old, connection)
                guard heir.heritage.peppers.count <= KeyHeritage.peppersMax else {
                    refusal = .tooMany
                    throw SQLiteError.refused("another key file")
                }
                var reseal = KeyReseal(from: heir, to: new, connection)
                return try reseal.run()
            }
            // It stands in the log, too. Where somebody still reads there, the next start clears it.
            _ = try? connection.checkpoint(.truncate)
            return report
        } catch {
            throw refusal ?? .store(StoreError(error, "sealing the keys anew"))
        }
    }

    /// Keeps the old file under another name and gives the new one its own. May be begun again wherever it stopped; at
    /// no moment is there no file.
    /// - Returns: where the old one is kept.
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
        try storing(database, settings, "looking at the mark of the key file") { (database) throws(SQLiteError) in
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
