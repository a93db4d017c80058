import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// What becomes of a change that is taken, over a real socket on both stores.
@Suite("What is answered to what: changes that are taken")
struct ChangeRowTests {
    @Test(
        "an object is made as version 1 without sv, and after a removal its numbers go on",
        .rows("create", "create-again"), arguments: StoreKind.allCases)
    func create(kind: StoreKind) throws {
        let bench: RowBench = try .init(kind)
        defer { bench.finish() }
        let client: TestClient = bench.client
        let made: String = try client.ask(change(#"{"id":"k","o":"M","ccid":"x1","v":{"t":{"o":"+","v":"a"}}}"#))
        let cv: String = try #require(made.field("cv"))
        #expect(
            made
                == #"0:c:[{"clientid":"c","cv":"\#(cv)","id":"k","o":"M","v":{"t":{"o":"+","v":"a"}},"ev":1,"#
                + #""ccids":["x1"]}]"#)
        #expect(
            try client.ask(change(#"{"id":"zero","o":"M","ccid":"x2","sv":0,"v":{}}"#)).contains(#""v":{},"ev":1"#))
        try client.apply(edit("k", "x3", sv: 1, to: "b"), removal("k", "x4"))
        let again: String = try client.ask(change(#"{"id":"k","o":"M","ccid":"x5","v":{"u":{"o":"+","v":1}}}"#))
        #expect(again.hasSuffix(#""o":"M","v":{"u":{"o":"+","v":1}},"ev":4,"ccids":["x5"]}]"#), "\(again)")
        #expect(try client.body("k", 4) == #"{"u":1}"#)
    }

    @Test(
        "an edit of the newest version is applied as sent, its sv a number or a string", .rows("edit-newest"),
        arguments: StoreKind.allCases)
    func newest(kind: StoreKind) throws {
        let bench: RowBench = try .init(kind)
        defer { bench.finish() }
        let client: TestClient = bench.client
        try client.apply(edit("k", "x1", to: "a"))
        for (source, ccid): (String, String) in [("1", "x2"), ("\"2\"", "x3")] {
            let answer: String = try client.ask(
                change(#"{"id":"k","o":"M","ccid":"\#(ccid)","sv":\#(source),"v":{"t":{"o":"r","v":"\#(ccid)"}}}"#))
            let version: Int = ccid == "x2" ? 1 : 2
            #expect(
                answer.hasSuffix(
                    #""v":{"t":{"o":"r","v":"\#(ccid)"}},"sv":\#(version),"ev":\#(version + 1),"ccids":["\#(ccid)"]}]"#),
                "\(answer)")
        }
    }

    @Test(
        "a late edit is carried over each later change, and everybody gets it as carried", .rows("edit-late"),
        arguments: StoreKind.allCases)
    func late(kind: StoreKind) throws {
        let bench: RowBench = try .init(kind)
        defer { bench.finish() }
        let other: TestClient = try bench.server.client("o", command: "i::::1")
        _ = try other.receive()
        try bench.client.apply(edit("k", "x1", to: "hello world"))
        try bench.client.apply(change(#"{"id":"k","o":"M","ccid":"x2","sv":1,"v":{"t":{"o":"d","v":"+oh \t=11"}}}"#))
        try bench.client.apply(change(#"{"id":"k","o":"M","ccid":"x3","sv":2,"v":{"n":{"o":"+","v":1}}}"#))
        _ = try other.drain()
        try other.send(change(#"{"id":"k","o":"M","ccid":"y1","sv":1,"v":{"t":{"o":"d","v":"=11\t+!"}}}"#))
        let carried: String = try other.receive()
        #expect(
            carried.hasSuffix(#""v":{"t":{"o":"d","v":"=14\t+!"}},"sv":3,"ev":4,"ccids":["y1"]}]"#), "\(carried)")
        #expect(try bench.server.client("r").body("k", 4) == #"{"t":"oh hello world!","n":1}"#)
    }

    @Test(
        "two clients that make the same key are merged, key by key", .rows("create-twice"),
        arguments: StoreKind.allCases)
    func createTwice(kind: StoreKind) throws {
        let bench: RowBench = try .init(kind)
        defer { bench.finish() }
        let client: TestClient = bench.client
        try client.apply(
            change(#"{"id":"k","o":"M","ccid":"x1","v":{"mine":{"o":"+","v":1},"same":{"o":"+","v":true}}}"#))
        let answer: String = try client.ask(
            change(#"{"id":"k","o":"M","ccid":"x2","v":{"yours":{"o":"+","v":2},"same":{"o":"+","v":true}}}"#))
        #expect(answer.hasSuffix(#""v":{"yours":{"o":"+","v":2}},"sv":1,"ev":2,"ccids":["x2"]}]"#), "\(answer)")
        #expect(try client.body("k", 2) == #"{"mine":1,"same":true,"yours":2}"#)
        try client.expect(
            change(#"{"id":"k","o":"M","ccid":"x3","v":{"same":{"o":"+","v":true}}}"#), refused: .emptyChange)
    }

    @Test(
        "a whole object is compared with the version it was made on, carried, and told as a difference",
        .rows("whole-object", "whole-object-creates", "whole-object-lost-source"), arguments: StoreKind.allCases)
    func whole(kind: StoreKind) throws {
        let bench: RowBench = try .init(kind)
        defer { bench.finish() }
        let client: TestClient = bench.client
        let made: String = try client.ask(change(#"{"id":"k","o":"M","ccid":"x1","sv":7,"d":{"a":1,"b":2}}"#))
        #expect(made.hasSuffix(#""v":{"a":{"o":"+","v":1},"b":{"o":"+","v":2}},"ev":1,"ccids":["x1"]}]"#), "\(made)")
        try client.apply(change(#"{"id":"k","o":"M","ccid":"x2","sv":1,"v":{"b":{"o":"r","v":3}}}"#))
        let carried: String = try client.ask(change(#"{"id":"k","o":"M","ccid":"x3","sv":1,"d":{"a":5,"b":2}}"#))
        #expect(carried.hasSuffix(#""v":{"a":{"o":"r","v":5}},"sv":2,"ev":3,"ccids":["x3"]}]"#), "\(carried)")
        #expect(!carried.contains("\"d\":"))
        let newest: String = try client.ask(change(#"{"id":"k","o":"M","ccid":"x4","sv":99,"d":{"a":5,"b":4}}"#))
        #expect(newest.hasSuffix(#""v":{"b":{"o":"r","v":4}},"sv":3,"ev":4,"ccids":["x4"]}]"#), "\(newest)")
        #expect(try client.body("k", 4) == #"{"a":5,"b":4}"#)
    }

    @Test(
        "a removal names no sv or the newest; it is told without v and sv", .rows("remove"),
        arguments: StoreKind.allCases)
    func remove(kind: StoreKind) throws {
        let bench: RowBench = try .init(kind)
        defer { bench.finish() }
        let client: TestClient = bench.client
        try client.apply(edit("k", "x1", to: "a"), edit("l", "x2", to: "a"))
        let first: String = try client.ask(removal("k", "x3"))
        #expect(first.hasSuffix(#""id":"k","o":"-","ev":2,"ccids":["x3"]}]"#), "\(first)")
        let second: String = try client.ask(change(#"{"id":"l","o":"-","ccid":"x4","sv":1}"#))
        #expect(second.hasSuffix(#""id":"l","o":"-","ev":2,"ccids":["x4"]}]"#), "\(second)")
    }

    @Test("EMPTY removes every object, one removal each", .rows("empty-bucket"), arguments: StoreKind.allCases)
    func empty(kind: StoreKind) throws {
        let bench: RowBench = try .init(kind)
        defer { bench.finish() }
        let client: TestClient = bench.client
        try client.apply((0..<5).map { edit("k\($0)", "x\($0)", to: "a") })
        try client.send(change(#"{"id":"notes","o":"EMPTY","ccid":"e"}"#))
        var gone: [String] = []
        while gone.count < 5 { gone += try client.receive().fields("id") }
        #expect(Set(gone) == Set((0..<5).map { "k\($0)" }) && gone.count == 5)
        #expect(try client.drain().isEmpty)
        #expect(try client.ask("0:i::::10").hasSuffix("\"index\":[]}"))
    }
}
