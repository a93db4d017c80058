import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// What is answered about the past that is no longer kept: a server whose keeper cuts, over a real socket.
@Suite("What is answered to what: what has been cut")
struct RetentionRowTests {
    private static let versions: Int = 175

    @Test(
        "old versions, cvs, marks and edits meet a cut log with the documented answers",
        .rows("entity-kept", "cv-cut", "index-cut", "edit-too-late", "whole-object-lost-source"),
        arguments: StoreKind.allCases)
    func cut(kind: StoreKind) throws {
        let bench: RowBench = try .init(kind)
        defer { bench.finish() }
        try bench.client.apply(edit("a", "a", to: "a"), edit("b", "b", to: "b"))
        let walk: String = try bench.client.ask("0:i::::1")
        let (mark, early): (String, String) = try (#require(walk.field("mark")), #require(walk.field("current")))
        try bench.client.apply([edit("k", "k0", to: "0")])
        try bench.client.apply((1..<Self.versions).map { edit("k", "k\($0)", sv: $0, to: "\($0)") })

        var retention: RetentionSettings = .init()
        retention.logAgeMin = 0
        retention.logChangesMin = 5
        retention.sweepInterval = 0
        try bench.restart(retention: retention)
        #expect(waitUntil { bench.server.metrics.versionsCut.value >= 2 + Self.versions - 5 })

        let client: TestClient = bench.client
        #expect(try client.ask("0:cv:\(early)") == "0:cv:?")
        let again: String = try client.ask("0:i::\(mark)::10")
        #expect(again.fields("id") == ["k", "b", "a"] && again.field("current") != early)
        #expect(try client.ask("0:cv:\(try #require(again.field("current")))") == "0:c:[]")
        let apple: TestClient = try bench.server.client("apple", library: "ios")
        let none: String = try #require(try apple.ask("0:i::\(mark)::10").field("current"))
        #expect(try apple.ask("0:cv:\(none)") == "0:cv:?")
        for version: Int in 1...Self.versions {
            let isKept: Bool = version > Self.versions - 60 || version % 10 == 1
            let body: String = isKept ? #"{"data":{"t":"\#(version - 1)"}}"# : "?"
            #expect(try client.ask("0:e:k.\(version)") == "0:e:k.\(version)\n\(body)")
        }
        try client.expect(
            change(#"{"id":"k","o":"M","ccid":"late","sv":1,"v":{"t":{"o":"r","v":"z"}}}"#), refused: .badVersion)
        // The whole object is compared with the newest when its source is gone; the refused ccid is still good.
        let taken: String = try client.ask(change(#"{"id":"k","o":"M","ccid":"late","sv":1,"d":{"t":"z"}}"#))
        #expect(taken.contains("\"ev\":\(Self.versions + 1),\"ccids\":[\"late\"]"), "\(taken)")

        // The key and version of a removal stay; its time went with the log.
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
