import Glibc
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Accounts of a whole server, over HTTP and WebSocket.
@Suite("Accounts of a server")
struct AccountServerTests {
    @Test("a token of create opens a bucket under the user's name, and the data follows the user, not the name")
    func stream() throws {
        try Self.withServer { server, bench in
            let made = try Self.post(
                server, bench, "create/", #"{"username":"ann@example.com","password":"open sesame"}"#)
            #expect(made.status == 200)
            let ann = try server.client(app: "notes")
            #expect(try Self.initialize(ann, try made.string("access_token")) == "0:auth:ann@example.com")
            #expect(
                try ann.ask(#"0:c:{"clientid":"t","id":"k","o":"M","v":{"a":{"o":"+","v":1}},"ccid":"c1"}"#).contains(
                    #""ev":1"#))
            #expect(
                try Self.post(
                    server, bench, "update/",
                    #"{"username":"ann@example.com","password":"open sesame","new_username":"a@b"}"#
                ).status
                    == 200)
            let again = try Self.post(
                server, bench, "authorize/", #"{"username":"a@b","password":"open sesame"}"#)
            let other = try server.client(app: "notes")
            #expect(try Self.initialize(other, try again.string("access_token")) == "0:auth:a@b")
            #expect(try other.ask("0:i:1:::").contains(#"{"id":"k","v":1,"d":{"a":1}}"#))
            #expect(try ann.drain().isEmpty, "a new name closes nothing")
            #expect(server.metrics.logins.value(.good) == 2)
        }
    }

    @Test("a new password and the end of an account close only the user's sockets, and its tokens get 401")
    func closes() throws {
        try Self.withServer { server, bench in
            let token = try Self.post(server, bench, "create", #"{"username":"ann","password":"open sesame"}"#)
                .string("access_token")
            let bobs = try Self.post(server, bench, "create", #"{"username":"bob","password":"open sesame"}"#)
                .string("access_token")
            let ann = try server.client(app: "notes")
            let bob = try server.client(app: "notes")
            #expect(try Self.initialize(ann, token) == "0:auth:ann")
            #expect(try Self.initialize(bob, bobs) == "0:auth:bob")
            #expect(
                try Self.post(
                    server, bench, "update/", #"{"username":"ann","password":"open sesame","new_password":"other"}"#
                ).status
                    == 200)
            #expect(try ann.end() == .policyViolation)
            let second = try server.client(app: "notes")
            #expect(try Self.initialize(second, token).contains(#""code":401"#))
            let fresh = try Self.post(server, bench, "authorize/", #"{"username":"ann","password":"other"}"#)
                .string("access_token")
            #expect(try Self.initialize(second, fresh) == "0:auth:ann")
            #expect(try Self.post(server, bench, "delete/", #"{"username":"ann"}"#, key: bench.adminKey).status == 200)
            #expect(try second.end() == .policyViolation)
            #expect(try bob.drain().isEmpty)
            let third = try server.client(app: "notes")
            #expect(try Self.initialize(third, fresh).contains(#""code":401"#))
        }
    }

    @Test("the data of a deleted account, and no other data, is erased soon; a new account of that name is empty")
    func erased() throws {
        try Self.withServer { server, bench in
            let login: (String) -> String = { #"{"username":"\#($0)","password":"open sesame"}"# }
            let made = try Self.post(server, bench, "create", login("ann"))
            let bobs = try Self.post(server, bench, "create", login("bob"))
            for answer in [made, bobs] {
                let client = try server.client(app: "notes")
                _ = try Self.initialize(client, try answer.string("access_token"))
                let change =
                    #"0:c:{"clientid":"t","id":"k","o":"M","v":{"a":{"o":"+","v":1}},"ccid":"c1"}"#
                #expect(try client.ask(change).contains(#""ev":1"#))
            }
            #expect(try Self.post(server, bench, "delete/", login("ann")).status == 200)
            let reader = try SQLiteStore(path: bench.path).makeReader()
            let (app, user) = (try AppID("notes"), try UserID(try made.string("userid")))
            let bob = try server.client(app: "notes")
            #expect(try Self.initialize(bob, try bobs.string("access_token")) == "0:auth:bob")
            let patience = ContinuousClock.Instant.now + .seconds(120)
            while try !reader.buckets(of: app, user: user).isEmpty, .now < patience { _ = try bob.drain() }
            #expect(try reader.buckets(of: app, user: user).isEmpty)
            #expect(try bob.ask("0:i:1:::").contains(#""d":{"a":1}"#))
            let again = try Self.post(server, bench, "create", login("ann"))
            let client = try server.client(app: "notes")
            #expect(try Self.initialize(client, try again.string("access_token")) == "0:auth:ann")
            #expect(try client.ask("0:i:1:::").contains(#""index":[]"#))
        }
    }

    @Test(
        "data that is still to be erased is hidden: no grant, not from administrators, not in changes of all users")
    func erasing() throws {
        var found: (bench: AccountBench, user: String, token: String)?
        try Self.withServer { server, bench in
            let made = try Self.post(server, bench, "create", #"{"username":"ann","password":"sesame"}"#)
            let token = try made.string("access_token")
            found = (bench, try made.string("userid"), token)
            let client = try server.client(app: "notes")
            _ = try Self.initialize(client, token)
            let change = #"0:c:{"clientid":"t","id":"k","o":"M","v":{"a":{"o":"+","v":1}},"ccid":"c1"}"#
            #expect(try client.ask(change).contains(#""ev":1"#))
        }
        // No server runs, so nothing is erased.
        let (bench, id, token) = try #require(found)
        let reader = try SQLiteStore(path: bench.path).makeReader()
        let (app, user, name) = (
            try AppID("notes"), try UserID(id), try BucketName("b")
        )
        func all() throws -> Int {
            try reader.changes(ofAll: name, in: app, after: 0, limit: 10, byteLimit: 1 << 20).changes.count
        }
        #expect(try !reader.hasEnded(user, in: app) && all() == 1)
        #expect(try bench.grant(token)?.user == user)
        #expect(try bench.store.remove(id, in: "notes", now: 1))
        #expect(try reader.buckets(of: app, user: user).count == 1, "the data is there")
        #expect(try reader.hasEnded(user, in: app) && all() == 0)
        let late = try bench.admin.createToken(TokenGrant(app: app, user: user, isReadOnly: false), now: 1)
        for token in [token, late] { #expect(try bench.grant(token) == nil) }
    }

    @Test("an expired token opens nothing")
    func expired() throws {
        try Self.withServer { server, bench in
            let user = try UserID("ann")
            let app = try AppID("notes")
            let past = try bench.admin.createToken(
                TokenGrant(app: app, user: user, isReadOnly: false, expires: 1_000), now: 1)
            let future = try bench.admin.createToken(
                TokenGrant(app: app, user: user, isReadOnly: false, expires: .max), now: 1)
            let client = try server.client(app: "notes")
            #expect(try Self.initialize(client, past).contains(#""code":401"#))
            #expect(try Self.initialize(client, future) == "0:auth:ann")
        }
    }

    @Test("other methods get 405; other paths, and a server without accounts, answer 404")
    func others() throws {
        try Self.withServer { server, bench in
            let get = "GET /1/notes/create/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
            let answer = try TestClient.http(port: server.port, get)
            #expect(answer.hasPrefix("HTTP/1.1 405") && answer.contains("allow: POST, OPTIONS"))
            for path in [
                "/1/notes/", "/1/notes/created", "/1/no%20tes/create/", "/1//create/", "/2/notes/create/",
            ] {
                let request =
                    "POST \(path) HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                #expect(try TestClient.http(port: server.port, request).hasPrefix("HTTP/1.1 404"), "\(path)")
            }
        }
        let server = try TestServer(store: try MemoryStore.forTests())
        defer { server.stop() }
        let request = "POST /1/app/create/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        #expect(try TestClient.http(port: server.port, request).hasPrefix("HTTP/1.1 404"))
    }

    // MARK: Parts

    private static func withServer(_ body: (TestServer, AccountBench) throws -> Void) throws {
        let bench = try AccountBench()
        let store = try SQLiteStore(path: bench.path)
        let key: ServerKey = try .load(bench.folder + "/server.key")
        let path = bench.path
        let server = try TestServer(
            store: store, accounts: AccountAccess(secrets: key.accountSecrets) { try AccountStore(path: path) })
        defer { server.stop() }
        try body(server, bench)
    }

    private static func post(
        _ server: TestServer, _ bench: AccountBench, _ path: String, _ body: String, key: String? = nil
    ) throws -> HTTPResponse {
        let answer = try TestClient.http(
            port: server.port,
            "POST /1/notes/\(path) HTTP/1.1\r\nhost: x\r\nx-simperium-api-key: \(key ?? bench.apiKey)\r\n"
                + "content-length: \(body.utf8.count)\r\nconnection: close\r\n\r\n\(body)")
        let status = try #require(Int(answer.dropFirst("HTTP/1.1 ".count).prefix(3)), "\(answer)")
        let parts: [Substring] = answer.split(separator: "\r\n\r\n", maxSplits: 1)
        return HTTPResponse(status: status, body: Array((parts.count > 1 ? parts[1] : "").utf8))
    }

    private static func initialize(_ client: TestClient, _ token: String) throws -> String {
        try client.ask(
            #"0:init:{"clientid":"t","api":"1.1","token":"\#(token)","app_id":"notes","name":"b","library":"test"}"#)
    }
}
