import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// `create/`, `authorize/`, `update/`, `reset_password/` and `delete/` as Simperium's clients use them.
@Suite("Accounts with passwords")
struct AccountPasswordTests {
    private let bench: AccountBench

    init() throws { bench = try AccountBench() }

    @Test("create returns name, id and a token that is good at once; authorize returns another for the same user")
    func create() throws {
        let made = try bench.create("Ann@Example.com")
        #expect(made.status == 200)
        #expect(made.names.sorted() == ["access_token", "userid", "username"])
        #expect(try made.string("username") == "Ann@Example.com")
        #expect(try made.string("userid").utf8.count == 32)
        let token = try made.string("access_token")
        #expect(token.utf8.count == 32)
        let grant = try #require(try bench.grant(token))
        #expect(grant.user.text == (try made.string("userid")))
        #expect(grant.name.text == "Ann@Example.com" && !grant.isReadOnly)
        let again = try bench.authorize("ann@example.COM")
        #expect(again.status == 200)
        #expect(try again.string("userid") == grant.user.text)
        #expect(try again.string("username") == "Ann@Example.com")
        #expect(try again.string("access_token") != token)
        #expect(try bench.grant(try again.string("access_token")) == grant)
        #expect(bench.outcome?.isProved == true)
    }

    @Test("a name is unique in its app whatever its case; another app does not know it")
    func taken() throws {
        #expect(try bench.create("ann@example.com").status == 200)
        let second = try bench.create("ANN@example.com", "another")
        #expect(second.status == 409)
        #expect(second.text == "the user exists already")
        #expect(try bench.authorize("ann@example.com", "another").status == 401)
        let other = try AppID("other")
        try bench.admin.createApp(other, now: 1)
        let key = try bench.admin.addKey(of: other, isAdmin: false, now: 1)
        let login = #"{"username":"ann@example.com","password":"open sesame"}"#
        #expect(try bench.send("POST", "/1/other/authorize/", ["x-simperium-api-key: \(key)"], login).status == 401)
        #expect(try bench.send("POST", "/1/other/create", ["X-Simperium-API-Key: \(key)"], login).status == 200)
        #expect(
            try bench.send("POST", "/1/other/authorize", ["x-simperium-api-key: \(bench.apiKey)"], login).status == 401)
    }

    @Test("an update that loses to a concurrent change gets a 409 that says so, not that the name is taken")
    func overtaken() throws {
        _ = try bench.create("ann@example.com")
        let (store, body) = (
            bench.store, #"{"username":"ann@example.com","password":"open sesame","new_password":"other one"}"#
        )
        // The salt is drawn between the proof and the change, so the other change is made at that moment.
        bench.service = AccountService(
            directory: store, secrets: try ServerKey.load(bench.folder + "/server.key").accountSecrets,
            random: { count in
                if var account = try? store.account(named: "ann@example.com", in: "notes") {
                    let before = account.proof
                    account.proof = .password(salt: [1], hash: [2])
                    _ = try? store.change(account, from: before, endsTokens: false, token: nil, now: 5)
                }
                return RandomBytes.make(count)
            })
        bench.service.cost = Scrypt.Cost(n: 16, r: 1, p: 1)
        let refused = try bench.post("update/", body)
        #expect(refused.status == 409 && refused.text == "the account was changed meanwhile", "\(refused)")
        bench.service = AccountService(
            directory: store, secrets: try ServerKey.load(bench.folder + "/server.key").accountSecrets,
            random: RandomBytes.make)
        bench.service.cost = Scrypt.Cost(n: 16, r: 1, p: 1)
        _ = try bench.create("bob@example.com")
        _ = try bench.create("carol@example.com")
        let taken = try bench.post(
            "update/", #"{"username":"bob@example.com","password":"open sesame","new_username":"carol@example.com"}"#)
        #expect(taken.status == 409 && taken.text == "the user exists already", "\(taken)")
    }

    @Test("JSON and forms are read whatever the content type says, with the key in the header or the body")
    func bodies() throws {
        let key = bench.apiKey
        for (place, fields, body) in [
            (
                0, ["content-type: application/x-www-form-urlencoded"],
                #"{"username":"u0","password":"pass","client_id":"\#(key)"}"#
            ),
            (1, [], #"{"username":"u1","password":"pass","client_id":"\#(key)","provider":"simperium"}"#),
            (2, [], "username=u2&password=pass&client_id=\(key)"),
            (3, ["content-type: application/json"], "client_id=\(key)&username=u%33&password=pa%73s"),
            (4, ["x-simperium-api-key: \(key)"], "username=a+b%2Bc&password=first&password=pass"),
        ] {
            let made = try bench.send("POST", "/1/Notes/create/", fields, body)
            #expect(made.status == 200, "\(body): \(made.text)")
            #expect(try made.string("username") == (place == 4 ? "a b+c" : "u\(place)"))
            #expect(try bench.authorize(try made.string("username"), "pass").status == 200)
        }
    }

    @Test(
        "a bad request is answered 400 with a short text",
        arguments: [
            "", "{}", "[]", "7", "{", #"{"username":"ann"}"#, #"{"password":"open sesame"}"#, "username=ann",
            #"{"username":"","password":"open sesame"}"#, #"{"username":7,"password":"open sesame"}"#,
            #"{"username":"ann","password":["open sesame"]}"#, #"{"username":"a\nb","password":"open sesame"}"#,
            #"{"username":"ann","username":"bob","password":"open sesame"}"#, #"{"username":"ann","password":"abc"}"#,
            #"{"username":" ann","password":"open sesame"}"#, "username=%zz&password=open", "plain text",
            "{\"username\":\"\(String(repeating: "x", count: 255))\",\"password\":\"open sesame\"}",
            "{\"username\":\"ann\",\"password\":\"\(String(repeating: "x", count: 1_025))\"}",
            "{\"username\":\"ann\",\"password\":\"open sesame\",\"x\":\(String(repeating: "[", count: 5_000))",
        ])
    func bad(body: String) throws {
        let answer = try bench.post("create/", body)
        #expect(answer.status == 400, "\(answer.text)")
        #expect(answer.text.utf8.count < 100 && !answer.text.isEmpty)
        #expect(answer.fields["content-type"]?.hasPrefix("text/plain") == true)
    }

    @Test("a wrong key, no key and another app's key get the same 401")
    func keys() throws {
        let login = #"{"username":"ann","password":"open sesame"}"#
        try bench.admin.createApp(try AppID("other"), now: 1)
        let other = try bench.admin.addKey(of: try AppID("other"), isAdmin: true, now: 1)
        for key in ["", "x", other, String(repeating: "a", count: 3_000)] {
            let answer = try bench.post("create", login, key: key)
            #expect(answer.status == 401 && answer.text == "invalid API key", "\(key)")
        }
        #expect(try bench.send("POST", "/1/nowhere/create/", ["x-simperium-api-key: \(other)"], login).status == 401)
        let twice = Array(repeating: "x-simperium-api-key: \(bench.apiKey)", count: 2)
        #expect(try bench.send("POST", "/1/notes/create/", twice, login).status == 401)
        #expect(try bench.post("create", login).status == 200)
    }

    @Test("a revoked key is refused from the next request on, and leaves logged-in users alone")
    func revokedKey() throws {
        let token = try bench.create("ann").string("access_token")
        let id = try #require(try bench.admin.keys(of: try AppID("notes")).first { !$0.isAdmin }?.id)
        try bench.admin.revokeKey(id, of: try AppID("notes"))
        #expect(try bench.authorize("ann").status == 401)
        #expect(try bench.grant(token) != nil)
    }

    @Test("update changes the name, the password or both, given the right password")
    func update() throws {
        let made = try bench.create("ann")
        let token = try made.string("access_token")
        let call: (String) throws -> HTTPResponse = { [bench] in try bench.post("update/", $0) }
        #expect(try call(#"{"username":"ann","password":"wrong","new_username":"eve"}"#).status == 401)
        #expect(try call(#"{"username":"ann","password":"open sesame"}"#).status == 400)
        #expect(try call(#"{"username":"ann","password":"open sesame","new_password":"abc"}"#).status == 400)
        let renamed = try call(#"{"username":"ann","password":"open sesame","new_username":"anna"}"#)
        #expect(renamed.status == 200)
        #expect(renamed.text == #"{"status":"success"}"#)
        #expect(try bench.grant(token)?.name.text == "anna")
        #expect(try bench.grant(token)?.user.text == (try made.string("userid")))
        #expect(bench.outcome?.ended == nil)
        #expect(try bench.authorize("ann").status == 401)
        #expect(try call("username=anna&password=open+sesame&new_username=Anna&new_password=other+word").status == 200)
        #expect(try bench.authorize("anna").status == 401)
        #expect(try bench.authorize("anna", "other word").string("userid") == (try made.string("userid")))
        #expect(try bench.create("ann").status == 200)
        #expect(
            try call(#"{"username":"anna","password":"other word","new_username":"ANN","new_password":"third"}"#).status
                == 409)
        #expect(try bench.authorize("anna", "other word").status == 200)
    }

    @Test("a new password ends every token of its user and none of other users")
    func passwordEndsTokens() throws {
        let made = try bench.create("ann")
        let second = try bench.authorize("ann")
        let bob = try bench.create("bob")
        try bench.post("update/", #"{"username":"ann","password":"open sesame","new_password":"other word"}"#)
        #expect(bench.outcome?.ended?.text == (try made.string("userid")))
        for answer in [made, second] {
            #expect(try bench.grant(try answer.string("access_token")) == nil)
        }
        #expect(try bench.grant(try bob.string("access_token")) != nil)
    }

    @Test("only an admin key resets a password, or deletes an account without its password")
    func admin() throws {
        let made = try bench.create("ann")
        let reset = #"{"username":"Ann","new_password":"given word"}"#
        #expect(try bench.post("reset_password/", reset).status == 401)
        #expect(try bench.authorize("ann").status == 200)
        let done = try bench.post("reset_password/", reset, key: bench.adminKey)
        #expect(done.status == 200 && done.text == #"{"status":"success"}"#)
        #expect(bench.outcome?.ended?.text == (try made.string("userid")))
        #expect(try bench.authorize("ann").status == 401)
        #expect(try bench.authorize("ann", "given word").status == 200)
        #expect(
            try bench.post("reset_password", #"{"username":"bob","new_password":"given"}"#, key: bench.adminKey).status
                == 404)
        #expect(try bench.post("delete/", #"{"username":"ann"}"#).status == 401)
        #expect(try bench.post("delete/", #"{"username":"ann","password":"wrong"}"#).status == 401)
        #expect(
            try bench.post("delete/", #"{"username":"ann"}"#, key: bench.adminKey).text
                == #"{"status":"success","kept":["backups"]}"#)
        #expect(try bench.authorize("ann", "given word").status == 401)
        #expect(try bench.post("delete/", #"{"username":"ann"}"#, key: bench.adminKey).status == 404)
        #expect(try bench.grant(try made.string("access_token")) == nil)
        let again = try bench.create("ann")
        #expect(try again.string("userid") != (try made.string("userid")))
        #expect(try bench.post("delete", #"{"username":"ann","password":"open sesame"}"#).status == 200)
    }

    @Test(
        "T16: a wrong password, an unknown user and a user of the other kind get the same answer and the same wait"
    )
    func guessing() throws {
        #expect(try bench.create("known").status == 200)
        let sealed = try bench.post("auth/signup", SealedBodies.signup("sealed"))
        #expect(sealed.status == 200)
        var seen = [[HTTPResponse]]()
        for (place, name) in ["known", "unknown", "sealed"].enumerated() {
            bench.address = "192.0.2.\(place + 10)"
            seen.append(try (0..<8).map { _ in try bench.authorize(name, "guess") })
        }
        #expect(seen[0].map(\.status) == [401, 401, 401, 401, 401, 429, 429, 429])
        #expect(seen[1] == seen[0])
        #expect(seen[2] == seen[0])
        #expect(seen[0][5].fields["retry-after"] == "1")
        #expect(bench.outcome?.limit == .account)
        #expect(try bench.authorize("known").status == 429, "the right password waits, too")
        bench.seconds(1)
        #expect(try bench.authorize("known").status == 200)
        #expect(try bench.authorize("known", "guess").status == 401, "the count has started again")
    }

    @Test("T16: after 30 failed logins a minute an address is refused, whatever the names; other addresses are not")
    func address() throws {
        #expect(try bench.create("ann").status == 200)
        for place in 0..<30 { #expect(try bench.authorize("u\(place)", "guess").status == 401) }
        #expect(try bench.authorize("ann").status == 429)
        #expect(bench.outcome?.limit == .address)
        bench.address = "192.0.2.2"
        #expect(try bench.authorize("ann").status == 200)
        bench.address = "192.0.2.1"
        bench.seconds(120)
        #expect(try bench.authorize("ann").status == 200)
    }

    @Test("T16: an app may get 60 new accounts a minute, an address may send 120 unknown keys a minute")
    func registrations() throws {
        for place in 0..<60 { #expect(try bench.create("u\(place)").status == 200) }
        #expect(try bench.create("more").status == 429)
        #expect(bench.outcome?.limit == .registrations)
        bench.seconds(120)
        #expect(try bench.create("more").status == 200)
        for _ in 0..<120 { #expect(try bench.post("create", "{}", key: "x").status == 401) }
        #expect(try bench.post("create", "{}", key: "x").status == 429)
        #expect(bench.outcome?.limit == .keys)
    }

    @Test("a user keeps a bounded number of tokens; the oldest end first")
    func tokens() throws {
        let first = try bench.create("ann").string("access_token")
        for _ in 1..<AccountService.tokensPerUserMax {
            bench.seconds(1)
            _ = try bench.authorize("ann")
        }
        #expect(try bench.grant(first) != nil)
        bench.seconds(1)
        let last = try bench.authorize("ann").string("access_token")
        #expect(bench.outcome?.limit == .userTokens)
        #expect(try bench.grant(first) == nil)
        #expect(try bench.grant(last) != nil)
    }

    @Test("a user lists and ends tokens; an expired token is refused")
    func ownTokens() throws {
        bench.service.rules.tokenLifetime = 1_000
        let first = try bench.create("ann").string("access_token")
        bench.seconds(10)
        let second = try bench.authorize("ann").string("access_token")
        let bob = try bench.create("bob").string("access_token")
        let list = try #require(
            try bench.send("GET", "auth/tokens", token: second).member("tokens")?.arrayValue)
        #expect(list.count == 2)
        #expect(list[0].objectValue?["current"]?.boolValue == true)
        #expect(list[1].objectValue?["expires"]?.intValue == 1_800_001_000)
        let id = try #require(list[1].objectValue?["id"]?.stringValue)
        #expect(try bench.send("DELETE", "auth/tokens/\(id)", token: bob).status == 400)
        #expect(try bench.send("DELETE", "auth/tokens/\(id)", token: second).status == 204)
        #expect(bench.outcome?.ended != nil)
        #expect(try bench.grant(first) == nil)
        #expect(try bench.send("GET", "auth/tokens", token: first).status == 401)
        #expect(try bench.send("POST", "auth/logout", token: second).status == 204)
        #expect(try bench.send("GET", "auth/tokens", token: second).status == 401)
        #expect(try bench.send("GET", "auth/tokens", token: bob).status == 200)
        let grant = try #require(try bench.grant(bob))
        #expect(grant.isGood(at: 1_800_001_009_999) && !grant.isGood(at: 1_800_001_010_000))
        bench.seconds(1_000)
        #expect(try bench.send("GET", "auth/tokens", token: bob).status == 401)
    }

    @Test("T22: the file contains neither password, token nor key")
    func onlyHashes() throws {
        let token = try bench.create("ann", "canary password").string("access_token")
        var bytes = [UInt8]()
        for name in ["", "-wal"] { bytes += try bench.bytes(name) }
        let has: (String) -> Bool = { wanted in
            let wanted: [UInt8] = Array(wanted.utf8)
            return (0...bytes.count - wanted.count).contains { bytes[$0...].starts(with: wanted) }
        }
        #expect(has("ann"))
        for (name, secret) in [
            ("password", "canary"), ("token", token), ("API key", bench.apiKey), ("admin key", bench.adminKey),
        ] {
            let isThere = has(secret)
            #expect(!isThere, "\(name)")
        }
    }

    @Test("names that differ in bytes but not to the eye are different users")
    func normalisation() throws {
        #expect(try bench.create("é").status == 200)
        #expect(try bench.create("e\u{301}", "other word").status == 200)
        #expect(try bench.authorize("e\u{301}").status == 401)
        #expect(try bench.authorize("é").status == 200)
    }
}
