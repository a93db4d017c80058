import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Index, entity and change versions, over a real socket on both stores.
@Suite("What is answered to what: reading")
struct ReadRowTests {
    @Test(
        "an index lists the newest change first, without removed objects, and with data only on request",
        .rows("index-data", "index-order"), arguments: StoreKind.allCases)
    func index(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("one", "a", to: "1"), edit("two", "b", to: "2"), edit("three", "c", to: "3"))
        try bench.client.apply(removal("two", "d"), edit("one", "e", sv: 1, to: "uno"))
        for request in ["i::::500", "i:0:::500", "i:::", "i"] {
            let answer = try bench.server.client("r", command: request).receive()
            #expect(answer.hasSuffix(#"","index":[{"id":"one","v":2},{"id":"three","v":1}]}"#), "\(request): \(answer)")
        }
        let full = try bench.server.client("r", command: "i:1:::10").receive()
        #expect(
            full.hasSuffix(#"","index":[{"id":"one","v":2,"d":{"t":"uno"}},{"id":"three","v":1,"d":{"t":"3"}}]}"#))
    }

    @Test(
        "the index of an empty bucket has a current that cv accepts, and no mark", .rows("index-empty"),
        arguments: StoreKind.allCases)
    func empty(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let answer = try bench.client.ask("0:i:1:::10")
        let current = try #require(answer.field("current"))
        #expect(!current.isEmpty && answer == #"0:i:{"current":"\#(current)","index":[]}"#)
        #expect(try bench.client.ask("0:cv:\(current)") == "0:c:[]")
    }

    /// How each known client requests its first page and the pages after it.
    private static let forms: [(library: String, first: String, next: @Sendable (String) -> String)] = [
        ("node-simperium", "0:i:1:::10", { "0:i:1:\($0)::10" }), ("ios", "0:i::::500", { "0:i::\($0)::500" }),
        ("android", "0:i::::50", { "0:i::\($0)::50" }), ("", "0:i:1:::40", { "0:i:1:\($0)::100" }),
        ("go", "0:i:1:::100", { "0:i:1:\($0)::100" }),
    ]

    @Test(
        "every known client's requests scan the whole bucket: each object once, one current, no empty page",
        .rows("index-pages", "index-forms"), arguments: StoreKind.allCases)
    func scans(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let keys = (0..<120).map { "k\($0)" }
        try bench.client.apply(keys.map { edit($0, "x-\($0)", to: $0) })
        for (library, first, next) in Self.forms {
            let reader = try bench.server.client("r", library: library)
            var pages = [try reader.ask(first)]
            while let mark: String = pages.last?.field("mark") { pages.append(try reader.ask(next(mark))) }
            #expect(pages.flatMap { $0.fields("id") } == keys.reversed(), "\(first)")
            #expect(Set(pages.compactMap { $0.field("current") }).count == 1, "\(first)")
            #expect(pages.allSatisfy { !$0.contains("\"index\":[]") }, "\(first)")
        }
    }

