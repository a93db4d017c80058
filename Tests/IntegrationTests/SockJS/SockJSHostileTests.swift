import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

/// Malformed requests.
@Suite("SockJS and bad input", .serialized)
struct SockJSHostileTests {
    private static let good: [(method: String, path: String, body: String)] = [
        ("POST", "/sock/1/app/000/S/xhr_send", "[\"h:1\",\"0:i:1:::10\"]"),
        ("POST", "/sock/1/app/000/S/jsonp_send", "d=%5B%22h:1%22%5D"), ("GET", "/sock/1/app/info?t=1", ""),
        ("GET", "/sock/1/app/000/S/jsonp?c=call", ""), ("GET", "/sock/1/app/000/S/htmlfile?c=call", ""),
        ("GET", "/sock/1/app/iframe-1.0.html", ""), ("OPTIONS", "/sock/1/app/000/S/xhr", ""),
        ("POST", "/sock/1/app/000/S/xhr_streaming", ""), ("GET", "/sock/1/app/000/S/websocket", ""),
    ]

    /// Flips, doubles, cuts and inserts a few bytes.
    private static func mutate(_ text: String, _ random: inout SeededRandom) -> [UInt8] {
        var bytes = [UInt8](text.utf8)
        for _ in 0..<Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes[place] = .random(in: 0...255, using: &random)
            case 1: bytes.insert(.random(in: 0x21...0x7E, using: &random), at: place)
            case 2: bytes.remove(at: place)
            default: bytes.append(contentsOf: bytes[place...].prefix(16))
            }
        }
        return bytes
    }

    @Test("mutated requests get an answer of the protocol, and sessions beside them continue")
    func mutated() throws {
        try withSockJS({
            $0.sockJSPatience = .milliseconds(50)
            $0.sockJSHeartbeat = .milliseconds(20)
        }) { (server: TestServer) throws in
            let beside = try TestClient(port: server.port, path: "/sock/1/app/000/beside/websocket")
            #expect(try beside.receive() == "o")
            var random = SeededRandom(seed: 1_027)
            var seen = [Int: Int]()
            for number in 0..<1_200 {
                let (method, path, body) = Self.good[number % Self.good.count]
                let session = "s\(number / Self.good.count % 7)"
                let target = Self.mutate(path.split(separator: "S").joined(separator: session), &random)
                let content = Self.mutate(body, &random)
                let peer = try HTTPPeer(port: server.port)
                let length = content.isEmpty ? "" : "Content-Length: \(content.count)\r\n"
                var bytes: [UInt8] = Array("\(method) ".utf8)
                bytes += target
                bytes += Array(" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(length)\r\n".utf8)
                try peer.send(raw: bytes + content)
                // An accepted poll or stream is ended by a disconnect; everything else has been answered.
                let head = try peer.head()
                seen[head.status, default: 0] += 1
                let isKnown = [200, 204, 304, 400, 404, 405, 413, 414, 426, 500, 501, 503].contains(head.status)
                #expect(isKnown, "\(number): \(head.status) to \(String(decoding: bytes, as: UTF8.self))")
                if head.status == 500 {
                    let words = ["Payload expected.", "Broken JSON encoding.", "\"callback\" parameter"]
                    let text = try peer.rest()
                    #expect(words.contains { text.contains($0) }, "\(number): \(text)")
                }
            }
            #expect(seen.count > 4, "\(seen)")
            var answer = try beside.ask("[\"h:1\"]")
            while answer.utf8.elementsEqual("h".utf8) { answer = try beside.receive() }
            #expect(answer == "a[\"h:2\"]")
            beside.vanish()
            #expect(waitUntil { server.metrics.sockJSSessions.value == 0 && server.metrics.net.httpStreams.value == 0 })
            #expect(server.metrics.sockJSQueuedBytes.value == 0)
        }
    }

    @Test("mutated messages of a WebSocket session end at most that session")
    func mutatedFrames() throws {
        try withSockJS { (server: TestServer) throws in
            let beside = try TestClient(port: server.port, path: "/sock/1/app/000/beside/websocket")
            #expect(try beside.receive() == "o")
            var random = SeededRandom(seed: 2_027)
            var client: TestClient?
            for _ in 0..<600 {
                let link = try client ?? TestClient(port: server.port, path: "/sock/1/app/1/x/websocket")
                if client == nil { #expect(try link.receive() == "o") }
                let message = Self.mutate("[\"h:1\",\"0:c:{\\\"id\\\":\\\"k\\\"}\"]", &random)
                try link.send(raw: WebSocketWriter.frame(.text, message, mask: 7))
                try link.send("[\"h:900\"]")
                var isAnswered = false
                while !isAnswered, let frame = try? link.receive() { isAnswered = frame.contains("\"h:901\"") }
                #expect(isAnswered || link.closeCode == .invalidPayload)
                client = isAnswered ? link : nil
            }
            #expect(try beside.ask("[\"h:1\"]") == "a[\"h:2\"]")
        }
    }
}
