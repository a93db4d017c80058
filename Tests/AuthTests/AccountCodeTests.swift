import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// Reset codes of built-in accounts, which passwords an app accepts, and what its answers tell users.
@Suite("Reset codes of accounts")
struct AccountCodeTests {
    private let bench: AccountBench
    private let mails = CredentialBench.Mails()

    init() throws { bench = try AccountBench() }

    /// Asks for a code; returns the answer and the code that was sent.
    private func forget(_ path: String, _ body: String) throws -> (answer: HTTPResponse, code: String?) {
        let answer = try bench.post(path, body)
        guard let forgetful = bench.outcome?.forgetful,
            try bench.service.sendCode(to: forgetful, outbox: mails, now: bench.now)
        else { return (answer, nil) }
        let text = try #require(mails.all.last?.text)
        return (answer, String(text.filter { ("0"..."9").contains($0) }.prefix(ResetCode.digits)))
    }

    private func verify(_ name: String, _ code: String) throws -> HTTPResponse {
        try bench.post("verify/", #"{"username":"\#(name)","code":"\#(code)","new_password":"another word"}"#)
    }

    private func verifyKey(_ name: String, _ code: String, a: UInt8 = 30) throws -> HTTPResponse {
        try bench.post(
            "auth/verify",
            #"{"u":"\#(name)","code":"\#(code)","a":"\#(SealedBodies.key(a))","kdf":1,"salt":"\#(SealedBodies.key(31, count: 16))"}"#
        )
    }

    @Test("a code resets a password once and ends all tokens; asking for one is answered alike for every name")
    func password() throws {
        let token = try bench.create("ann@example.com").string("access_token")
        #expect(try bench.create("plain name").status == 200)
        let asked = try forget("forgot/", #"{"username":"Ann@example.com"}"#)
        #expect(asked.answer.text == #"{"status":"success"}"#)
        for name in ["nobody@example.com", "plain name"] {
            let other = try forget("forgot", #"{"username":"\#(name)"}"#)
            #expect(other.answer == asked.answer && other.code == nil)
        }
        #expect(mails.all.map(\.to.text) == ["ann@example.com"])
        #expect(mails.all[0].text.contains("in notes: "))
        #expect(mails.rehearsed == 2, "the same work for an unknown name, and for a name without an address")
        let code = try #require(asked.code)
        #expect(try verify("nobody@example.com", code).status == 401)
        #expect(try verify("ann@example.com", code).text == #"{"status":"success"}"#)
        #expect(bench.outcome?.ended != nil)
        #expect(try bench.grant(token) == nil)
        #expect(try bench.authorize("ann@example.com").status == 401)
        #expect(try bench.authorize("ann@example.com", "another word").status == 200)
        #expect(try verify("ann@example.com", code).status == 401, "good once")
    }

    @Test("a code is good for fifteen minutes and five tries; another is sent after five minutes")
    func bounds() throws {
        #expect(try bench.create("ann@example.com").status == 200)
        let ask: () throws -> String? = { try self.forget("forgot/", "username=ann%40example.com").code }
        let first = try #require(try ask())
        #expect(try ask() == nil)
        bench.seconds(900)
        #expect(try verify("ann@example.com", first).status == 401)
        let second = try #require(try ask())
        let wrong = second.hasPrefix("0") ? "1" + second.dropFirst() : "0" + second.dropFirst()
        for _ in 0..<4 { #expect(try verify("ann@example.com", wrong).status == 401) }
        #expect(try verify("ann@example.com", wrong).status == 429, "names are guarded as at a login")
        bench.seconds(60)
        #expect(try verify("ann@example.com", wrong).status == 401)
        bench.seconds(60)
        #expect(try verify("ann@example.com", second).status == 401, "five tries are over")
        #expect(try bench.authorize("ann@example.com").status == 200, "guessing codes does not lock the owner out")
    }

    @Test("guesses of codes get the same answers and the same waits for known and unknown names")
    func guessing() throws {
        #expect(try bench.create("known@example.com").status == 200)
        var seen = [[HTTPResponse]]()
        for (place, name) in ["known@example.com", "unknown@example.com"].enumerated() {
            bench.address = "192.0.2.\(place + 20)"
            _ = try forget("forgot/", #"{"username":"\#(name)"}"#)
            seen.append(try (0..<7).map { _ in try verify(name, "no code") })
        }
        #expect(seen[0].map(\.status) == [401, 401, 401, 401, 401, 429, 429])
        #expect(seen[1] == seen[0])
    }

    @Test("after 30 requests a minute from one address no code is sent, and the answer stays the same")
    func addressBound() throws {
        #expect(try bench.create("ann@example.com").status == 200)
        for place in 0..<30 { _ = try bench.post("forgot/", #"{"username":"u\#(place)@example.com"}"#) }
        let late = try forget("forgot/", #"{"username":"ann@example.com"}"#)
        #expect(late.code == nil && late.answer.text == #"{"status":"success"}"#)
        bench.seconds(120)
        #expect(try forget("forgot/", #"{"username":"ann@example.com"}"#).code != nil)
    }

    @Test("a code resets the proof of a key and nothing else: the account is locked until its words open it")
    func locked() throws {
        let made = try bench.post("auth/signup", SealedBodies.signup("ann@example.com"))
        #expect(try forget("forgot/", #"{"username":"ann@example.com"}"#).code == nil, "it has the other kind of proof")
        bench.seconds(300)
        let code = try #require(try forget("auth/forgot", #"{"u":"ann@example.com"}"#).code)
        #expect(try verify("ann@example.com", code).status == 401)
        let reset = try verifyKey("ann@example.com", code)
        #expect(reset.text == #"{"status":"success","locked":true}"#)
        #expect(try bench.grant(try made.string("access_token")) == nil)
        #expect(try bench.post("auth/login", SealedBodies.login("ann@example.com")).status == 401)
        let back = try bench.post("auth/login", SealedBodies.login("ann@example.com", a: 30))
        #expect(back.status == 200)
        #expect(back.member("locked")?.boolValue == true && back.member("access") == .null)
        #expect(try back.string("bundle") == SealedBodies.key(4, count: 200))
        let before = try #require(back.member("before")?.objectValue)
        #expect(before["access"]?.stringValue == SealedBodies.key(3, count: 61), "with the old password it still opens")
        #expect(before["salt"]?.stringValue == SealedBodies.salt)
        let token = try back.string("access_token")
        let other = try bench.send(
            "PUT", "auth/bundle", token: token, #"{"version":1,"bundle":"\#(SealedBodies.key(9))"}"#)
        #expect(other.status == 403, "a client that has not opened the bundle cannot replace it")
        let words =
            #"{"u":"ann@example.com","r":"\#(SealedBodies.key(2))","a":"\#(SealedBodies.key(40))","kdf":1,"salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(41, count: 61))"}"#
        let opened = try bench.post("auth/recover", words)
        #expect(opened.names.sorted() == ["access", "access_token", "bundle", "userid", "version"])
        let again = try bench.post("auth/login", SealedBodies.login("ann@example.com", a: 40))
        #expect(try again.string("access") == SealedBodies.key(41, count: 61))
        #expect(again.member("locked") == nil && again.member("before") == nil)
    }

    @Test("a device that still has the keys opens a locked account; a second reset keeps the first wrap")
    func oldDevice() throws {
        #expect(try bench.post("auth/signup", SealedBodies.signup("ann@example.com")).status == 200)
        for a: UInt8 in [30, 31] {
            bench.seconds(1_000)
            let code: String = try #require(try forget("auth/forgot", #"{"u":"ann@example.com"}"#).code)
            #expect(try verifyKey("ann@example.com", code, a: a).status == 200)
        }
        let back = try bench.post("auth/login", SealedBodies.login("ann@example.com", a: 31))
        let before = try #require(back.member("before")?.objectValue)
        #expect(before["access"]?.stringValue == SealedBodies.key(3, count: 61))
        let sealed = try bench.send(
            "POST", "auth/password", token: try back.string("access_token"),
            #"{"a_old":"\#(SealedBodies.key(31))","a":"\#(SealedBodies.key(31))","kdf":1,"salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(50, count: 61))"}"#
        )
        #expect(sealed.status == 200)
        let open = try bench.post("auth/login", SealedBodies.login("ann@example.com", a: 31))
        #expect(try open.string("access") == SealedBodies.key(50, count: 61))
    }

    @Test("deleting an account removes its codes and wraps, and the answer lists what is kept")
    func ended() throws {
        #expect(try bench.post("auth/signup", SealedBodies.signup("ann@example.com")).status == 200)
        let code = try #require(try forget("auth/forgot", #"{"u":"ann@example.com"}"#).code)
        #expect(try verifyKey("ann@example.com", code).status == 200)
        let user = try bench.post("auth/login", SealedBodies.login("ann@example.com", a: 30)).string("userid")
        #expect(try bench.store.lockedWrap(of: user) != nil)
        let ended = try bench.post("delete/", #"{"username":"ann@example.com"}"#, key: bench.adminKey)
        #expect(ended.text == #"{"status":"success","kept":["backups"]}"#)
        #expect(try bench.store.lockedWrap(of: user) == nil)
    }

    @Test("all accounts share one stretching cost: sign-up refuses others, prelogin gives it for any name")
    func stretches() throws {
        for more in [#","n":16"#, #","n":18"#, #","p":2"#, #","r":16"#] {
            #expect(try bench.post("auth/signup", SealedBodies.signup("ann", more: more)).status == 400, "\(more)")
        }
        #expect(try bench.post("auth/signup", SealedBodies.signup("ann", more: #","n":17,"r":8,"p":1"#)).status == 200)
        let numbers = try ["ann", "nobody"].map { name in
            let how = try bench.post("auth/prelogin", #"{"u":"\#(name)"}"#)
            return ["scheme", "kdf", "n", "r", "p"].map { how.member($0) }
        }
        #expect(numbers[0] == numbers[1])
    }

    @Test("an app accepts the old notes app's logins only if it is set to, and no password if it is set to none")
    func passwordsOfApps() throws {
        let app = try AppID("notes")
        let stretched =
            #"{"username":"VyijIO3XTijhwjrpuyDNpHJNpBOBKxwb180lYWbo2YY=","password":"K/SWeWOeER/zGgOYH8RXvBuVBzRo+0S3vK6veR/L4ko="}"#
        let plain = #"{"username":"ann","password":"open sesame"}"#
        let calls = ["create/", "authorize/", "update/", "delete/"]
        for call in calls { #expect(try bench.post(call, stretched).status == 403) }
        #expect(try bench.post("create", plain).status == 200)
        try bench.admin.setPasswords(.notes, of: app)
        #expect(try bench.post("create/", stretched).status == 200)
        #expect(try bench.post("authorize/", stretched).status == 200)
        #expect(try bench.post("authorize/", plain).status == 200)
        try bench.admin.setPasswords(.sent, of: app)
        let known = try bench.post("authorize/", stretched)
        #expect(known.status == 403)
        let unknown = stretched.replacing("Vyij", with: "Wyij")
        #expect(try bench.post("authorize/", unknown) == known, "the answer does not reveal which names exist")
        #expect(
            try bench.post("authorize/", #"{"username":"VyijIO3XTijhwjrpuyDNpHJNpBOBKxwb180lYWbo2YY=","password":"x"}"#)
                .status == 401)
        try bench.admin.setPasswords(.none, of: app)
        for call in calls + ["forgot/", "verify/"] {
            #expect(try bench.post(call, plain).status == 403, "\(call)")
        }
        #expect(try bench.post("auth/signup", SealedBodies.signup("bob")).status == 200)
        #expect(try bench.post("delete/", #"{"username":"ann"}"#, key: bench.adminKey).status == 200)
    }
}

@Suite("Mail addresses")
struct MailAddressTests {
    @Test(
        "plain addresses are accepted",
        arguments: ["a@b", "ann.lee+x@mail.example.com", "o'neil@example.com", "{a}|b@x-y.example", "ann@EXAMPLE.com"])
    func good(text: String) { #expect(MailAddress(text)?.text == text) }

    @Test(
        "an address that could break out of a line or a command, or name a second recipient, is refused",
        arguments: [
            "", "ann", "@b", "a@", "a@b@c", "a b@c", "a@b c", "a@b\r\nBcc: eve@x", "a\n@b", "a@b>", "<a@b>", "a>@b",
            "a,b@c", "a;b@c", "\"a\"@b", "a@[192.0.2.1]", "a@b,c", ".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@-b",
            "a@b-", "é@b", "a@é.b", "a@b\u{0}", "a(c)@b", "a\\@b", "a@b SIZE=1", "a:b@c",
        ])
    func bad(text: String) { #expect(MailAddress(text) == nil) }

    @Test("a local part of 64 bytes is accepted; one of 65, a label of 64 and an address of 256 are refused")
    func bounds() {
        let host = String(repeating: "a.", count: 90) + "b"
        #expect(MailAddress(String(repeating: "a", count: 64) + "@" + host) != nil)
        #expect(MailAddress(String(repeating: "a", count: 65) + "@b") == nil)
        #expect(MailAddress("a@" + String(repeating: "b", count: 64)) == nil)
        #expect(MailAddress("a@" + String(repeating: "b.", count: 126) + "bb") == nil)
    }
}
