import Testing
import ThicketAuth
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// What holds at every entry point of a server, whichever part answers behind it.
@Suite("Entry points of a server")
struct AccountAPITests {
    @Test(
        "T16: after 120 bad tokens a minute of a partner's app the data API answers 429 with Retry-After, streams 500"
    )
    func badTokens() throws {
        let house = try AccountAPIFixture()
        let good = ["x-simperium-token": house.login(), "x-rezolve-device-id": "d"]
        let bad = [
            "x-simperium-token": house.login(key: String(repeating: "x", count: 88)), "x-rezolve-device-id": "d",
        ]
        let peer = try house.peer()
        #expect(try peer.ask("GET", "/1/app/user", good).status == 200)
        for _ in 0..<120 { #expect(try peer.ask("GET", "/1/app/user", bad).status == 401) }
        for fields in [bad, good] {
            let answer = try peer.ask("GET", "/1/app/user", fields)
            #expect(answer.status == 429 && AccountAPIFixture.member("code", of: answer) == "too_many_attempts")
            #expect(AccountAPIFixture.member("hint", of: answer) != nil)
            let seconds = answer.fields["retry-after"].flatMap { Int($0) }
            #expect((1...120).contains(seconds ?? 0), "\(answer.fields)")
        }
        let client = try house.server.client(app: "app")
        let message =
            #"0:init:{"clientid":"c","api":"1.1","token":"\#(house.login())","app_id":"app","name":"b","device_id":"d"}"#
        #expect(
            try client.ask(message) == #"0:auth:{"msg":"Too many failed tokens, try again later","code":500}"#)
        #expect(house.server.metrics.limitHits.value(.attempts) == 3)
        house.pass(120)
        #expect(try peer.ask("GET", "/1/app/user", good).status == 200)
        #expect(try client.ask(message) == "0:auth:\(house.user)")
    }

    @Test("T16: bad tokens count together, whichever of the two threads checks them")
    func oneCount() throws {
        let house = try AccountAPIFixture()
        let bad = house.partnerFields(house.login(key: String(repeating: "x", count: 88)))
        let peer = try house.peer()
        for _ in 0..<60 {
            #expect(try peer.ask("GET", "/v2/credentials/ping", bad).status == 403)
            #expect(try peer.ask("POST", "/v2/credentials/change", bad, body: "{}").status == 403)
        }
        #expect(try peer.ask("GET", "/v2/credentials/ping", bad).status == 429)
        #expect(try peer.ask("POST", "/v2/credentials/change", bad, body: "{}").status == 429)
    }

    @Test("T16: failed logins of an address count together, those of partners' users and of accounts")
    func oneAddress() throws {
        let house = try AccountAPIFixture { $0.failedLoginsPerMinute = 6 }
        let peer = try house.peer()
        func account(_ name: String) throws -> HTTPPeer.Answer {
            try peer.ask(
                "POST", "/1/notes/authorize/", ["x-simperium-api-key": house.apiKey],
                body: #"{"username":"\#(name)","password":"wrong word"}"#)
        }
        func sealed(_ name: String) throws -> HTTPPeer.Answer {
            let key = Base64.encodeURL([UInt8](repeating: 7, count: 32))
            return try peer.ask(
                "POST", "/1/notes/auth/login", ["x-simperium-api-key": house.apiKey],
                body: #"{"u":"\#(name)","a":"\#(key)","device":"d"}"#)
        }
        func partner(_ name: String) throws -> HTTPPeer.Answer {
            try peer.ask(
                "POST", "/v2/credentials/login", house.partnerFields(),
                body: #"{"deviceId":"d","username":"\#(name)","password":"wrong word"}"#)
        }
        for round in 0..<2 {
            #expect(try account("a\(round)").status == 401)
            #expect(try sealed("s\(round)").status == 401)
            #expect(try partner("p\(round)").status == 403)
        }
        for answer in [try account("x"), try sealed("x"), try partner("x")] {
            #expect(answer.status == 429 && answer.fields["retry-after"] != nil)
        }
    }

    @Test("registrations of a partner count together, those with tokens and those with passwords")
    func registrations() throws {
        let house = try AccountAPIFixture { $0.registrationsPerMinute = 2 }
        let peer = try house.peer()
        func byToken(_ name: String) throws -> Int {
            let token = TokenMaker.registration(
                partnerEntity: name, expiry: "1800000600", key: house.authKey)
            return try peer.ask(
                "POST", "/api/v1/authentication/register", house.partnerFields(token), body: #"{"email":"a@b"}"#
            ).status
        }
        func byPassword(_ name: String) throws -> Int {
            try peer.ask(
                "POST", "/v2/credentials/register", house.partnerFields(),
                body: #"{"username":"\#(name)","password":"correct horse"}"#
            ).status
        }
        #expect(try [byToken("t1"), byPassword("p1"), byToken("t2"), byPassword("p2")] == [200, 200, 429, 429])
    }

    /// One route of each family, and the status of its answer.
    private static let families: [(method: String, path: String, body: String, status: Int)] = [
        ("GET", "/1/notes/user", "", 401), ("GET", "/1/notes/notes/i/a%20b", "", 401),
        ("POST", "/1/notes/create/", #"{"username":"ann","password":"open sesame"}"#, 200),
        ("POST", "/1/notes/authorize/", #"{"username":"bob","password":"open sesame"}"#, 401),
        ("POST", "/1/notes/auth/prelogin", #"{"u":"bob"}"#, 200), ("POST", "/1/notes/auth/login", "{}", 400),
        ("GET", "/1/notes/auth/tokens", "", 401), ("PUT", "/1/notes/create/", "{}", 405),
        ("POST", "/api/v1/authentication/register", "{}", 403),
        ("POST", "/api/v2/authentication/login/guest", "{}", 403),
        ("POST", "/v2/credentials/register", #"{"username":"eve","password":"open sesame"}"#, 200),
        ("POST", "/v2/credentials/login", #"{"deviceId":"d","username":"eve","password":"open sesame"}"#, 200),
        ("GET", "/v2/credentials/ping", "", 403), ("POST", "/v1/user/logout", "", 403),
        ("GET", "/api/v1/partner/1/customer/e/publickey", "", 403),
        ("GET", "/api/v1/partner/1/customer/e/devices", "", 403),
        ("DELETE", "/v1/user/logout", "", 405), ("GET", "/1/notes", "", 404),
    ]

    @Test("a page of a listed origin may call every entry point and read each answer and refusal; another page may not")
    func pages() throws {
        let house = try AccountAPIFixture { $0.corsOrigins = "https://a.example" }
        let peer = try house.peer()
        for (method, path, body, status) in Self.families {
            var fields = house.partnerFields(nil, ["origin": "https://a.example"])
            fields["x-simperium-api-key"] = house.apiKey
            let answer = try peer.ask(method, path, fields, body: body)
            #expect(answer.status == status, "\(method) \(path): \(answer.body)")
            #expect(answer.fields["access-control-allow-origin"] == "https://a.example", "\(method) \(path)")
            #expect(answer.fields["vary"] == "origin", "\(method) \(path)")
            #expect(answer.fields["access-control-expose-headers"]?.contains("Authorization") == true)
            fields["origin"] = "https://b.example"
            let other = try peer.ask("GET", path, fields)
            #expect(other.fields["access-control-allow-origin"] == nil && other.fields["vary"] == "origin", "\(path)")
        }
    }

    @Test("a preflight lists each entry point's methods and fields for a listed origin, and none for another origin")
    func preflights() throws {
        let house = try AccountAPIFixture { $0.corsOrigins = "https://a.example, https://c.example" }
        let peer = try house.peer()
        for (method, path, _, status) in Self.families where status < 404 {
            let ask = ["access-control-request-method": method]
            let answer = try peer.ask(
                "OPTIONS", path, ask.merging(["origin": "https://a.example"]) { _, new in new })
            #expect(answer.status == 204, "\(path)")
            #expect(answer.fields["access-control-allow-origin"] == "https://a.example", "\(path)")
            #expect(answer.fields["access-control-allow-methods"]?.contains(method) == true, "\(path)")
            #expect(answer.fields["access-control-allow-credentials"] == nil)
            let allowed = answer.fields["access-control-allow-headers"] ?? ""
            for name in [
                "Authorization", "X-Rezolve-Partner-ApiKey", "X-Rezolve-Device-Id", "X-Simperium-API-Key",
                "X-Simperium-Token", "Content-Type",
            ] { #expect(allowed.contains(name), "\(path) \(name)") }
            let other = try peer.ask(
                "OPTIONS", path, ask.merging(["origin": "https://b.example"]) { _, new in new })
            #expect(other.status == 204 && other.fields["access-control-allow-origin"] == nil, "\(path)")
            #expect(other.fields["access-control-allow-headers"] == nil)
        }
    }

    @Test("refusals under auth/ have code, message and hint; those of the older requests are short texts")
    func refusals() throws {
        let house = try AccountAPIFixture()
        let peer = try house.peer()
        let key = ["x-simperium-api-key": house.apiKey]
        for (fields, path, body, status, code) in [
            ([:], "login", #"{"u":"a"}"#, 401, "invalid_key"), (key, "login", "[]", 400, "invalid_request"),
            (key, "bundle", "{}", 401, "unauthorized"),
            (
                key, "login", #"{"u":"a","a":"\#(Base64.encodeURL([UInt8](repeating: 1, count: 32)))"}"#, 401,
                "invalid_login"
            ),
        ] {
            let answer = try peer.ask(
                path == "bundle" ? "PUT" : "POST", "/1/notes/auth/\(path)", fields, body: body)
            #expect(answer.status == status && AccountAPIFixture.member("code", of: answer) == code, "\(answer.body)")
            let hint = AccountAPIFixture.member("hint", of: answer) ?? ""
            #expect(!hint.isEmpty && !hint.contains("://"), "\(answer.body)")
            #expect(AccountAPIFixture.member("message", of: answer)?.isEmpty == false)
        }
        let text = try peer.ask("POST", "/1/notes/authorize/", [:], body: #"{"username":"a"}"#)
        #expect(text.status == 401 && text.body == "invalid API key")
        #expect(text.fields["content-type"]?.hasPrefix("text/plain") == true)
    }

    @Test("once a deletion is answered, an administrator reads and writes nothing of the account")
    func ended() throws {
        let house = try AccountAPIFixture()
        let peer = try house.peer()
        let made = try peer.ask(
            "POST", "/1/notes/create/", ["x-simperium-api-key": house.apiKey],
            body: #"{"username":"ann","password":"open sesame"}"#)
        let user = try #require(AccountAPIFixture.member("userid", of: made))
        let token = try #require(AccountAPIFixture.member("access_token", of: made))
        for number in 0..<200 {
            let answer = try peer.ask(
                "POST", "/1/notes/diary/i/k\(number)", ["x-simperium-token": token], body: #"{"n":\#(number)}"#)
            #expect(answer.status == 200)
        }
        let admin = ["x-simperium-token": house.adminKey, "x-simperium-user": user]
        #expect(try peer.ask("GET", "/1/notes/diary/i/k1", admin).body == #"{"n":1}"#)
        #expect(try peer.ask("GET", "/1/notes/buckets", admin).body == #"{"buckets":[{"name":"diary"}]}"#)
        #expect(
            try peer.ask(
                "POST", "/1/notes/delete/", ["x-simperium-api-key": house.adminKey], body: #"{"username":"ann"}"#
            ).status == 200)
        for path in ["diary/i/k1", "diary/i/k199", "diary/i/k1/v/1"] {
            #expect(try peer.ask("GET", "/1/notes/\(path)", admin).status == 404, "\(path)")
        }
        // The answer is a refusal, or empty once all is erased.
        #expect(try !peer.ask("GET", "/1/notes/diary/index?data=1", admin).body.contains("\"n\""))
        #expect(try !peer.ask("GET", "/1/notes/buckets", admin).body.contains("diary"))
        #expect(try peer.ask("GET", "/1/notes/user", ["x-simperium-token": token]).status == 401)
    }
}
