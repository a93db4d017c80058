import Testing
import ThicketProtocol
import ThicketTestSupport

@Suite("HTTP/1.1 requests")
struct HTTPRequestReaderTests {
    private enum Outcome: Equatable {
        case requests([HTTPRequest], isInside: Bool)
        case failure(HTTPFailure.Problem)
    }

    private func read(_ pieces: [[UInt8]], limits: HTTPLimits = .init()) -> Outcome {
        var reader = HTTPRequestReader(limits: limits)
        var requests = [HTTPRequest]()
        do throws(HTTPFailure) {
            for piece in pieces { requests += try Self.read(piece, &reader) }
        } catch {
            return .failure(error.problem)
        }
        return .requests(requests, isInside: reader.isInsideRequest)
    }

    private static func read(_ piece: [UInt8], _ reader: inout HTTPRequestReader) throws(HTTPFailure) -> [HTTPRequest] {
        var requests = [HTTPRequest]()
        var failure: HTTPFailure?
        piece.withUnsafeBytes { bytes in
            var input = bytes
            do throws(HTTPFailure) {
                while !input.isEmpty, let request = try reader.next(&input) { requests.append(request) }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return requests
    }

    @Test("each case is accepted, or refused for its reason, however it is cut", arguments: HTTPCase.all.indices)
    func table(_ index: Int) {
        let each = HTTPCase.all[index]
        let sizes = each.bytes.count < 2_000 ? [1, 2, 7, each.bytes.count] : [997, each.bytes.count]
        for size in sizes {
            let pieces = stride(from: 0, to: each.bytes.count, by: size).map {
                Array(each.bytes[$0..<min($0 + size, each.bytes.count)])
            }
            switch read(pieces) {
            case .failure(let problem): #expect(problem == each.problem, "\(each.title), in pieces of \(size)")
            case .requests(let requests, let isInside):
                #expect(each.problem == nil, "\(each.title), in pieces of \(size), was taken")
                #expect(requests.count == 1 && !isInside, "\(each.title), in pieces of \(size)")
            }
        }
    }

    /// What a reader reports of one request whose body is streamed: the length in its head, and the pieces.
    private static func stream(
        _ text: String, inPiecesOf size: Int, most: Int, limits: HTTPLimits = .init()
    ) throws -> (length: Int?, body: [UInt8], isComplete: Bool, later: [HTTPRequest], gathered: Int) {
        var reader = HTTPRequestReader(limits: limits)
        var (length, body, isComplete) = (Int?.none, [UInt8](), false)
        var (later, gathered) = ([HTTPRequest](), 0)
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            try bytes[start..<min(start + size, bytes.count)].withUnsafeBytes { piece in
                var input = piece
                while let event = try reader.next(&input, streams: { $0.method == "PUT" ? most : nil }) {
                    switch event {
                    case .request(let request): later.append(request)
                    case .head(_, let found): length = found
                    case .piece(let piece, let isLast):
                        body += piece
                        isComplete = isLast
                    }
                }
                gathered = max(gathered, length == nil ? 0 : reader.gatheredBytes)
            }
        }
        return (length, body, isComplete, later, gathered)
    }

    @Test(
        "a streamed body comes in pieces that are not kept, and the next request follows it", arguments: [1, 7, 4_096])
    func streamed(size: Int) throws {
        var limits = HTTPLimits()
        limits.bodyBytesMax = 10
        let body = String(repeating: "abcdefghij", count: 100)
        let next = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok"
        let text = "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + body
        let alone = try Self.stream(text, inPiecesOf: size, most: 1_000, limits: limits)
        #expect(alone.length == 1_000 && alone.body == Array(body.utf8) && alone.isComplete && alone.gathered == 0)
        let both = try Self.stream(text + next, inPiecesOf: size, most: 1_000, limits: limits)
        #expect(both.body == Array(body.utf8) && both.later.map(\.body) == [Array("ok".utf8)])
        #expect(throws: HTTPFailure(.bodyTooLong)) {
            try Self.stream(text, inPiecesOf: size, most: 999, limits: limits)
        }
    }

