import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Refused changes with their exact codes, over a real socket on both stores. The connection stays open each time.
@Suite("What is answered to what: refusals")
struct RefusalRowTests {
    @Test("400: a key, ccid, operation or shape that is not valid", .rows("bad-shape"), arguments: StoreKind.allCases)
    func shape(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        let long = String(repeating: "k", count: 257)
        let table = [
            #"{"id":"two words","o":"M","ccid":"e","v":{}}"#, #"{"id":"","o":"M","ccid":"e","v":{}}"#,
            #"{"id":"a/b","o":"M","ccid":"e","v":{}}"#, #"{"id":"\#(long)","o":"M","ccid":"e","v":{}}"#,
            #"{"id":"k","o":"M","v":{}}"#, #"{"id":"k","o":"M","ccid":"","v":{}}"#,
            #"{"id":"k","o":"what","ccid":"e","v":{}}"#, #"{"id":"k","o":"M","ccid":"e"}"#,
            #"{"id":"k","o":"M","ccid":"e","sv":"x","v":{}}"#, #"{"id":"k","o":"M","ccid":"e","d":[1]}"#,
            #"{"o":"M","ccid":"e","v":{}}"#,
        ]
        for json in table { try client.expect(change(json), refused: .invalidRequest) }
        #expect(try client.ask(change("no json")).contains("\"error\":400"))
        #expect(try client.apply(edit("k", "e", to: "a")).count == 1, "a refused ccid is not used up")
    }

    @Test("401: a token for reading only", .rows("read-only"), arguments: StoreKind.allCases)
    func readOnly(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("k", "x", to: "a"))
        let reader = try bench.server.client("c", token: "read-token")
        try reader.expect(edit("k", "e1", sv: 1, to: "b"), refused: .unauthorized)
        try reader.expect(removal("k", "e2"), refused: .unauthorized)
        try reader.expect(change(#"{"id":"notes","o":"EMPTY","ccid":"e3"}"#), refused: .unauthorized)
        #expect(try reader.body("k", 1) == #"{"t":"a"}"#)
    }

    @Test(
        "409: a ccid counts once in a bucket, over keys, connections and restarts", .rows("known", "known-later"),
        arguments: StoreKind.allCases)
    func known(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("k", "once", to: "a"))
        try bench.client.expect(edit("k", "once", to: "a"), refused: .duplicateChange)
        try bench.client.expect(edit("other", "once", sv: 4, to: "b"), refused: .duplicateChange)
        try bench.client.expect(removal("k", "once"), refused: .duplicateChange)
        try bench.server.client("c").expect(edit("k", "once", to: "a"), refused: .duplicateChange)
        try bench.restart()
        try bench.client.expect(edit("k", "once", to: "a"), refused: .duplicateChange)
        #expect(try bench.server.client("c", bucket: "tags").apply(edit("k", "once", to: "a")).count == 1)
    }

