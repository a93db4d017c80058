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
}
