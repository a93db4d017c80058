import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Index pages and changes over HTTP beside sockets, on a real server.
@Suite("REST index and changes")
struct IndexTests {
    @Test(
        "pages continue by their mark, show one position, and equal those that sockets get",
        arguments: StoreKind.allCases)
    func pages(kind: StoreKind) throws {
        try withServer(kind) { server in
            let http = try server.http()
            let empty = try http.ask("GET", "notes/index")
            #expect(empty.status == 200 && empty.body.hasSuffix(#","index":[]}"#))
            for number in 1...5 { _ = try http.ask("POST", "notes/i/k\(number)", body: "{\"n\":\(number)}") }
            let first = try http.ask("GET", "notes/index?limit=2&data=1").body
            #expect(first.fields("id") == ["k5", "k4"] && first.contains(#""d":{"n":5}"#))
            let huge = String(repeating: "9", count: 40)
            #expect(
                try http.ask("GET", "notes/index?limit=\(huge)").body.fields("id").count == 5, "the maximum applies"
            )
            let mark = try #require(first.field("mark"))
            _ = try http.ask("POST", "notes/i/k1", body: #"{"n":100}"#)
            let second = try http.ask("GET", "notes/index?limit=2&data=1&mark=\(mark)").body
            #expect(second.fields("id") == ["k3", "k2"] && second.field("current") == first.field("current"))
            let last = try #require(second.field("mark"))
            let third = try http.ask("GET", "notes/index?limit=2&mark=x&mark=\(last)").body
            #expect(third.fields("id") == ["k1"] && third.contains(#""v":1"#) && third.field("mark") == nil)
            let socket = try server.client("s1")
            #expect(try socket.ask("0:i:1:\(mark)::2") == "0:i:" + second)
        }
    }

