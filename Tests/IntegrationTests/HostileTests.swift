import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// One user or a stranger behaves badly: the limit answers as documented and is counted, the connection or the process
/// goes on, and another user is served.
@Suite(.serialized)
struct HostileTests {
    /// Runs an attack on a server, beside a user who was there before and one who comes after.
    private func withNeighbour(
        _ configure: @Sendable (inout ServerConfig) -> Void, _ attack: (TestServer) throws -> Void
    ) throws {
        let server: TestServer = try TestServer(store: MemoryStore.forTests(), configure: configure)
        defer { server.stop() }
        let bob: TestClient = try server.client("bob", token: "bob-token")
        #expect(try bob.ask(edit("before", "b1", to: "x")).ccids == ["b1"])
        try attack(server)
        // What the attack has the user's other clients do is heard, too.
        #expect(
            try bob.apply(edit("after", "b2", to: "x")).flatMap(\.ccids).contains("b2"), "the other user is served")
    }

    private static func frames(_ texts: [String]) -> [UInt8] {
        texts.flatMap { WebSocketWriter.frame(.text, Array($0.utf8), mask: 7) }
    }

    private static func hello(_ channel: Int, bucket: String) -> String {
        "\(channel):init:{\"clientid\":\"ann-\(channel)\",\"api\":\"1.1\",\"token\":\"ann-token\",\"app_id\":\"app\","
            + "\"name\":\"\(bucket)\",\"library\":\"test\"}"
    }

    @Test("channels of one user on many connections: the one too many is answered 500, until another one ends")
    func channels() throws {
        try withNeighbour({ $0.limits.channelsPerUserMax = 2 }) { server in
            let first: TestClient = try server.client("ann-1", bucket: "a")
            let second: TestClient = try server.client("ann-2", bucket: "b")
            let third: TestClient = try server.client()
            let refusal: String = #"0:auth:{"msg":"Too many channels of this user","code":500}"#
            #expect(try third.ask(Self.hello(0, bucket: "c")) == refusal)
            #expect(server.metrics.limitHits.value(.userChannels) == 1)
            #expect(try server.client("bob-2", token: "bob-token").ask("h:1") == "h:2")
            first.vanish()
            #expect(waitUntil { server.metrics.channels.value == 2 })
            #expect(try third.ask(Self.hello(0, bucket: "c")) == "0:auth:ann@example.com")
            #expect(try second.ask("h:1") == "h:2")
        }
    }

    @Test("a flood of changes is read no further while the user's queue is full, and every change is answered")
    func changes() throws {
        try withNeighbour({ $0.limits.changesPerUserMax = 4 }) { server in
            let ann: TestClient = try server.client("ann")
            let flood: [String] = (0..<300).map { edit("k\($0)", "a\($0)", to: "x") }
            let many: String = flood.prefix(20).map { String($0.dropFirst(4)) }.joined(separator: ",")
            try ann.send(raw: Self.frames(["0:c:[\(many)]"] + flood.dropFirst(20)))
            var answered: Set<String> = []
            while answered.count < flood.count { answered.formUnion(try ann.receive().ccids) }
            #expect(server.metrics.limitHits.value(.userChanges) >= 1)
        }
    }

    @Test("changes that weigh more than a user may have queued hold the user back too")
    func changeBytes() throws {
        try withNeighbour({ $0.limits.changeBytesPerUserMax = 64 << 10 }) { server in
            let ann: TestClient = try server.client("ann")
            let text: String = String(repeating: "x", count: 100_000)
            for number: Int in 0..<5 { try ann.send(edit("k\(number)", "a\(number)", to: text)) }
            var answered: [String] = []
            while answered.count < 5 { answered += try ann.receive().ccids }
            #expect(server.metrics.limitHits.value(.userChanges) >= 1)
        }
    }

    @Test("floods of reads hold the user back, and each is answered")
    func reads() throws {
        try withNeighbour({ $0.limits.readsPerUserMax = 2 }) { server in
            let ann: TestClient = try server.client("ann")
            _ = try ann.ask(edit("k", "a1", to: "x"))
            for _ in 0..<200 where server.metrics.limitHits.value(.userReads) == 0 {
                try ann.send(raw: Self.frames(.init(repeating: "0:e:k.1", count: 30)))
                for _ in 0..<30 { #expect(try ann.receive() == "0:e:k.1\n{\"data\":{\"t\":\"x\"}}") }
            }
            #expect(server.metrics.limitHits.value(.userReads) >= 1)
        }
    }

    @Test("clients that never read are closed with 1013 when their user has too much queued")
    func neverReads() throws {
        try withNeighbour({ $0.limits.pendingBytesPerUserMax = 1 << 20 }) { server in
            let writer: TestClient = try server.client("ann-w")
            let start: String = try #require(try writer.ask("0:i::::1").field("current"))
            let deaf: [TestClient] = try (0..<4).map { number in
                let client: TestClient = try TestClient(port: server.port, receiveBytes: 4_096)
                try client.open("deaf-\(number)", command: "cv:\(start)")
                return client
            }
            let text: String = String(repeating: "x", count: 200_000)
            var sent: Int = 0
            while server.metrics.limitHits.value(.userPendingBytes) == 0, sent < 300 {
                sent += 1
                #expect(try writer.ask(edit("k\(sent)", "a\(sent)", to: text)).ccids == ["a\(sent)"])
            }
            #expect(server.metrics.limitHits.value(.userPendingBytes) >= 1)
            #expect(waitUntil { server.metrics.net.webSocketErrors.value(.tryAgainLater) >= 1 })
            #expect(deaf.count == 4)
        }
    }

    @Test(
        "unfinished giant frames are closed with 1013, unfinished heads answered 503, once there are too many bytes of them"
    )
    func giants() throws {
        try withNeighbour({ $0.limits.gatheredBytesPerUserMax = 64 << 10 }) { server in
            let ann: TestClient = try server.client("ann")
            let frame: [UInt8] = WebSocketWriter.frame(.text, [UInt8](repeating: 0x78, count: 400_000), mask: 7)
            try? ann.send(raw: Array(frame.dropLast(100)))
            #expect(try ann.end() == .tryAgainLater)
            #expect(server.metrics.limitHits.value(.gatheredBytes) == 1)
            let tooLarge: TestClient = try server.client("ann-2")
            try tooLarge.send(raw: [0x81, 0xFF, 0, 0, 0, 0, 0x7F, 0, 0, 0, 1, 2, 3, 4])
            #expect(try tooLarge.end() == .messageTooBig)
            #expect(waitUntil { server.metrics.limitHits.value(.frameBytes) == 1 })
            let head: String = "GET / HTTP/1.1\r\nx: " + String(repeating: "y", count: 200_000)
            let answer: String = try TestClient.http(port: server.port, head)
            #expect(answer.hasPrefix("HTTP/1.1 431") || answer.hasPrefix("HTTP/1.1 503"), "\(answer)")
            let limits: [Metrics.LimitName] = [.headBytes, .gatheredBytes]
            #expect(limits.reduce(0) { $0 + server.metrics.limitHits.value($1) } == 2)
        }
    }

    @Test("frames that are none end their connection with 1002", arguments: [[0xFF, 0xFF], [0x81, 0x01, 0x68]])
    func malformed(bytes: [UInt8]) throws {
        try withNeighbour({ _ in }) { server in
            let ann: TestClient = try server.client("ann")
            try ann.send(raw: bytes)
            #expect(try ann.end() == .protocolError)
            #expect(server.metrics.net.webSocketErrors.value(.protocolError) == 1)
        }
    }

    @Test("sockets above the bound are answered 503 and closed; those that are there go on")
    func sockets() throws {
        try withNeighbour({ $0.limits.connectionsMax = 3 }) { server in
            let silent: [TestClient] = try [server.client(), server.client()]
            let answer: String = try TestClient.http(port: server.port, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 503"), "\(answer)")
            #expect(server.metrics.limitHits.value(.connections) == 1)
            for client: TestClient in silent { #expect(try client.ask("h:1") == "h:2") }
        }
    }

    @Test("floods of pings have their share of a turn, and are answered in the turns that follow")
    func pings() throws {
        try withNeighbour({ $0.limits.turnMicrosecondsPerUser = 1 }) { server in
            let clients: [TestClient] = try (0..<6).map { try server.client("ann-\($0)") }
            let beats: [UInt8] = Self.frames(.init(repeating: "h:1", count: 500))
            for _ in 0..<50 where server.metrics.limitHits.value(.turn) == 0 {
                for client: TestClient in clients { try client.send(raw: beats) }
                for client: TestClient in clients {
                    for _ in 0..<500 { #expect(try client.receive() == "h:2") }
                }
            }
            #expect(server.metrics.limitHits.value(.turn) >= 1)
        }
    }

    @Test("who takes more than its part of the loop while others want it rests, and everything is answered")
    func loopShare() throws {
        try withNeighbour({ ($0.limits.threadPercentPerUser, $0.limits.turnMicrosecondsPerUser) = (5, 10) }) { server in
            let clients: [TestClient] = try (0..<3).map { try server.client("ann-\($0)") }
            let beats: [UInt8] = Self.frames(.init(repeating: "h:1", count: 300))
            for client: TestClient in clients { try client.send(raw: beats) }
            for client: TestClient in clients {
                for _ in 0..<300 { #expect(try client.receive() == "h:2") }
            }
            #expect(server.metrics.limitHits.value(.loopShare) >= 1)
        }
    }

    @Test("a connection that breaks while its user rests is forgotten")
    func vanishesInRest() throws {
        try withNeighbour({ ($0.limits.threadPercentPerUser, $0.limits.turnMicrosecondsPerUser) = (1, 10) }) { server in
            let before: Int = server.metrics.net.connections.value
            let clients: [TestClient] = try (0..<8).map { try server.client("ann-\($0)") }
            let beats: [UInt8] = Self.frames(.init(repeating: "h:1", count: 500))
            for client: TestClient in clients { try client.send(raw: beats) }
            for client: TestClient in clients { client.vanish() }
            #expect(waitUntil { server.metrics.net.connections.value == before })
        }
    }

    @Test("who takes more than its part of the deciding thread while others want it rests, and everything is answered")
    func shardShare() throws {
        try withNeighbour({ $0.limits.threadPercentPerUser = 5 }) { server in
            let bob: TestClient = try server.client("bob-2", token: "bob-token")
            let ann: TestClient = try server.client("ann")
            for round: Int in 0..<20 where server.metrics.limitHits.value(.shardShare) == 0 {
                let flood: [String] = (0..<100).map { edit("k\(round)-\($0)", "a\(round)-\($0)", to: "x") }
                try ann.send(raw: Self.frames(flood))
                #expect(try bob.ask(edit("between-\(round)", "b\(round)", to: "x")).ccids == ["b\(round)"])
                var answered: Set<String> = []
                while answered.count < flood.count { answered.formUnion(try ann.receive().ccids) }
            }
            #expect(server.metrics.limitHits.value(.shardShare) >= 1)
        }
    }

    @Test("whoever sends what costs much rests after it, and everything is answered")
    func costly() throws {
        // Everything is costly here: very late edits and large differences are what is in earnest.
        try withNeighbour({ ($0.limits.costlyMicroseconds, $0.limits.costlyRestFactor) = (0, 1) }) { server in
            let ann: TestClient = try server.client("ann")
            for number: Int in 0..<3 {
                #expect(try ann.ask(edit("k\(number)", "a\(number)", to: "x")).ccids == ["a\(number)"])
            }
            #expect(server.metrics.limitHits.value(.costlyMessages) >= 1)
            #expect(server.metrics.limitHits.value(.costlyChanges) >= 1)
        }
    }
}
