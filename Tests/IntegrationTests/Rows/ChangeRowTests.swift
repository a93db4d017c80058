import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// The outcome of accepted changes, over a real socket on both stores.
@Suite("What is answered to what: accepted changes")
struct ChangeRowTests {
    @Test(
        "an object is created as version 1 without sv, and its versions continue after a removal",
        .rows("create", "create-again"), arguments: StoreKind.allCases)
    func create(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        let made = try client.ask(change(#"{"id":"k","o":"M","ccid":"x1","v":{"t":{"o":"+","v":"a"}}}"#))
        let cv = try #require(made.field("cv"))
        #expect(
            made
                == #"0:c:[{"clientid":"c","cv":"\#(cv)","id":"k","o":"M","v":{"t":{"o":"+","v":"a"}},"ev":1,"#
                + #""ccids":["x1"]}]"#)
        #expect(
            try client.ask(change(#"{"id":"zero","o":"M","ccid":"x2","sv":0,"v":{}}"#)).contains(#""v":{},"ev":1"#))
        try client.apply(edit("k", "x3", sv: 1, to: "b"), removal("k", "x4"))
        let again = try client.ask(change(#"{"id":"k","o":"M","ccid":"x5","v":{"u":{"o":"+","v":1}}}"#))
        #expect(again.hasSuffix(#""o":"M","v":{"u":{"o":"+","v":1}},"ev":4,"ccids":["x5"]}]"#), "\(again)")
        #expect(try client.body("k", 4) == #"{"u":1}"#)
    }

    @Test(
        "an edit of the newest version is applied as sent, its sv a number or a string", .rows("edit-newest"),
        arguments: StoreKind.allCases)
    func newest(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.apply(edit("k", "x1", to: "a"))
        for (source, ccid) in [("1", "x2"), ("\"2\"", "x3")] {
            let answer = try client.ask(
                change(#"{"id":"k","o":"M","ccid":"\#(ccid)","sv":\#(source),"v":{"t":{"o":"r","v":"\#(ccid)"}}}"#))
            let version = ccid == "x2" ? 1 : 2
            #expect(
                answer.hasSuffix(
                    #""v":{"t":{"o":"r","v":"\#(ccid)"}},"sv":\#(version),"ev":\#(version + 1),"ccids":["\#(ccid)"]}]"#),
                "\(answer)")
        }
    }

    @Test(
        "a late edit is rebased over each later change and broadcast as rebased", .rows("edit-late"),
        arguments: StoreKind.allCases)
    func late(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let other = try bench.server.client("o", command: "i::::1")
        _ = try other.receive()
        try bench.client.apply(edit("k", "x1", to: "hello world"))
        try bench.client.apply(change(#"{"id":"k","o":"M","ccid":"x2","sv":1,"v":{"t":{"o":"d","v":"+oh \t=11"}}}"#))
        try bench.client.apply(change(#"{"id":"k","o":"M","ccid":"x3","sv":2,"v":{"n":{"o":"+","v":1}}}"#))
        _ = try other.drain()
        try other.send(change(#"{"id":"k","o":"M","ccid":"y1","sv":1,"v":{"t":{"o":"d","v":"=11\t+!"}}}"#))
        let carried = try other.receive()
        #expect(
            carried.hasSuffix(#""v":{"t":{"o":"d","v":"=14\t+!"}},"sv":3,"ev":4,"ccids":["y1"]}]"#), "\(carried)")
        #expect(try bench.server.client("r").body("k", 4) == #"{"t":"oh hello world!","n":1}"#)
    }

    @Test(
        "two creations of the same key are merged, key by key", .rows("create-twice"),
        arguments: StoreKind.allCases)
    func createTwice(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.apply(
            change(#"{"id":"k","o":"M","ccid":"x1","v":{"mine":{"o":"+","v":1},"same":{"o":"+","v":true}}}"#))
        let answer = try client.ask(
            change(#"{"id":"k","o":"M","ccid":"x2","v":{"yours":{"o":"+","v":2},"same":{"o":"+","v":true}}}"#))
        #expect(answer.hasSuffix(#""v":{"yours":{"o":"+","v":2}},"sv":1,"ev":2,"ccids":["x2"]}]"#), "\(answer)")
        #expect(try client.body("k", 2) == #"{"mine":1,"same":true,"yours":2}"#)
        try client.expect(
            change(#"{"id":"k","o":"M","ccid":"x3","v":{"same":{"o":"+","v":true}}}"#), refused: .emptyChange)
    }

    @Test(
        "a whole object is compared with the version it was made on, rebased, and broadcast as a diff",
        .rows("whole-object", "whole-object-creates", "whole-object-lost-source"), arguments: StoreKind.allCases)
    func whole(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        let made = try client.ask(change(#"{"id":"k","o":"M","ccid":"x1","sv":7,"d":{"a":1,"b":2}}"#))
        #expect(made.hasSuffix(#""v":{"a":{"o":"+","v":1},"b":{"o":"+","v":2}},"ev":1,"ccids":["x1"]}]"#), "\(made)")
        try client.apply(change(#"{"id":"k","o":"M","ccid":"x2","sv":1,"v":{"b":{"o":"r","v":3}}}"#))
        let carried = try client.ask(change(#"{"id":"k","o":"M","ccid":"x3","sv":1,"d":{"a":5,"b":2}}"#))
        #expect(carried.hasSuffix(#""v":{"a":{"o":"r","v":5}},"sv":2,"ev":3,"ccids":["x3"]}]"#), "\(carried)")
        #expect(!carried.contains("\"d\":"))
        let newest = try client.ask(change(#"{"id":"k","o":"M","ccid":"x4","sv":99,"d":{"a":5,"b":4}}"#))
        #expect(newest.hasSuffix(#""v":{"b":{"o":"r","v":4}},"sv":3,"ev":4,"ccids":["x4"]}]"#), "\(newest)")
        #expect(try client.body("k", 4) == #"{"a":5,"b":4}"#)
    }

    @Test(
        "a removal names no sv or the newest; its broadcast has neither v nor sv", .rows("remove"),
        arguments: StoreKind.allCases)
    func remove(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.apply(edit("k", "x1", to: "a"), edit("l", "x2", to: "a"))
        let first = try client.ask(removal("k", "x3"))
        #expect(first.hasSuffix(#""id":"k","o":"-","ev":2,"ccids":["x3"]}]"#), "\(first)")
        let second = try client.ask(change(#"{"id":"l","o":"-","ccid":"x4","sv":1}"#))
        #expect(second.hasSuffix(#""id":"l","o":"-","ev":2,"ccids":["x4"]}]"#), "\(second)")
    }

    @Test("EMPTY removes every object, one removal each", .rows("empty-bucket"), arguments: StoreKind.allCases)
    func empty(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        let client = bench.client
        try client.apply((0..<5).map { edit("k\($0)", "x\($0)", to: "a") })
        try client.send(change(#"{"id":"notes","o":"EMPTY","ccid":"e"}"#))
        var gone = [String]()
        while gone.count < 5 { gone += try client.receive().fields("id") }
        #expect(Set(gone) == Set((0..<5).map { "k\($0)" }) && gone.count == 5)
        #expect(try client.drain().isEmpty)
        #expect(try client.ask("0:i::::10").hasSuffix("\"index\":[]}"))
    }
}
