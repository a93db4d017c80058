import Synchronization
import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// Accounts whose password stays with the client.
@Suite("Accounts with keys")
struct AccountSealedTests {
    private let bench: AccountBench

    init() throws { bench = try AccountBench() }

    @Test("sign-up, prelogin and login return what the sign-up stored, and the tokens are good")
    func roundTrip() throws {
        let made = try bench.post("auth/signup", SealedBodies.signup("Ann", more: #","n":17,"p":1"#))
        #expect(made.status == 200)
        #expect(try bench.grant(try made.string("access_token"))?.name.text == "Ann")
        #expect(made.member("version")?.intValue == 1)
        let how = try bench.post("auth/prelogin", #"{"u":"ann"}"#)
        #expect(how.text == #"{"scheme":1,"kdf":1,"n":17,"r":8,"p":1,"salt":"\#(SealedBodies.salt)"}"#)
        let back = try bench.post("auth/login", SealedBodies.login("ann"))
        #expect(back.status == 200)
        #expect(back.names.sorted() == ["access", "access_token", "bundle", "userid", "version"])
        #expect(try back.string("userid") == (try made.string("userid")))
        #expect(try back.string("access") == SealedBodies.key(3, count: 61))
        #expect(try back.string("bundle") == SealedBodies.key(4, count: 200))
        #expect(try bench.grant(try back.string("access_token"))?.user.text == (try made.string("userid")))
        let list = try bench.send("GET", "auth/tokens", token: try back.string("access_token"))
        #expect(
            list.member("tokens")?.arrayValue?.first { $0.objectValue?["current"]?.boolValue == true }?.objectValue?[
                "device"] == "Ann's phone")
    }

    @Test("an account's id is derived from app and words; an account with words already used gets a random id")
    func ids() throws {
        let digest = Hash.sha256([UInt8](repeating: 2, count: 32))
        let reckoned = try AccountPlace.userID(app: "notes", recoveryDigest: digest)
        let first = try bench.post("auth/signup", SealedBodies.signup("ann")).string("userid")
        #expect(first == reckoned)
        let second = try bench.post("auth/signup", SealedBodies.signup("bob")).string("userid")
        #expect(second != reckoned && second.utf8.count == 32)
        #expect(try AccountPlace.userID(app: "another", recoveryDigest: digest) != reckoned)
        // A new account gets nothing of what an ended account left.
        let token = try bench.post("auth/login", SealedBodies.login("ann")).string("access_token")
        #expect(try bench.send("POST", "auth/delete", token: token, #"{"a":"\#(SealedBodies.key(1))"}"#).status == 200)
        let again = try bench.post("auth/signup", SealedBodies.signup("ann")).string("userid")
        #expect(again != reckoned)
    }

    @Test("T16: prelogin does not reveal which names exist: an unknown name's answer is stable, also after a restart")
    func prelogin() throws {
        let first = try bench.post("auth/prelogin", #"{"u":"nobody"}"#)
        #expect(first.status == 200)
        let salt = try first.string("salt")
        #expect(Base64.decodeURL(Array(salt.utf8)[...])?.count == 16)
        #expect(try bench.post("auth/prelogin", #"{"u":"NoBody"}"#) == first, "case is ignored, as for known names")
        #expect(try bench.post("auth/prelogin", #"{"u":"nobody2"}"#).string("salt") != salt)
        let again = AccountService(
            directory: bench.store, secrets: try ServerKey.load(bench.folder + "/server.key").accountSecrets,
            random: RandomBytes.make)
        bench.service = again
        #expect(try bench.post("auth/prelogin", #"{"u":"nobody"}"#) == first)
        #expect(try bench.create("nobody").status == 200)
        #expect(try bench.post("auth/prelogin", #"{"u":"nobody"}"#) == first, "such an account counts as unknown")
    }

    @Test("T16: a name that no account has is not found, wherever it sorts among the others")
    func names() throws {
        for name in ["bea", "dan"] {
            #expect(try bench.post("auth/signup", SealedBodies.signup(name)).status == 200)
        }
        for (name, found) in [
            ("a", nil), ("bea", "bea"), ("be", nil), ("beaa", nil), ("c", nil), ("dan", "dan"), ("da", nil), ("z", nil),
        ] {
            #expect(try bench.store.account(named: name, in: "notes")?.name == found, "\(name)")
        }
        #expect(try bench.store.account(named: "bea", in: "elsewhere") == nil)
    }

    @Test(
        "T16: a request derives as much from a name that an account has as from a name that none has"
    )
    func sameWork() throws {
        let count = Mutex<[String: Int]>([:])
        let counted = AccountSecrets(
            verifier: { [secrets = bench.service.secrets] bytes in
                count.withLock { $0["verifier", default: 0] += 1 }
                return secrets.verifier(bytes)
            },
            pretence: { [secrets = bench.service.secrets] bytes in
                count.withLock { $0["pretence", default: 0] += 1 }
                return secrets.pretence(bytes)
            })
        bench.service = AccountService(directory: bench.store, secrets: counted, random: RandomBytes.make)
        bench.service.cost = Scrypt.Cost(n: 16, r: 1, p: 1)
        #expect(try bench.post("auth/signup", SealedBodies.signup("bea@example.com")).status == 200)
        #expect(try bench.create("ann@example.com").status == 200)
        let wrong = SealedBodies.key(9)
        let asked: [(path: String, known: String, body: (String) -> String)] = [
            ("auth/prelogin", "bea", { #"{"u":"\#($0)"}"# }),
            ("auth/login", "bea", { #"{"u":"\#($0)","a":"\#(wrong)","device":"d"}"# }),
            ("auth/recover", "bea", { #"{"u":"\#($0)","r":"\#(wrong)","a":"\#(wrong)","device":"d"}"# }),
            ("auth/forgot", "bea", { #"{"u":"\#($0)"}"# }),
            (
                "auth/verify", "bea",
                { #"{"u":"\#($0)","code":"1234","kdf":1,"salt":"\#(SealedBodies.salt)","a":"\#(wrong)"}"# }
            ),
            ("forgot/", "ann", { #"{"username":"\#($0)"}"# }),
            ("verify/", "ann", { #"{"username":"\#($0)","code":"1234","new_password":"open sesame"}"# }),
        ]
        for (path, known, body) in asked {
            let work = try [known, "nobody"].map { name in
                bench.seconds(120)
                count.withLock { $0 = [:] }
                _ = try bench.post(path, body(name + "@example.com"))
                return count.withLock { $0 }
            }
            #expect(work[0] == work[1], "\(path)")
            #expect(work[0]["pretence"] == 1, "\(path)")
        }
    }

    @Test("T16: prelogin answers one address 30 times a minute")
    func preloginLimit() throws {
        for place in 0..<30 { #expect(try bench.post("auth/prelogin", #"{"u":"u\#(place)"}"#).status == 200) }
        #expect(try bench.post("auth/prelogin", #"{"u":"u"}"#).status == 429)
        #expect(bench.outcome?.limit == .prelogins)
        bench.address = "192.0.2.9"
        #expect(try bench.post("auth/prelogin", #"{"u":"u"}"#).status == 200)
    }

    @Test(
        "T16: a wrong key, an unknown user and a user with a password get the same answer and the same wait")
    func guessing() throws {
        #expect(try bench.post("auth/signup", SealedBodies.signup("known")).status == 200)
        #expect(try bench.create("legacy").status == 200)
        var seen = [[HTTPResponse]]()
        for (place, name) in ["known", "unknown", "legacy"].enumerated() {
            bench.address = "192.0.2.\(place + 10)"
            seen.append(try (0..<7).map { _ in try bench.post("auth/login", SealedBodies.login(name, a: 7)) })
        }
        #expect(seen[0].map(\.status) == [401, 401, 401, 401, 401, 429, 429])
        #expect(
            seen[0][0].text == #"{"code":"invalid_login","message":"invalid login","#
                + #""hint":"Name, password or code is wrong; the answer does not say which."}"#)
        #expect(seen[1] == seen[0])
        #expect(seen[2] == seen[0])
        bench.seconds(1)
        #expect(try bench.post("auth/login", SealedBodies.login("known")).status == 200)
    }

    @Test(
        "each row of the published table: its members suffice, none may be missing, and nothing else comes back"
    )
    func rows() throws {
        let (a, words, other) = (
            SealedBodies.key(1), SealedBodies.key(2), SealedBodies.key(8)
        )
        let (salt, box) = (SealedBodies.salt, SealedBodies.key(3, count: 61))
        let (kdf, n) = (("kdf", "1"), "\"ann\"")
        let sealed = [("salt", "\"\(salt)\""), ("access", "\"\(box)\"")]
        let write: ([(String, String)]) -> String = { members in
            "{" + members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
        }
        // The call, whether it needs a token, its members, and the members of the answer. `kdf` and `device` are
        // optional.
        let loggedIn = ["userid", "access_token", "access", "bundle", "version"]
        var token = ""
        let table: [(call: String, byToken: Bool, members: [(String, String)], answer: [String])] = [
            (
                "signup", false,
                [("u", n), ("a", "\"\(a)\""), kdf] + sealed + [("bundle", "\"\(box)\""), ("recover", "\"\(words)\"")],
                ["userid", "access_token", "version"]
            ),
            ("prelogin", false, [("u", n)], ["scheme", "kdf", "n", "r", "p", "salt"]),
            ("login", false, [("u", n), ("a", "\"\(a)\""), ("device", n)], loggedIn),
            (
                "password", true, [("a_old", "\"\(a)\""), ("a", "\"\(other)\""), kdf] + sealed, ["access_token"]
            ),
            ("recover", false, [("u", n), ("r", "\"\(words)\""), ("a", "\"\(a)\""), kdf] + sealed, loggedIn),
            ("bundle", true, [("version", "1"), ("bundle", "\"\(box)\"")], ["version"]),
        ]
        for row in table {
            let method: String = row.call == "bundle" ? "PUT" : "POST"
            let ask: (String) throws -> HTTPResponse = { [bench] body in
                row.byToken
                    ? try bench.send(method, "auth/\(row.call)", token: token, body)
                    : try bench.post("auth/\(row.call)", body)
            }
            for (place, (name, _)) in row.members.enumerated()
            where name != "kdf" && name != "device" {
                var members = row.members
                members.remove(at: place)
                #expect(try ask(write(members)).status == 400, "\(row.call) without \(name)")
            }
            let answer = try ask(write(row.members))
            #expect(answer.status == 200, "\(row.call): \(answer.text)")
            #expect(answer.names == row.answer, "\(row.call)")
            if row.answer.contains("access_token") { token = try answer.string("access_token") }
        }
        #expect(try bench.send("GET", "auth/bundle", token: token).names == ["bundle", "version"])
    }

    @Test("a password change is one step: new salt, key and wrap, the same bundle; all earlier tokens end")
    func password() throws {
        let made = try bench.post("auth/signup", SealedBodies.signup("ann"))
        let token = try made.string("access_token")
        let salt = SealedBodies.key(8, count: 16)
        let body: (UInt8) -> String = {
            #"{"a_old":"\#(SealedBodies.key($0))","a":"\#(SealedBodies.key(11))","kdf":1,"salt":"\#(salt)","access":"\#(SealedBodies.key(12, count: 61))"}"#
        }
        #expect(try bench.send("POST", "auth/password", token: token, body(5)).status == 401)
        #expect(try bench.send("POST", "auth/password", token: "x", body(1)).status == 401)
        #expect(try bench.grant(token) != nil)
        let changed = try bench.send("POST", "auth/password", token: token, body(1))
        #expect(changed.status == 200)
        #expect(bench.outcome?.ended?.text == (try made.string("userid")))
        #expect(try bench.grant(token) == nil)
        #expect(try bench.grant(try changed.string("access_token")) != nil)
        #expect(try bench.post("auth/prelogin", #"{"u":"ann"}"#).string("salt") == salt)
        #expect(try bench.post("auth/login", SealedBodies.login("ann")).status == 401)
        let back = try bench.post("auth/login", SealedBodies.login("ann", a: 11))
        #expect(try back.string("access") == SealedBodies.key(12, count: 61))
        #expect(try back.string("bundle") == SealedBodies.key(4, count: 200))
        #expect(back.member("version")?.intValue == 1)
    }

    @Test("T16: the recovery words set a password; guesses at the password do not lock the owner out")
    func recover() throws {
        let made = try bench.post("auth/signup", SealedBodies.signup("ann"))
        for _ in 0..<6 { _ = try bench.post("auth/login", SealedBodies.login("ann", a: 7)) }
        let body: (String, UInt8) -> String = {
            #"{"u":"\#($0)","r":"\#(SealedBodies.key($1))","a":"\#(SealedBodies.key(11))","kdf":1,"salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(12, count: 61))"}"#
        }
        let wrong: HTTPResponse = try bench.post("auth/recover", body("ann", 5))
        #expect(wrong.status == 401)
        #expect(try bench.post("auth/recover", body("nobody", 2)) == wrong)
        let done = try bench.post("auth/recover", body("ANN", 2))
        #expect(done.status == 200, "\(done.text)")
        #expect(try done.string("access") == SealedBodies.key(12, count: 61))
        #expect(try done.string("bundle") == SealedBodies.key(4, count: 200))
        #expect(try bench.grant(try made.string("access_token")) == nil)
        #expect(try bench.grant(try done.string("access_token")) != nil)
        #expect(try bench.post("auth/login", SealedBodies.login("ann", a: 11)).status == 200)
    }

    @Test("the first writer of a name wins, and the first writer of each version of a bundle")
    func firstWriter() throws {
        let made = try bench.post("auth/signup", SealedBodies.signup("ann"))
        #expect(try bench.post("auth/signup", SealedBodies.signup("Ann", a: 9)).status == 409)
        #expect(try bench.create("ann").status == 409)
        let token = try made.string("access_token")
        let put: (Int, UInt8) throws -> HTTPResponse = { [bench] in
            try bench.send(
                "PUT", "auth/bundle", token: token,
                #"{"version":\#($0),"bundle":"\#(SealedBodies.key($1, count: 100))"}"#)
        }
        #expect(try put(1, 21).text == #"{"version":2}"#)
        let late = try put(1, 22)
        #expect(late.status == 409)
        #expect(late.member("version")?.intValue == 2)
        #expect(try put(0, 23).status == 409)
        #expect(try put(3, 24).status == 409)
        #expect(try put(-1, 25).status == 400)
        let kept = try bench.send("GET", "auth/bundle", token: token)
        #expect(kept.member("version")?.intValue == 2)
        #expect(try kept.string("bundle") == SealedBodies.key(21, count: 100))
    }

    @Test("an account has one kind of proof: the calls of the other kind refuse it")
    func oneScheme() throws {
        let sealed = try bench.post("auth/signup", SealedBodies.signup("ann"))
        #expect(try bench.authorize("ann", SealedBodies.key(1)).status == 401)
        #expect(
            try bench.post("update/", #"{"username":"ann","password":"\#(SealedBodies.key(1))","new_password":"mine"}"#)
                .status
                == 401)
        #expect(
            try bench.post("reset_password/", #"{"username":"ann","new_password":"mine"}"#, key: bench.adminKey).status
                == 400)
        #expect(try bench.post("auth/login", SealedBodies.login("ann")).status == 200)
        let legacy = try bench.create("bob").string("access_token")
        let change =
            #"{"a_old":"\#(SealedBodies.key(1))","a":"\#(SealedBodies.key(1))","salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(3))"}"#
        #expect(try bench.send("POST", "auth/password", token: legacy, change).status == 400)
        #expect(try bench.post("delete/", #"{"username":"ann"}"#, key: bench.adminKey).status == 200)
        #expect(try bench.grant(try sealed.string("access_token")) == nil)
        #expect(try bench.store.bundle(of: try sealed.string("userid")) == nil)
    }

    @Test("a user deletes the account with its key, and the answer lists what is kept")
    func remove() throws {
        let token = try bench.post("auth/signup", SealedBodies.signup("ann")).string("access_token")
        #expect(try bench.send("POST", "auth/delete", token: token, #"{"a":"\#(SealedBodies.key(5))"}"#).status == 401)
        let done = try bench.send(
            "POST", "auth/delete", token: token, #"{"a":"\#(SealedBodies.key(1))"}"#)
        #expect(done.status == 200)
        #expect(done.text == #"{"status":"success","kept":["backups"]}"#)
        #expect(bench.outcome?.ended != nil)
        #expect(try bench.post("auth/login", SealedBodies.login("ann")).status == 401)
    }

    @Test(
        "an invalid sign-up is refused and leaves nothing behind",
        arguments: [
            (#""kdf":1"#, #""kdf":2"#, 400), (#""kdf":1"#, #""kdf":"1""#, 400),
            (#""kdf":1"#, #""kdf":1,"n":16"#, 400), (#""kdf":1"#, #""kdf":1,"n":21"#, 400),
            (#""kdf":1"#, #""kdf":1,"r":1"#, 400), (#""kdf":1"#, #""kdf":1,"p":5"#, 400),
            (#""salt":""#, #""salt":"A"#, 400), (#""a":"AQ"#, #""a":"AR="#, 400), (#""a""#, #""b""#, 400),
            (#""bundle":""#, "\"bundle\":\"\(String(repeating: "AAAA", count: 22_000))", 413),
            (#""access":""#, "\"access\":\"\(String(repeating: "AAAA", count: 400))", 413),
            (#""u":"ann""#, #""u":"""#, 400), (#""recover""#, #""r""#, 400),
        ])
    func bad(part: String, instead: String, status: Int) throws {
        let body = SealedBodies.signup("ann").replacing(part, with: instead)
        try #require(body != SealedBodies.signup("ann"))
        let answer = try bench.post("auth/signup", body)
        #expect(answer.status == status, "\(answer.text)")
        #expect(try bench.post("auth/signup", SealedBodies.signup("ann")).status == 200)
    }
}
