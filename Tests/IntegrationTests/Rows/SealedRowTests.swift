import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

/// Sealed buckets over real sockets on both stores: notices, accepted changes and refusals.
@Suite("What is answered to what: sealed buckets")
struct SealedRowTests {
    private static let reported = #"0:o:{"mode":"sealed"}"#

    private static func creation(_ ccid: Int, key: String = SealedText.key()) -> String {
        change(
            #"{"id":"\#(key)","o":"M","ccid":"\#(SealedText.changeID(ccid))","v":"#
                + SealedText.creation(SealedText.snapshot()).serializedText + "}")
    }

    private static func insertion(_ ccid: Int, sv: Int, key: String = SealedText.key()) -> String {
        let id = SealedText.changeID(ccid)
        return change(
            #"{"id":"\#(key)","o":"M","sv":\#(sv),"ccid":"\#(id)","v":"#
                + SealedText.insertion(SealedText.operation(id)).serializedText + "}")
    }

    @Test(
        "an operation that sets a whole object is accepted on the newest version only", .rows("sealed-whole"),
        arguments: StoreKind.allCases)
    func wholeObject(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let (client, _) = try Self.client(bench, mode: "sealed")
        try client.apply(Self.creation(0))
        try client.apply(Self.insertion(1, sv: 1))
        func whole(_ ccid: Int, sv: Int) -> String {
            String(Self.insertion(ccid, sv: sv).dropLast()) + #","whole":true}"#
        }
        try client.expect(whole(2, sv: 1), refused: .badVersion)
        try client.apply(whole(2, sv: 2))
        try client.apply(Self.insertion(3, sv: 1))
    }

    private static func compaction(
        _ ccid: Int, sv: Int, _ position: Int, over known: [Int], removing: Range<Int>
    ) -> String {
        let v = SealedText.compaction(
            position, SealedText.snapshot(UInt8(position)), over: known, removing: removing)
        return change(
            #"{"id":"\#(SealedText.key())","o":"M","sv":\#(sv),"ccid":"\#(SealedText.changeID(ccid))","v":"#
                + v.serializedText + "}")
    }

