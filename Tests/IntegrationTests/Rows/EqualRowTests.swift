import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Rows of docs/PROTOCOL.md about two clients that set an object to the same value, and about deltas that cut surrogate
/// pairs.
@Suite("Rows: equal objects and whole surrogate pairs")
struct EqualRowTests {
    @Test(
        "412: a whole object on an older version with nothing left to set; letters that are typed are kept",
        .rows("whole-equal"), arguments: StoreKind.allCases)
    func equal(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.apply(edit("k", "x1", to: "shopping:"))
        let milk = #""sv":1,"v":{"t":{"o":"d","v":"=9\t+ milk"}}"#
        try client.apply(change(#"{"id":"k","o":"M","ccid":"x2",\#(milk)}"#))
        try client.expect(change(#"{"id":"k","o":"M","ccid":"e1",\#(milk),"whole":true}"#), refused: .emptyChange)
        try client.expect(
            change(#"{"id":"k","o":"M","ccid":"e2","sv":1,"d":{"t":"shopping: milk"}}"#), refused: .emptyChange)
        #expect(try client.body("k", 2) == #"{"t":"shopping: milk"}"#)
        let http = try bench.server.http()
        for query in ["", "?replace=1"] {
            let said = try http.ask("POST", "notes/i/k/v/1\(query)", body: #"{"t":"shopping: milk"}"#)
            #expect(said.status == 412 && said.code == "nothing_changed", "\(said)")
        }
        try client.apply(change(#"{"id":"k","o":"M","ccid":"x3",\#(milk)}"#))
        #expect(try client.body("k", 3) == #"{"t":"shopping: milk milk"}"#)
    }

    @Test(
        "a delta that cuts a surrogate pair is sent with whole pairs: on time, late, and from the log",
        .rows("cut-pair"), arguments: StoreKind.allCases)
    func pairs(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let other = try bench.server.client("o", command: "i::::1")
        _ = try other.receive()
        let start = try #require(try bench.client.ask(edit("k", "x1", to: "🙋")).field("cv"))
        _ = try other.receive()
        let whole = #""v":{"t":{"o":"d","v":"-2\t+%F0%9F%99%8C"}}"#
        for (place, version) in [(1, 1), (3, 1)] {
            let key = place == 1 ? "k" : "l"
            if key == "l" {
                try bench.client.apply(edit("l", "y1", to: "🙋"))
                try bench.client.apply(change(#"{"id":"l","o":"M","ccid":"y2","sv":1,"v":{"n":{"o":"+","v":1}}}"#))
                _ = try other.drain()
            }
            let cut = #"{"id":"\#(key)","o":"M","ccid":"z\#(place)","sv":\#(version),"#
            let said = try bench.client.ask(change(cut + #""v":{"t":{"o":"d","v":"=1\t-1\t+%ED%B9%8C"}}}"#))
            #expect(said.contains(whole), "\(said)")
            #expect(try other.receive() == said)
        }
        let log = try bench.server.client("late").ask("0:cv:\(start)")
        #expect(log.contains(whole) && !log.contains("%ED%"), "\(log)")
    }
}