    @Test(
        "a refused ccid may be sent again: with the whole object after 404, 405 and 440", .rows("refused-id"),
        arguments: StoreKind.allCases)
    func refusedID(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.expect(edit("k", "r1", sv: 3, to: "a"), refused: .notFound)
        try client.apply(change(#"{"id":"k","o":"M","ccid":"r1","d":{"t":"a"}}"#))
        try client.expect(edit("k", "r2", sv: 9, to: "b"), refused: .badVersion)
        try client.apply(change(#"{"id":"k","o":"M","ccid":"r2","sv":9,"d":{"t":"b"}}"#))
        let misfit = #""v":{"t":{"o":"d","v":"=90"}}"#
        try client.expect(change(#"{"id":"k","o":"M","ccid":"r3","sv":2,\#(misfit)}"#), refused: .invalidDiff)
        try client.apply(change(#"{"id":"k","o":"M","ccid":"r3","sv":2,\#(misfit),"d":{"t":"c"}}"#))
        #expect(try client.body("k", 3) == #"{"t":"c"}"#)
    }

    @Test(
        "404: an edit of an unknown or a removed object", .rows("edit-nothing-there"),
        arguments: StoreKind.allCases)
    func nothingThere(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.expect(edit("never", "e1", sv: 1, to: "a"), refused: .notFound)
        try client.apply(edit("k", "x1", to: "a"), removal("k", "x2"))
        for version in 1...3 {
            try client.expect(edit("k", "e2", sv: version, to: "b"), refused: .notFound)
        }
    }

    @Test("405: an edit of a version that does not exist yet", .rows("edit-too-new"), arguments: StoreKind.allCases)
    func tooNew(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.apply(edit("k", "x1", to: "a"))
        try client.expect(edit("k", "e1", sv: 2, to: "b"), refused: .badVersion)
        #expect(try client.body("k", 1) == #"{"t":"a"}"#)
    }

    @Test(
        "440: a diff that does not fit, works on another type, or is not a diff", .rows("edit-misfit"),
        arguments: StoreKind.allCases,
        [
            #"{"t":{"o":"d","v":"=99\t+x"}}"#, #"{"t":{"o":"d","v":"nonsense"}}"#, #"{"t":{"o":"I","v":1}}"#,
            #"{"t":{"o":"O","v":{"a":{"o":"+","v":1}}}}"#, #"{"t":{"o":"L","v":{"0":{"o":"-"}}}}"#,
            #"{"t":{"o":"what","v":1}}"#, #"{"t":{"v":"b"}}"#, #"{"t":"b"}"#,
        ])
    func misfit(kind: StoreKind, difference: String) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.apply(edit("k", "x1", to: "abc"))
        try client.expect(
            change(#"{"id":"k","o":"M","ccid":"e","sv":1,"v":\#(difference)}"#), refused: .invalidDiff)
        #expect(try client.body("k", 1) == #"{"t":"abc"}"#)
    }

    @Test(
        "412: an edit without effect; numbers are compared by value", .rows("no-change"), arguments: StoreKind.allCases)
    func noChange(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.apply(change(#"{"id":"k","o":"M","ccid":"x1","v":{"n":{"o":"+","v":1}}}"#))
        for difference in [
            #"{}"#, #"{"n":{"o":"r","v":1}}"#, #"{"n":{"o":"r","v":1.0}}"#, #"{"none":{"o":"-"}}"#,
        ] {
            try client.expect(
                change(#"{"id":"k","o":"M","ccid":"e","sv":1,"v":\#(difference)}"#), refused: .emptyChange)
        }
        try client.expect(change(#"{"id":"k","o":"M","ccid":"e","sv":1,"d":{"n":1e0}}"#), refused: .emptyChange)
    }

    @Test("413: an object above the server's bound", .rows("too-large"), arguments: StoreKind.allCases)
    func tooLarge(kind: StoreKind) throws {
        let bench = try RowBench(kind) { $0.limits.documentBytesMax = 2_000 }
        defer { bench.finish() }
        let client = bench.client
        let long = String(repeating: "x", count: 2_100)
        try client.expect(edit("k", "e1", to: long), refused: .tooLarge)
        try client.apply(edit("k", "x1", to: "a"))
        try client.expect(edit("k", "e2", sv: 1, to: long), refused: .tooLarge)
        try client.expect(
            change(#"{"id":"k","o":"M","ccid":"e3","sv":1,"d":{"t":"\#(long)"}}"#), refused: .tooLarge)
    }

    @Test(
        "a removal: 405 of an old version, 412 of a removed object, 404 of an unknown one",
        .rows("remove-old", "remove-removed", "remove-never"), arguments: StoreKind.allCases)
    func removals(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client: TestClient = bench.client
        try client.apply(edit("k", "x1", to: "a"), edit("k", "x2", sv: 1, to: "b"))
        try client.expect(change(#"{"id":"k","o":"-","ccid":"e1","sv":1}"#), refused: .badVersion)
        try client.expect(change(#"{"id":"k","o":"-","ccid":"e2","sv":3}"#), refused: .badVersion)
        try client.apply(removal("k", "x3"))
        try client.expect(removal("k", "e3"), refused: .emptyChange)
        try client.expect(change(#"{"id":"k","o":"-","ccid":"e4","sv":2}"#), refused: .emptyChange)
        try client.expect(removal("never", "e5"), refused: .notFound)
        try client.expect(change(#"{"id":"never","o":"-","ccid":"e6","sv":1}"#), refused: .notFound)
    }

    @Test(
        "a ghost record in d and the echo of a removal, two habits of node-simperium, do no harm",
        .rows("whole-object-ghost", "remove-echo"), arguments: StoreKind.allCases)
    func habits(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let node = try bench.server.client("c", library: "node-simperium", command: "i:1:::10")
        _ = try node.receive()
        try node.apply(edit("k", "x1", to: "abc"))
        let ghost = #""d":{"version":1,"data":{"t":"abc"}}"#
        try node.expect(
            change(#"{"id":"k","o":"M","ccid":"e1","sv":1,"v":{"t":{"o":"d","v":"=90"}},\#(ghost)}"#),
            refused: .emptyChange)
        try node.apply(change(#"{"id":"k","o":"M","ccid":"e1","sv":1,"v":{"t":{"o":"d","v":"=3\t+d"}},\#(ghost)}"#))
        #expect(try node.body("k", 2) == #"{"t":"abcd"}"#)
        // Another client removes and creates the object again before the echo of the removal arrives.
        try bench.client.apply(removal("k", "x2"), edit("k", "x3", to: "new"))
        _ = try node.drain()
        try node.expect(removal("k", "echo"), refused: .emptyChange)
        #expect(try node.body("k", 4) == #"{"t":"new"}"#)
        try node.apply(removal("k", "meant"))
    }

    @Test(
        "503 while the store cannot commit, 500 when it finds the row bad; the same change is accepted later",
        .rows("cannot-write", "failed"))
    func failures() throws {
        let (full, bad): (Flag, Flag) = (.init(), .init())
        let store: MemoryStore = try .forTests(faults: { _ in
            full.isSet ? .fail(StoreError(.full, "a test")) : bad.isSet ? .fail(StoreError(.corrupt, "a test")) : .none
        })
        let server = try TestServer(store: store)
        defer { server.abort() }
        let client: TestClient = try server.client("c")
        try client.apply(edit("k", "x1", to: "a"))
        full.set(true)
        try client.expect(edit("k", "x2", sv: 1, to: "b"), refused: .unavailable)
        full.set(false)
        bad.set(true)
        try client.expect(edit("k", "x2", sv: 1, to: "b"), refused: .serverError)
        bad.set(false)
        try client.apply(edit("k", "x2", sv: 1, to: "b"))
        #expect(try client.body("k", 2) == #"{"t":"b"}"#)
    }

    @Test(
        "an invalid init is refused with 400, 401 or 500; old clients get 'expired' first",
        .rows("init-malformed", "init-token", "init-refused", "init-old"), arguments: StoreKind.allCases)
    func opening(kind: StoreKind) throws {
        let bench = try RowBench(kind) { config in
            config.limits.bucketsPerUserMax = 1
            config.limits.channelsPerConnectionMax = 3
        }
        defer { bench.finish() }
        let client = bench.client
        try client.apply(edit("k", "x", to: "a"))
        let who = #""clientid":"c","app_id":"app""#
        try client.expect(opening: #"\#(who),"name":"notes""#, refused: .invalidRequest)
        try client.expect(opening: #"\#(who),"token":"a b","name":"notes""#, refused: .invalidRequest)
        try client.expect(opening: #"\#(who),"token":"unknown","name":"notes""#, refused: .unauthorized)
        try client.expect(opening: #"\#(who),"token":"ann-token","name":"a b""#, refused: .serverError)
        try client.expect(opening: #"\#(who),"token":"ann-token","name":"second""#, refused: .serverError)
        try client.expect(
            opening: #""clientid":"c","app_id":"else","token":"ann-token","name":"notes""#, refused: .serverError)
        #expect(try client.ask(#"2:init:{\#(who),"token":"no","name":"notes"}"#) == "2:auth:expired")
        #expect(try client.receive() == #"2:auth:{"msg":"Token invalid","code":401}"#)
        #expect(
            try client.ask(#"1:init:{"api":"1.1",\#(who),"token":"ann-token","name":"notes"}"#)
                == "1:auth:ann@example.com")
        #expect(try client.body("k", 1) == #"{"t":"a"}"#)
    }
}
