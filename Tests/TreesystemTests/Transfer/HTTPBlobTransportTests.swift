import Synchronization
import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketClient
@testable import ThicketTreesystem

@Suite("Requests about blobs over HTTP")
struct HTTPBlobTransportTests {
    /// A request, and the answer to it.
    private struct Exchange: Sendable {
        var method: String?
        var path = ""
        var fields = [String]()
        var body: [UInt8]?
    }

    private static func transport(
        _ status: Int, _ body: String, fields: [(String, String)] = [], _ seen: @escaping @Sendable (Exchange) -> Void
    ) -> HTTPBlobTransport {
        var answered = HTTPFields()
        for (name, value) in fields { answered.append(name, value) }
        let answer = HTTPAnswer(status: status, fields: answered, body: Array(body.utf8))
        return HTTPBlobTransport { method, path, fields, body async throws(ClientError) in
            seen(Exchange(method: method, path: path, fields: fields, body: body))
            return answer
        }
    }

    private static func failure(_ body: () async throws(BlobFailure) -> Void) async -> BlobFailure? {
        do throws(BlobFailure) {
            try await body()
            return nil
        } catch { return error }
    }

    @Test("an upload has the paths, numbers from 1, hashes in hex and bodies of the protocol")
    func upload() async throws {
        let seen = Mutex([Exchange]())
        let record: @Sendable (Exchange) -> Void = { one in seen.withLock { $0.append(one) } }
        let hash = Hash.sha256([1, 2])
        let hex = hash.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let begun = try await Self.transport(200, #"{"upload":"aa7","part":1048576,"parts":3}"#, record)
            .begin(length: 3_000_000, partBytes: 4_194_304)
        #expect(begun == BlobUpload(id: "aa7", partBytes: 1_048_576))
        try await Self.transport(200, "{}", record).send([1, 2], part: 0, of: "aa7", sha256: hash)
        let status = try await Self.transport(
            200, #"{"upload":"aa7","length":9,"part":4,"received":[{"n":2,"sha256":"\#(hex)"}]}"#, record
        ).status(of: "aa7")
        #expect(status.parts == [1: hash])
        let blob = BlobID(77)
        let complete = try await Self.transport(200, #"{"blob":"\#(blob.text)","length":9}"#, record)
            .complete("aa7", sha256: hash)
        try await Self.transport(204, "", record).abort("aa7")
        let whole = try await Self.transport(200, #"{"blob":"\#(blob.text)","length":2}"#, record)
            .send(whole: [1, 2], sha256: hash)
        #expect(complete == blob && whole == blob)
        let all = seen.withLock { $0 }
        #expect(all.map(\.path) == ["blob", "blob/aa7/1", "blob/aa7", "blob/aa7/complete", "blob/aa7", "blob"])
        #expect(all.map(\.method) == [nil, "PUT", nil, nil, "DELETE", nil])
        #expect(all[1].fields == ["X-Part-SHA256: \(hex)"] && all[1].body == [1, 2])
        #expect(all[0].body == Array(#"{"length":3000000,"part":4194304}"#.utf8) && all[2].body == nil)
        #expect(all[3].body == Array(#"{"sha256":"\#(hex)"}"#.utf8))
        #expect(all[5].fields.contains("X-Part-SHA256: \(hex)") && all[5].body == [1, 2])
    }

    @Test("the status of a completed upload has its blob and no parts")
    func completed() async throws {
        let answer = #"{"upload":"aa7","length":9,"part":4,"received":[],"blob":"\#(BlobID(3).text)"}"#
        let status = try await Self.transport(200, answer) { _ in }.status(of: "aa7")
        #expect(status == BlobUploadStatus(parts: [:], blob: BlobID(3)))
    }

    @Test("a read asks for one range through the node, and accepts that range only")
    func read() async throws {
        let (owner, node, blob) = (try UserID("ann b/c"), NodeID(5), BlobID(6))
        func read(_ status: Int, _ range: String?, _ body: String = "abcd") async -> (BlobFailure?, Exchange) {
            let seen = Mutex(Exchange())
            let transport = Self.transport(status, body, fields: range.map { [("content-range", $0)] } ?? []) { one in
                seen.withLock { $0 = one }
            }
            let failure = await Self.failure { () async throws(BlobFailure) in
                let piece = try await transport.read(blob, owner: owner, node: node, range: 10..<14)
                #expect(piece == BlobPiece(bytes: Array(body.utf8), total: 100))
            }
            return (failure, seen.withLock { $0 })
        }
        let (failure, request) = await read(206, "bytes 10-13/100")
        #expect(failure == nil && request.fields == ["Range: bytes=10-13"] && request.method == nil)
        #expect(request.path == "blob/\(blob.text)?node=ann%20b%2fc/\(node.text)")
        for (status, range): (Int, String?) in [
            (200, nil), (206, nil), (206, "bytes 11-14/100"), (206, "bytes 10-13/*"), (206, "bytes 10-9/100"),
            (206, "bytes 10-100/100"), (206, "items 10-13/100"),
        ] { #expect(await read(status, range).0 == .badAnswer) }
        #expect(await read(206, "bytes 10-14/100", "abcde").0 == .badAnswer, "more than was asked for")
        #expect(await read(404, nil).0 == .gone)
        #expect(await read(416, nil).0 == .refused(416))
    }

    @Test("each status is a failure that says what to do")
    func failures() async {
        for (status, body, fields, expected): (Int, String, [(String, String)], BlobFailure) in [
            (404, "", [], .gone), (410, #"{"code":"blob_lost"}"#, [], .bytesLost), (410, "", [], .refused(410)),
            (409, #"{"code":"part_exists"}"#, [], .otherPart),
            (409, #"{"code":"parts_missing","missing":[1]}"#, [], .partsMissing),
            (409, #"{"code":"part_in_progress"}"#, [], .busy(after: nil)),
            (429, "", [("retry-after", "3")], .busy(after: 3_000)), (503, "", [], .busy(after: nil)),
            (503, "", [("retry-after", "9223372036854775807")], .busy(after: 600_000)),
            (503, "", [("retry-after", "-5")], .busy(after: 0)),
            (507, "", [], .full(after: nil)), (413, #"{"code":"quota"}"#, [], .refused(413)),
            (400, #"{"code":"hash_mismatch"}"#, [], .lost), (400, #"{"code":"invalid_part"}"#, [], .refused(400)),
        ] {
            let transport = Self.transport(status, body, fields: fields) { _ in }
            let failure = await Self.failure { () async throws(BlobFailure) in
                _ = try await transport.complete("u", sha256: [])
            }
            #expect(failure == expected, "\(status)")
        }
    }

    @Test("answers that are none of the protocol are badAnswer, and no id of a server can change the path")
    func badAnswers() async {
        for body in [
            "", "[]", "{}", #"{"upload":"a/../b","part":1}"#, #"{"upload":"","part":1}"#, #"{"upload":"a","part":0}"#,
            #"{"upload":"a","part":99999999}"#, #"{"upload":"a?b","part":1}"#,
        ] {
            let transport = Self.transport(200, body) { _ in }
            let failure = await Self.failure { () async throws(BlobFailure) in
                _ = try await transport.begin(length: 1, partBytes: 1)
            }
            #expect(failure == .badAnswer, "\(body)")
        }
        for body in [
            "{}", #"{"received":[1]}"#, #"{"received":[{"n":0,"sha256":"00"}]}"#,
            #"{"received":[{"n":1,"sha256":"00"}]}"#,
        ] {
            let transport = Self.transport(200, body) { _ in }
            let failure = await Self.failure { () async throws(BlobFailure) in
                _ = try await transport.status(of: "u")
            }
            #expect(failure == .badAnswer, "\(body)")
        }
    }

    @Test("no connection is a lost answer; a server that cannot prove its identity, or a lost login, ends the transfer")
    func clientErrors() async {
        for (code, expected): (ClientError.Code, BlobFailure) in [
            (.network, .lost), (.deadline, .lost), (.untrusted, .refused(0)), (.unauthorized, .refused(401)),
        ] {
            let transport = HTTPBlobTransport { _, _, _, _ async throws(ClientError) in throw ClientError(code, "") }
            let failure = await Self.failure { () async throws(BlobFailure) in try await transport.abort("u") }
            #expect(failure == expected)
        }
    }
}
