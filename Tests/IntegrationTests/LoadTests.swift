import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

/// Several clients at once, each on its own thread.
@Suite(.serialized)
struct LoadTests {
    @Test(
        "two clients type into one text at once and end with the same text, nothing lost",
        arguments: StoreKind.allCases)
    func typing(kind: StoreKind) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        let setup = try server.client("setup")
        let start = try #require(try setup.ask(edit("text", "new", to: "-")).field("cv"))
        let edits = 60
        let typists = try inParallel(2) { number in
            let typist = try Typist(
                server.client("c\(number)", library: "thicket", command: "cv:\(start)"), number)
            try typist.type(edits)
            return typist
        }
        for typist in typists { try typist.hear(2 * edits) }
        let texts = typists.map(\.text)
        #expect(texts[0] == texts[1])
        #expect(texts[0].utf8.count == 1 + 2 * edits)
        #expect(texts[0].utf8.count { $0 == UInt8(ascii: "a") } == edits)
        #expect(try setup.drain().flatMap(\.ccids).count == 2 * edits)
        let version = 1 + 2 * edits
        #expect(
            try setup.ask("0:e:text.\(version)") == "0:e:text.\(version)\n{\"data\":{\"t\":\"\(texts[0])\"}}")
    }

    @Test(
        "followers that come and go while others write get each change once, in order",
        arguments: [(StoreKind.memory, 1_000), (.memory, 3), (.sqlite, 3), (.sqlite, 1_000)])
    func race(kind: StoreKind, tail: Int) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store) { config in
            config.limits.tailChangesMax = tail
            config.limits.catchUpPageChanges = 40
        }
        defer { server.stop() }
        let setup = try server.client("setup")
        let start = try #require(try setup.ask("0:i::::1").field("current"))
        let (writers, each) = (3, 120)
        let received: [[String]] = try inParallel(writers + 3) { number in
            guard number >= writers else {
                try Self.write(server, "w\(number)", each)
                return []
            }
            return try Self.follow(server, "f\(number)", from: start, until: writers * each)
        }
        let reference = try Self.follow(server, "late", from: start, until: writers * each)
        #expect(Set(reference).count == writers * each)
        for list in received[writers...] { #expect(list == reference) }
    }

    /// Sends changes, eight at a time in flight.
    private static func write(_ server: TestServer, _ name: String, _ count: Int) throws {
        let client = try server.client(name)
        var acknowledged = 0
        // Changes of other clients arrive, too.
        func own() throws -> Int { try client.receive().ccids.count { $0.hasPrefix("\(name)-") } }
        for number in 0..<count {
            try client.send(edit("\(name)-\(number % 7)-\(number / 7)", "\(name)-\(number)", to: "v"))
            while number - acknowledged >= 8 { acknowledged += try own() }
        }
        while acknowledged < count { acknowledged += try own() }
    }

    /// Follows the log to its end, with a new connection after every few messages.
    private static func follow(
        _ server: TestServer, _ name: String, from start: String, until count: Int
    ) throws -> [String] {
        var received: [String] = []
        var cv = start
        var random = SeededRandom(seed: UInt64(name.utf8.reduce(0) { $0 * 31 + Int($1) }))
        while received.count < count {
            let client = try server.client(name, command: "cv:\(cv)")
            for _ in 0..<Int.random(in: 1...12, using: &random) where received.count < count {
                let message = try client.receive()
                received += message.ccids
                cv = message.fields("cv").last ?? cv
            }
        }
        return received
    }

    @Test("a client that does not read is dropped with 1013 and catches up by cv when it comes back")
    func slowReader() throws {
        let server = try TestServer(store: MemoryStore.forTests()) { config in
            config.limits.pendingBytesPerConnectionMax = 64 << 10
        }
        defer { server.stop() }
        let writer = try server.client("w")
        let start = try #require(try writer.ask("0:i::::1").field("current"))
        let slow = try TestClient(port: server.port, receiveBytes: 4_096)
        try slow.open("slow", command: "cv:\(start)")
        let text = String(repeating: "x", count: 200_000)
        var sent: [String] = []
        while server.metrics.net.outboxOverflows.value == 0 && sent.count < 200 {
            sent.append("x\(sent.count)")
            #expect(try writer.ask(edit("k\(sent.count)", sent.last ?? "", to: text)).contains("\"ccids\""))
        }
        try #require(server.metrics.net.outboxOverflows.value == 1)
        var (received, cv): ([String], String) = ([], start)
        while let message = try? slow.receive() {
            received += message.ccids
            cv = message.fields("cv").last ?? cv
        }
        #expect(slow.closeCode == .tryAgainLater)
        #expect(received.count < sent.count)
        let again = try server.client("slow", command: "cv:\(cv)")
        while received.count < sent.count { received += try again.receive().ccids }
        #expect(received == sent)
    }

    @Test("a client that asks for many large objects at once and reads slowly is served, not dropped")
    func manyObjects() throws {
        let server = try TestServer(store: MemoryStore.forTests()) { config in
            config.limits.pendingBytesPerConnectionMax = 4 << 20
        }
        defer { server.stop() }
        let writer = try server.client("w")
        _ = try writer.ask(edit("k", "x", to: String(repeating: "x", count: 200_000)))
        let slow = try TestClient(port: server.port, receiveBytes: 4_096)
        try slow.open("slow")
        for _ in 0..<100 { try slow.send("0:e:k.1") }
        _ = try writer.drain()
        for _ in 0..<100 { #expect(try slow.receive().utf8.count > 200_000) }
        #expect(server.metrics.net.outboxOverflows.value == 0)
    }

    @Test("a long catch-up reaches a slow reader whole, part by part")
    func slowCatchUp() throws {
        let server = try TestServer(store: MemoryStore.forTests()) { config in
            config.limits.pendingBytesPerConnectionMax = 2 << 20
            config.limits.catchUpPageBytes = 256 << 10
            config.limits.tailBytesMax = 0
        }
        defer { server.stop() }
        let writer = try server.client("w")
        let start = try #require(try writer.ask("0:i::::1").field("current"))
        let text = String(repeating: "x", count: 200_000)
        for number in 0..<60 { _ = try writer.ask(edit("k\(number)", "x\(number)", to: text)) }
        let slow = try TestClient(port: server.port, receiveBytes: 4_096)
        try slow.open("slow", command: "cv:\(start)")
        _ = try writer.drain()
        var received = [String]()
        while received.count < 60 { received += try slow.receive().ccids }
        #expect(received == (0..<60).map { "x\($0)" })
        #expect(server.metrics.net.outboxOverflows.value == 0)
    }
}

