import Synchronization
import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Uploads over real sockets.
@Suite("Uploads of blobs")
struct BlobUploadTests {
    private static let mebibyte = 1 << 20

    /// Three parts of a blob: two whole ones and a shorter one.
    private static func parts(seed: UInt64 = 1) -> (whole: [UInt8], parts: [[UInt8]]) {
        let whole = BlobText.bytes(2 * mebibyte + 300_000, seed: seed)
        let parts = stride(from: 0, to: whole.count, by: mebibyte).map {
            Array(whole[$0..<min($0 + mebibyte, whole.count)])
        }
        return (whole, parts)
    }

    private static func begin(_ peer: BlobPeer, _ whole: [UInt8]) throws -> String {
        try #require(try peer.begin(length: whole.count, part: mebibyte).upload)
    }

    @Test("a small blob is uploaded in one request, referred to by a record, and read", arguments: StoreKind.allCases)
    func small(kind: StoreKind) throws {
        let fixture = try BlobFixture(kind)
        let peer = try fixture.peer()
        let bytes = BlobText.bytes(10_000)
        let added = try peer.add(bytes)
        #expect(added.status == 200 && added.object["length"]?.intValue == Int64(bytes.count))
        let blob = try #require(added.blob)
        #expect(try peer.read(blob, 1).status == 404, "no record refers to it")
        let socket = try fixture.socket()
        let answer = try socket.ask(BlobText.change(1, blob: blob, length: bytes.count, ccid: "x1"))
        #expect(answer.contains(#""ev":1"#), "\(answer)")
        let read = try peer.read(blob, 1)
        #expect(read.status == 200 && read.bytes == bytes)
        #expect(read.fields["etag"] == "\"\(blob)\"")
        #expect(fixture.files == ["blobs/\(blob.prefix(2))/\(blob)"], "nothing of the upload is left")
    }

    @Test("parts arrive in any order, and the blob has them in theirs", arguments: StoreKind.allCases)
    func anyOrder(kind: StoreKind) throws {
        let fixture = try BlobFixture(kind)
        let peer = try fixture.peer()
        let (whole, parts) = Self.parts()
        let begun = try peer.begin(length: whole.count, part: Self.mebibyte)
        #expect(begun.status == 200 && begun.object["parts"]?.intValue == 3)
        let upload = try #require(begun.upload)
        for number in [3, 1, 2] {
            let reply = try peer.put(upload, number, parts[number - 1])
            #expect(reply.status == 200 && reply.object["n"]?.intValue == Int64(number), "\(number): \(reply)")
        }
        let done = try peer.complete(upload, parts)
        #expect(done.status == 200 && done.object["length"]?.intValue == Int64(whole.count))
        let blob = try #require(done.blob)
        _ = try fixture.socket().ask(BlobText.change(1, blob: blob, length: whole.count, ccid: "x1"))
        #expect(try peer.read(blob, 1).bytes == whole)
    }

    @Test("a part with another hash is refused, nothing of it is kept, and it can be sent again")
    func wrongHash() throws {
        let fixture = try BlobFixture()
        let peer = try fixture.peer()
        let (whole, parts) = Self.parts()
        let upload = try Self.begin(peer, whole)
        #expect(try peer.put(upload, 1, parts[1], hash: Hash.sha256(parts[0])).code == "hash_mismatch")
        #expect(try peer.ask("GET", "/\(upload)").object["received"] == .array([]))
        #expect(try peer.put(upload, 1, parts[0]).status == 200)
        let small = try peer.ask("POST", "", BlobText.hash(Hash.sha256([1])), body: [2])
        #expect(small.status == 400 && small.code == "hash_mismatch")
        #expect(!fixture.files.contains { $0.hasPrefix("blobs") })
        #expect(fixture.files.filter { $0.hasSuffix("/data") }.count == 1, "the small upload is gone")
    }

