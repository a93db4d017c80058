import ThicketProtocol
import ThicketSQLite

/// The `meta` table: keys and numbers of a store.
enum Meta {
    static let epoch = "epoch"
    static let versionBase = "version_base"
    static let cvKey = "cv_key"
    static let changeIDKey = "ccid_key"
    /// Number of writes made only to test whether the disk accepts one.
    static let probe = "probe"
    /// Number of changes to partners, so that a running server notices them.
    static let partners = "partners"

    /// Identifies the key file that belongs to this store (`ServerKeyMark`).
    static let serverKey = "server_key"
    /// Secrets that earlier key files have left, sealed with the current one (`KeyHistory`).
    static let keyHistoryRow = "key_heritage"

    /// The change up to which `ent` has all heads (`WriteBehindHeads`).
    static let heads = "heads"

    /// The newest change that was erased with its user.
    static let erased = "erased"

    /// The highest row of an erased bucket: it is not assigned again.
    static let erasedRow = "erased_row"

    static func set(_ name: String, _ value: [UInt8], _ database: Database) throws(SQLiteError) {
        try database.statement("INSERT OR REPLACE INTO meta (k, v) VALUES (?1, ?2)").bind(1, name).bind(2, value).run()
    }

    static func set(_ name: String, _ value: Int64, _ database: Database) throws(SQLiteError) {
        try database.statement("INSERT OR REPLACE INTO meta (k, v) VALUES (?1, ?2)").bind(1, name).bind(2, value).run()
    }

    static func bytes(_ name: String, _ database: Database) throws(SQLiteError) -> [UInt8] {
        try database.statement("SELECT v FROM meta WHERE k = ?1").bind(1, name).first { $0.bytes(0) } ?? []
    }

    static func integer(_ name: String, _ database: Database) throws(SQLiteError) -> Int64? {
        try database.statement("SELECT v FROM meta WHERE k = ?1").bind(1, name).first { $0.integer(0) }
    }

    /// Fills the table of a new store.
    /// - Parameter random: returns the given number of unpredictable bytes.
    static func seed(_ database: Database, random: (Int) -> [UInt8]) throws(SQLiteError) {
        try set(cvKey, random(16), database)
        try set(changeIDKey, random(16), database)
        try set(epoch, 1, database)
        try set(versionBase, 0, database)
    }

    static func identity(_ database: Database) throws(StoreError) -> StoreIdentity {
        let (cv, changeID, number, base) = try storing("reading meta") {
            () throws(SQLiteError) in
            (
                try bytes(cvKey, database), try bytes(changeIDKey, database), try integer(epoch, database),
                try integer(versionBase, database)
            )
        }
        guard cv.count == 16, changeID.count == 16, let number, let epoch = UInt32(exactly: number),
            let base, base >= 0
        else { throw StoreError(.corrupt, "the meta table lacks a key or number") }
        return StoreIdentity(cvKey: cv, changeIDKey: changeID, epoch: epoch, versionBase: base)
    }
}
