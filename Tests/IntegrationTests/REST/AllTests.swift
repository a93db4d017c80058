import Glibc
import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Requests for administrators of an app only: the changes of all users, and the options of buckets.
@Suite("Administrators of an app")
struct AllTests {
    private func withServer(
        _ kind: StoreKind, _ body: (TestServer, _ admin: TestHTTP) throws -> Void
    ) throws {
        let store = try TestStore(kind)
        let key = try store.addAdminKey()
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        try body(server, try server.http(token: key))
    }

    private func changes(_ answer: TestHTTP.Answer) throws -> [JSONObject] {
        try #require(answer.status == 200, "\(answer.body)")
        return try #require(try JSONValue(parsing: answer.body).arrayValue?.compactMap(\.objectValue))
    }

    @Test(
        "all returns the changes of all users in the order of the log, from a cv on, and waits for the next",
        arguments: StoreKind.allCases)
    func everybody(kind: StoreKind) throws {
        try withServer(kind) { server, admin in
            let (ann, bob) = (try server.http(), try server.http(token: "bob-token"))
            // The request waits from now on: the first change is its answer.
            try admin.send("GET", "notes/all")
            #expect(waitUntil { server.metrics.restWaiters.value == 1 })
            #expect(try bob.ask("POST", "other/i/a", body: "{}").status == 200)
            #expect(try ann.ask("POST", "notes/i/a?clientid=web&ccid=c1", body: #"{"n":1}"#).status == 200)
            let first = try changes(try admin.receive())
            #expect(first.count == 1)
            #expect(first[0]["id"]?.stringValue == "ann@example.com/a")
            #expect(first[0]["clientid"]?.stringValue == "web" && first[0]["o"]?.stringValue == "M")
            #expect(first[0]["ccids"]?.arrayValue == ["c1"] && first[0]["ev"]?.intValue == 1 && first[0]["sv"] == nil)
            #expect(first[0]["d"] == nil && first[0]["username"] == nil)
            let cv = try #require(first[0]["cv"]?.stringValue)
            #expect(try bob.ask("POST", "notes/i/b?ccid=c2", body: #"{"n":2}"#).status == 200)
            #expect(try ann.ask("POST", "notes/i/a?ccid=c3", body: #"{"n":3}"#).status == 200)
            #expect(try bob.ask("DELETE", "notes/i/b?ccid=c4").status == 200)
            let more = try changes(try admin.ask("GET", "notes/all?cv=\(cv)&data=1&username=1"))
            #expect(more.map { $0["ccids"]?.arrayValue } == [["c2"], ["c3"], ["c4"]])
            #expect(
                more.map { $0["username"]?.stringValue } == ["bob@example.com", "ann@example.com", "bob@example.com"])
            #expect(more.map { $0["d"]?.objectValue?["n"]?.intValue } == [2, 3, nil], "as each change left it")
            #expect(more[1]["sv"]?.intValue == 1)
            let last = try #require(more[2]["cv"]?.stringValue)
            try admin.send("GET", "notes/all?cv=\(last)")
            #expect(waitUntil { server.metrics.restWaiters.value == 1 })
            let socket = try server.client("s1")
            try socket.send(#"0:c:{"clientid":"s1","id":"c","o":"M","v":{"a":{"o":"+","v":1}},"ccid":"c5"}"#)
            #expect(try changes(try admin.receive()).map { $0["ccids"]?.arrayValue } == [["c5"]])
        }
    }