    @Test("a part may be repeated, also after a restart, but not with other bytes")
    func repeated() throws {
        let fixture = try BlobFixture()
        let (whole, parts) = Self.parts()
        let upload = try Self.begin(fixture.peer(), whole)
        for _ in 0..<2 { #expect(try fixture.peer().put(upload, 1, parts[0]).status == 200) }
        try fixture.restart()
        #expect(try fixture.peer().put(upload, 1, parts[0]).status == 200)
        #expect(try fixture.peer().put(upload, 1, parts[1]).code == "part_exists")
        let broken = try fixture.peer().put(upload, 1, parts[1], hash: Hash.sha256(parts[0]))
        #expect(broken.code == "hash_mismatch", "the bytes are compared although the part is there")
        #expect(fixture.server.metrics.blobParts.value == 1)
    }

    @Test("an upload goes on after the server was killed: the received parts are listed", arguments: StoreKind.allCases)
    func resumed(kind: StoreKind) throws {
        let fixture = try BlobFixture(kind)
        let (whole, parts) = Self.parts()
        let upload = try Self.begin(fixture.peer(), whole)
        for number in [2, 3] { #expect(try fixture.peer().put(upload, number, parts[number - 1]).status == 200) }
        try fixture.restart()
        let peer = try fixture.peer()
        let listed = try peer.ask("GET", "/\(upload)")
        let wanted = [2, 3].map { number in
            JSONValue.object([
                "n": .number(JSONNumber(Int64(number))), "sha256": .string(Hex.encode(Hash.sha256(parts[number - 1]))),
            ])
        }
        #expect(listed.status == 200 && listed.object["received"] == .array(wanted))
        #expect(listed.object["part"]?.intValue == Int64(Self.mebibyte))
        #expect(try peer.put(upload, 1, parts[0]).status == 200)
        #expect(try peer.complete(upload, parts).status == 200)
    }

    @Test("completing without a part is refused with the missing ones, completing twice gives the same answer")
    func completing() throws {
        let fixture = try BlobFixture()
        let (whole, parts) = Self.parts()
        var peer = try fixture.peer()
        let upload = try Self.begin(peer, whole)
        _ = try peer.put(upload, 2, parts[1])
        let early = try peer.complete(upload, parts)
        #expect(early.status == 409 && early.code == "parts_missing")
        #expect(early.object["missing"] == .array([1, 3]))
        _ = try peer.put(upload, 1, parts[0])
        _ = try peer.put(upload, 3, parts[2])
        #expect(try peer.complete(upload, parts.reversed()).code == "hash_mismatch")
        let first = try peer.complete(upload, parts)
        #expect(first.status == 200 && first.blob == upload)
        try fixture.restart()
        peer = try fixture.peer()
        #expect(try peer.complete(upload, parts).bytes == first.bytes)
        #expect(try peer.complete(upload, parts.reversed()).code == "hash_mismatch")
        #expect(try peer.ask("GET", "/\(upload)").object["blob"] == .string(upload))
        #expect(try peer.ask("DELETE", "/\(upload)").code == "upload_complete")
        #expect(try peer.put(upload, 1, parts[0]).code == "upload_complete")
    }

    @Test("an upload that is given up is gone; another user's is not there for any call")
    func others() throws {
        let fixture = try BlobFixture()
        let (whole, parts) = Self.parts()
        let upload = try Self.begin(fixture.peer(), whole)
        #expect(try fixture.peer("bob-token").ask("GET", "/\(upload)").code == "no_such_upload")
        #expect(try fixture.peer("bob-token").ask("DELETE", "/\(upload)").code == "no_such_upload")
        #expect(try fixture.peer("bob-token").put(upload, 1, parts[0]).code == "no_such_upload")
        #expect(try fixture.peer("bob-token").complete(upload, parts).code == "no_such_upload")
        #expect(try fixture.peer("read-token").put(upload, 1, parts[0]).code == "read_only")
        #expect(try fixture.peer("read-token").ask("GET", "/\(upload)").status == 200)
        #expect(try fixture.peer("no-token").put(upload, 1, parts[0]).status == 401)
        #expect(try fixture.peer().ask("DELETE", "/\(upload)").status == 204)
        #expect(try fixture.peer().ask("GET", "/\(upload)").code == "no_such_upload")
        #expect(fixture.files == [])
    }

    @Test("parts of a wrong number or length are refused before they are read")
    func wrongParts() throws {
        let fixture = try BlobFixture()
        let (whole, parts) = Self.parts()
        let upload = try Self.begin(fixture.peer(), whole)
        #expect(try fixture.peer().put(upload, 4, parts[0]).code == "invalid_part")
        #expect(try fixture.peer().put(upload, 1, Array(parts[0].dropLast())).code == "invalid_part")
        #expect(try fixture.peer().put(upload, 3, parts[0]).code == "invalid_part")
        let peer = try fixture.peer()
        try peer.send("PUT", "/\(upload)/1", BlobText.hash(Hash.sha256(parts[0])), length: 17 << 20)
        #expect(try peer.reply().status == 413)
    }

    @Test("quotas: a user's blobs and open uploads have a bound, and the refusal says quota")
    func quota() throws {
        let fixture = try BlobFixture { config in
            config.limits.blobUserMax = 100_000
            config.limits.blobUploadsMax = 2
        }
        let peer = try fixture.peer()
        #expect(try peer.add(BlobText.bytes(60_000)).status == 200)
        let refused = try peer.begin(length: 50_000)
        #expect(refused.status == 413 && refused.object["reason"] == "quota")
        let small = try fixture.peer().add(BlobText.bytes(60_000, seed: 2))
        #expect(small.status == 413 && small.object["reason"] == "quota")
        #expect(try fixture.peer("bob-token").add(BlobText.bytes(60_000)).status == 200, "the other user has room")
        for _ in 0..<2 { #expect(try peer.begin(length: 100).status == 200) }
        #expect(try peer.begin(length: 100).status == 413)
        #expect(fixture.server.metrics.blobsRefused.value(.quota) == 3)
    }

    @Test("a full disk is answered 507, nothing is half visible, and the same calls work later")
    func full() throws {
        let failing = Mutex<Set<MemoryBlobStore.Call>>([])
        let blobs = MemoryBlobStore { call in
            failing.withLock { $0.contains(call) } ? StoreError(.full, "no space left") : nil
        }
        let fixture = try BlobFixture(.memory, blobs: blobs)
        let (whole, parts) = Self.parts()
        failing.withLock { $0 = [.begin] }
        #expect(try fixture.peer().begin(length: whole.count, part: Self.mebibyte).status == 507)
        failing.withLock { $0 = [] }
        let upload = try Self.begin(fixture.peer(), whole)
        for call in [MemoryBlobStore.Call.write, .finish] {
            failing.withLock { $0 = [call] }
            #expect(try fixture.peer().put(upload, 1, parts[0]).status == 507, "\(call)")
            #expect(try fixture.peer().ask("GET", "/\(upload)").object["received"] == .array([]))
            #expect(try fixture.peer().add(BlobText.bytes(1_000)).status == 507)
        }
        failing.withLock { $0 = [] }
        for number in 1...3 { #expect(try fixture.peer().put(upload, number, parts[number - 1]).status == 200) }
        failing.withLock { $0 = [.complete] }
        #expect(try fixture.peer().complete(upload, parts).status == 507)
        let refused = try fixture.socket().ask(BlobText.change(1, blob: upload, length: whole.count, ccid: "x1"))
        #expect(refused.contains(#""reason":"blob-missing""#), "\(refused)")
        failing.withLock { $0 = [] }
        #expect(try fixture.peer().complete(upload, parts).status == 200)
    }

    @Test("an upload that hangs delays no other client, and gives way when its user sends the part again")
    func hanging() throws {
        let fixture = try BlobFixture { $0.limits.blobTransfersPerUserMax = 2 }
        let (whole, parts) = Self.parts()
        let upload = try Self.begin(fixture.peer(), whole)
        let slow = try fixture.peer()
        try slow.send("PUT", "/\(upload)/1", BlobText.hash(Hash.sha256(parts[0])), length: parts[0].count)
        try slow.send(raw: Array(parts[0].prefix(300_000)))
        #expect(waitUntil { fixture.server.metrics.blobBytesReceived.value == 300_000 })
        // Another user's request does not end it.
        #expect(try fixture.peer("bob-token").put(upload, 1, parts[0]).code == "part_in_progress")
        #expect(try fixture.peer().put(upload, 2, parts[1]).status == 200)
        let socket = try fixture.socket()
        #expect(try socket.ask(BlobText.change(1, blob: nil, length: 0, ccid: "x1")).contains(#""ev":1"#))
        let second = try fixture.peer()
        try second.send("PUT", "/\(upload)/3", BlobText.hash(Hash.sha256(parts[2])), length: parts[2].count)
        #expect(waitUntil { fixture.server.metrics.blobTransfers.value == 2 })
        #expect(try fixture.peer().put(upload, 2, parts[1]).status == 503, "two requests of the user are in progress")
        #expect(try fixture.peer("bob-token").begin(length: 100).status == 200)
        second.close(isReset: true)
        #expect(waitUntil { fixture.server.metrics.blobTransfers.value == 1 }, "its connection is gone")
        #expect(try fixture.peer().put(upload, 1, parts[0]).status == 200)
        #expect(waitUntil { fixture.server.metrics.blobTransfers.value == 0 })
        #expect(throws: (any Error).self, "the server has closed it") { try slow.reply() }
        #expect(try fixture.peer().put(upload, 3, parts[2]).status == 200)
        #expect(try fixture.peer().complete(upload, parts).status == 200)
    }

    @Test("a user that is signed out during an upload gets 401, and the request is over")
    func signedOut() throws {
        let fixture = try BlobFixture()
        let (whole, parts) = Self.parts()
        let upload = try Self.begin(fixture.peer(), whole)
        let slow = try fixture.peer()
        try slow.send("PUT", "/\(upload)/1", BlobText.hash(Hash.sha256(parts[0])), length: parts[0].count)
        try slow.send(raw: Array(parts[0].prefix(1_000)))
        #expect(waitUntil { fixture.server.metrics.blobBytesReceived.value == 1_000 })
        fixture.server.handle.signOut(try AppID("app"), try UserID("ann@example.com"))
        #expect(try slow.reply().status == 401)
        #expect(waitUntil { fixture.server.metrics.blobTransfers.value == 0 })
        #expect(try fixture.peer().put(upload, 1, parts[0]).status == 200, "the part is not in progress any more")
    }

    @Test("three parts of one upload are received at once, and no fourth")
    func atOnce() throws {
        let fixture = try BlobFixture()
        let whole = 4 * Self.mebibyte
        let upload = try #require(try fixture.peer().begin(length: whole, part: Self.mebibyte).upload)
        let hash = BlobText.hash(Hash.sha256([]))
        let peers = try (1...3).map { number in
            let peer = try fixture.peer()
            try peer.send("PUT", "/\(upload)/\(number)", hash, length: Self.mebibyte)
            return peer
        }
        #expect(waitUntil { fixture.server.metrics.blobTransfers.value == 3 })
        let fourth = try fixture.peer()
        try fourth.send("PUT", "/\(upload)/4", hash, length: Self.mebibyte)
        #expect(try fourth.reply().status == 503)
        for peer in peers { peer.close(isReset: true) }
    }

    @Test("a server without a blob store has no such paths, and a bucket named blob works")
    func without() throws {
        let store = try TestStore(.memory)
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        #expect(try BlobPeer(port: server.port, token: "ann-token").begin(length: 5).status == 404)
        let http = try server.http()
        #expect(try http.ask("POST", "blob/i/key", body: #"{"a":1}"#).status == 200)
        #expect(try http.ask("GET", "blob/i/key").body == #"{"a":1}"#)
    }
}
