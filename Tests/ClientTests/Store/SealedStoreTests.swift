import Glibc
import Testing
import ThicketCrypto
import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketClient

/// A store whose files hold no plaintext (docs/decisions/0048).
@Suite("A sealed store in a file")
struct SealedStoreTests {
    /// Words that are in a store in every place that holds text.
    private static let words: [String] = [
        "canary-value-wren", "canary-pending-finch", "canary-later-robin", "canary-held-heron", "canary_key_magpie",
        "canary_bucket_dipper", "canary-note-stork", "canary-step-osprey",
    ]

    private static func fill(_ store: SQLiteLocalStore) throws {
        let bucket = try BucketName(words[5])
        try store.setNamedValue("account", to: words[6])
        var batch = LocalBatch()
        batch.buckets = [BucketRecord(name: bucket)]
        for number in 0..<40 {
            var edits = EditState()
            let value: JSONObject = ["text": .string("\(words[0]) \(number)")]
            let pending = JSONDiff.diff(from: value, to: ["text": .string(words[1])])
            edits.pending = PendingChange(
                changeID: try ChangeID("c\(number)"), edit: .modify(pending), source: 1, bytes: Array(words[1].utf8))
            edits.later = .modify(JSONDiff.diff(from: [:], to: ["more": .string(words[2])]))
            edits.held = Ghost(version: 9, object: ["text": .string(words[3])])
            let address = EntityAddress(bucket: bucket, key: try EntityKey("\(words[4])\(number)"))
            let record = EntityRecord(
                ghost: Ghost(version: 1, object: value), edits: edits, isLive: true)
            batch.entities.append(EntityWrite(address, record, [.ghost, .edits, .marks]))
        }
        try store.commit(batch)
        try addStep(store, bucket)
    }

    /// Writes a large object and one journal step after its whole.
    private static func addStep(_ store: SQLiteLocalStore, _ bucket: BucketName) throws {
        let address = EntityAddress(bucket: bucket, key: try EntityKey("large"))
        let old: JSONObject = ["text": .string(String(repeating: "leaf ", count: 2_000)), "n": 0]
        var record = EntityRecord(ghost: Ghost(version: 1, object: old), isLive: true)
        var batch = LocalBatch()
        batch.entities = [EntityWrite(address, record, [.ghost, .marks])]
        try store.commit(batch)
        var new: JSONObject = old
        new["step"] = .string(words[7])
        record.ghost = Ghost(version: 2, object: new)
        let step = GhostStep(version: 2, diff: JSONDiff.diff(from: old, to: new))
        batch.entities = [EntityWrite(address, record, [.ghost], ghostSteps: [step])]
        try store.commit(batch)
    }

    private static func read(_ store: SQLiteLocalStore) throws -> [EntityRecord] {
        var records = [EntityRecord]()
        for bucket in try store.buckets() {
            for key in try store.liveKeys(bucket.name, after: nil, limit: 100) {
                if let record = try store.entity(EntityAddress(bucket: bucket.name, key: key)) {
                    records.append(record)
                }
            }
        }
        return records
    }