    @Test(
        "batch bounds an answer, most_recent keeps each object's newest change, skip_clientid omits a client's changes"
    )
    func parameters() throws {
        try withServer(.sqlite) { server, admin in
            let ann = try server.http()
            #expect(try ann.ask("POST", "notes/i/z?ccid=first", body: "{}").status == 200)
            let start = try server.current(ann)
            #expect(try admin.ask("GET", "notes/all?cv=\(start)").code == "unknown_cv", "a cv of one bucket")
            try admin.send("GET", "notes/all")
            #expect(waitUntil { server.metrics.restWaiters.value == 1 })
            for (place, client) in ["me", "web", "me", "web", "x"].enumerated() {
                let key = place % 2 == 0 ? "a" : "b"
                #expect(
                    try ann.ask("POST", "notes/i/\(key)?clientid=\(client)&ccid=c\(place)", body: #"{"n":\#(place)}"#)
                        .status
                        == 200)
            }
            let first = try changes(try admin.receive())
            let cv = try #require(first.first?["cv"]?.stringValue)
            let ask: (String) throws -> [String] = { words in
                try self.changes(try admin.ask("GET", "notes/all?cv=\(cv)&\(words)")).compactMap {
                    $0["ccids"]?.arrayValue?.first?.stringValue
                }
            }
            #expect(try ask("") == ["c1", "c2", "c3", "c4"])
            #expect(try ask("batch=2") == ["c1", "c2"])
            #expect(try ask("most_recent=1") == ["c3", "c4"])
            #expect(try ask("skip_clientid=me&skip_clientid=x") == ["c1", "c3"])
            #expect(try admin.ask("GET", "notes/all?batch=0").code == "invalid_parameter")
            #expect(try admin.ask("GET", "notes/all?cv=nothing").code == "unknown_cv")
        }
    }

    @Test("objects do not make an answer larger than its bound: the rest comes with the next one")
    func pages() throws {
        let store = try TestStore(.sqlite)
        let key = try store.addAdminKey()
        let server = try TestServer(store: store.store) { $0.limits.catchUpPageBytes = 64 << 10 }
        defer { server.stop() }
        let (ann, admin) = (try server.http(), try server.http(token: key))
        let text = "{\"t\":\"" + String(repeating: "x", count: 30_000) + "\"}"
        try admin.send("GET", "notes/all")
        #expect(waitUntil { server.metrics.restWaiters.value == 1 })
        for place in 0..<8 {
            #expect(try ann.ask("POST", "notes/i/k\(place)?ccid=c\(place)", body: text).status == 200)
        }
        let first = try changes(try admin.receive())
        var cv = try #require(first.last?["cv"]?.stringValue)
        var seen = first.compactMap { $0["ccids"]?.arrayValue?.first?.stringValue }
        while seen.count < 8 {
            let answer = try admin.ask("GET", "notes/all?data=1&cv=\(cv)")
            #expect(answer.body.utf8.count < 200_000)
            let page = try changes(answer)
            try #require(!page.isEmpty)
            seen += page.compactMap { $0["ccids"]?.arrayValue?.first?.stringValue }
            cv = try #require(page.last?["cv"]?.stringValue)
        }
        #expect(seen == (0..<8).map { "c\($0)" })
    }

    @Test("omitted changes do not end the wait, and any other change does")
    func skippedWait() throws {
        try withServer(.memory) { server, admin in
            let ann = try server.http()
            try admin.send("GET", "notes/all?skip_clientid=me")
            #expect(waitUntil { server.metrics.restWaiters.value == 1 })
            for place in 0..<3 {
                #expect(try ann.ask("POST", "notes/i/a?clientid=me", body: #"{"n":\#(place)}"#).status == 200)
            }
            #expect(try ann.ask("POST", "notes/i/a?clientid=web&ccid=c9", body: #"{"n":9}"#).status == 200)
            #expect(try changes(try admin.receive()).map { $0["ccids"]?.arrayValue } == [["c9"]])
        }
    }

    @Test(
        "without an administrator's key a user gets 403 admin_only, an unknown token 401, and no wait is left"
    )
    func refused() throws {
        try withServer(.sqlite) { server, admin in
            for path in ["notes/all", "__options__/index", "__options__/i/notes", "__options__/changes"] {
                for token in ["ann-token", "read-token"] {
                    let answer = try server.http(token: token).ask("GET", path)
                    #expect(answer.status == 403 && answer.code == "admin_only", "\(path)")
                }
                #expect(try server.http(token: "nobody").ask("GET", path).status == 401)
                #expect(
                    try TestHTTP(port: server.port, app: "other", token: admin.token).ask("GET", path).status == 401)
            }
            #expect(try server.http().ask("POST", "__options__/i/notes", body: "{}").code == "admin_only")
            let socket = try server.client()
            let answer = try socket.ask(
                #"0:init:{"clientid":"x","api":"1.1","token":"ann-token","app_id":"app","name":"__options__"}"#)
            #expect(answer.contains(#""code":500"#), "\(answer)")
            var gone: TestHTTP? = try server.http(token: admin.token)
            try gone?.send("GET", "notes/all")
            #expect(waitUntil { server.metrics.restWaiters.value == 1 })
            gone = nil
            #expect(waitUntil { server.metrics.restWaiters.value == 0 })
            #expect(try server.http().ask("POST", "notes/i/a", body: "{}").status == 200)
        }
    }

