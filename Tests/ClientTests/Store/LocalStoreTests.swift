import Glibc
import Testing
import ThicketClient
import ThicketProtocol
import ThicketSQLite
import ThicketSealed

/// A kind of store, and a way to close and open it again.
enum StoreKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case memory, sqlite, sealed
    var testDescription: String { rawValue }
}

final class StoreUnderTest {
    private let folder: TemporaryFolder
    private let kind: StoreKind
    private let key: StoreKey?
    private(set) var store: any LocalStore
    let bucket: BucketName

    init(_ kind: StoreKind) throws {
        folder = try TemporaryFolder()
        self.kind = kind
        key = kind == .sealed ? .random() : nil
        store =
            kind == .memory ? MemoryLocalStore() : try SQLiteLocalStore(path: folder.file("store.db"), key: key)
        bucket = try BucketName("notes")
    }

    /// Restarts the program's store; a memory store is simply kept.
    func reopen() throws {
        guard kind != .memory else { return }
        store.close()
        store = MemoryLocalStore()
        store = try SQLiteLocalStore(path: folder.file("store.db"), key: key)
    }

    func address(_ key: String) throws -> EntityAddress { EntityAddress(bucket: bucket, key: try EntityKey(key)) }

    func commit(
        _ entities: [(key: String, record: EntityRecord, parts: EntityParts)], bucket record: BucketRecord? = nil
    ) throws {
        var batch = LocalBatch()
        batch.entities = try entities.map { EntityWrite(try address($0.key), $0.record, $0.parts) }
        if let record { batch.buckets = [record] }
        try store.commit(batch)
    }
}

