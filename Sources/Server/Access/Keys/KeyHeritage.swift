import ThicketSQLite

/// What one key file leaves to the next, sealed under that in the database.
///
/// Verifiers of accounts cannot be made anew under another key: nobody has the secrets. So they are hashed once more,
/// under the new key, and whoever shows a secret has it hashed under all keys in turn. A stolen key file is worth
/// nothing then without the one that came after it.
struct KeyHeritage: Equatable {
    /// Key of what is made up for names that nobody has; the same for good, because an answer that changes is made up.
    let pretence: [UInt8]
    /// The oldest first.
    let peppers: [[UInt8]]

    /// Bytes of each key.
    private static let keyBytes = 32
    /// Key files that a database can have had before the one it has. Each costs a login one hash.
    static let peppersMax = 1_000
    private static let owner = "key heritage"

    init(pretence: [UInt8], peppers: [[UInt8]]) { (self.pretence, self.peppers) = (pretence, peppers) }

    /// nil: no heritage of ours.
    private init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.keyBytes, bytes.count % Self.keyBytes == 0 else { return nil }
        let keys = stride(from: 0, to: bytes.count, by: Self.keyBytes).map {
            Array(bytes[$0..<$0 + Self.keyBytes])
        }
        self.init(pretence: keys[0], peppers: Array(keys.dropFirst()))
    }

    /// The key as the follower of those that were before it, if there were any.
    static func heir(_ key: ServerKey, _ database: Database) throws(SQLiteError) -> ServerKey {
        let sealed = try Meta.bytes(Meta.keyHeritage, database)
        guard !sealed.isEmpty, let opened = key.open(sealed, of: owner),
            let heritage = KeyHeritage(opened)
        else { return key }
        return key.heir(of: heritage)
    }

    /// Leaves it to the key.
    func leave(to key: ServerKey, _ database: Database) throws(SQLiteError) {
        try Meta.set(Meta.keyHeritage, key.seal(peppers.reduce(pretence, +), of: Self.owner), database)
    }
}
