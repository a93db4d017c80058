public import ThicketAuth
public import ThicketKeyLog
import ThicketSQLite

// Sealed keys of partners' users (`EntityBundles`), each for one app.
extension PartnerStore {
    /// The user's sealed keys in the app; nil when it has none.
    public func bundle(of entity: String, in app: String) throws(DirectoryError) -> EntityBundle? {
        try asking { () throws(SQLiteError) in
            try database.statement(
                """
                SELECT version, content, recovery, access, salt, n, r, p FROM entity_bundle
                WHERE app = ?1 AND entity = ?2
                """
            ).bind(1, app).bind(2, entity).first { row in
                let wrap = row.optionalBytes(3).map {
                    EntityBundle.Wrap(
                        stretch: Account.Stretch(
                            salt: row.bytes(4), n: row.integer(5), r: row.integer(6), p: row.integer(7)), access: $0)
                }
                return EntityBundle(
                    bundle: Bundle(version: row.integer(0), content: row.bytes(1)), recovery: row.optionalBytes(2),
                    wrap: wrap)
            }
        }
    }

    /// Writes a bundle whose version follows the stored one, and appends entries to the key log in the same
    /// transaction; false, and nothing changes, when the version does not follow.
    public func put(
        _ bundle: EntityBundle, of entity: String, in app: String, entries: [KeyLogEntry] = []
    ) throws(DirectoryError) -> Bool {
        var refusal: DirectoryError?
        let isWritten = try asking { () throws(SQLiteError) in
            guard !entries.isEmpty else { return try write(bundle, of: entity, in: app) }
            return try database.transaction(.immediate) { () throws(SQLiteError) in
                let rows = KeyLogRows(database: database)
                // The first write of a bundle permits to begin again after the user's data was erased.
                switch try rows.plan(entries, mayReset: { _ in bundle.bundle.version == 1 }) {
                case .refused(let error, let newest):
                    refusal = DirectoryError(error, newest: newest)
                    return false
                case .append(let new):
                    guard try write(bundle, of: entity, in: app) else { return false }
                    try rows.append(new)
                    return true
                }
            }
        }
        if let refusal { throw refusal }
        // The bundle is on disk: if the log in memory cannot follow now, its next use does.
        if isWritten, !entries.isEmpty { try? keyLogs?.follow(app) }
        return isWritten
    }

    private func write(_ bundle: EntityBundle, of entity: String, in app: String) throws(SQLiteError) -> Bool {
        // IGNORE: a first version written by another client is reported as a conflict of versions.
        let row = try database.statement(
            bundle.bundle.version == 1
                ? """
                INSERT OR IGNORE INTO entity_bundle (app, entity, version, content, recovery, access, salt, n, r, p)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                """
                : """
                UPDATE entity_bundle SET version = ?3, content = ?4, recovery = ?5, access = ?6, salt = ?7, n = ?8,
                    r = ?9, p = ?10
                WHERE app = ?1 AND entity = ?2 AND version = ?3 - 1
                """)
        let stretch = bundle.wrap?.stretch
        try row.bind(1, app).bind(2, entity).bind(3, bundle.bundle.version).bind(4, bundle.bundle.content)
            .bind(5, bundle.recovery).bind(6, bundle.wrap?.access).bind(7, stretch?.salt).bind(8, stretch?.n)
            .bind(9, stretch?.r).bind(10, stretch?.p).run()
        return database.changedRows == 1
    }

    /// The keyed hash under which a secret that a client shows is kept.
    public func verifier(of secret: [UInt8]) -> [UInt8] { key.accountSecrets.verifier(secret) }
}
