import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Request bodies so large that a reader thread parses them, as it does with large changes of sockets.
@Suite("Large request bodies")
struct LargeBodyTests {
    private static let text = String(repeating: "x", count: Hub.largeFrom)
    private static let id = ConnectionID(slot: 1_000, serial: 1)

    private static func read(_ line: String, _ body: String, token: String = "ann-token") throws -> RESTCall {
        let head = "\(line) HTTP/1.1\r\nhost: x\r\nx-simperium-token: \(token)\r\n"
        let bytes: [UInt8] = Array("\(head)content-length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
        var reader = HTTPRequestReader()
        let request: HTTPRequest? = try bytes.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var input: UnsafeRawBufferPointer = bytes
            return try reader.next(&input)
        }
        let endpoint = RESTHandler(cors: CORSPolicy("none"), documentBytesMax: 1 << 20, makeChangeID: { "made" })
        guard case .call(let call) = endpoint.read(try #require(request)) else {
            Issue.record("\(line) was answered at once")
            throw Unexpected()
        }
        return call
    }

    private struct Unexpected: Error {}

    private static func changes(_ bodies: String...) -> String {
        "[" + bodies.map { String($0.dropFirst(4)) }.joined(separator: ",") + "]"
    }

    @Test(
        "a body of 64 KiB is left to a reader thread, a body of one byte less is parsed at once",
        arguments: [true, false])
    func border(isLarge: Bool) throws {
        let object: String = #"{"t":""}"#
        let text: String = String(Self.text.dropLast(object.utf8.count + (isLarge ? 0 : 1)))
        let call: RESTCall = try Self.read("POST /1/app/notes/i/a", #"{"t":"\#(text)"}"#)
        if case .unread = call.operation { #expect(isLarge) } else { #expect(!isLarge) }
    }

    @Test("a large object or change list goes to a reader only after its user is known, and is then applied")
    func handedOver() throws {
        for (line, body): (String, String) in [
            ("POST /1/app/notes/i/a?ccid=c1", #"{"t":"\#(Self.text)"}"#),
            ("POST /1/app/notes/changes", Self.changes(edit("a", "c1", to: Self.text), edit("b", "c2", to: "x"))),
        ] {
            let harness = try HubHarness()
            let socket: Peer = harness.client("s")
            socket.send("0:cv:\(try harness.cv(0))")
            _ = socket.take()
            harness.holdsReads = true
            harness.call(Self.id, try Self.read(line, body))
            #expect(harness.reads.count == 1, "the token first")
            #expect(harness.hub.bytesBeingRead == 0)
            harness.answerRead()
            #expect(harness.reads.count == 1)
            #expect(harness.hub.bytesBeingRead == body.utf8.count)
            #expect(harness.requests.isEmpty && harness.answers(Self.id).isEmpty)
            harness.answerRead()
            #expect(harness.hub.bytesBeingRead == 0)
            #expect(harness.answers(Self.id).map(\.status) == [200])
            #expect(socket.take().joined().contains(#""ccids":["c1"]"#))
            #expect(harness.hub.readCount == 0 && harness.hub.calls == 0)
        }
    }

    @Test("a large body with an unknown token is answered with 401 and never parsed")
    func outsiders() throws {
        let harness = try HubHarness()
        harness.holdsReads = true
        harness.call(Self.id, try Self.read("POST /1/app/notes/i/a", "[\(Self.text)", token: "nobody"))
        harness.answerRead()
        #expect(harness.reads.isEmpty)
        #expect(harness.answers(Self.id).map(\.status) == [401])
    }

    @Test("an invalid large body is answered with 400 invalid_json, like a small one")
    func bad() throws {
        for (line, body): (String, String) in [
            ("POST /1/app/notes/i/a", "[\"\(Self.text)\"]"), ("POST /1/app/notes/i/a", "{\"t\":\"\(Self.text)"),
            ("POST /1/app/notes/changes", "[\"\(Self.text)"),
        ] {
            let harness = try HubHarness()
            harness.call(Self.id, try Self.read(line, body))
            let answers: [HTTPResponse] = harness.answers(Self.id)
            #expect(answers.map(\.status) == [400])
            let text = String(decoding: answers.first?.body ?? [], as: UTF8.self)
            #expect(text.contains("invalid_json"))
            #expect(harness.hub.bytesBeingRead == 0 && harness.hub.calls == 0)
        }
    }

    @Test("a client that disconnects during the parsing leaves no state behind and changes nothing")
    func closed() throws {
        let harness = try HubHarness()
        harness.holdsReads = true
        harness.call(Self.id, try Self.read("POST /1/app/notes/i/a", #"{"t":"\#(Self.text)"}"#))
        // The token's user, then the bucket.
        for _ in 0..<2 { harness.answerRead() }
        harness.close(Self.id)
        #expect(harness.hub.bytesBeingRead > 0)
        harness.answerRead()
        #expect(harness.hub.bytesBeingRead == 0 && harness.hub.readCount == 0)
        #expect(harness.requests.isEmpty && harness.hub.feeds.isEmpty)
    }

    @Test("above the bound of changes in progress a large body is answered with 503 and not parsed")
    func bounded() throws {
        var limits = ServerLimits()
        limits.changeBytesQueuedMax = Hub.largeFrom
        let harness = try HubHarness(limits: limits)
        harness.holdsReads = true
        let body: String = #"{"t":"\#(Self.text)"}"#
        harness.call(Self.id, try Self.read("POST /1/app/notes/i/a?ccid=c1", body))
        for _ in 0..<2 { harness.answerRead() }
        let other = ConnectionID(slot: 1_001, serial: 2)
        harness.call(other, try Self.read("POST /1/app/notes/i/b?ccid=c2", body))
        harness.answerRead(at: 1)
        let refused: [HTTPResponse] = harness.answers(other)
        #expect(refused.map(\.status) == [503])
        #expect(refused.first?.fields["retry-after"] == "1")
        harness.answerRead()
        #expect(harness.answers(Self.id).map(\.status) == [200])
        harness.holdsReads = false
        harness.call(other, try Self.read("POST /1/app/notes/i/b?ccid=c2", body))
        #expect(harness.answers(other).last?.status == 200)
    }
}
