import Testing
import ThicketCrypto
import ThicketProtocol

@Suite("HTTP/1.1 responses and the WebSocket handshake")
struct HTTPResponseTests {
    private func request(_ text: String) throws -> HTTPRequest {
        var reader = HTTPRequestReader()
        let request = try Array(text.utf8).withUnsafeBytes { bytes in
            var input = bytes
            return try reader.next(&input)
        }
        return try #require(request)
    }

    private func head(_ text: String) throws(HTTPFailure) -> HTTPResponseHead? {
        var reader = HTTPResponseHeadReader()
        let result = Array(text.utf8).withUnsafeBytes { bytes in
            var input = bytes
            return Result { () throws(HTTPFailure) in try reader.next(&input) }
        }
        return try result.get()
    }

    @Test("a response states its length, and whether the connection stays open")
    func encoded() throws {
        let get = try request("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        let old = try request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        let hello = HTTPResponse.text(200, "hello")
        let fields = "content-type: text/plain; charset=utf-8\r\ncontent-length: 5\r\n"
        #expect(
            String(decoding: hello.encoded(for: get), as: UTF8.self) == "HTTP/1.1 200 OK\r\n\(fields)\r\nhello")
        #expect(
            String(decoding: hello.encoded(for: old), as: UTF8.self)
                == "HTTP/1.1 200 OK\r\n\(fields)connection: keep-alive\r\n\r\nhello")
        #expect(
            String(decoding: hello.encoded(for: nil, date: "D"), as: UTF8.self)
                == "HTTP/1.1 200 OK\r\n\(fields)date: D\r\nconnection: close\r\n\r\nhello")
    }

    @Test("HEAD gets the length but not the body, 204 neither")
    func withoutBody() throws {
        let asked = try request("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(
            String(decoding: HTTPResponse.text(200, "hello").encoded(for: asked), as: UTF8.self)
                .hasSuffix("content-length: 5\r\n\r\n"))
        #expect(
            String(decoding: HTTPResponse(status: 204).encoded(for: asked), as: UTF8.self)
                == "HTTP/1.1 204 No Content\r\n\r\n")
    }

    @Test("a field value cannot end its own line")
    func splitting() {
        let response = HTTPResponse(status: 200, fields: [.init("a", "b\r\nset-cookie: c")])
        let text = String(decoding: response.encoded(for: nil), as: UTF8.self)
        #expect(text.utf8.count { $0 == 0x0A } == 5)
        #expect(text.contains("a: b  set-cookie: c\r\n"))
    }

    @Test(
        "a client accepts well-formed response heads and refuses others",
        arguments: [
            ("HTTP/1.1 200 OK\r\n\r\n", 200), ("HTTP/1.0 404 Not Found\r\nA: b\r\n\r\n", 404),
            ("HTTP/1.1 101 \r\n\r\n", 101), ("HTTP/1.1 101\r\n\r\n", 101), ("HTTP/1.1 20 OK\r\n\r\n", nil),
            ("HTTP/1.1 2000 OK\r\n\r\n", nil), ("HTTP/2 200 OK\r\n\r\n", nil), ("HTTP/1.1  200 OK\r\n\r\n", nil),
            ("HTTP/1.1 600 OK\r\n\r\n", nil), ("HTTP/1.1 099 OK\r\n\r\n", nil), ("ICY 200 OK\r\n\r\n", nil),
            ("HTTP/1.1 200 OK\nA: b\r\n\r\n", nil), ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", nil),
        ])
    func heads(_ text: String, _ status: Int?) {
        let parsed = try? head(text)
        #expect(parsed?.status == status)
    }

    @Test("bytes after a response head stay in the input")
    func rest() throws {
        var reader = HTTPResponseHeadReader()
        try Array("HTTP/1.1 101 X\r\n\r\nrest".utf8).withUnsafeBytes { bytes in
            var input = bytes
            let status = try reader.next(&input)?.status
            #expect(status == 101)
            #expect(Array(input) == Array("rest".utf8))
        }
    }

    // MARK: Handshake

    private let opening =
        "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

    @Test("the accept value of the RFC's own example (RFC 6455, 1.3)")
    func accept() throws {
        let key = try WebSocketHandshake.key(of: try request(opening))
        #expect(WebSocketHandshake.acceptValue(key: key, sha1: Hash.sha1) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test(
        "an opening that breaks a rule is refused with 400, one with another version with 426",
        arguments: [
            ("GET /chat", "POST /chat", 400), ("HTTP/1.1", "HTTP/1.0", 400),
            ("Upgrade: websocket", "Upgrade: h2c", 400),
            ("Upgrade: websocket\r\n", "", 400), ("Connection: Upgrade", "Connection: close", 400),
            ("Version: 13", "Version: 8", 426), ("Sec-WebSocket-Version: 13\r\n", "", 426),
            ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 13", 426),
            ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "", 400), ("dGhlIHNhbXBsZSBub25jZQ==", "dGhl", 400),
            ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ=a", 400), ("ZQ==", "Z!==", 400),
            ("Sec-WebSocket-Key: d", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: d", 400),
            ("13\r\n\r\n", "13\r\nContent-Length: 2\r\n\r\nab", 400),
            ("13\r\n\r\n", "13\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 400),
            ("13\r\n\r\n", "13\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ])
    func refusedOpenings(_ part: String, _ replacement: String, _ status: Int) throws {
        let changed = opening.split(separator: part, omittingEmptySubsequences: false).joined(
            separator: replacement)
        try #require(!changed.utf8.elementsEqual(opening.utf8))
        let failure = #expect(throws: HTTPFailure.self) {
            _ = try WebSocketHandshake.key(of: try request(changed))
        }
        #expect(failure?.status == status)
    }

    @Test(
        "openings that differ from the example within the rules are accepted",
        arguments: [
            ("Upgrade: websocket", "upgrade: WebSocket"), ("Connection: Upgrade", "Connection: keep-alive, Upgrade"),
            ("Sec-WebSocket-Version", "sec-websocket-version"),
            ("Host: x", "Host: x\r\nSec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Protocol: a, b"),
        ])
    func takenOpenings(_ part: String, _ replacement: String) throws {
        let changed = opening.split(separator: part, omittingEmptySubsequences: false).joined(
            separator: replacement)
        #expect(try WebSocketHandshake.key(of: try request(changed)) == "dGhlIHNhbXBsZSBub25jZQ==")
    }

    @Test(
        "our client and our server understand each other; a changed answer is refused",
        arguments: [
            ("", "", nil), ("101", "200", .refusedUpgrade), ("websocket", "h2c", .notAnUpgrade),
            ("Connection: Upgrade", "Connection: close", .notAnUpgrade), ("Accept: ", "Accept: A", .badAccept),
            ("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n", .unexpectedExtension),
            ("\r\n\r\n", "\r\nSec-WebSocket-Protocol: chat\r\n\r\n", .unexpectedSubprotocol),
        ] as [(String, String, HTTPFailure.Problem?)])
    func bothSides(_ part: String, _ replacement: String, _ problem: HTTPFailure.Problem?) throws {
        let nonce: [UInt8] = Array(0..<16)
        let sent = WebSocketHandshake.request(
            host: "x", target: "/sock/1/app/websocket", nonce: nonce, fields: [.init("user-agent", "me")])
        let asked = try request(String(decoding: sent, as: UTF8.self))
        #expect(asked.fields["user-agent"] == "me")
        let key = try WebSocketHandshake.key(of: asked)
        var answer = String(decoding: WebSocketHandshake.accepted(key: key, sha1: Hash.sha1), as: UTF8.self)
        if !part.isEmpty {
            answer = answer.split(separator: part, omittingEmptySubsequences: false).joined(separator: replacement)
        }
        let parsed: HTTPResponseHead = try #require(try head(answer))
        if let problem {
            #expect(throws: HTTPFailure(problem)) {
                try WebSocketHandshake.check(parsed, nonce: nonce, sha1: Hash.sha1)
            }
        } else {
            try WebSocketHandshake.check(parsed, nonce: nonce, sha1: Hash.sha1)
        }
    }

    @Test(
        "a refusal tells programs which rule was broken and users what to do, and its connection ends",
        arguments: [
            (.headTooLong, "head_too_long", "head too long"), (.badChunk, "bad_chunk", "bad chunk"),
            (.webSocketVersion, "web_socket_version", "web socket version"),
            (.bodyTooLong, "body_too_long", "body too long"),
            (.targetTooLong, "target_too_long", "target too long"),
            (.codingNotSupported, "coding_not_supported", "coding not supported"),
            (.versionNotSupported, "version_not_supported", "version not supported"),
            (.badExpectation, "bad_expectation", "bad expectation"),
        ] as [(HTTPFailure.Problem, String, String)])
    func refusals(_ problem: HTTPFailure.Problem, _ code: String, _ words: String) throws {
        let failure = HTTPFailure(problem)
        let response = HTTPResponse.refusal(failure)
        #expect(response.status == failure.status && response.closes)
        #expect(response.fields["content-type"] == "application/json")
        let body = try #require(try JSONValue(parsing: response.body).objectValue)
        #expect(body["code"] == .string(code))
        #expect(body["message"] == .string("The request was refused: \(words)."))
        #expect(body["hint"]?.stringValue?.isEmpty == false)
        #expect(body.count == 3)
    }
}
