import ThicketAuth
import ThicketSQLite

/// A row of the table of partners, with its keys still sealed.
struct PartnerRow {
    let id: String
    /// Hash of its API key, for lookups.
    let name: [UInt8]
    let sealedAPIKey: [UInt8]
    let isEnabled: Bool
    let keepsPasswords: Bool
    /// Milliseconds since 1970.
    let created: Int64
    /// The newest first.
    var sealedAuthKeys = [[UInt8]]()

    static func all(_ database: Database) throws(SQLiteError) -> [PartnerRow] {
        var rows = [PartnerRow]()
        try database.statement(
            "SELECT id, name, api_key, enabled, created, passwords FROM partner ORDER BY CAST(id AS INTEGER)"
        )
        .forEach { (row: Statement) throws(SQLiteError) in
            rows.append(
                PartnerRow(
                    id: row.text(0), name: row.bytes(1), sealedAPIKey: row.bytes(2),
                    isEnabled: row.integer(3) != 0, keepsPasswords: row.integer(5) != 0, created: row.integer(4)))
        }
        for place in rows.indices {
            rows[place].sealedAuthKeys = try sealedAuthKeys(of: rows[place].id, database).map(\.sealed)
        }
        return rows
    }

    /// The newest first, with the number of each row.
    static func sealedAuthKeys(
        of id: String, _ database: Database
    ) throws(SQLiteError) -> [(number: Int64, sealed: [UInt8])] {
        var keys = [(number: Int64, sealed: [UInt8])]()
        try database.statement("SELECT id, sealed FROM partner_key WHERE partner = ?1 ORDER BY id DESC").bind(1, id)
            .forEach { (row: Statement) throws(SQLiteError) in keys.append((row.integer(0), row.bytes(1))) }
        return keys
    }

    /// Stores a partner's API key, sealed, and its hash for lookups.
    static func set(apiKey: String, of id: String, _ key: ServerKey, _ database: Database) throws(SQLiteError) {
        try database.statement("UPDATE partner SET name = ?2, api_key = ?3 WHERE id = ?1").bind(1, id)
            .bind(2, key.name(of: apiKey)).bind(3, key.seal(Array(apiKey.utf8), of: apiKeyOwner(id))).run()
    }

    /// The partner with its keys opened. A key that does not open is left out: its users cannot log in until the
    /// key file is back.
    func partner(_ key: ServerKey) -> Partner {
        Partner(
            id: id, authKeys: sealedAuthKeys.compactMap { key.open($0, of: Self.authKeyOwner(id)) },
            isEnabled: isEnabled, keepsPasswords: keepsPasswords)
    }

    static func authKeyOwner(_ id: String) -> String { "partner auth key \(id)" }
    static func apiKeyOwner(_ id: String) -> String { "partner api key \(id)" }
}
