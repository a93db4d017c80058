import ThicketCrypto
import ThicketKeyLog
import ThicketSQLite

/// What operators' commands read of key logs. Works beside a running server.
struct KeyLogAdmin {
    private let rows: KeyLogRows

    init(path: String, settings: StoreSettings = .init()) throws(StoreError) {
        let database = try SQLiteStore.connect(path, .readWrite, settings)
        try Schema.check(database)
        rows = KeyLogRows(database: database)
    }

    init(_ database: Database) { rows = KeyLogRows(database: database) }

    /// Apps with a key log.
    func apps() throws(StoreError) -> [String] {
        try storing("reading the key logs") { () throws(SQLiteError) in try rows.apps() }
    }

    /// Whether the server has the app, with or without a log.
    func hasApp(_ app: String) throws(StoreError) -> Bool {
        try storing("reading the apps") { () throws(SQLiteError) in
            try rows.database.statement("SELECT 1 FROM app WHERE name = ?1").bind(1, app).first { _ in true } ?? false
        }
    }

    /// All of a log. The head is read first: the entries that it states are read after it.
    /// - Parameter key: the log's public key; nil when its file is not at hand.
    func export(_ app: String, key: Ed25519.VerifyingKey?) throws(StoreError) -> KeyLogExport {
        try storing("reading the key log") { () throws(SQLiteError) in
            let head = try rows.head(of: app)
            let rotations = try rows.rotations(of: app)
            var entries = [[UInt8]]()
            while true {
                let page = try rows.entries(of: app, from: entries.count)
                entries += page
                if page.count < KeyLogRows.pageRows { break }
            }
            return KeyLogExport(app: app, key: key?.octets ?? [], head: head, rotations: rotations, entries: entries)
        }
    }

    /// Rows whose user or number is not that of their entry, or that are not in order: look-ups would miss them.
    func rowFindings(_ app: String) throws(StoreError) -> [String] {
        try storing("reading the key log") { () throws(SQLiteError) in
            let gaps =
                try rows.database.statement(
                    "SELECT max(place) + 1 - count(*) FROM key_entry WHERE app = ?1"
                ).bind(1, app).first { $0.integer(0) } ?? 0
            var findings = gaps == 0 ? [] : ["key log of \(app): \(gaps) places have no entry"]
            try rows.database.statement(
                "SELECT place, user, number, bytes FROM key_entry WHERE app = ?1 ORDER BY place"
            )
            .bind(1, app).forEach { (row) throws(SQLiteError) in
                let entry = try? KeyLogEntry(row.bytes(3))
                let isRight =
                    entry.map { $0.user.utf8.elementsEqual(row.text(1).utf8) && Int64($0.sequence) == row.integer(2) }
                if isRight != true {
                    findings.append("key log of \(app): the row at place \(row.integer(0)) is not that of its entry")
                }
            }
            return findings
        }
    }

    /// Whether the stored heads and statements are of another key file.
    func isForeign(_ key: LogKey) throws(StoreError) -> Bool {
        try storing("reading the key logs") { () throws(SQLiteError) in
            for app in try signedApps() {
                let own = key.key(of: app).verifyingKey
                let newest = try rows.rotations(of: app).last.map { try? LogKeyRotation($0) }
                if let newest, newest?.new != own { return true }
                let head = try rows.head(of: app).map { try? KeyLogHead($0) }
                if let head, (try? head?.check(own)) == nil { return true }
            }
            return false
        }
    }

    /// Whether any head or statement was ever signed.
    func isSigned() throws(StoreError) -> Bool {
        try storing("reading the key logs") { () throws(SQLiteError) in try !signedApps().isEmpty }
    }

    private func signedApps() throws(SQLiteError) -> [String] {
        var apps = [String]()
        try rows.database.statement("SELECT app FROM key_log UNION SELECT app FROM key_rotation ORDER BY 1")
            .forEach { (row) throws(SQLiteError) in apps.append(row.text(0)) }
        return apps
    }
}
