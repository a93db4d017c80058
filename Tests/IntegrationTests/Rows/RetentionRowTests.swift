import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Answers about a past that is no longer kept: a server whose maintenance cuts the log, over a real socket.
@Suite("What is answered to what: a cut log")
struct RetentionRowTests {
    private static let versions = 175

    @Test(
        "old versions, cvs, marks and edits get the documented answers after a cut of the log",
        .rows("entity-kept", "cv-cut", "index-cut", "edit-too-late", "whole-object-lost-source"),
        arguments: StoreKind.allCases)
    func cut(kind: StoreKind) throws {
        let bench = try RowBench(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("a", "a", to: "a"), edit("b", "b", to: "b"))
        let scan = try bench.client.ask("0:i::::1")
        let (mark, early) = try (#require(scan.field("mark")), #require(scan.field("current")))
        try bench.client.apply([edit("k", "k0", to: "0")])
        try bench.client.apply((1..<Self.versions).map { edit("k", "k\($0)", sv: $0, to: "\($0)") })

        var retention = RetentionSettings()
        retention.logAgeMin = 0
        retention.logChangesMin = 5
        retention.sweepInterval = 0
        try bench.restart(retention: retention)
        #expect(waitUntil { bench.server.metrics.versionsCut.value >= 2 + Self.versions - 5 })

        let client = bench.client
        #expect(try client.ask("0:cv:\(early)") == "0:cv:?")
        let again = try client.ask("0:i::\(mark)::10")
        #expect(again.fields("id") == ["k", "b", "a"] && again.field("current") != early)
        #expect(try client.ask("0:cv:\(try #require(again.field("current")))") == "0:c:[]")
        let apple = try bench.server.client("apple", library: "ios")
        let none = try #require(try apple.ask("0:i::\(mark)::10").field("current"))
        #expect(try apple.ask("0:cv:\(none)") == "0:cv:?")
        for version in 1...Self.versions {
            let isKept = version > Self.versions - 60 || version % 10 == 1
            let body = isKept ? #"{"data":{"t":"\#(version - 1)"}}"# : "?"
            #expect(try client.ask("0:e:k.\(version)") == "0:e:k.\(version)\n\(body)")
        }
        try client.expect(
            change(#"{"id":"k","o":"M","ccid":"late","sv":1,"v":{"t":{"o":"r","v":"z"}}}"#), refused: .badVersion)
        // The whole object is compared with the newest when its source was cut; the refused ccid is still usable.
        let taken = try client.ask(change(#"{"id":"k","o":"M","ccid":"late","sv":1,"d":{"t":"z"}}"#))
        #expect(taken.contains("\"ev\":\(Self.versions + 1),\"ccids\":[\"late\"]"), "\(taken)")

        // The key and version of a removal are kept; its time was cut with the log.
        try client.apply(removal("k", "gone"))
        try client.apply([edit("z", "z0", to: "0")])
        try client.apply(
            (1..<10).map { (number: Int) -> String in edit("z", "z\(number)", sv: number, to: "\(number)") })
        #expect(waitUntil { bench.server.metrics.versionsCut.value >= 2 + Self.versions + 12 - 5 })
        let removal = #"{"id":"k","v":\#(Self.versions + 2)}"#
        #expect(try client.ask("0:removed:") == #"0:removed:{"after":"","removed":[\#(removal)]}"#)
        #expect(try client.ask(#"0:removed:{"id":"k"}"#) == #"0:removed:{"id":"k","removed":[\#(removal)]}"#)
    }
}