    static func bytes(_ path: String) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: Int(lseek(file, 0, SEEK_END)))
        let count = pread(file, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    static func put(_ bytes: [UInt8], to path: String) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        _ = Glibc.write(file, bytes, bytes.count)
        close(file)
    }

    /// The words that are in any file of a folder.
    private static func found(_ folder: TemporaryFolder) -> Set<String> {
        var found = Set<String>()
        for name in ["a.db", "a.db-wal", "a.db-shm", "a.db-journal", "a.db.lock", "a.db.sealing", "a.db.key"] {
            let text = bytes(folder.file(name))
            for word in words where text.firstRange(of: Array(word.utf8)) != nil { found.insert(word) }
        }
        return found
    }

    @Test("T2: no value, edit, note or name is readable in any file, neither while the store is open nor afterwards")
    func nothingReadable() throws {
        for key: StoreKey? in [nil, .random()] {
            let folder = try TemporaryFolder()
            let store = try SQLiteLocalStore(path: folder.file("a.db"), key: key)
            try Self.fill(store)
            #expect(!Self.bytes(folder.file("a.db-wal")).isEmpty, "the log is searched while it holds everything")
            var found = Self.found(folder)
            store.close()
            found.formUnion(Self.found(folder))
            // Without a key the search finds them all: it is not blind.
            #expect(found == (key == nil ? Set(Self.words) : []), "\(found)")
        }
    }

    @Test("an earlier version's clear store is sealed when it is opened, with all it holds; nothing stays readable")
    func migration() throws {
        let folder = try TemporaryFolder()
        let path: String = folder.file("a.db")
        var clear: SQLiteLocalStore? = try SQLiteLocalStore(path: path)
        if let clear { try Self.fill(clear) }
        let before = try Self.read(try #require(clear))
        clear?.close()
        clear = nil
        let key = StoreKey.random()
        for _ in 0..<2 {
            let store = try SQLiteLocalStore(path: path, key: key)
            #expect(try Self.read(store) == before)
            #expect(try store.namedValue("account") == Self.words[6])
            store.close()
        }
        #expect(before.count == 41 && Self.found(folder).isEmpty)
        #expect(access(path + ".sealing", F_OK) != 0)
    }

    @Test("a crash at any point while a store is sealed loses nothing")
    func migrationCrash() throws {
        var crashes = 0
        for point in stride(from: 0, to: 60, by: 4) {
            let folder = try TemporaryFolder()
            let path: String = folder.file("a.db")
            var clear: SQLiteLocalStore? = try SQLiteLocalStore(path: path)
            if let clear { try Self.fill(clear) }
            let before = try Self.read(try #require(clear))
            clear?.close()
            clear = nil
            let disk = FaultVFS(name: "sealing-crash-\(point)")
            let key = StoreKey.random()
            disk.fail(FaultRule(.change, .crash, skipping: point))
            do {
                let attempt = try? SQLiteLocalStore(path: path, key: key, vfs: disk.name)
                attempt?.close()
            }
            if disk.isCrashed { crashes += 1 }
            disk.restart()
            let store = try SQLiteLocalStore(path: path, key: key, vfs: disk.name)
            #expect(try Self.read(store) == before, "point \(point)")
            store.close()
            #expect(Self.found(folder).isEmpty)
        }
        #expect(crashes > 6, "\(crashes)")
    }

    @Test("another key opens nothing and changes nothing, and the error mentions another key")
    func otherKey() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let key = StoreKey.random()
        do {
            let store = try SQLiteLocalStore(path: path, key: key)
            try Self.fill(store)
            store.close()
        }
        let before = Self.bytes(path)
        let refusal = #expect(throws: ClientError.self) {
            try SQLiteLocalStore(path: path, key: .random())
        }
        #expect(
            refusal?.code == .store && refusal?.detail.contains("another key") == true, "\(String(describing: refusal))"
        )
        #expect(throws: ClientError.self) { try SQLiteLocalStore(path: path) }
        #expect(Self.bytes(path) == before)
        #expect(try Self.read(try SQLiteLocalStore(path: path, key: key)).count == 41)
    }

    @Test("a changed byte in the file is an error or hits unused space, and never gives other content")
    func changedBytes() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let key = StoreKey.random()
        let before: [EntityRecord]
        do {
            let store = try SQLiteLocalStore(path: path, key: key)
            try Self.fill(store)
            before = try Self.read(store)
            store.close()
        }
        let good = Self.bytes(path)
        var refused = 0
        for place in stride(from: 3, to: good.count, by: 409) {
            var bad = good
            bad[place] ^= 0x10
            Self.put(bad, to: path)
            do {
                let store = try SQLiteLocalStore(path: path, key: key)
                defer { store.close() }
                #expect(try Self.read(store) == before, "byte \(place)")
            } catch {
                refused += 1
            }
        }
        #expect(refused > 20, "\(refused) of \(good.count / 409)")
    }

    @Test("a page moved within its file, or taken from another file under the same key, does not open")
    func movedPages() throws {
        let folder = try TemporaryFolder()
        let key = StoreKey.random()
        for name in ["a.db", "b.db"] {
            let store = try SQLiteLocalStore(path: folder.file(name), key: key)
            try Self.fill(store)
            store.close()
        }
        let page = SealedFileSystem.pageBytes
        let (first, second) = (Self.bytes(folder.file("a.db")), Self.bytes(folder.file("b.db")))
        for (from, place) in [(first, 3), (second, 2)] {
            var mixed = first
            mixed.replaceSubrange(2 * page..<3 * page, with: from[place * page..<(place + 1) * page])
            Self.put(mixed, to: folder.file("a.db"))
            #expect(throws: ClientError.self) {
                let store = try SQLiteLocalStore(path: folder.file("a.db"), key: key)
                defer { store.close() }
                _ = try Self.read(store)
            }
        }
    }

    @Test("without its key file a sealed store is refused, and no new key is made in its place")
    func missingKey() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        try StoreLocation.file(path).open(.program).close()
        var status = stat()
        #expect(stat(path + ".key", &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(rename(path + ".key", folder.file("kept")) == 0)
        let refusal = #expect(throws: ClientError.self) { try StoreLocation.file(path).open(.program) }
        #expect(refusal?.code == .store && refusal?.detail.contains("does not exist") == true)
        #expect(access(path + ".key", F_OK) != 0)
        #expect(rename(folder.file("kept"), path + ".key") == 0)
        try StoreLocation.file(path).open(.program).close()
    }

    @Test(
        "a transaction larger than SQLite's cache, which writes log pages twice, is kept whole, also after a kill"
    )
    func largeTransaction() throws {
        let folder = try TemporaryFolder()
        let key = StoreKey.random()
        let files = try #require(SealedFileSystem(StoreCipher(key: key)))
        let text = String(repeating: "leaf ", count: 60)
        func rows(_ database: Database) throws -> [Int64?] {
            try ["SELECT count(*) FROM t", "SELECT sum(n) FROM t", "SELECT min(length(v)) FROM t"].map {
                try database.integer($0)
            }
        }
        do {
            let database: Database = try Database(path: folder.file("a.db"), sealed: files)
            try database.execute("PRAGMA locking_mode=EXCLUSIVE")
            try database.reservePageEnds(SealedFileSystem.extraBytes)
            for pragma in ["temp_store=MEMORY", "journal_mode=WAL", "cache_size=16", "wal_autocheckpoint=0"] {
                try database.execute("PRAGMA \(pragma)")
            }
            try database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, v TEXT)")
            for _ in 0..<3 {
                try database.transaction(.immediate) { () throws(SQLiteError) in
                    for number: Int64 in 0..<3_000 {
                        let row: Int64 = number * 7 % 3_000
                        try database.statement("INSERT OR REPLACE INTO t (n, v) VALUES (?1, ?2)").bind(1, row).bind(
                            2, text
                        )
                        .run()
                    }
                }
            }
            #expect(try rows(database) == [3_000, 3_000 * 2_999 / 2, 300])
            // As a kill leaves it: the log holds everything, the database almost nothing.
            for name in ["a.db", "a.db-wal"] {
                Self.put(Self.bytes(folder.file(name)), to: folder.file("copy-\(name)"))
            }
        }
        #expect(rename(folder.file("copy-a.db"), folder.file("b.db")) == 0)
        #expect(rename(folder.file("copy-a.db-wal"), folder.file("b.db-wal")) == 0)
        let again = try #require(SealedFileSystem(StoreCipher(key: key)))
        let copy = try Database(path: folder.file("b.db"), sealed: again)
        try copy.execute("PRAGMA locking_mode=EXCLUSIVE")
        #expect(try rows(copy) == [3_000, 3_000 * 2_999 / 2, 300])
        #expect(try copy.integrityFindings().isEmpty)
    }
}