    @Test(
        "removed objects are listed by key with version and time, page by page, and one object's removals by age",
        .rows("removed", "removed-one", "removed-forms"), arguments: StoreKind.allCases)
    func removals(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        #expect(try client.ask("0:removed:{}") == #"0:removed:{"after":"","removed":[]}"#)
        try client.apply(edit("c", "1", to: "1"), edit("a", "2", to: "2"), edit("b", "3", to: "3"))
        try client.apply(removal("c", "4"), removal("a", "5"), edit("c", "6", to: "again"), removal("c", "7"))
        let first = try client.ask(#"0:removed:{"limit":1}"#)
        #expect(first.fields("id") == ["a"] && first.field("mark") == "a" && first.contains("\"v\":2,\"t\":1"))
        let second = try client.ask(#"0:removed:{"after":"a","limit":1}"#)
        #expect(second.fields("id") == ["c"] && second.field("mark") == nil && second.contains("\"v\":4,"))
        // An object that was created again is in no list; its own list still has its removals.
        try client.apply(edit("a", "8", to: "back"))
        #expect(try client.ask("0:removed:nonsense").fields("id") == ["c"])
        let one = try client.ask(#"0:removed:{"id":"c","limit":10}"#)
        #expect(one.hasPrefix(#"0:removed:{"id":"c","removed":[{"id":"c","v":4,"t":1"#))
        #expect(one.contains(#"},{"id":"c","v":2,"t":1"#) && one.fields("id") == ["c", "c", "c"])
        #expect(try client.ask(#"0:removed:{"id":"c","limit":1}"#).fields("id") == ["c", "c"])
        for key in ["b", "never", "no/key", ""] {
            #expect(try client.ask(#"0:removed:{"id":"\#(key)"}"#) == #"0:removed:{"id":"\#(key)","removed":[]}"#)
        }
    }

    @Test("a page has 100 objects unless the request has a number, and 1,000 at most", .rows("index-size"))
    func sizes() throws {
        let bench = try RowBench(.memory)
        defer { bench.finish() }
        try bench.client.apply((0..<1_005).map { edit("k\($0)", "x\($0)", to: "v") })
        for (limit, count) in [("", 100), ("0", 100), ("no", 100), ("7", 7), ("5000", 1_000)] {
            let page = try bench.server.client("r", command: "i::::\(limit)").receive()
            #expect(page.fields("id").count == count && page.field("mark") != nil, "limit '\(limit)'")
        }
    }

    @Test("a page of large objects ends early, with a mark", .rows("index-bytes"), arguments: StoreKind.allCases)
    func bytes(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let large = String(repeating: "x", count: 900_000)
        try bench.client.apply((0..<6).map { edit("k\($0)", "x\($0)", to: large) })
        let first = try bench.client.ask("0:i:1:::100")
        #expect((4...5).contains(first.fields("id").count))
        let mark = try #require(first.field("mark"))
        let second = try bench.client.ask("0:i:1:\(mark)::100")
        #expect(first.fields("id").count + second.fields("id").count == 6 && second.field("mark") == nil)
    }

    @Test(
        "an index scan shows the moment it began; later changes and removals come by cv with its current",
        .rows("index-moment"), arguments: StoreKind.allCases)
    func moment(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("a", "1", to: "a"), edit("b", "2", to: "b"), edit("c", "3", to: "c"))
        let reader = try bench.server.client("r", library: "ios")
        let first = try reader.ask("0:i:1:::1")
        try bench.client.apply(edit("a", "4", sv: 1, to: "later"), removal("b", "5"), edit("d", "6", to: "d"))
        let second = try reader.ask("0:i:1:\(try #require(first.field("mark")))::10")
        #expect(second.field("current") == first.field("current"))
        #expect(second.hasSuffix(#""index":[{"id":"b","v":1,"d":{"t":"b"}},{"id":"a","v":1,"d":{"t":"a"}}]}"#))
        let since = try reader.ask("0:cv:\(try #require(first.field("current")))")
        #expect(since.ccids == ["4", "5", "6"])
    }

    @Test("an unreadable mark begins the scan again", .rows("index-bad-mark"), arguments: StoreKind.allCases)
    func badMark(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("a", "1", to: "a"), edit("b", "2", to: "b"))
        for mark in ["x", "x.y", "0", String(repeating: "f", count: 300)] {
            #expect(try bench.client.ask("0:i::\(mark)::10").fields("id") == ["b", "a"], "\(mark)")
        }
    }

    // MARK: Entity

    @Test(
        "a kept version is returned, also of keys with dots and removed objects; any other is a question mark",
        .rows("entity", "entity-dots", "entity-unknown", "entity-removed"), arguments: StoreKind.allCases)
    func entity(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("a.b.c", "1", to: "old"), edit("a.b.c", "2", sv: 1, to: "new"))
        try bench.client.apply(edit("gone", "3", to: "was"), removal("gone", "4"))
        let table: [(request: String, answer: String)] = [
            ("a.b.c.1", "a.b.c.1\n{\"data\":{\"t\":\"old\"}}"), ("a.b.c.2", "a.b.c.2\n{\"data\":{\"t\":\"new\"}}"),
            ("gone.1", "gone.1\n{\"data\":{\"t\":\"was\"}}"), ("gone.2", "gone.2\n?"), ("a.b.c.3", "a.b.c.3\n?"),
            ("a.b.c.0", "a.b.c.0\n?"), ("none.1", "none.1\n?"), ("nodot", "nodot\n?"), ("a.b.c.x", "a.b.c.x\n?"),
            ("a b.1", "a b.1\n?"),
        ]
        for (request, answer) in table { #expect(try bench.client.ask("0:e:\(request)") == "0:e:\(answer)") }
    }

    // MARK: Change versions

    @Test(
        "cv returns all later changes, oldest first and with the client's own; or none; or a question mark",
        .rows("cv-later", "cv-current", "cv-unknown"), arguments: StoreKind.allCases)
    func changesSince(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let start = try #require(try bench.client.ask("0:i::::1").field("current"))
        var reported = try bench.client.apply(edit("k", "x1", to: "a"))
        reported += try bench.client.apply(edit("k", "x2", sv: 1, to: "b"))
        reported += try bench.client.apply(removal("k", "x3"))
        let elements = reported.map { String($0.dropFirst("0:c:[".count).dropLast()) }
        let reader = try bench.server.client("r")
        for asker in [bench.client, reader] {
            #expect(try asker.ask("0:cv:\(start)") == "0:c:[\(elements.joined(separator: ","))]")
            let first = try #require(elements[0].field("cv"))
            #expect(try asker.ask("0:cv:\(first)") == "0:c:[\(elements[1]),\(elements[2])]")
            #expect(try asker.ask("0:cv:\(try #require(elements[2].field("cv")))") == "0:c:[]")
        }
        let foreign = try #require(
            try bench.server.client("o", bucket: "tags", command: "i::::1").receive().field("current"))
        for text in ["", "0", "?", "nonsense", foreign, String(repeating: "a", count: 32)] {
            #expect(try reader.ask("0:cv:\(text)") == "0:cv:?", "\(text)")
        }
    }

