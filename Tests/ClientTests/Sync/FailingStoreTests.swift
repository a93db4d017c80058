import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

/// A store whose disk can fail.
private final class FlakyStore: LocalStore {
    let kept = MemoryLocalStore()
    var isGone = false

    private func check() throws(ClientError) {
        if isGone { throw ClientError(.store, "the disk is gone") }
    }
    func clientID(fresh: ClientID) throws(ClientError) -> ClientID { kept.clientID(fresh: fresh) }
    func namedValue(_ name: String) throws(ClientError) -> String? { kept.namedValue(name) }
    func setNamedValue(_ name: String, to value: String) throws(ClientError) { kept.setNamedValue(name, to: value) }
    func buckets() throws(ClientError) -> [BucketRecord] {
        try check()
        return kept.buckets()
    }
    func entity(_ address: EntityAddress) throws(ClientError) -> EntityRecord? {
        try check()
        return kept.entity(address)
    }
    func known(_ bucket: BucketName, among keys: [EntityKey]) throws(ClientError) -> Set<EntityKey> {
        try check()
        return kept.known(bucket, among: keys)
    }
    func liveKeys(_ bucket: BucketName, after: EntityKey?, limit: Int) throws(ClientError) -> [EntityKey] {
        kept.liveKeys(bucket, after: after, limit: limit)
    }
    func liveNames(_ bucket: BucketName, after: String?, limit: Int) throws(ClientError) -> [String] {
        try check()
        return kept.liveNames(bucket, after: after, limit: limit)
    }
    func edited(_ bucket: BucketName) throws(ClientError) -> [EditedKey] {
        try check()
        return kept.edited(bucket)
    }
    func keysHeld(_ bucket: BucketName) throws(ClientError) -> [EntityKey] {
        try check()
        return kept.keysHeld(bucket)
    }
    func keysUnseen(_ bucket: BucketName, scanID: Int64) throws(ClientError) -> [EntityKey] {
        kept.keysUnseen(bucket, scanID: scanID)
    }
    func versions(_ bucket: BucketName, limit: Int) throws(ClientError) -> [(key: EntityKey, version: Version)] {
        kept.versions(bucket, limit: limit)
    }
    func undelivered(_ bucket: BucketName) throws(ClientError) -> [BucketEvent] {
        try check()
        return kept.undelivered(bucket)
    }
    func commit(_ batch: LocalBatch) throws(ClientError) {
        try check()
        try kept.commit(batch)
    }
    func close() {}
}

@Suite("A machine whose store fails", .nonceWatch)
struct FailingStoreTests {
    @Test(
        "no connection is opened before the store is read again, and then it starts at the store's position",
        arguments: BucketKind.allCases)
    func unreadable(kind: BucketKind) throws {
        let disk = FlakyStore()
        var talk = try Transcript(kind, store: disk.kept, disk: disk, seed: 3)
        _ = talk.live()
        disk.isGone = true
        let change =
            #"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"M","v":{"n":{"o":"+","v":1}},"ev":1,"ccids":["q"]}]"#
        #expect(talk.actions([change]).contains(.disconnect))
        for _ in 0..<5 {
            let due = try #require(talk.machine.deadline)
            #expect(!talk.machine.tick(now: due).contains(.connect))
        }
        #expect(talk.machine.status == .offline(.storeFailed("the disk is gone")))
        disk.isGone = false
        let due = try #require(talk.machine.deadline)
        #expect(talk.machine.tick(now: due).contains(.connect))
        let sent = talk.sent(talk.machine.opened(now: due))
        #expect(sent.first?.contains(#""cmd":"cv:cv1""#) == true)
    }

    @Test("a failing store does not bring a session online that is to be offline", arguments: BucketKind.allCases)
    func staysParked(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, "{}")])
        _ = talk.machine.goOffline(now: talk.now)
        talk.store.failsNextCommit = true
        #expect(throws: ClientError.self) { try talk.set("a", #"{"n":1}"#) }
        #expect(talk.machine.deadline == nil)
        #expect(talk.machine.status == .offline(.requested))
        #expect(!talk.machine.tick(now: talk.now + 100_000).contains(.connect))
    }

    @Test("a bucket that could not be stored is not open, and can be opened afterwards", arguments: BucketKind.allCases)
    func openFails(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        let other = try BucketName("other")
        talk.store.failsNextCommit = true
        #expect(throws: ClientError.self) { try talk.machine.open(other, keys: kind.keys, now: talk.now) }
        #expect(talk.machine.bucketNames == [talk.notes])
        _ = try talk.machine.open(other, keys: kind.keys, now: talk.now)
        #expect(talk.machine.bucketNames == [talk.notes, other])
        #expect(talk.store.buckets().map(\.name) == [talk.notes, other])
    }

    @Test(
        "a change is on disk before it is first sent; waiting edits and a resend are not flushed",
        arguments: BucketKind.allCases)
    func onDisk(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"ab"}"#)])
        #expect(talk.store.commitsOnDisk == 0)
        let first = try talk.type("a", at: 0, "x")
        #expect(talk.store.commitsOnDisk == 1)
        #expect(try talk.type("a", at: 0, "y").isEmpty)
        #expect(talk.store.commitsOnDisk == 1)
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com", "0:c:[]") == first)
        #expect(talk.store.commitsOnDisk == 1, "it is there already")
    }

    @Test("reading many objects does not keep them all in memory", arguments: BucketKind.allCases)
    func readingMany(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live((0..<2_000).map { ("k\($0)", 1, "{}") })
        for number in 0..<2_000 { #expect(try talk.local("k\(number)") == "{}") }
        #expect(talk.machine.cachedObjects <= SyncLimits.cachedObjectsMax)
    }
}

@Suite("A slow link", .nonceWatch)
struct SlowLinkTests {
    @Test(
        "a message that takes minutes to arrive does not end the connection while its bytes move",
        arguments: BucketKind.allCases)
    func largeMessage(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.connect()
        _ = talk.hear("0:auth:user@example.com")
        for _ in 0..<40 {
            talk.now += 9_000
            #expect(talk.machine.moved(now: talk.now).isEmpty)
            #expect(!talk.machine.tick(now: talk.now).contains(.disconnect))
        }
        #expect(talk.hear(#"0:i:{"current":"cv1","index":[]}"#) == ["0:cv:cv1"])
    }

    @Test("a connection on which nothing moves is closed after a heartbeat", arguments: BucketKind.allCases)
    func stalled(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live()
        _ = talk.machine.moved(now: talk.now)
        talk.now += 20_000
        #expect(talk.sent(talk.machine.tick(now: talk.now)) == ["h:0"])
        talk.now += 10_000
        #expect(talk.machine.tick(now: talk.now).contains(.disconnect))
    }
}
