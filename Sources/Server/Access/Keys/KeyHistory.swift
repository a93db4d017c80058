import ThicketSQLite

/// Secrets of earlier key files, sealed in the database under the current one.
///
/// Verifiers of accounts cannot be computed again under another key, because the server does not have the secrets.
/// They are hashed once more under the new key instead, and a secret that a client shows is hashed under all keys
/// in turn. A stolen key file is then worthless without its successor.
struct KeyHistory: Equatable {
    /// Key of made-up answers for unknown names; it never changes, because an answer that changes reveals that it
    /// is made up.
    let pretence: [UInt8]
    /// The oldest first.
    let peppers: [[UInt8]]

    /// Bytes of each key.
    private static let keyBytes = 32
    /// Key files that a database can have had before the current one. Each costs a login one hash.
    static let peppersMax = 1_000
    private static let owner = "key heritage"

    init(pretence: [UInt8], peppers: [[UInt8]]) { (self.pretence, self.peppers) = (pretence, peppers) }

    /// nil: the bytes do not have the form of a key history.
    private init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.keyBytes, bytes.count % Self.keyBytes == 0 else { return nil }
        let keys = stride(from: 0, to: bytes.count, by: Self.keyBytes).map {
            Array(bytes[$0..<$0 + Self.keyBytes])
        }
        self.init(pretence: keys[0], peppers: Array(keys.dropFirst()))
    }

    /// The key with the history of the key files before it, if there were any.
    static func adoptingPrevious(_ key: ServerKey, _ database: Database) throws(SQLiteError) -> ServerKey {
        let sealed = try Meta.bytes(Meta.keyHistoryRow, database)
        guard !sealed.isEmpty, let opened = key.open(sealed, of: owner),
            let keyHistory = KeyHistory(opened)
        else { return key }
        return key.adoptingPrevious(of: keyHistory)
    }

    /// Stores the history, sealed under the key.
    func leave(to key: ServerKey, _ database: Database) throws(SQLiteError) {
        try Meta.set(Meta.keyHistoryRow, key.seal(peppers.reduce(pretence, +), of: Self.owner), database)
    }
}
