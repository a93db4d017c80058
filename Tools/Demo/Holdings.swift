import ThicketSQLite

/// What the server's database stores of a bucket in all its rows.
struct Holdings {
    /// The number of searched words, and how many of them occur in the bucket's rows.
    let wanted: Int
    let found: Int
    /// The beginning of the newest whole object in the log, or of the newest change.
    let excerpt: String

    /// Fewest letters of a searched word: words of this length do not occur in base64 by chance.
    private static let lettersMin = 8
    private static let wordsMax = 500
    private static let excerptMax = 90

    var line: String { "\(found) of \(wanted) words; \(excerpt)…" }

    /// The words of a text to search for, each once.
    static func words(of text: String) -> [String] {
        var words = Set<String>()
        for word in text.split(whereSeparator: { !$0.isASCII || !$0.isLetter })
        where word.utf8.count >= lettersMin && words.count < wordsMax { words.insert(String(word)) }
        return words.sorted()
    }

    /// - Parameter folder: the server's data folder; the server may be running.
    init(_ folder: String, bucket: String, _ words: [String]) throws {
        let database = try Database(path: folder + "/thicket.db", mode: .readOnly)
        var rows = [UInt8]()
        try database.statement(
            "SELECT k, diff, snap FROM chg WHERE b IN (SELECT id FROM bucket WHERE name = ?1)"
        ).bind(1, bucket).forEach { (row) throws(SQLiteError) in
            rows += row.bytes(0) + row.bytes(1) + (row.optionalBytes(2) ?? []) + [0x0A]
        }
        wanted = words.count
        found = words.count { Self.contains(rows, $0) }
        let newest = try database.statement(
            """
            SELECT coalesce(snap, diff) FROM chg WHERE b IN (SELECT id FROM bucket WHERE name = ?1)
            ORDER BY snap IS NULL, gid DESC LIMIT 1
            """
        ).bind(1, bucket).first { $0.bytes(0) }
        excerpt = String(decoding: (newest ?? []).prefix(Self.excerptMax), as: UTF8.self)
    }

    private static func contains(_ bytes: [UInt8], _ word: String) -> Bool {
        bytes.withUnsafeBytes { ByteSearch.contains($0, Array(word.utf8)) }
    }
}
