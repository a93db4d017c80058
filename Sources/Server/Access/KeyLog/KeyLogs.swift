import Synchronization
import ThicketCrypto
public import ThicketKeyLog
public import ThicketProtocol
import ThicketSQLite

/// The key logs of all apps in memory, for all threads. They follow the rows: an entry is here only after its commit.
///
/// A log is built when it is first used, outside the lock, without verifying signatures again (they were verified
/// before the entries were stored). Afterwards the lock is held for single entries and
/// single answers.
public final class KeyLogs: KeyDirectory {
    /// Why a log cannot be used.
    enum Fault: Error, CustomStringConvertible {
        case store(StoreError)
        /// The stored entries and head contradict each other, or the head is signed with another key.
        case damaged(KeyLogError)

        var description: String {
            switch self {
            case .store(let error): error.description
            case .damaged(let error): "damaged: \(error)"
            }
        }
    }

    private struct Contents: ~Copyable {
        var logs = [String: KeyLog]()
        /// For reads under the lock; opened at the first one.
        var rows: KeyLogRows?
    }

    private let contents = Mutex<Contents>(Contents())
    private let path: String
    private let settings: StoreSettings

    /// - Parameter path: the store's file, which exists.
    public init(path: String, settings: StoreSettings = .init()) { (self.path, self.settings) = (path, settings) }

    /// The keys of the user's newest entry, while the user can sign in.
    public func newestKeys(of user: UserID, in app: AppID) -> PublicKeys? {
        contents.withLock { contents in
            guard let known = try? rows(&contents).exists(user.text, in: app.text), known else { return nil }
            if let log = contents.logs[app.text] { return log.newestEntry(of: user.text)?.keys }
            let rows = try? rows(&contents)
            return (try? rows?.newest(of: user.text, in: app.text))?.flatMap { $0 }?.keys
        }
    }

    /// Keys of the user's chain. An account that has ended has its entries; what it signed stays signed.
    public func keys(of user: UserID, id: String, in app: AppID) -> PublicKeys? {
        contents.withLock { contents in
            let rows = try? rows(&contents)
            return (try? rows?.keys(of: user.text, id: id, in: app.text)).flatMap { $0 }
        }
    }

    /// Adds entries that were committed since to the log in memory, if it is there.
    func follow(_ app: String) throws(Fault) {
        try contents.withLock { (contents) throws(Fault) in
            guard contents.logs[app] != nil else { return }
            try follow(app, &contents)
        }
    }

    /// Runs `body` on a log that has all committed entries.
    /// - Parameter key: the log's public key; a stored head must be signed with it.
    func withLog<Result: Sendable>(
        _ app: String, key: Ed25519.VerifyingKey, _ body: (inout KeyLog) throws(KeyLogError) -> Result
    ) throws(Fault) -> Swift.Result<Result, KeyLogError> {
        let isLoaded = contents.withLock { $0.logs[app] != nil }
        if !isLoaded {
            let log = try load(app, key: key)
            contents.withLock { contents in if contents.logs[app] == nil { contents.logs[app] = log } }
        }
        return try contents.withLock { (contents) throws(Fault) in
            try follow(app, &contents)
            guard var log = contents.logs.removeValue(forKey: app) else { preconditionFailure("it was added above") }
            // Not a copy: the dictionary does not hold it meanwhile.
            defer { contents.logs[app] = log }
            do throws(KeyLogError) { return .success(try body(&log)) } catch { return .failure(error) }
        }
    }

    /// Number of entries in memory, of all apps.
    var entryCount: Int { contents.withLock { $0.logs.values.reduce(0) { $0 + $1.entries.count } } }

    private func rows(_ contents: inout Contents) throws(StoreError) -> KeyLogRows {
        if let rows = contents.rows { return rows }
        let rows = KeyLogRows(database: try SQLiteStore.connect(path, .readWrite, settings))
        contents.rows = rows
        return rows
    }

    private func follow(_ app: String, _ contents: inout Contents) throws(Fault) {
        let rows: KeyLogRows
        do throws(StoreError) { rows = try self.rows(&contents) } catch { throw .store(error) }
        while true {
            let count = contents.logs[app]?.entries.count ?? 0
            let entries = try Self.read { () throws(SQLiteError) in try rows.entries(of: app, from: count) }
            for bytes in entries {
                do throws(KeyLogError) { try contents.logs[app]?.restore(bytes) } catch { throw .damaged(error) }
            }
            if entries.count < KeyLogRows.pageRows { return }
        }
    }

    private func load(_ app: String, key: Ed25519.VerifyingKey) throws(Fault) -> KeyLog {
        let rows: KeyLogRows
        do throws(StoreError) {
            rows = KeyLogRows(database: try SQLiteStore.connect(path, .readWrite, settings))
        } catch { throw .store(error) }
        return try Self.load(app, rows, key: key)
    }

    /// Builds a log from its rows.
    static func load(_ app: String, _ rows: KeyLogRows, key: Ed25519.VerifyingKey) throws(Fault) -> KeyLog {
        // The head first: what it states was on disk when it was signed.
        let stored = try read { () throws(SQLiteError) in try rows.head(of: app) }
        do throws(KeyLogError) {
            var log = try KeyLog(app: app)
            let head = try stored.map { (bytes) throws(KeyLogError) in try KeyLogHead(bytes) }
            try head?.check(key)
            while true {
                let entries: [[UInt8]]
                do throws(SQLiteError) {
                    entries = try rows.entries(of: app, from: log.entries.count)
                } catch { throw KeyLogError(.malformed, "the entries cannot be read: \(error)") }
                for bytes in entries {
                    try log.restore(bytes)
                    if let head, head.size == log.size { try log.adopt(head) }
                }
                if entries.count < KeyLogRows.pageRows { break }
            }
            guard head.map({ $0.size <= log.size }) ?? true else {
                throw KeyLogError(.olderHead, "entries that the newest head states are missing")
            }
            return log
        } catch { throw .damaged(error) }
    }

    private static func read<Value>(_ body: () throws(SQLiteError) -> Value) throws(Fault) -> Value {
        do throws(SQLiteError) { return try body() } catch { throw .store(StoreError(error, "reading the key log")) }
    }
}