/// A client that types single letters into a shared text, each on the state that it has seen.
private final class Typist: @unchecked Sendable {
    // Handed from the thread that typed to the one that checks.
    private let client: TestClient
    private let number: Int
    private var ghost = JSONObject([(key: "t", value: .string("-"))])
    private var version = 1
    private var received = 0
    private var random: SeededRandom

    init(_ client: TestClient, _ number: Int) {
        self.client = client
        self.number = number
        random = SeededRandom(seed: UInt64(number) + 99)
    }

    var text: String { ghost["t"]?.stringValue ?? "" }

    func type(_ count: Int) throws {
        for edit in 0..<count {
            let length = text.utf16.count
            let place = Int.random(in: 0...length, using: &random)
            let letter = number == 0 ? "a" : "b"
            let delta = [
                place > 0 ? "=\(place)" : "", "+\(letter)", place < length ? "=\(length - place)" : "",
            ]
            let ccid = "t\(number)-\(edit)"
            try client.send(
                "0:c:{\"id\":\"text\",\"o\":\"M\",\"ccid\":\"\(ccid)\",\"sv\":\(version),\"v\":{\"t\":{\"o\":\"d\",\"v\":\""
                    + delta.filter { !$0.isEmpty }.joined(separator: "\\t") + "\"}}}")
            while try !receive().contains(ccid) {}
        }
    }

    /// Receives until this many changes have arrived in all.
    func hear(_ count: Int) throws {
        while received < count { _ = try receive() }
    }

    private func receive() throws -> [String] {
        var message = try client.receive()
        // The bucket's mode comes first.
        if message.hasPrefix("0:o:") { message = try client.receive() }
        guard case .channel(0, .changes(let events)) = try ServerMessage(parsing: Array(message.utf8)) else {
            throw TestFailure("unexpected: \(message)")
        }
        for event in events {
            guard case .applied = event else { throw TestFailure("refused: \(message)") }
        }
        let json = try JSONValue(parsing: Array(message.utf8.dropFirst(4)))
        for change in json.arrayValue ?? [] {
            guard let diff = change["v"], let sv = change["sv"]?.intValue, sv == version else {
                throw TestFailure("out of order at \(version): \(message)")
            }
            ghost = try JSONDiff.apply(try ObjectDiff(diff), to: ghost)
            version += 1
            received += 1
        }
        return message.ccids
    }
}