    @Test("a body whose length is not stated once is not streamed")
    func notStreamed() throws {
        let chunked = "PUT /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        let found = try Self.stream(chunked, inPiecesOf: 5, most: 1_000)
        #expect(found.length == nil && found.later.map(\.body) == [Array("ok".utf8)])
        let empty = try Self.stream("PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", inPiecesOf: 5, most: 9)
        #expect(empty.length == nil && empty.later.count == 1)
        #expect(throws: HTTPFailure(.lengthAndCoding)) {
            try Self.stream(
                "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
                inPiecesOf: 9, most: 9)
        }
    }

    @Test("method, target, path, query, fields and body are returned as they were sent")
    func parts() throws {
        let text =
            "POST /a/b?c=d&e HTTP/1.1\r\nHost: x:1\r\nX-Thing:  One , two\r\nx-thing: THREE\r\n"
            + "Content-Length: 3\r\n\r\nabc"
        guard case .requests(let requests, _) = read([Array(text.utf8)]) else {
            Issue.record("refused")
            return
        }
        let request = try #require(requests.first)
        #expect(request.method == "POST")
        #expect(request.target == "/a/b?c=d&e")
        #expect(request.path == "/a/b")
        #expect(request.query == "c=d&e")
        #expect(request.fields["x-thing"] == "One , two")
        #expect(request.fields.tokens(of: "x-thing") == ["one", "two", "three"])
        #expect(request.body == Array("abc".utf8))
        #expect(request.keepsAlive)
    }

    @Test("an absolute target is cut to its path")
    func absolute() {
        let text = "GET http://other/p?q HTTP/1.1\r\nHost: x\r\n\r\n"
        guard case .requests(let requests, _) = read([Array(text.utf8)]) else {
            Issue.record("refused")
            return
        }
        #expect(requests.first?.target == "/p?q")
    }

    @Test("chunks are joined")
    func chunked() {
        let text =
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00a\r\n0123456789\r\n0\r\n\r\n"
        guard case .requests(let requests, _) = read([Array(text.utf8)]) else {
            Issue.record("refused")
            return
        }
        #expect(requests.first?.body == Array("abc0123456789".utf8))
    }

    @Test("requests that follow each other are returned one by one")
    func pipelined() {
        let text = (0..<20).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined()
        for size in [1, 10, 10_000] {
            let bytes: [UInt8] = Array(text.utf8)
            let pieces: [[UInt8]] = stride(from: 0, to: bytes.count, by: size).map {
                Array(bytes[$0..<min($0 + size, bytes.count)])
            }
            guard case .requests(let requests, let isInside) = read(pieces) else {
                Issue.record("refused")
                return
            }
            #expect(requests.map(\.target) == (0..<20).map { "/\($0)" })
            #expect(!isInside)
        }
    }

    @Test(
        "HTTP/1.1 keeps the connection unless it says close, HTTP/1.0 only if it says keep-alive and not close",
        arguments: [
            ("HTTP/1.1\r\nHost: x", true), ("HTTP/1.1\r\nHost: x\r\nConnection: close", false),
            ("HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Close", false), ("HTTP/1.0", false),
            ("HTTP/1.0\r\nConnection: Keep-Alive", true), ("HTTP/1.0\r\nConnection: keep-alive, close", false),
        ])
    func keepAlive(_ rest: String, _ expected: Bool) {
        guard case .requests(let requests, _) = read([Array("GET / \(rest)\r\n\r\n".utf8)]) else {
            Issue.record("refused")
            return
        }
        #expect(requests.first?.keepsAlive == expected)
    }

    @Test("'100 Continue' is due once, and not when the body has begun to arrive")
    func continues() throws {
        let head: [UInt8] = Array(
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n".utf8)
        var waiting = HTTPRequestReader()
        #expect(try Self.read(head, &waiting).isEmpty)
        let (first, second) = (waiting.takeContinue(), waiting.takeContinue())
        #expect(first && !second)
        #expect(try Self.read(Array("ab".utf8), &waiting).count == 1)
        var eager = HTTPRequestReader()
        #expect(try Self.read(head + [0x61], &eager).isEmpty)
        let isDue = eager.takeContinue()
        #expect(!isDue)
    }

    @Test("any prefix of any case waits or is refused, and any noise neither traps nor grows")
    func prefixesAndNoise() {
        for each in HTTPCase.all where each.bytes.count < 300 {
            for count in 0..<each.bytes.count { _ = read([Array(each.bytes[..<count])]) }
        }
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        let alphabet: [UInt8] = Array("GET / HTTP/1.1\r\n: ,;0aZ\t\u{0}\u{7F}".utf8)
        for _ in 0..<2_000 {
            let noise: [UInt8] = (0..<Int.random(in: 1...80, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? 0
            }
            let start: [UInt8] = Bool.random(using: &random) ? Array("GET / HTTP/1.1\r\nHost: x\r\n".utf8) : []
            let whole = read([start + noise])
            let cut = read((start + noise).map { [$0] })
            #expect(whole == cut, "seed \(seed)")
        }
    }
}