    /// A client of ann's whose `init` carries this mode, and the messages after its `auth`.
    private static func client(
        _ bench: RowBench, mode: String?, token: String = "ann-token", bucket: String = "notes"
    ) throws -> (client: TestClient, reported: [String]) {
        let client = try bench.server.client()
        let extra = mode.map { #","mode":"\#($0)""# } ?? ""
        let answer = try client.ask(
            #"0:init:{"clientid":"c","api":"1.1","token":"\#(token)","app_id":"app","name":"\#(bucket)"\#(extra)}"#)
        guard answer == "0:auth:ann@example.com" else { throw TestFailure(answer) }
        return (client, try client.drain())
    }

    @Test(
        "the first init of a new bucket that wants it sealed makes it so, for all clients and for good",
        .rows("mode-sealed", "mode-told"), arguments: StoreKind.allCases)
    func first(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        // Another client has opened the bucket already, and one may only read.
        #expect(try Self.client(bench, mode: "sealed", token: "read-token").reported == [], "no mode is decided yet")
        #expect(try Self.client(bench, mode: "open").reported == [#"0:o:{"mode":"open"}"#])
        #expect(try Self.client(bench, mode: nil).reported == [])
        let (client, reported) = try Self.client(bench, mode: "sealed")
        #expect(reported == [Self.reported])
        #expect(try bench.client.receive() == Self.reported, "a client that has it open is notified")
        try bench.client.expect(edit("k", "x", to: "clear"), refused: .invalidRequest)
        #expect(try Self.client(bench, mode: nil).reported == [Self.reported])
        #expect(try Self.client(bench, mode: "open").reported == [Self.reported])
        try bench.restart()
        #expect(try bench.client.receive() == Self.reported, "it has never had an object and is sealed all the same")
        try bench.client.expect(edit("k", "x", to: "clear"), refused: .invalidRequest)
        try bench.client.apply(Self.creation(1))
        _ = try? client.end()
        #expect(try Self.client(bench, mode: "sealed", bucket: "other").reported == [Self.reported])
    }

    @Test(
        "a bucket that has ever had an object keeps its mode", .rows("mode-open"), arguments: StoreKind.allCases)
    func stays(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("k", "x1", to: "a"))
        #expect(try Self.client(bench, mode: "sealed").reported == [#"0:o:{"mode":"open"}"#])
        try bench.client.apply(removal("k", "x2"))
        #expect(try Self.client(bench, mode: "sealed").reported == [#"0:o:{"mode":"open"}"#])
        try bench.client.apply(edit("k", "x3", to: "a"))
    }

    @Test(
        "a sealed bucket orders operations, whatever version their authors knew",
        .rows("sealed-order", "sealed-compaction", "sealed-twice", "sealed-old-incarnation"),
        arguments: StoreKind.allCases)
    func order(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let (client, _) = try Self.client(bench, mode: "sealed")
        try client.apply(Self.creation(1))
        try client.expect(Self.creation(2), refused: .badVersion)
        try client.apply((3..<9).map { Self.insertion($0, sv: 1) })
        let object = try JSONValue(parsing: try client.body(SealedText.key(), 7))
        let tail: [JSONValue] = (3..<9).reversed().map { .string(SealedText.operation(SealedText.changeID($0))) }
        #expect(object == ["z": 1, "s": ["0": .string(SealedText.snapshot())], "d": .array(tail)])
        try client.expect(Self.insertion(3, sv: 7), refused: .duplicateChange)
        try client.expect(Self.compaction(10, sv: 7, 3, over: [0], removing: 0..<3), refused: .invalidRequest)
        // Made on version 5, with four operations.
        let answer = try client.apply(Self.compaction(10, sv: 5, 3, over: [0], removing: 1..<4))[0]
        #expect(answer.contains(#""sv":7,"ev":8"#))
        try client.expect(Self.compaction(11, sv: 5, 2, over: [0], removing: 2..<4), refused: .emptyChange)
        let compacted = try JSONValue(parsing: try client.body(SealedText.key(), 8))
        #expect(compacted == ["z": 1, "s": ["3": .string(SealedText.snapshot(3))], "d": .array(Array(tail.prefix(3)))])
        try client.apply(removal(SealedText.key(), SealedText.changeID(12)), Self.creation(13))
        try client.expect(Self.insertion(14, sv: 8), refused: .badVersion)
        try client.apply(Self.insertion(14, sv: 10))
    }

    @Test(
        "clear text is 400 over WebSocket, SockJS and HTTP, and nothing of it is stored",
        .rows("sealed-clear"), arguments: StoreKind.allCases)
    func clear(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let (client, _) = try Self.client(bench, mode: "sealed")
        let key = SealedText.key()
        try client.apply(Self.creation(1))
        let whole = #""d":{"t":"CANARY"}"#
        for json in [
            #"{"id":"\#(key)","o":"M","ccid":"e","sv":1,"v":{"t":{"o":"+","v":"CANARY"}}}"#,
            #"{"id":"\#(key)","o":"M","ccid":"e","sv":1,\#(whole)}"#, #"{"id":"free","o":"M","ccid":"e",\#(whole)}"#,
            #"{"id":"\#(key)","o":"M","ccid":"e","sv":1,"v":{"d":{"o":"r","v":["CANARY"]}}}"#,
            #"{"id":"\#(key)","o":"M","ccid":"e","sv":1,"v":{"d":{"o":"L","v":{"0":{"o":"+","v":"CANARY"}}}}}"#,
            #"{"id":"\#(SealedText.key(1))","o":"M","ccid":"e","v":{"t":{"o":"+","v":"CANARY"}}}"#,
        ] { try client.expect(change(json), refused: .invalidRequest) }
        let sockjs = SockJSClient(bench.server, "sealed")
        #expect(try sockjs.poll().body == "o\n")
        let opening =
            #"0:init:{"clientid":"c","api":"1.1","token":"ann-token","app_id":"app","name":"notes"}"#
        let clearChange = change(#"{"id":"\#(key)","o":"M","ccid":"e","sv":1,\#(whole)}"#)
        let messages = JSONValue.array([.string(opening), .string(clearChange)])
        #expect(try sockjs.send(messages.serializedText).status == 204)
        var received = [String]()
        while received.last.map({ !$0.hasPrefix("0:c:") }) ?? true { received += try sockjs.messages() }
        #expect(received.contains(Self.reported) && received.last?.contains(#""error":400"#) == true, "\(received)")
        try Self.clearOverHTTP(bench)
        _ = try client.drain()
        let log = try (1...5).map { try client.ask("0:e:\(key).\($0)") }
        #expect(!log.joined().contains("CANARY") && log[4].hasSuffix("\n?"), "only the valid change is stored")
        #expect(try client.ask("0:i:1:::100").fields("id") == [key])
    }

    private static func clearOverHTTP(_ bench: RowBench) throws {
        let http = try bench.server.http()
        let key = SealedText.key()
        for (method, path, body) in [
            ("POST", "notes/i/\(key)", #"{"t":"CANARY"}"#), ("POST", "notes/i/\(key)/v/1", #"{"t":"CANARY"}"#),
            ("POST", "notes/i/\(key)?replace=1", #"{"t":"CANARY"}"#), ("POST", "notes/i/free", #"{"t":"CANARY"}"#),
            ("POST", "notes/i/\(SealedText.key(1))", #"{"z":1,"s":{},"d":[]}"#),
        ] {
            let answer = try http.ask(method, path, body: body)
            #expect(answer.status == 400 && answer.code == "sealed_bucket", "\(path): \(answer)")
        }
        let several =
            #"[{"id":"\#(key)","o":"M","ccid":"e1","sv":1,"v":{"t":{"o":"+","v":"CANARY"}}},"#
            + insertion(20, sv: 1).dropFirst("0:c:".utf8.count) + "]"
        let answer = try http.ask("POST", "notes/changes", body: several)
        #expect(answer.status == 200 && answer.body.contains(#""error":400"#), "\(answer)")
        #expect(answer.body.contains(#""ev":2"#), "sealed changes are accepted here, too")
        let listed = try http.ask("GET", "buckets")
        #expect(listed.body == #"{"buckets":[{"name":"notes","mode":"sealed"}]}"#)
        #expect(try http.ask("DELETE", "notes/i/\(key)").version == 3)
        #expect(
            try http.ask("POST", "notes/changes", body: "[" + creation(21).dropFirst("0:c:".utf8.count) + "]").status
                == 200)
    }

    @Test("413: a full tail, until it is compacted", .rows("sealed-full"))
    func full() throws {
        let bench = try RowBench(.memory)
        defer { bench.finish() }
        let (client, _) = try Self.client(bench, mode: "sealed")
        try client.apply(Self.creation(1))
        for begin in stride(from: 2, to: 1_026, by: 256) {
            try client.apply((begin..<(begin + 256)).map { Self.insertion($0, sv: 1) })
        }
        try client.expect(Self.insertion(1_026, sv: 1), refused: .tooLarge)
        try client.apply(Self.compaction(1_027, sv: 1_025, 64, over: [0], removing: 960..<1_024))
        try client.apply(Self.insertion(1_026, sv: 1))
        let metrics = try TestClient.http(
            port: bench.server.port, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        #expect(metrics.contains("thicket_sealed_refused_total{reason=\"tail\"} 1\n"))
    }
}