    @Test(
        "a channel gets the changes of others from its first i or cv on, each change once",
        .rows("cv-once"), arguments: StoreKind.allCases)
    func once(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let start = try #require(try bench.client.ask("0:i::::1").field("current"))
        let reader = try bench.server.client("r")
        try bench.client.apply(edit("a", "x1", to: "a"))
        #expect(try reader.ask("0:cv:\(start)").ccids == ["x1"])
        try bench.client.apply(edit("b", "x2", to: "b"))
        #expect(try reader.drain().flatMap(\.ccids) == ["x2"])
        try bench.client.apply(edit("c", "x3", to: "c"))
        #expect(try reader.drain().flatMap(\.ccids) == ["x3"])
    }

    @Test(
        "a channel that asks for nothing gets all changes since its init after a second or with its first change",
        .rows("cv-never"), arguments: StoreKind.allCases)
    func never(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("old", "x0", to: "o"))
        let waiting = try bench.server.client("w")
        let writing = try bench.server.client("c")
        try bench.client.apply(edit("a", "x1", to: "a"), edit("b", "x2", to: "b"))
        #expect(try writing.apply(edit("c", "x3", to: "c")).flatMap(\.ccids).suffix(1) == ["x3"])
        try bench.client.apply(edit("d", "x4", to: "d"))
        var received = [String]()
        while received.count < 4 { received += try waiting.receive().ccids }
        #expect(received == ["x1", "x2", "x3", "x4"])
        #expect(try writing.drain().flatMap(\.ccids).last == "x4")
    }

    @Test("a long answer to cv comes in several messages, complete and in order", .rows("cv-long"))
    func long() throws {
        for kind in StoreKind.allCases {
            let bench = try RowBench(kind) { config in
                config.limits.tailChangesMax = 0
                config.limits.catchUpPageChanges = 3
            }
            defer { bench.finish() }
            let start = try #require(try bench.client.ask("0:i::::1").field("current"))
            try bench.client.apply((1...7).map { edit("k\($0)", "x\($0)", to: "v") })
            let reader = try bench.server.client("r", command: "cv:\(start)")
            let parts = try (0..<3).map { _ in try reader.receive().ccids }
            #expect(parts == [["x1", "x2", "x3"], ["x4", "x5", "x6"], ["x7"]])
        }
    }
}
