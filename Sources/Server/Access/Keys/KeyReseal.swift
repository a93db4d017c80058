import ThicketSQLite

/// Puts everything that a key file seals or hashes in a database under another key file, inside one transaction.
///
/// New kinds of sealed or hashed data must be added here; `KeyRotationTests` check each kind.
struct KeyReseal {
    /// What was put under the other key, for the operator.
    struct Report: Sendable, Hashable {
        var apiKeys = 0
        var authKeys = 0
        /// Accounts whose proofs are checked with the key file.
        var accounts = 0
        /// Keys of partners that were sealed by a file before the old one. They stay as they are, and nothing can
        /// open them.
        var unopened = 0
    }

    /// Includes the history of the key files before it.
    let old: ServerKey
    let new: ServerKey
    let database: Database
    private(set) var report = Report()

    /// Accounts of one page.
    private static let pageRows: Int64 = 1_000

    init(from old: ServerKey, to new: ServerKey, _ database: Database) {
        (self.old, self.new, self.database) = (old, new, database)
    }

    mutating func run() throws(SQLiteError) -> Report {
        try resealPartners()
        try rehashAccounts()
        try rehashBundles()
        try rehashCodes()
        try old.keyHistory.leave(to: new, database)
        try Meta.set(Meta.serverKey, new.mark, database)
        // Makes running servers read the partners again.
        try Meta.set(Meta.partners, (try Meta.integer(Meta.partners, database) ?? 0) + 1, database)
        return report
    }

    private mutating func resealPartners() throws(SQLiteError) {
        for row in try PartnerRow.all(database) {
            if let apiKey = old.open(row.sealedAPIKey, of: PartnerRow.apiKeyOwner(row.id)) {
                try PartnerRow.set(apiKey: String(decoding: apiKey, as: UTF8.self), of: row.id, new, database)
                report.apiKeys += 1
            } else {
                report.unopened += 1
            }
            for (number, sealed) in try PartnerRow.sealedAuthKeys(of: row.id, database) {
                guard let authKey = old.open(sealed, of: PartnerRow.authKeyOwner(row.id)) else {
                    report.unopened += 1
                    continue
                }
                try database.statement("UPDATE partner_key SET sealed = ?2 WHERE id = ?1").bind(1, number)
                    .bind(2, new.seal(authKey, of: PartnerRow.authKeyOwner(row.id))).run()
                report.authKeys += 1
            }
        }
    }

    /// Rehashes accounts whose clients send a key; for sent passwords the key file is not used.
    private mutating func rehashAccounts() throws(SQLiteError) {
        var last = ""
        while true {
            var page = [(user: String, verifier: [UInt8], recovery: [UInt8]?)]()
            try database.statement(
                """
                SELECT user, verifier, recovery FROM account WHERE scheme = 1 AND user > ?1 ORDER BY user LIMIT ?2
                """
            ).bind(1, last).bind(2, Self.pageRows).forEach { (row: Statement) throws(SQLiteError) in
                page.append((row.text(0), row.bytes(1), row.optionalBytes(2)))
            }
            guard let end = page.last?.user else { return }
            last = end
            for row in page {
                try database.statement("UPDATE account SET verifier = ?2, recovery = ?3 WHERE user = ?1")
                    .bind(1, row.user).bind(2, new.verifier(from: row.verifier))
                    .bind(3, row.recovery.map(new.verifier(from:))).run()
            }
            report.accounts += page.count
        }
    }

    /// Rehashes the verifiers of recovery words of partners' users.
    private func rehashBundles() throws(SQLiteError) {
        var last: (app: String, entity: String) = ("", "")
        while true {
            var page = [(app: String, entity: String, recovery: [UInt8])]()
            try database.statement(
                """
                SELECT app, entity, recovery FROM entity_bundle WHERE recovery IS NOT NULL AND (app, entity) > (?1, ?2)
                ORDER BY app, entity LIMIT ?3
                """
            ).bind(1, last.app).bind(2, last.entity).bind(3, Self.pageRows)
                .forEach { (row: Statement) throws(SQLiteError) in
                    page.append((row.text(0), row.text(1), row.bytes(2)))
                }
            guard let end = page.last else { return }
            last = (end.app, end.entity)
            for row in page {
                try database.statement("UPDATE entity_bundle SET recovery = ?3 WHERE app = ?1 AND entity = ?2")
                    .bind(1, row.app).bind(2, row.entity).bind(3, new.verifier(from: row.recovery)).run()
            }
        }
    }

    /// Rehashes mailed codes of accounts, which stay good; those of partners' users are deleted, and users ask for
    /// another.
    private func rehashCodes() throws(SQLiteError) {
        var codes = [(user: String, code: [UInt8])]()
        try database.statement("SELECT user, code FROM account_code").forEach { (row: Statement) throws(SQLiteError) in
            codes.append((row.text(0), row.bytes(1)))
        }
        for row in codes {
            try database.statement("UPDATE account_code SET code = ?2 WHERE user = ?1").bind(1, row.user)
                .bind(2, new.verifier(from: row.code)).run()
        }
        try database.execute("DELETE FROM reset_code")
    }
}
