import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// A user or an unauthenticated connection misbehaves: the limit answers as documented and is counted, the connection
/// or the process continues, and another user is served.
@Suite(.serialized)
struct HostileTests {
    /// Runs an attack on a server and checks that another user is served before and after it.
    private func withNeighbour(
        _ configure: @Sendable (inout ServerConfig) -> Void, _ attack: (TestServer) throws -> Void
    ) throws {
        let server = try TestServer(store: MemoryStore.forTests(), configure: configure)
        defer { server.stop() }
        let bob = try server.client("bob", token: "bob-token")
        #expect(try bob.ask(edit("before", "b1", to: "x")).ccids == ["b1"])
        try attack(server)
        // Changes of the user's other clients during the attack arrive, too.
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

    @Test("a channel above a user's bound over all connections is 500, until another channel ends")
    func channels() throws {
        try withNeighbour({ $0.limits.channelsPerUserMax = 2 }) { server in
            let first = try server.client("ann-1", bucket: "a")
            let second = try server.client("ann-2", bucket: "b")
            let third = try server.client()
            let refusal = #"0:auth:{"msg":"Too many channels of this user","code":500}"#
            #expect(try third.ask(Self.hello(0, bucket: "c")) == refusal)
            #expect(server.metrics.limitHits.value(.userChannels) == 1)
            #expect(try server.client("bob-2", token: "bob-token").ask("h:1") == "h:2")
            first.vanish()
            #expect(waitUntil { server.metrics.channels.value == 2 })
            #expect(try third.ask(Self.hello(0, bucket: "c")) == "0:auth:ann@example.com")
            #expect(try second.ask("h:1") == "h:2")
        }
    }

    @Test("a flood of changes is not read while the user's queue is full, and every change is answered")
    func changes() throws {
        try withNeighbour({ $0.limits.changesPerUserMax = 4 }) { server in
            let ann = try server.client("ann")
            let flood = (0..<300).map { edit("k\($0)", "a\($0)", to: "x") }
            let many = flood.prefix(20).map { String($0.dropFirst(4)) }.joined(separator: ",")
            try ann.send(raw: Self.frames(["0:c:[\(many)]"] + flood.dropFirst(20)))
            var answered = Set<String>()
            while answered.count < flood.count { answered.formUnion(try ann.receive().ccids) }
            #expect(server.metrics.limitHits.value(.userChanges) >= 1)
        }
    }

    @Test("changes above the bytes that a user may have queued are held back, too")
    func changeBytes() throws {
        try withNeighbour({ $0.limits.changeBytesPerUserMax = 64 << 10 }) { server in
            let ann = try server.client("ann")
            let text = String(repeating: "x", count: 100_000)
            for number in 0..<5 { try ann.send(edit("k\(number)", "a\(number)", to: text)) }
            var answered = [String]()
            while answered.count < 5 { answered += try ann.receive().ccids }
            #expect(server.metrics.limitHits.value(.userChanges) >= 1)
        }
    }

    @Test("a flood of reads is held back, and each read is answered")
    func reads() throws {
        try withNeighbour({ $0.limits.readsPerUserMax = 2 }) { server in
            let ann = try server.client("ann")
            _ = try ann.ask(edit("k", "a1", to: "x"))
            for _ in 0..<200 where server.metrics.limitHits.value(.userReads) == 0 {
                try ann.send(raw: Self.frames(.init(repeating: "0:e:k.1", count: 30)))
                for _ in 0..<30 { #expect(try ann.receive() == "0:e:k.1\n{\"data\":{\"t\":\"x\"}}") }
            }
            #expect(server.metrics.limitHits.value(.userReads) >= 1)
        }
    }

    @Test("clients that never read are closed with 1013 when their user has too many bytes queued")
    func neverReads() throws {
        try withNeighbour({ $0.limits.pendingBytesPerUserMax = 1 << 20 }) { server in
            let writer = try server.client("ann-w")
            let start = try #require(try writer.ask("0:i::::1").field("current"))
            let deaf = try (0..<4).map { number in
                let client = try TestClient(port: server.port, receiveBytes: 4_096)
                try client.open("deaf-\(number)", command: "cv:\(start)")
                return client
            }
            let text = String(repeating: "x", count: 200_000)
            var sent = 0
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
        "above the bound of gathered bytes unfinished frames are closed with 1013 and heads get 431 or 503"
    )
    func giants() throws {
        try withNeighbour({ $0.limits.gatheredBytesPerUserMax = 64 << 10 }) { server in
            let ann = try server.client("ann")
            let frame = WebSocketWriter.frame(.text, [UInt8](repeating: 0x78, count: 400_000), mask: 7)
            try? ann.send(raw: Array(frame.dropLast(100)))
            #expect(try ann.end() == .tryAgainLater)
            #expect(server.metrics.limitHits.value(.gatheredBytes) == 1)
            let tooLarge = try server.client("ann-2")
            try tooLarge.send(raw: [0x81, 0xFF, 0, 0, 0, 0, 0x7F, 0, 0, 0, 1, 2, 3, 4])
            #expect(try tooLarge.end() == .messageTooBig)
            #expect(waitUntil { server.metrics.limitHits.value(.frameBytes) == 1 })
            let head = "GET / HTTP/1.1\r\nx: " + String(repeating: "y", count: 200_000)
            let answer = try TestClient.http(port: server.port, head)
            #expect(answer.hasPrefix("HTTP/1.1 431") || answer.hasPrefix("HTTP/1.1 503"), "\(answer)")
            let limits: [Metrics.LimitName] = [.headBytes, .gatheredBytes]
            #expect(limits.reduce(0) { $0 + server.metrics.limitHits.value($1) } == 2)
        }
    }

    @Test("malformed frames end their connection with 1002", arguments: [[0xFF, 0xFF], [0x81, 0x01, 0x68]])
    func malformed(bytes: [UInt8]) throws {
        try withNeighbour({ _ in }) { server in
            let ann = try server.client("ann")
            try ann.send(raw: bytes)
            #expect(try ann.end() == .protocolError)
            #expect(server.metrics.net.webSocketErrors.value(.protocolError) == 1)
        }
    }

    @Test("connections above the bound are answered 503 and closed; existing ones continue")
    func sockets() throws {
        try withNeighbour({ $0.limits.connectionsMax = 3 }) { server in
            let silent = try [server.client(), server.client()]
            let answer = try TestClient.http(port: server.port, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 503"), "\(answer)")
            #expect(server.metrics.limitHits.value(.connections) == 1)
            for client in silent { #expect(try client.ask("h:1") == "h:2") }
        }
    }

    @Test("a flood of pings is limited to its share of a turn and answered in later turns")
    func pings() throws {
        try withNeighbour({ $0.limits.turnMicrosecondsPerUser = 1 }) { server in
            let clients = try (0..<6).map { try server.client("ann-\($0)") }
            let beats = Self.frames(.init(repeating: "h:1", count: 500))
            for _ in 0..<50 where server.metrics.limitHits.value(.turn) == 0 {
                for client in clients { try client.send(raw: beats) }
                for client in clients {
                    for _ in 0..<500 { #expect(try client.receive() == "h:2") }
                }
            }
            #expect(server.metrics.limitHits.value(.turn) >= 1)
        }
    }

    @Test("a user above its share of the loop is throttled while others want it, and everything is answered")
    func loopShare() throws {
        try withNeighbour({ ($0.limits.threadPercentPerUser, $0.limits.turnMicrosecondsPerUser) = (5, 10) }) { server in
            let clients = try (0..<3).map { try server.client("ann-\($0)") }
            let beats = Self.frames(.init(repeating: "h:1", count: 300))
            for client in clients { try client.send(raw: beats) }
            for client in clients {
                for _ in 0..<300 { #expect(try client.receive() == "h:2") }
            }
            #expect(server.metrics.limitHits.value(.loopShare) >= 1)
        }
    }

    @Test("a connection that breaks while its user is throttled is removed")
    func vanishesInRest() throws {
        try withNeighbour({ ($0.limits.threadPercentPerUser, $0.limits.turnMicrosecondsPerUser) = (1, 10) }) { server in
            let before = server.metrics.net.connections.value
            let clients = try (0..<8).map { try server.client("ann-\($0)") }
            let beats = Self.frames(.init(repeating: "h:1", count: 500))
            for client in clients { try client.send(raw: beats) }
            for client in clients { client.vanish() }
            #expect(waitUntil { server.metrics.net.connections.value == before })
        }
    }

    @Test("a user above its share of the shard is throttled while others want it, and everything is answered")
    func shardShare() throws {
        try withNeighbour({ $0.limits.threadPercentPerUser = 5 }) { server in
            let bob = try server.client("bob-2", token: "bob-token")
            let ann = try server.client("ann")
            for round in 0..<20 where server.metrics.limitHits.value(.shardShare) == 0 {
                let flood = (0..<100).map { edit("k\(round)-\($0)", "a\(round)-\($0)", to: "x") }
                try ann.send(raw: Self.frames(flood))
                #expect(try bob.ask(edit("between-\(round)", "b\(round)", to: "x")).ccids == ["b\(round)"])
                var answered = Set<String>()
                while answered.count < flood.count { answered.formUnion(try ann.receive().ccids) }
            }
            #expect(server.metrics.limitHits.value(.shardShare) >= 1)
        }
    }

    @Test("a user is throttled after costly messages, and everything is answered")
    func costly() throws {
        // Everything counts as costly here; in production very late edits and large differences do.
        try withNeighbour({ ($0.limits.costlyMicroseconds, $0.limits.costlyThrottleFactor) = (0, 1) }) { server in
            let ann = try server.client("ann")
            for number in 0..<3 {
                #expect(try ann.ask(edit("k\(number)", "a\(number)", to: "x")).ccids == ["a\(number)"])
            }
            #expect(server.metrics.limitHits.value(.costlyMessages) >= 1)
            #expect(server.metrics.limitHits.value(.costlyChanges) >= 1)
        }
    }
}
