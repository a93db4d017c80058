import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// The sync protocol over sessions: the same hub, the same answers.
@Suite("Sync over SockJS", .serialized)
struct SockJSSyncTests {
    /// A reader of one session's messages, by polls or by one stream after the other.
    private final class Reader {
        let client: SockJSClient
        private let isStreaming: Bool
        private var peer: HTTPPeer?
        private var waiting = [String]()

        init(_ client: SockJSClient, isStreaming: Bool) throws {
            (self.client, self.isStreaming) = (client, isStreaming)
            #expect(try frame() == "o\n")
        }

        func say(_ texts: String...) throws {
            let body = texts.map { (text: String) in
                var writer = JSONWriter()
                writer.write(string: text)
                return String(decoding: writer.bytes, as: UTF8.self)
            }.joined(separator: ",")
            #expect(try client.send("[\(body)]").status == 204)
        }

        func hear() throws -> String {
            while waiting.isEmpty { waiting = try SockJSClient.messages(try frame()) }
            return waiting.removeFirst()
        }

        private func frame() throws -> String {
            guard isStreaming else { return try client.poll().body }
            while true {
                let peer = try self.peer ?? client.stream("POST", "xhr_streaming").peer
                self.peer = peer
                if let chunk = try peer.chunk() { return chunk }
                self.peer = nil
            }
        }
    }

    private static func initialize(_ name: String) -> String {
        "0:init:{\"clientid\":\"\(name)\",\"api\":\"1.1\",\"token\":\"ann-token\",\"app_id\":\"app\",\"name\":\"notes\","
            + "\"library\":\"test\"}"
    }

    @Test(
        "init, index, change and echo work over streams and over polls, beside a raw WebSocket",
        arguments: [true, false])
    func sync(isStreaming: Bool) throws {
        try withSockJS { (server: TestServer) throws in
            let raw = try server.client("raw", command: "i:1:::10")
            #expect(try raw.receive().hasPrefix("0:i:{"))
            let reader = try Reader(SockJSClient(server, "sync"), isStreaming: isStreaming)
            try reader.say("h:0", Self.initialize("sock"), "0:i:1:::10")
            #expect(try reader.hear() == "h:1")
            #expect(try reader.hear() == "0:auth:ann@example.com")
            let index = try reader.hear()
            #expect(index.hasPrefix("0:i:{") && index.contains("\"index\":[]"))
            try reader.say(edit("oak", "c1", to: "é漢😀\u{2028}"))
            let echo = try reader.hear()
            #expect(echo.ccids == ["c1"] && echo.field("clientid") == "sock" && echo.contains("é漢😀\u{2028}"))
            #expect(try raw.receive().utf8.elementsEqual(echo.utf8))
            try raw.send(edit("oak", "c2", sv: 1, to: "two"))
            #expect(try reader.hear().ccids == ["c2"])
            try reader.say(edit("oak", "c2", sv: 2, to: "again"))
            #expect(try reader.hear().contains("\"error\":409"))
            let cv = try #require(index.field("current"))
            try reader.say("0:cv:\(cv)")
            #expect(try reader.hear().ccids == ["c1", "c2"])
        }
    }

    @Test("no change is lost between the responses of a session, however short they are")
    func manyResponses() throws {
        try withSockJS {
            $0.limits.sockJSResponseBytes = 4_096
        } _: { (server: TestServer) throws in
            let reader = try Reader(SockJSClient(server, "many"), isStreaming: true)
            try reader.say(Self.initialize("reader"), "0:i:1:::10")
            #expect(try reader.hear().hasPrefix("0:auth:"))
            #expect(try reader.hear().hasPrefix("0:i:"))
            let writer = try server.client("writer", command: "i:1:::1")
            #expect(try writer.receive().hasPrefix("0:i:"))
            for number in 0..<200 { try writer.send(edit("k\(number)", "c\(number)", to: "v")) }
            var ccids = [String]()
            while ccids.count < 200 { ccids += try reader.hear().ccids }
            #expect(ccids == (0..<200).map { "c\($0)" })
        }
    }

    @Test("a client above its rate of messages waits for its answer, and all are handled in order")
    func paced() throws {
        try withSockJS { (config: inout ServerConfig) in
            config.limits.messagesPerSecond = 200
            config.limits.messagesBurst = 50
        } _: { (server: TestServer) throws in
            let client = SockJSClient(server, "paced")
            #expect(try client.poll().body == "o\n")
            let peer = try HTTPPeer(port: server.port)
            var expected = [String]()
            for part in 0..<4 {
                let numbers: [Int] = Array((part * 30)..<(part * 30 + 30))
                let body = "[" + numbers.map { "\"h:\($0)\"" }.joined(separator: ",") + "]"
                #expect(try peer.ask("POST", client.path + "/xhr_send", body: body).status == 204)
                expected += numbers.map { "h:\($0 + 1)" }
            }
            var received = [String]()
            while received.count < expected.count { received += try client.messages() }
            #expect(received == expected)
            #expect(server.metrics.limitHits.value(.messageRate) > 0)
        }
    }

    @Test("while messages wait to be handled a further send is 503, and none of its messages is handled")
    func crowded() throws {
        try withSockJS { (config: inout ServerConfig) in
            config.limits.messagesPerSecond = 100
            config.limits.messagesBurst = 50
        } _: { (server: TestServer) throws in
            let client = SockJSClient(server, "crowded")
            #expect(try client.poll().body == "o\n")
            let body = "[" + (0..<80).map { "\"h:\($0)\"" }.joined(separator: ",") + "]"
            let first = try HTTPPeer(port: server.port)
            try first.send("POST", client.path + "/xhr_send", body: body)
            #expect(waitUntil { server.metrics.limitHits.value(.messageRate) > 0 })
            #expect(try client.send("[\"h:1000\"]").status == 503)
            #expect(server.metrics.limitHits.value(.sockJSSends) == 1)
            #expect(try first.answer().status == 204)
            #expect(waitUntil { (try? client.send("[\"h:2000\"]").status) == 204 })
            var received = [String]()
            while received.last != "h:2001" { received += try client.messages() }
            #expect(received == (1...80).map { "h:\($0)" } + ["h:2001"])
        }
    }
}