@Suite("Behaviour of every local store")
struct LocalStoreTests {
    private func rich() throws -> EntityRecord {
        let value = try object(
            #"{"z":1.0,"a":"é e\u0301 🙂","n":null,"l":[1,[2]],"o":{"k":12345678901234567890}}"#)
        var edits = EditState()
        let diff = JSONDiff.diff(from: value, to: try object(#"{"z":2,"a":"é 🙂🙂","o":{}}"#))
        edits.pending = PendingChange(
            changeID: try ChangeID("c1"), edit: .modify(diff), source: 7, bytes: Array(#"{"id":"a"}"#.utf8),
            appliedAt: 9,
            isConfirmed: true)
        edits.later = .remove
        edits.held = Ghost(version: 12, object: value)
        (edits.wanted, edits.refusal, edits.attempts, edits.sendsWhole) = (13, 413, 2, true)
        return EntityRecord(ghost: Ghost(version: 7, object: value), edits: edits, isLive: true, scanID: 3)
    }

    @Test(
        "a store keeps a sealed bucket's extra state, and lists its objects by the app's names",
        arguments: StoreKind.allCases)
    func sealedBucket(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        var kept = SealedKept()
        kept.later = .members([.init("t", .set("new"))])
        kept.pendingEdit = .members([.init("t", .text(try TextDelta(parsing: "=1\t+x")))])
        (kept.pastIncarnations, kept.isReplacing) = ([Array(repeating: 9, count: 16)], true)
        var edited = EntityRecord(ghost: Ghost(version: 3, object: ["z": 1]), isLive: true, name: "zoo")
        edited.edits.sealed = kept
        var blocked = EntityRecord(ghost: Ghost(version: 1, object: ["z": 1]), isLive: true, name: "ant")
        blocked.edits.sealed.problem = .forked(at: 12)
        let deleted = EntityRecord(ghost: Ghost(version: 5), name: "gone")
        let all: EntityParts = [.ghost, .edits, .marks]
        try test.commit(
            [("aaa", edited, all), ("bbb", blocked, all), ("ccc", deleted, all)],
            bucket: BucketRecord(name: test.bucket, scansStarted: 1, isSealed: true))
        for _ in 0..<2 {
            #expect(try test.store.buckets().map(\.isSealed) == [true])
            #expect(try test.store.entity(test.address("aaa")) == edited)
            #expect(try test.store.entity(test.address("bbb")) == blocked)
            #expect(try test.store.entity(test.address("ccc")) == deleted)
            #expect(try test.store.liveNames(test.bucket, after: nil, limit: 9) == ["ant", "zoo"])
            #expect(try test.store.liveNames(test.bucket, after: "ant", limit: 9) == ["zoo"])
            #expect(try test.store.liveNames(test.bucket, after: nil, limit: 1) == ["ant"])
            let known = try test.store.edited(test.bucket)
            #expect(known.map(\.hasEdits) == [true, false] && known.map(\.isRefused) == [false, true])
            try test.reopen()
        }
    }

    @Test("objects that arrive whole are stored like others, and are known then", arguments: StoreKind.allCases)
    func arrivals(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        let keys = try ["a", "b", "c"].map { try EntityKey($0) }
        #expect(try test.store.known(test.bucket, among: keys).isEmpty)
        let page = try JSONDocument(parsing: Array(" [{\"z\":1.0,\n \"a\":\"é\"}]".utf8))
        let bodies = page.root.elements.map(JSONFragment.node) + [.value(["n": 2])]
        var batch = LocalBatch()
        batch.buckets = [BucketRecord(name: test.bucket, scansStarted: 1)]
        for (key, body) in zip(["a", "b"], bodies) {
            batch.arrivals.append(NewObject(try test.address(key), version: 7, scanID: 3, body: body))
        }
        let other = EntityRecord(ghost: Ghost(version: 1, object: ["c": 1]), isLive: true, scanID: 3)
        batch.entities = [EntityWrite(try test.address("c"), other, [.ghost, .marks])]
        try test.store.commit(batch)
        for _ in 0..<2 {
            for object in batch.arrivals {
                #expect(try test.store.entity(object.address) == object.record())
            }
            #expect(try test.store.entity(test.address("c")) == other)
            #expect(try test.store.known(test.bucket, among: keys + [EntityKey("d")]) == Set(keys))
            #expect(try test.store.known(BucketName("other"), among: keys).isEmpty)
            #expect(try test.store.liveKeys(test.bucket, after: nil, limit: 9) == keys)
            try test.reopen()
        }
    }

    @Test("a store that another program has open is storeInUse, and no other program reads an open store")
    func outsiders() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("store.db")
        try SQLiteLocalStore(path: path).close()
        do {
            let outsider = try Database(path: path)
            try outsider.begin(.immediate)
            let refusal = #expect(throws: ClientError.self) { try SQLiteLocalStore(path: path) }
            #expect(refusal?.code == .storeInUse)
            outsider.rollback()
        }
        let store = try SQLiteLocalStore(path: path)
        let outsider = try Database(path: path, busyTimeoutMilliseconds: 0)
        let refusal = #expect(throws: SQLiteError.self) {
            try outsider.integer("SELECT count(*) FROM note")
        }
        #expect(refusal?.isBusy == true)
        store.close()
    }

    @Test("a batch with an object that turns out not to be new leaves the file as it was")
    func falseArrival() throws {
        let test = try StoreUnderTest(.sqlite)
        let kept = EntityRecord(ghost: Ghost(version: 1, object: ["n": 1]), isLive: true)
        try test.commit([("b", kept, [.ghost, .marks])], bucket: BucketRecord(name: test.bucket))
        var batch = LocalBatch()
        for key in ["a", "b"] {
            batch.arrivals.append(NewObject(try test.address(key), version: 7, scanID: 3, body: .value([:])))
        }
        #expect(throws: ClientError.self) { try test.store.commit(batch) }
        #expect(try test.store.entity(test.address("a")) == nil)
        #expect(try test.store.entity(test.address("b")) == kept)
    }

    @Test("a store returns everything as it was stored, also after it is opened again", arguments: StoreKind.allCases)
    func roundTrip(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        var record = BucketRecord(
            name: test.bucket, changeVersion: try ChangeVersion("cv1"), scansStarted: 4)
        record.indexScan = IndexScan(id: 4)
        record.indexScan?.mark = "m"
        record.indexScan?.current = try ChangeVersion("cv2")
        record.indexScan?.objectsRead = 10
        record.indexScan?.objectsTotal = 20
        let full = try rich()
        let removed = EntityRecord(ghost: Ghost(version: 3, object: nil))
        try test.commit([("a", full, [.ghost, .edits, .marks]), ("gone", removed, [.ghost])], bucket: record)
        for _ in 0..<2 {
            #expect(try test.store.entity(test.address("a")) == full)
            let kept = try test.store.entity(test.address("a"))?.ghost.object
            #expect(kept?.serialized() == full.ghost.object?.serialized(), "bytes, not only values")
            #expect(try test.store.entity(test.address("gone")) == removed)
            #expect(try test.store.entity(test.address("none")) == nil)
            #expect(try test.store.buckets() == [record])
            try test.reopen()
        }
    }

    @Test("only the named parts of an object are written", arguments: StoreKind.allCases)
    func parts(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        let full = try rich()
        try test.commit([("a", full, [.ghost, .edits, .marks])], bucket: BucketRecord(name: test.bucket))
        var other = full
        other.edits = EditState()
        try test.commit([("a", other, [.edits])])
        #expect(try test.store.entity(test.address("a")) == other)
        other.scanID = 8
        other.isLive = false
        try test.commit([("a", other, [.marks])])
        #expect(try test.store.entity(test.address("a")) == other)
        other.ghost = Ghost(version: 9, object: nil)
        try test.commit([("a", other, [.ghost])])
        #expect(try test.store.entity(test.address("a")) == other)
    }

    @Test("an edit of an object that was never synced needs no ghost", arguments: StoreKind.allCases)
    func newObject(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        var record = EntityRecord(isLive: true)
        record.edits.later = .modify(JSONDiff.diff(from: JSONObject(), to: try object("{\"n\":1}")))
        try test.commit([("a", record, [.edits, .marks])], bucket: BucketRecord(name: test.bucket))
        try test.reopen()
        #expect(try test.store.entity(test.address("a")) == record)
    }

    @Test("objects with a held ghost are listed apart from others with edits", arguments: StoreKind.allCases)
    func held(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        var there = EntityRecord()
        there.edits.held = Ghost(version: 2, object: ["z": 2])
        var gone = EntityRecord(ghost: Ghost(version: 3, object: ["z": 1]))
        gone.edits.held = Ghost(version: 4)
        var edited = EntityRecord()
        edited.edits.sealed.pastIncarnations = [Array(repeating: 9, count: 16)]
        let all: EntityParts = [.ghost, .edits, .marks]
        try test.commit(
            [("b", there, all), ("a", edited, all), ("B", gone, all), ("c", EntityRecord(), all)],
            bucket: BucketRecord(name: test.bucket))
        try test.reopen()
        #expect(try test.store.keysHeld(test.bucket).map(\.text) == ["B", "b"])
        #expect(try test.store.keysHeld(BucketName("other")).isEmpty)
        gone.edits.held = nil
        try test.commit([("B", gone, [.edits])])
        #expect(try test.store.keysHeld(test.bucket).map(\.text) == ["b"])
    }

    @Test("keys are listed by their state, in byte order", arguments: StoreKind.allCases)
    func lists(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        let there = EntityRecord(ghost: Ghost(version: 2, object: JSONObject()), isLive: true, scanID: 1)
        var edited = EntityRecord(isLive: true)
        edited.edits.later = .modify(ObjectDiff())
        var wanting = there
        wanting.edits.wanted = 5
        wanting.scanID = 2
        let all: EntityParts = [.ghost, .edits, .marks]
        try test.commit(
            [
                ("b", there, all), ("B", there, all), ("a", edited, all), ("c", wanting, all),
                ("d", EntityRecord(ghost: Ghost(version: 4, object: nil)), all),
            ], bucket: BucketRecord(name: test.bucket))
        try test.reopen()
        let store = test.store
        #expect(try store.liveKeys(test.bucket, after: nil, limit: 10).map(\.text) == ["B", "a", "b", "c"])
        #expect(try store.liveKeys(test.bucket, after: EntityKey("a"), limit: 1).map(\.text) == ["b"])
        let expected = [
            EditedKey(key: try EntityKey("a"), hasEdits: true, isRefused: false, isStale: false),
            EditedKey(key: try EntityKey("c"), hasEdits: false, isRefused: false, isStale: true),
        ]
        #expect(try store.edited(test.bucket) == expected)
        #expect(try store.keysUnseen(test.bucket, scanID: 2).map(\.text) == ["B", "b"])
        let versions = try store.versions(test.bucket, limit: 2)
        #expect(versions.map(\.key.text) == ["B", "b"])
        #expect(versions.map(\.version) == [2, 2])
        #expect(try store.liveKeys(BucketName("other"), after: nil, limit: 10).isEmpty)
    }

    @Test("the client id and named values are kept", arguments: StoreKind.allCases)
    func notes(kind: StoreKind) throws {
        let test = try StoreUnderTest(kind)
        #expect(try test.store.clientID(fresh: ClientID("one")).text == "one")
        try test.store.setNamedValue("app", to: "x")
        try test.store.setNamedValue("app", to: "y")
        try test.reopen()
        #expect(try test.store.clientID(fresh: ClientID("two")).text == "one")
        #expect(try test.store.namedValue("app") == "y")
        #expect(try test.store.namedValue("user") == nil)
    }

    @Test("a batch that fails changes nothing")
    func allOrNothing() throws {
        let test = try StoreUnderTest(.sqlite)
        let other = try BucketName("never-kept")
        var batch = LocalBatch()
        batch.buckets = [BucketRecord(name: test.bucket)]
        batch.entities = [
            EntityWrite(try test.address("a"), try rich(), [.ghost, .edits]),
            EntityWrite(EntityAddress(bucket: other, key: try EntityKey("b")), EntityRecord(), [.ghost]),
        ]
        #expect(throws: ClientError.self) { try test.store.commit(batch) }
        #expect(try test.store.buckets().isEmpty)
        #expect(try test.store.entity(test.address("a")) == nil)
        batch.entities.removeLast()
        try test.store.commit(batch)
        #expect(try test.store.entity(test.address("a")) != nil)
    }
}

@Suite("A store in a file")
struct FileStoreTests {
    @Test("a second opening is refused as storeInUse, and works after the first has closed")
    func lock() throws {
        let folder = try TemporaryFolder()
        var first: SQLiteLocalStore? = try SQLiteLocalStore(path: folder.file("a.db"))
        let refused: ClientError? = #expect(throws: ClientError.self) {
            try SQLiteLocalStore(path: folder.file("a.db"))
        }
        #expect(refused?.code == .storeInUse)
        first?.close()
        first = nil
        _ = try SQLiteLocalStore(path: folder.file("a.db"))
    }

    @Test("a store's files are readable for their owner only")
    func permissions() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteLocalStore(path: folder.file("a.db"))
        for name in ["a.db", "a.db-wal", "a.db.lock"] {
            var status = stat()
            #expect(stat(folder.file(name), &status) == 0, "\(name)")
            #expect(status.st_mode & 0o077 == 0, "\(name)")
        }
        store.close()
    }

    @Test("a file that is not a store, a missing folder, and a store of a newer format are refused")
    func foreignFiles() throws {
        let folder = try TemporaryFolder()
        let file = open(folder.file("text.db"), O_CREAT | O_WRONLY, 0o600)
        let text = String(repeating: "This is not a database. ", count: 200)
        _ = write(file, text, text.utf8.count)
        close(file)
        #expect(throws: ClientError.self) { try SQLiteLocalStore(path: folder.file("text.db")) }
        #expect(throws: ClientError.self) { try SQLiteLocalStore(path: folder.file("no/such/folder.db")) }
        let newer = try Database(path: folder.file("newer.db"))
        try newer.execute("PRAGMA user_version=99")
        let refused = #expect(throws: ClientError.self) {
            try SQLiteLocalStore(path: folder.file("newer.db"))
        }
        #expect(refused?.code == .store)
    }
}
