import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Objects over HTTP beside sockets, on a real server.
@Suite("REST objects")
struct ObjectTests {
    @Test("an object is created, read, edited and removed; every answer has its version", arguments: StoreKind.allCases)
    func run(kind: StoreKind) throws {
        try withServer(kind) { server in
            let http = try server.http()
            #expect(try http.ask("GET", "notes/i/a").status == 404)
            let made = try http.ask("POST", "notes/i/a", body: #"{"t":"x","n":1}"#)
            #expect(made.status == 200 && made.version == 1 && made.body.isEmpty)
            let read = try http.ask("GET", "notes/i/a")
            #expect(read.status == 200 && read.version == 1 && read.body == #"{"t":"x","n":1}"#)
            #expect(read.fields["content-type"] == "application/json")
            let merged = try http.ask("POST", "notes/i/a?response=1", body: #"{"n":2,"m":null}"#)
            #expect(merged.version == 2 && merged.body == #"{"t":"x","n":2,"m":null}"#)
            let replaced = try http.ask("POST", "notes/i/a?replace=1&response=1", body: #"{"z":[]}"#)
            #expect(replaced.version == 3 && replaced.body == #"{"z":[]}"#)
            #expect(try http.ask("GET", "notes/i/a/v/1").body == #"{"t":"x","n":1}"#)
            #expect(try http.ask("GET", "notes/i/a/v/4").status == 404)
            let head = try http.ask("HEAD", "notes/i/a")
            #expect(head.status == 200 && head.version == 3 && head.body.isEmpty)
            let gone = try http.ask("DELETE", "notes/i/a")
            #expect(gone.status == 200 && gone.version == 4 && gone.body.isEmpty)
            #expect(try http.ask("GET", "notes/i/a").status == 404)
            #expect(try http.ask("DELETE", "notes/i/a").code == "not_found")
            #expect(try http.ask("DELETE", "notes/i/never").code == "not_found")
            #expect(try http.ask("GET", "notes/i/a/v/3").body == #"{"z":[]}"#, "old versions stay readable")
            let again = try http.ask("POST", "notes/i/a", body: #"{"t":"new"}"#)
            #expect(again.version == 5, "versions go on after a removal")
        }
    }

    @Test("a change by HTTP reaches sockets like any change, and HTTP reads a socket's change at once")
    func bothWays() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            let socket = try server.client("s1", command: "i::::100")
            _ = try socket.receive()
            _ = try socket.ask("0:cv:\(try server.current(http))")
            #expect(try http.ask("POST", "notes/i/a?clientid=web&ccid=c1", body: #"{"t":"one"}"#).version == 1)
            let received = try socket.receive()
            #expect(received.hasPrefix(#"0:c:[{"clientid":"web","cv":""#))
            #expect(received.contains(#""id":"a","o":"M","v":{"t":{"o":"+","v":"one"}},"ev":1,"ccids":["c1"]}]"#))
            let answer = try socket.ask(edit("a", "c2", sv: 1, to: "two"))
            #expect(answer.ccids == ["c2"])
            let read = try http.ask("GET", "notes/i/a")
            #expect(read.version == 2 && read.body == #"{"t":"two"}"#)
            #expect(try http.ask("DELETE", "notes/i/a?ccid=c3").version == 3)
            #expect(try socket.receive().contains(#""o":"-","ev":3,"ccids":["c3"]"#))
        }
    }

    @Test("a change on an older version is rebased; a change on a version that never existed is refused")
    func versions() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            _ = try http.ask("POST", "notes/i/a", body: #"{"t":"one two","n":1}"#)
            _ = try http.ask("POST", "notes/i/a", body: #"{"n":2}"#)
            let carried = try http.ask("POST", "notes/i/a/v/1?response=1", body: #"{"t":"one 2 two"}"#)
            #expect(carried.version == 3 && carried.body == #"{"t":"one 2 two","n":2}"#)
            let unknown = try http.ask("POST", "notes/i/a/v/9", body: #"{"t":"x"}"#)
            #expect(unknown.code == "not_found")
            #expect(try http.ask("POST", "notes/i/a/v/9?replace=1", body: #"{"t":"x"}"#).code == "not_found")
            #expect(try http.ask("POST", "notes/i/b/v/1", body: #"{"t":"x"}"#).code == "not_found")
            #expect(try http.ask("DELETE", "notes/i/a/v/2").code == "version_mismatch")
            #expect(try http.ask("GET", "notes/i/a").body == #"{"t":"one 2 two","n":2}"#, "nothing was changed")
            #expect(try http.ask("DELETE", "notes/i/a/v/3").version == 4)
        }
    }

    @Test("a ccid is applied once, by HTTP and sockets together; an edit without effect is 412 nothing_changed")
    func idempotence() throws {
        try withServer(.sqlite) { server in
            let http = try server.http()
            #expect(try http.ask("POST", "notes/i/a?ccid=once", body: #"{"n":1}"#).version == 1)
            let twice = try http.ask("POST", "notes/i/a?ccid=once", body: #"{"n":2}"#)
            #expect(twice.status == 409 && twice.code == "duplicate_ccid")
            #expect(try http.ask("DELETE", "notes/i/a?ccid=once").status == 409)
            let socket = try server.client("s1")
            #expect(try socket.ask(edit("b", "once", to: "x")).contains(#""error":409"#))
            let same = try http.ask("POST", "notes/i/a?ccid=other", body: #"{"n":1.0}"#)
            #expect(same.status == 412 && same.code == "nothing_changed")
            #expect(try http.ask("GET", "notes/i/a").body == #"{"n":1}"#)
        }
    }

    @Test("a request whose condition does not hold changes nothing")
    func conditions() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            let fresh = [("if-none-match", "*")]
            #expect(try http.ask("POST", "notes/i/a", body: #"{"n":0}"#, fields: [("if-match", "*")]).status == 412)
            #expect(try http.ask("POST", "notes/i/a", body: #"{"n":1}"#, fields: fresh).version == 1)
            let second = try http.ask("POST", "notes/i/a", body: #"{"n":2}"#, fields: fresh)
            #expect(second.status == 412 && second.code == "version_mismatch")
            let stale = [("if-match", "\"7\"")]
            #expect(try http.ask("POST", "notes/i/a", body: #"{"n":2}"#, fields: stale).code == "version_mismatch")
            #expect(try http.ask("DELETE", "notes/i/a", fields: stale).code == "version_mismatch")
            let read = try http.ask("GET", "notes/i/a")
            let tag = try #require(read.fields["etag"])
            let known = try http.ask("GET", "notes/i/a", fields: [("if-none-match", tag)])
            #expect(known.status == 304 && known.body.isEmpty && known.version == 1)
            for (list, status) in [
                ("*", 304), ("\"7\", W/\"1\" ,\"x\"", 304), ("\"7\", \"11\"", 200), ("1", 200), ("\"01x\"", 200),
                ("", 200),
            ] {
                let answer = try http.ask("GET", "notes/i/a", fields: [("if-none-match", list)])
                #expect(answer.status == status, "\(list)")
            }
            #expect(try http.ask("GET", "notes/i/none", fields: [("if-none-match", "*")]).status == 404)
            for (list, status) in [("*", 200), ("\"9\", \"1\"", 200), ("\"9\"", 412), ("x", 412)] {
                let answer = try http.ask("GET", "notes/i/a", fields: [("if-match", list)])
                #expect(answer.status == status && (status == 200 || answer.code == "version_mismatch"), "\(list)")
            }
            #expect(try http.ask("GET", "notes/i/none", fields: [("if-match", "\"1\"")]).status == 404)
            let both = try http.ask(
                "POST", "notes/i/a", body: #"{"n":9}"#, fields: [("if-match", tag), ("if-none-match", "*")])
            #expect(both.code == "invalid_condition", "one of them cannot hold")
            #expect(try http.ask("POST", "notes/i/a", body: #"{"n":2}"#, fields: [("if-match", tag)]).version == 2)
            #expect(try http.ask("GET", "notes/i/a", fields: [("if-none-match", tag)]).body == #"{"n":2}"#)
            #expect(try http.ask("DELETE", "notes/i/a", fields: [("if-match", "\"2\"")]).version == 3)
        }
    }

    @Test("a token opens its own user's buckets, a read-only one only for reads, and none opens another app")
    func tokens() throws {
        try withServer(.memory) { server in
            let ann = try server.http()
            _ = try ann.ask("POST", "notes/i/a", body: #"{"n":1}"#)
            let bob = try server.http(token: "bob-token")
            #expect(try bob.ask("GET", "notes/i/a").status == 404)
            let reader = try server.http(token: "read-token")
            #expect(try reader.ask("GET", "notes/i/a").status == 200)
            let refused = try reader.ask("POST", "notes/i/a", body: #"{"n":2}"#)
            #expect(refused.status == 401 && refused.code == "read_only")
            #expect(try reader.ask("DELETE", "notes/i/a").status == 401)
            let nobody = try server.http(token: "nobody")
            #expect(try nobody.ask("GET", "notes/i/a").code == "unauthorized")
            #expect(try TestHTTP(port: server.port, app: "other").ask("GET", "notes/i/a").status == 401)
            #expect(try bob.ask("GET", "user").body == #"{"userid":"bob@example.com","username":"bob@example.com"}"#)
            #expect(try ann.ask("GET", "buckets").body == #"{"buckets":[{"name":"notes"}]}"#)
            #expect(try bob.ask("GET", "buckets").body == #"{"buckets":[]}"#)
        }
    }

    @Test(
        "an administrator's key acts for the user it names, of its own app; no other token does",
        arguments: StoreKind.allCases)
    func administrators(kind: StoreKind) throws {
        let store = try TestStore(kind)
        let key = try store.addAdminKey()
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        let (ann, admin) = (try server.http(), try server.http(token: key))
        let asAnn = [("x-simperium-user", "ann@example.com")]
        let socket = try server.client("s1", command: "cv:\(try server.current(ann))")
        #expect(try socket.receive() == "0:c:[]")
        #expect(try admin.ask("POST", "notes/i/a?ccid=c1", body: #"{"n":1}"#, fields: asAnn).version == 1)
        #expect(try socket.receive().ccids == ["c1"])
        #expect(try ann.ask("GET", "notes/i/a").body == #"{"n":1}"#)
        #expect(try admin.ask("GET", "user", fields: asAnn).body.field("userid") == "ann@example.com")
        #expect(try admin.ask("GET", "notes/i/a").status == 401, "without a user it is refused")
        #expect(try admin.ask("GET", "notes/i/a", fields: [("x-simperium-user", "")]).code == "invalid_parameter")
        let bob = try server.http(token: "bob-token")
        #expect(try bob.ask("GET", "notes/i/a", fields: asAnn).status == 404, "a user's token is that user's")
        #expect(try server.http(token: "nobody").ask("GET", "notes/i/a", fields: asAnn).status == 401)
        let other = try TestHTTP(port: server.port, app: "other", token: key)
        #expect(try other.ask("GET", "notes/i/a", fields: asAnn).status == 401)
        let hopeful = try server.client()
        let refused = try hopeful.ask(
            #"0:init:{"clientid":"x","api":"1.1","token":"\#(key)","app_id":"app","name":"notes"}"#)
        #expect(refused.contains(#""code":401"#), "sockets are for users")
    }

    @Test("objects above the bounds are refused, and the connection goes on")
    func bounds() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            let large = "{\"t\":\"" + String(repeating: "x", count: 1 << 20) + "\"}"
            #expect(try http.ask("POST", "notes/i/a", body: large).code == "too_large")
            let deep = String(repeating: "{\"a\":", count: 130) + "1" + String(repeating: "}", count: 130)
            #expect(try http.ask("POST", "notes/i/a", body: deep).code == "too_large")
            #expect(try http.ask("GET", "notes/i/a").status == 404)
        }
    }

    private func withServer(_ kind: StoreKind, _ body: (TestServer) throws -> Void) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        try body(server)
    }
}

extension TestServer {
    /// The current cv of ann's bucket.
    func current(_ http: TestHTTP, bucket: String = "notes") throws -> String {
        guard let current = try http.ask("GET", "\(bucket)/index?limit=1").body.field("current") else {
            throw TestFailure("no index")
        }
        return current
    }
}