    @Test(
        "a capacity holds for every writer, all clients get its evictions, and options without effect are refused",
        arguments: StoreKind.allCases)
    func capacity(kind: StoreKind) throws {
        try withServer(kind) { server, admin in
            for options in [
                #"{"schema":{}}"#, #"{"capacity":0}"#, #"{"capacity":2,"sorting":"x"}"#, #"{"n":1}"#,
            ] {
                let refused = try admin.ask("POST", "__options__/i/notes", body: options)
                #expect(refused.status == 400 && refused.code == "invalid_option", "\(options): \(refused.body)")
                #expect(refused.body.contains("capacity (1 to 100000)"))
            }
            #expect(try admin.ask("GET", "__options__/i/notes").status == 404)
            #expect(try admin.ask("POST", "__options__/i/notes", body: #"{"capacity":2}"#).version == 1)
            let ann = try server.http()
            let socket = try server.client("s1", command: "cv:\(try server.current(ann))")
            #expect(try socket.receive() == "0:c:[]")
            for key in ["a", "b"] { #expect(try ann.ask("POST", "notes/i/\(key)", body: "{}").version == 1) }
            #expect(try [socket.receive(), socket.receive()].allSatisfy { $0.contains(#""o":"M""#) })
            let made = try ann.ask("POST", "notes/i/c?response=1&clientid=web", body: #"{"n":1}"#)
            #expect(made.version == 1 && made.body == #"{"n":1}"#, "the answer is about the new object")
            let received = try socket.receive()
            #expect(
                received.contains(#""clientid":"web""#) && received.contains(#"{"clientid":"capacity","cv":""#),
                "\(received)")
            #expect(received.contains(#""id":"a","o":"-""#))
            #expect(try ann.ask("GET", "notes/i/a").status == 404)
            let own = try socket.ask(
                #"0:c:{"clientid":"s1","id":"d","o":"M","v":{"n":{"o":"+","v":1}},"ccid":"d1"}"#)
            #expect(own.contains(#""id":"d""#) && own.contains(#""id":"b","o":"-""#), "\(own)")
            #expect(try ann.ask("GET", "notes/index").body.fields("id") == ["d", "c"])
            let both = #"[{"id":"e","o":"M","ccid":"e1","d":{}},{"id":"f","o":"M","ccid":"f1","d":{}}]"#
            #expect(try ann.ask("POST", "notes/changes", body: both).body.fields("id") == ["e", "f"])
            #expect(try ann.ask("GET", "notes/index").body.fields("id") == ["f", "e"])
        }
    }

    @Test("__options__ is a bucket like any other, of the app and not of a user", arguments: StoreKind.allCases)
    func options(kind: StoreKind) throws {
        try withServer(kind) { server, admin in
            #expect(try admin.ask("GET", "__options__/i/notes").status == 404)
            #expect(try admin.ask("POST", "__options__/i/notes?ccid=c1", body: #"{"version_max":5}"#).version == 1)
            #expect(
                try admin.ask(
                    "POST", "__options__/i/notes", body: #"{"version10_max":0}"#,
                    fields: [("x-simperium-user", "bob@example.com")]
                ).version == 2, "whichever user is named")
            #expect(try admin.ask("GET", "__options__/i/notes").body == #"{"version_max":5,"version10_max":0}"#)
            #expect(try admin.ask("GET", "__options__/i/notes/v/1").body == #"{"version_max":5}"#)
            #expect(try admin.ask("POST", "__options__/i/notes?ccid=c1", body: "{}").status == 409)
            let index = try admin.ask("GET", "__options__/index")
            #expect(index.body.contains(#""index":[{"id":"notes","v":2}]"#), "\(index.body)")
            let bob = try server.http(token: "bob-token")
            #expect(try bob.ask("GET", "buckets").body == #"{"buckets":[]}"#)
            #expect(try admin.ask("DELETE", "__options__/i/notes").status == 200)
        }
    }
}
