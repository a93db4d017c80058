import Testing
import ThicketProtocol

@testable import ThicketServer

@Suite("Ranges of blobs, and requests about them")
struct BlobRangeTests {
    @Test(
        "a range is the bytes that it names, within the blob",
        arguments: [
            (nil, .whole), ("bytes=0-0", .part(0..<1)), ("bytes=0-99", .part(0..<100)), ("bytes=10-", .part(10..<100)),
            ("bytes=99-", .part(99..<100)), ("bytes=-1", .part(99..<100)), ("bytes=-100", .part(0..<100)),
            ("bytes=-500", .part(0..<100)), ("bytes=50-1000", .part(50..<100)),
            ("bytes=5-99999999999999999999999", .part(5..<100)), ("bytes=-99999999999999999999", .part(0..<100)),
            ("bytes=100-", .none), ("bytes=100-200", .none), ("bytes=-0", .none),
            ("bytes=99999999999999999999-", .none),
            // Neither a single range of bytes nor a valid one: the whole blob (RFC 9110, 14.2).
            ("bytes=5-4", .whole), ("bytes=", .whole), ("bytes=-", .whole), ("bytes=0-1,3-4", .whole),
            ("bytes=a-b", .whole), ("items=0-1", .whole), ("bytes 0-1", .whole), ("bytes=+1-2", .whole),
        ] as [(String?, BlobRange)])
    func ranges(text: String?, range: BlobRange) {
        #expect(BlobRange(text, length: 100) == range)
    }

    private static let id = "aaaaaaaaaaaaaaaaaaaaaaaaae"

    private static func read(
        _ line: String, _ fields: [String] = [], body: String = "", length: Int? = nil
    ) throws -> RESTHandler.Reading {
        var text = "\(line) HTTP/1.1\r\nhost: x\r\nX-Simperium-Token: t0ken\r\n"
        for field in fields { text += "\(field)\r\n" }
        if !body.isEmpty { text += "content-length: \(body.utf8.count)\r\n" }
        var reader = HTTPRequestReader()
        let request: HTTPRequest? = try Array((text + "\r\n" + body).utf8).withUnsafeBytes { bytes in
            var input: UnsafeRawBufferPointer = bytes
            return try reader.next(&input)
        }
        return BlobHandler(cors: CORSPolicy("none")).read(try #require(request), length: length)
    }

    private static let hash = "x-part-sha256: " + String(repeating: "ab", count: 32)

    @Test(
        "a request that cannot be done for any user is refused with its reason",
        arguments: [
            ("GET /1/app/blob", [], "", nil, 405), ("PUT /1/app/blob/\(id)", [], "", nil, 405),
            ("POST /1/app/blob/\(id)/1", [], "", nil, 405), ("GET /1/app/blob/\(id)/complete", [], "", nil, 405),
            ("PUT /1/app/blob/\(id)/0", [hash], "", 9, 400), ("PUT /1/app/blob/\(id)/10001", [hash], "", 9, 400),
            ("PUT /1/app/blob/\(id)/x", [hash], "", 9, 400), ("PUT /1/app/blob/\(id)/1", [], "", 9, 400),
            ("PUT /1/app/blob/\(id)/1", ["x-part-sha256: abcd"], "", 9, 400),
            ("PUT /1/app/blob/\(id)/1", [hash, hash], "", 9, 400), ("PUT /1/app/blob/\(id)/1", [hash], "", nil, 411),
            ("POST /1/app/blob", [hash], "", nil, 411), ("POST /1/app/blob", [], "no", nil, 400),
            ("POST /1/app/blob", [], #"{"length":0}"#, nil, 400),
            ("POST /1/app/blob", [], #"{"length":-5}"#, nil, 400), ("POST /1/app/blob", [], "{}", nil, 400),
            ("POST /1/app/blob", [], #"{"length":5,"part":1048575}"#, nil, 400),
            ("POST /1/app/blob", [], #"{"length":5,"part":16777217}"#, nil, 400),
            ("POST /1/app/blob", [], #"{"length":5,"part":"x"}"#, nil, 400),
            ("POST /1/app/blob", [], #"{"length":10485760001,"part":1048576}"#, nil, 400),
            ("POST /1/app/blob/\(id)/complete", [], #"{"sha256":"ab"}"#, nil, 400),
            ("GET /1/app/blob/\(id)?node=ann", [], "", nil, 400),
            ("GET /1/app/blob/\(id)?node=ann/x", [], "", nil, 400),
        ] as [(String, [String], String, Int?, Int)])
    func refusals(line: String, fields: [String], body: String, length: Int?, status: Int) throws {
        guard case .answer(let response) = try Self.read(line, fields, body: body, length: length) else {
            Issue.record("it was accepted")
            return
        }
        #expect(response.status == status, "\(String(decoding: response.body, as: UTF8.self))")
    }

    @Test(
        "valid requests are accepted, at the bounds too",
        arguments: [
            ("PUT /1/app/blob/\(id)/10000", [hash], "", 16 << 20), ("POST /1/app/blob", [hash], "", 1),
            ("POST /1/app/blob", [], #"{"length":10485760000,"part":1048576}"#, nil),
            ("POST /1/app/blob", [], #"{"length":1}"#, nil), ("GET /1/app/blob/\(id)", [], "", nil),
            ("HEAD /1/app/blob/\(id)?node=ann%2Fb/\(id)", [], "", nil), ("DELETE /1/app/blob/\(id)", [], "", nil),
        ] as [(String, [String], String, Int?)])
    func accepted(line: String, fields: [String], body: String, length: Int?) throws {
        guard case .call(let call) = try Self.read(line, fields, body: body, length: length),
            case .blob = call.operation
        else {
            Issue.record("it was refused")
            return
        }
        #expect(call.app.text == "app")
    }

    @Test("a bucket named blob keeps its paths")
    func bucket() {
        for path: Substring in ["/1/app/blob/index", "/1/app/blob/i/key", "/1/app/blob/changes", "/1/app/blob/all"] {
            #expect(!BlobHandler.owns(path) && RESTHandler.owns(path), "\(path)")
        }
        for path: Substring in ["/1/app/blob", "/1/app/blob/\(Self.id)", "/1/app/blob/\(Self.id)/complete"] {
            #expect(BlobHandler.owns(path) && RESTHandler.owns(path), "\(path)")
        }
    }
}