    @Test("with since, only objects that changed after that position are listed")
    func since() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            for key in ["a", "b", "c"] { _ = try http.ask("POST", "notes/i/\(key)", body: "{}") }
            let before = try server.current(http)
            #expect(try http.ask("GET", "notes/index?since=\(before)").body.hasSuffix(#""index":[]}"#))
            _ = try http.ask("POST", "notes/i/d", body: "{}")
            _ = try http.ask("POST", "notes/i/a", body: #"{"n":1}"#)
            let page = try http.ask("GET", "notes/index?since=\(before)&limit=1").body
            #expect(page.fields("id") == ["a"])
            let mark = try #require(page.field("mark"))
            let rest = try http.ask("GET", "notes/index?since=\(before)&limit=2&mark=\(mark)").body
            #expect(rest.fields("id") == ["d"] && rest.field("mark") == nil)
            #expect(try http.ask("GET", "notes/index?since=unknown").code == "unknown_cv")
        }
    }

    @Test(
        "EMPTY removes every object and is answered by the removal with its ccid, beside the other results",
        arguments: StoreKind.allCases)
    func empty(kind: StoreKind) throws {
        try withServer(kind) { server in
            let http = try server.http()
            for number in 0..<700 {
                try http.send("POST", "notes/i/k\(number)", body: "{}")
            }
            for _ in 0..<700 { #expect(try http.receive().version == 1) }
            let sweep =
                #"[{"id":"notes","o":"EMPTY","ccid":"sweep"},{"id":"new","o":"M","ccid":"n","d":{"n":1}}]"#
            let answer = try http.ask("POST", "notes/changes?clientid=web", body: sweep)
            let results = try #require(try JSONValue(parsing: answer.body).arrayValue).compactMap(
                \.objectValue)
            #expect(results.map { $0["ccids"]?.arrayValue } == [["n"], ["sweep"]], "\(answer.body)")
            #expect(results.last?["o"] == "-" && results.last?["clientid"] == "web")
            #expect(try http.ask("GET", "notes/index").body.fields("id") == ["new"], "an object created after it stays")
            #expect(try http.ask("POST", "notes/changes", body: sweep).body.contains("409"), "it is applied once")
            let other = try http.ask(
                "POST", "notes/changes", body: #"[{"id":"tags","o":"EMPTY","ccid":"s2"}]"#)
            #expect(other.body.contains(#""error":400"#), "the id is the bucket's name")
            let alone = try http.ask(
                "POST", "tags/changes", body: #"{"id":"tags","o":"EMPTY","ccid":"s3"}"#)
            #expect(alone.status == 200 && alone.body.contains(#""error":412"#), "there was nothing")
        }
    }

    @Test("changes sent together are answered together, in order, each with its own result")
    func submission() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            let socket = try server.client("s1", command: "cv:\(try server.current(http))")
            #expect(try socket.receive() == "0:c:[]")
            let body =
                #"[{"id":"a","o":"M","ccid":"1","v":{"n":{"o":"+","v":1}}},{"id":"a","o":"M","ccid":"1","v":{}},"#
                + #"{"id":"b","o":"-","ccid":"2"},{"id":"c","o":"M","ccid":"3","d":{"t":"x"}},{"o":"M","ccid":"4"}]"#
            let answer = try http.ask("POST", "notes/changes?clientid=web&wait=1", body: body)
            #expect(answer.status == 200 && answer.body.ccids == ["1", "1", "2", "3", "4"])
            #expect(
                answer.body.contains(#""ev":1,"ccids":["1"]"#) && answer.body.contains(#""error":409,"ccids":["1"]"#))
            #expect(
                answer.body.contains(#""error":404,"ccids":["2"]"#)
                    && answer.body.contains(#""error":400,"ccids":["4"]"#))
            #expect(try socket.receive().ccids == ["1", "3"])
            #expect(try http.ask("POST", "notes/changes", body: "[]").body == "[]")
        }
    }

    @Test(
        "changes since a position come at once; if it has none, the request waits for the next",
        arguments: StoreKind.allCases)
    func waiting(kind: StoreKind) throws {
        try withServer(kind) { server in
            let http = try server.http()
            let start = try server.current(http)
            _ = try http.ask("POST", "notes/i/a?ccid=c1&clientid=web", body: #"{"n":1}"#)
            _ = try http.ask("POST", "notes/i/a?ccid=c2", body: #"{"n":2}"#)
            let missed = try http.ask("GET", "notes/changes?clientid=x&cv=\(start)").body
            #expect(missed.hasPrefix(#"[{"clientid":"web","cv":""#) && missed.ccids == ["c1", "c2"])
            let last = try #require(missed.fields("cv").last)
            let waiter = try server.http()
            try waiter.send("GET", "notes/changes?clientid=x&cv=\(last)")
            #expect(waitUntil { server.metrics.restWaiters.value == 1 })
            let socket = try server.client("s1")
            _ = try socket.ask(edit("b", "c3", to: "x"))
            let received = try waiter.receive()
            #expect(received.status == 200 && received.body.ccids == ["c3"])
            #expect(server.metrics.restWaiters.value == 0)
            try waiter.send("GET", "notes/changes")
            #expect(waitUntil { server.metrics.restWaiters.value == 1 })
            _ = try http.ask("POST", "notes/i/c?ccid=c4", body: "{}")
            #expect(try waiter.receive().body.ccids == ["c4"], "without a position, from now on")
            #expect(try http.ask("GET", "notes/changes?cv=unknown").code == "unknown_cv")
        }
    }

    @Test("a wait ends with its time, its client and the server, and one wait too many is refused with 503")
    func ends() throws {
        let store = try TestStore(.memory)
        let server = try TestServer(store: store.store) {
            $0.limits.changesWaitersMax = 2
            $0.limits.changesWait = .seconds(1)
        }
        let first = try server.http()
        #expect(try first.ask("GET", "notes/changes").body == "[]", "nothing came in its time")
        #expect(try first.ask("GET", "user").status == 200, "and the connection goes on")
        server.stop()
        let other = try TestServer(store: store.store) { $0.limits.changesWaitersMax = 2 }
        let (one, two, three) = (try other.http(), try other.http(), try other.http())
        try one.send("GET", "notes/changes")
        try two.send("GET", "notes/changes")
        #expect(waitUntil { other.metrics.restWaiters.value == 2 })
        let refused = try three.ask("GET", "notes/changes")
        #expect(refused.status == 503 && refused.code == "unavailable" && refused.fields["retry-after"] == "1")
        #expect(other.metrics.limitHits.value(.waiters) == 1)
        two.leave()
        #expect(waitUntil { other.metrics.restWaiters.value == 1 }, "the server notices a client that leaves")
        #expect(waitUntil { other.metrics.net.connections.value == 2 })
        other.stop()
        #expect(try one.receive().body == "[]", "a server that stops ends all waits")
    }

    private func withServer(_ kind: StoreKind, _ body: (TestServer) throws -> Void) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        try body(server)
    }
}
