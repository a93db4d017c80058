import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

/// Several clients at once, on threads of their own.
@Suite(.serialized)
struct LoadTests {
    @Test("two clients type into one text at once and end with the same, nothing lost", arguments: StoreKind.allCases)
    func typing(kind: StoreKind) throws {
        let store: TestStore = try TestStore(kind)
        let server: TestServer = try TestServer(store: store.store)
        defer { server.stop() }
        let setup: TestClient = try server.client("setup")
        let start: String = try #require(try setup.ask(edit("text", "new", to: "-")).field("cv"))
        let edits: Int = 60
        let typists: [Typist] = try inParallel(2) { number in
            let typist: Typist = try .init(
                server.client("c\(number)", library: "thicket", command: "cv:\(start)"), number)
            try typist.type(edits)
            return typist
        }
        for typist: Typist in typists { try typist.hear(2 * edits) }
        let texts: [String] = typists.map(\.text)
        #expect(texts[0] == texts[1])
        #expect(texts[0].utf8.count == 1 + 2 * edits)
        #expect(texts[0].utf8.count { $0 == UInt8(ascii: "a") } == edits)
        #expect(try setup.drain().flatMap(\.ccids).count == 2 * edits)
        let version: Int = 1 + 2 * edits
        #expect(
            try setup.ask("0:e:text.\(version)") == "0:e:text.\(version)\n{\"data\":{\"t\":\"\(texts[0])\"}}")
    }

    @Test(
        "followers that come and go while others write get each change once, in order",
        arguments: [(StoreKind.memory, 1_000), (.memory, 3), (.sqlite, 3), (.sqlite, 1_000)])
    func race(kind: StoreKind, tail: Int) throws {
        let store: TestStore = try TestStore(kind)
        let server: TestServer = try TestServer(store: store.store) { config in
            config.limits.tailChangesMax = tail
            config.limits.catchUpPageChanges = 40
        }
        defer { server.stop() }
        let setup: TestClient = try server.client("setup")
        let start: String = try #require(try setup.ask("0:i::::1").field("current"))
        let (writers, each): (Int, Int) = (3, 120)
        let heard: [[String]] = try inParallel(writers + 3) { number in
            guard number >= writers else {
                try Self.write(server, "w\(number)", each)
                return []
            }
            return try Self.follow(server, "f\(number)", from: start, until: writers * each)
        }
        let reference: [String] = try Self.follow(server, "late", from: start, until: writers * each)
        #expect(Set(reference).count == writers * each)
        for list: [String] in heard[writers...] { #expect(list == reference) }
    }

    /// Sends changes, eight at a time under way.
    private static func write(_ server: TestServer, _ name: String, _ count: Int) throws {
        let client: TestClient = try server.client(name)
        var acknowledged: Int = 0
        // Others' changes come, too.
        func own() throws -> Int { try client.receive().ccids.count { $0.hasPrefix("\(name)-") } }
        for number: Int in 0..<count {
            try client.send(edit("\(name)-\(number % 7)-\(number / 7)", "\(name)-\(number)", to: "v"))
            while number - acknowledged >= 8 { acknowledged += try own() }
        }
        while acknowledged < count { acknowledged += try own() }
    }

    /// Follows the log to its end, with a new connection after every few messages.
    private static func follow(
        _ server: TestServer, _ name: String, from start: String, until count: Int
    ) throws -> [String] {
        var heard: [String] = []
        var cv: String = start
        var random: SeededRandom = .init(seed: UInt64(name.utf8.reduce(0) { $0 * 31 + Int($1) }))
        while heard.count < count {
            let client: TestClient = try server.client(name, command: "cv:\(cv)")
            for _ in 0..<Int.random(in: 1...12, using: &random) where heard.count < count {
                let message: String = try client.receive()
                heard += message.ccids
                cv = message.fields("cv").last ?? cv
            }
        }
        return heard
    }

    @Test("a reader that does not read is dropped with 1013, and catches up by cv when it comes back")
    func slowReader() throws {
        let server: TestServer = try TestServer(store: MemoryStore.forTests()) { config in
            config.limits.pendingBytesPerConnectionMax = 64 << 10
        }
        defer { server.stop() }
        let writer: TestClient = try server.client("w")
        let start: String = try #require(try writer.ask("0:i::::1").field("current"))
        let slow: TestClient = try TestClient(port: server.port, receiveBytes: 4_096)
        try slow.open("slow", command: "cv:\(start)")
        let text: String = String(repeating: "x", count: 200_000)
        var sent: [String] = []
        while server.metrics.net.outboxOverflows.value == 0 && sent.count < 200 {
            sent.append("x\(sent.count)")
            #expect(try writer.ask(edit("k\(sent.count)", sent.last ?? "", to: text)).contains("\"ccids\""))
        }
        try #require(server.metrics.net.outboxOverflows.value == 1)
        var (heard, cv): ([String], String) = ([], start)
        while let message: String = try? slow.receive() {
            heard += message.ccids
            cv = message.fields("cv").last ?? cv
        }
        #expect(slow.closeCode == .tryAgainLater)
        #expect(heard.count < sent.count)
        let again: TestClient = try server.client("slow", command: "cv:\(cv)")
        while heard.count < sent.count { heard += try again.receive().ccids }
        #expect(heard == sent)
    }

    @Test("a client that asks for many large objects at once and reads slowly is served, not dropped")
    func manyObjects() throws {
        let server: TestServer = try TestServer(store: MemoryStore.forTests()) { config in
            config.limits.pendingBytesPerConnectionMax = 4 << 20
        }
        defer { server.stop() }
        let writer: TestClient = try server.client("w")
        _ = try writer.ask(edit("k", "x", to: String(repeating: "x", count: 200_000)))
        let slow: TestClient = try TestClient(port: server.port, receiveBytes: 4_096)
        try slow.open("slow")
        for _ in 0..<100 { try slow.send("0:e:k.1") }
        _ = try writer.drain()
        for _ in 0..<100 { #expect(try slow.receive().utf8.count > 200_000) }
        #expect(server.metrics.net.outboxOverflows.value == 0)
    }

    @Test("a long catch-up reaches a slow reader whole, part by part")
    func slowCatchUp() throws {
        let server: TestServer = try TestServer(store: MemoryStore.forTests()) { config in
            config.limits.pendingBytesPerConnectionMax = 2 << 20
            config.limits.catchUpPageBytes = 256 << 10
            config.limits.tailBytesMax = 0
        }
        defer { server.stop() }
        let writer: TestClient = try server.client("w")
        let start: String = try #require(try writer.ask("0:i::::1").field("current"))
        let text: String = String(repeating: "x", count: 200_000)
        for number: Int in 0..<60 { _ = try writer.ask(edit("k\(number)", "x\(number)", to: text)) }
        let slow: TestClient = try TestClient(port: server.port, receiveBytes: 4_096)
        try slow.open("slow", command: "cv:\(start)")
        _ = try writer.drain()
        var heard: [String] = []
        while heard.count < 60 { heard += try slow.receive().ccids }
        #expect(heard == (0..<60).map { "x\($0)" })
        #expect(server.metrics.net.outboxOverflows.value == 0)
    }
}

/// A client that types single letters into a shared text, each on what it has seen.
private final class Typist: @unchecked Sendable {
    // Handed from the thread that typed to the one that checks.
    private let client: TestClient
    private let number: Int
    private var ghost: JSONObject = .init([(key: "t", value: .string("-"))])
    private var version: Int = 1
    private var heard: Int = 0
    private var random: SeededRandom

    init(_ client: TestClient, _ number: Int) {
        self.client = client
        self.number = number
        random = SeededRandom(seed: UInt64(number) + 99)
    }

    var text: String { ghost["t"]?.stringValue ?? "" }

    func type(_ count: Int) throws {
        for edit: Int in 0..<count {
            let length: Int = text.utf16.count
            let place: Int = Int.random(in: 0...length, using: &random)
            let letter: String = number == 0 ? "a" : "b"
            let delta: [String] = [
                place > 0 ? "=\(place)" : "", "+\(letter)", place < length ? "=\(length - place)" : "",
            ]
            let ccid: String = "t\(number)-\(edit)"
            try client.send(
                "0:c:{\"id\":\"text\",\"o\":\"M\",\"ccid\":\"\(ccid)\",\"sv\":\(version),\"v\":{\"t\":{\"o\":\"d\",\"v\":\""
                    + delta.filter { !$0.isEmpty }.joined(separator: "\\t") + "\"}}}")
            while try !receive().contains(ccid) {}
        }
    }

    /// Listens until so many changes have come in all.
    func hear(_ count: Int) throws {
        while heard < count { _ = try receive() }
    }

    private func receive() throws -> [String] {
        var message = try client.receive()
        // What the bucket is comes first.
        if message.hasPrefix("0:o:") { message = try client.receive() }
        guard case .channel(0, .changes(let events)) = try ServerMessage(parsing: Array(message.utf8)) else {
            throw TestFailure("unexpected: \(message)")
        }
        for event: ChangeEvent in events {
            guard case .applied = event else { throw TestFailure("refused: \(message)") }
        }
        let json: JSONValue = try JSONValue(parsing: Array(message.utf8.dropFirst(4)))
        for change: JSONValue in json.arrayValue ?? [] {
            guard let diff: JSONValue = change["v"], let sv: Int64 = change["sv"]?.intValue, sv == version else {
                throw TestFailure("out of order at \(version): \(message)")
            }
            ghost = try JSONDiff.apply(try ObjectDiff(diff), to: ghost)
            version += 1
            heard += 1
        }
        return message.ccids
    }
}
