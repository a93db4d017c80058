import Glibc
import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

/// Reading blobs over real sockets.
@Suite("Reading blobs")
struct BlobReadTests {
    /// A server with one blob that node 1 of ann's tree refers to.
    private static func served(
        _ kind: StoreKind = .sqlite, _ bytes: [UInt8], blobs: (any BlobStore)? = nil,
        configure: @escaping @Sendable (inout ServerConfig) -> Void = { _ in }
    ) throws -> (BlobFixture, String) {
        let fixture = try BlobFixture(kind, blobs: blobs, configure: configure)
        let blob = try #require(try fixture.peer().add(bytes).blob)
        let answer = try fixture.socket().ask(BlobText.change(1, blob: blob, length: bytes.count, ccid: "x1"))
        #expect(answer.contains(#""ev":1"#), "\(answer)")
        return (fixture, blob)
    }

    @Test("ranges give their bytes, of files and of blobs in memory, plain and over TLS", arguments: [0, 1, 2])
    func ranges(way: Int) throws {
        let bytes = BlobText.bytes(3_000_000)
        let (fixture, blob) = try Self.served(.sqlite, bytes, blobs: way == 0 ? MemoryBlobStore() : nil) { config in
            if way == 2 { (config.tlsCertificate, config.tlsKey) = SecureEdge.files }
        }
        let peer = try fixture.peer()
        #expect(try peer.read(blob, 1).bytes == bytes)
        let count = bytes.count
        for (range, wanted) in [
            ("0-0", 0..<1), ("0-65551", 0..<65_552), ("65552-131103", 65_552..<131_104),
            ("\(count - 1)-", count - 1..<count),
            ("-5", count - 5..<count), ("1000000-2500000", 1_000_000..<2_500_001), ("5-999999999", 5..<count),
        ] {
            let reply = try peer.read(blob, 1, ["Range": "bytes=\(range)"])
            #expect(reply.status == 206 && reply.bytes == Array(bytes[wanted]), "\(range)")
            #expect(
                reply.fields["content-range"] == "bytes \(wanted.lowerBound)-\(wanted.upperBound - 1)/\(count)")
        }
    }

    @Test("a range beyond the end is 416 with the length; one of another form gives the whole blob")
    func unsatisfiable() throws {
        let bytes = BlobText.bytes(10_000)
        let (fixture, blob) = try Self.served(.memory, bytes)
        let peer = try fixture.peer()
        let beyond = try peer.read(blob, 1, ["Range": "bytes=\(bytes.count)-"])
        #expect(beyond.status == 416 && beyond.fields["content-range"] == "bytes */\(bytes.count)")
        #expect(try peer.read(blob, 1, ["Range": "bytes=0-1,5-6"]).status == 200)
        #expect(try peer.read(blob, 1, ["Range": "bytes=0-9", "If-Range": "\"other\""]).bytes == bytes)
        #expect(try peer.read(blob, 1, ["Range": "bytes=0-9", "If-Range": "\"\(blob)\""]).bytes == Array(bytes[..<10]))
    }

    @Test("HEAD has the length and no bytes; a known blob is 304; nothing of it can change")
    func conditions() throws {
        let bytes = BlobText.bytes(10_000)
        let (fixture, blob) = try Self.served(.memory, bytes)
        let peer = try fixture.peer()
        let place = "/\(blob)?node=ann@example.com/\(BlobText.node(1))"
        let head = try peer.ask("HEAD", place)
        #expect(head.status == 200 && head.fields["content-length"] == "\(bytes.count)" && head.bytes == [])
        #expect(head.fields["accept-ranges"] == "bytes")
        #expect(head.fields["cache-control"]?.contains("immutable") == true)
        #expect(try peer.read(blob, 1, ["If-None-Match": "\"\(blob)\""]).status == 304)
        #expect(try peer.read(blob, 1).bytes == bytes, "the connection goes on")
    }

    @Test(
        "a blob is there only for its owner, through a node that refers to it now; all else is the same 404",
        .rows("blob-reads"))
    func foreign() throws {
        let bytes = BlobText.bytes(10_000)
        let (fixture, blob) = try Self.served(.sqlite, bytes)
        let other = try #require(try fixture.peer().add(BlobText.bytes(500)).blob)
        let socket = try fixture.socket()
        _ = try socket.ask(BlobText.change(2, blob: nil, length: 0, ccid: "x2"))
        let missing = try fixture.peer().read("aaaaaaaaaaaaaaaaaaaaaaaaae", 1)
        #expect(missing.status == 404)
        let same: [(String, BlobPeer.Reply)] = [
            ("bob, by his name", try fixture.peer("bob-token").read(blob, 1, owner: "bob@example.com")),
            ("bob, by ann's name", try fixture.peer("bob-token").read(blob, 1)),
            ("another node", try fixture.peer().read(blob, 2)), ("no node", try fixture.peer().read(blob, 3)),
            ("a blob without a record", try fixture.peer().read(other, 1)),
        ]
        for (what, reply) in same { #expect(reply.status == 404 && reply.bytes == missing.bytes, "\(what)") }
        #expect(try fixture.peer("read-token").read(blob, 1).bytes == bytes, "a token to read is enough")
        #expect(try fixture.peer("no-token").read(blob, 1).status == 401)
        // The record gets other content: from the commit on, the blob is gone for readers.
        let changed = try socket.ask(BlobText.change(1, blob: nil, length: 0, base: 1, ccid: "x3"))
        #expect(changed.contains(#""ev":2"#), "\(changed)")
        #expect(try fixture.peer().read(blob, 1).bytes == missing.bytes)
    }

    @Test(
        "a blob whose file is gone, shorter or longer is 410 to its reader only, is counted, and others are read",
        .rows("blob-lost"))
    func lost() throws {
        let bytes = BlobText.bytes(10_000)
        let (fixture, blob) = try Self.served(.sqlite, bytes)
        let others = BlobText.bytes(9_000)
        let other = try #require(try fixture.peer().add(others).blob)
        let answer = try fixture.socket().ask(BlobText.change(2, blob: other, length: others.count, ccid: "x2"))
        #expect(answer.contains(#""ev":1"#), "\(answer)")
        let (file, aside) = (try fixture.file(of: blob), try fixture.file(of: blob) + "-aside")
        let peer = try fixture.peer()
        let missing = try peer.read("aaaaaaaaaaaaaaaaaaaaaaaaae", 1)
        let harms: [() -> Int32] = [
            { rename(file, aside) }, { truncate(file, 9_999) }, { truncate(file, 10_001) },
        ]
        for (number, harm) in harms.enumerated() {
            #expect(harm() == 0)
            let reply = try peer.read(blob, 1)
            #expect(reply.status == 410)
            #expect(String(decoding: reply.bytes, as: UTF8.self).contains(#""code":"blob_lost""#))
            #expect(try peer.read(blob, 1, ["Range": "bytes=0-9"]).status == 410)
            #expect(try fixture.peer().ask("HEAD", "/\(blob)?node=ann@example.com/\(BlobText.node(1))").status == 410)
            #expect(try fixture.peer("bob-token").read(blob, 1).bytes == missing.bytes, "nothing is told to others")
            let whole = try peer.read(other, 2)
            #expect(whole.status == 200 && whole.bytes == others, "\(whole.status)")
            #expect(fixture.server.metrics.blobsRefused.value(.lost) == 3 * (number + 1))
            guard number == 0 else { continue }
            #expect(rename(aside, file) == 0)
            #expect(try peer.read(blob, 1).bytes == bytes, "a file that comes back is served")
        }
    }

    @Test(
        "a record with another length than its blob, or another user's blob, is refused as blob-missing",
        .rows("blob-refers"))
    func mismatch() throws {
        let bytes = BlobText.bytes(10_000)
        let (fixture, blob) = try Self.served(.sqlite, bytes)
        let socket = try fixture.socket()
        let longer = try socket.ask(BlobText.change(2, blob: blob, length: bytes.count + 1, ccid: "x2"))
        #expect(longer.contains(#""error":404"#) && longer.contains(#""reason":"blob-missing""#), "\(longer)")
        let bob = try fixture.socket("bob-token")
        let stolen = try bob.ask(BlobText.change(2, blob: blob, length: bytes.count, ccid: "x3"))
        #expect(stolen.contains(#""error":404"#) && stolen.contains(#""reason":"blob-missing""#), "\(stolen)")
        #expect(fixture.server.metrics.treeRefused.value(.blobMissing) == 2)
    }

    @Test("many clients read at once while one does not read at all")
    func stalled() throws {
        let bytes = BlobText.bytes(8_000_000)
        let (fixture, blob) = try Self.served(.sqlite, bytes)
        let lazy = try fixture.peer()
        try lazy.send("GET", "/\(blob)?node=ann@example.com/\(BlobText.node(1))")
        #expect(waitUntil { fixture.server.metrics.blobBytesSent.value > 0 })
        let port = fixture.server.port
        let lengths = try inParallel(6) { _ in
            try BlobPeer(port: port, token: "ann-token").read(blob, 1).bytes.count
        }
        #expect(lengths == Array(repeating: bytes.count, count: 6))
        #expect(fixture.server.metrics.net.outboxBytes.value < 1 << 20, "what is not read is not held in memory")
        #expect(fixture.server.metrics.blobTransfers.value == 1)
        lazy.close(isReset: true)
        #expect(waitUntil { fixture.server.metrics.blobTransfers.value == 0 })
    }
}
