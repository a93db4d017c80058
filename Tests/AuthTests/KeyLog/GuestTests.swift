import Testing
import ThicketAuth
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol
import ThicketSQLite
import ThicketTestServer

@testable import ThicketServer

/// The guests of links at a real server whose clock the test steps: how they are made, what they may do, and their end.
@Suite("Guests of links")
struct GuestTests {
    private let bench: KeyLogServer
    private let owner: String
    private let root = String(repeating: "a", count: 26)

    init() throws {
        bench = try KeyLogServer()
        owner = try bench.token(of: KeyLogServer.Person("ann", 2))
    }

    private func name(_ words: UInt8) throws -> String {
        GuestName.of(try KeyLogServer.Person("", words).user)
    }

    /// The body of a request for a guest.
    private func body(_ words: UInt8, kind: String = "deposit", more: String = "", isInLog: Bool = true) throws
        -> String
    {
        let name = try name(words)
        let person = KeyLogServer.Person(name, words)
        let now = bench.clock.now
        let entries = [try person.first(of: name, at: now), try person.first(of: try person.handle, at: now)]
        let log = isInLog ? #","entries":\#(KeyLogServer.list(entries))"# : ""
        let bounds = #","kind":"\#(kind)","root":"\#(root)"\#(more)"#
        return SealedBodies.signup(name, a: words, words: words, more: log + bounds)
    }

    private func make(_ words: UInt8, kind: String = "deposit", more: String = "") throws -> KeyLogServer.Answer {
        try bench.ask("POST", "auth/guests", token: owner, body: try body(words, kind: kind, more: more))
    }

    private func logIn(_ name: String, _ a: UInt8) throws -> KeyLogServer.Answer {
        let answer = try HTTPPeer.ask(
            bench.server.port, "POST", "/1/notes/auth/login", ["x-simperium-api-key": bench.apiKey],
            body: SealedBodies.login(name, a: a))
        return KeyLogServer.Answer(status: answer.status, fields: answer.fields, body: answer.body)
    }

    private func guests() throws -> [JSONObject] {
        let list = try bench.ask("GET", "auth/guests", token: owner).object?["guests"]
        guard case .array(let items)? = list else { return [] }
        return items.compactMap(\.objectValue)
    }

    @Test("a guest has the name that follows from its keys, is in the key log, is listed with its bounds, and logs in")
    func made() throws {
        defer { bench.stop() }
        let (made, name) = (try make(5, more: #","days":3,"deposits":2,"bytes":1000"#), try name(5))
        #expect(made.status == 200, "\(made.body)")
        #expect(made.object?["name"]?.stringValue == name)
        let end = bench.clock.now / 1_000 + 3 * 86_400
        #expect(made.object?["expires"]?.intValue == end)
        #expect(try make(6, kind: "read").object?["deposits_left"]?.intValue == 0)
        let listed = try guests()
        #expect(Set(listed.compactMap { $0["kind"]?.stringValue }) == ["deposit", "read"])
        let first = try #require(listed.first { $0["name"]?.stringValue == name })
        #expect(first["deposits_left"]?.intValue == 2 && first["bytes_left"]?.intValue == 1_000)
        #expect(first["root"]?.stringValue == root)
        let login = try logIn(name, 5)
        #expect(login.status == 200 && login.object?["userid"]?.stringValue == name, "\(login.body)")
        let device = try bench.device(owner)
        #expect(try device.lookUp(name).keys?.identity == KeyLogServer.Person(name, 5).identity.verifyingKey)
    }

    @Test("a guest without entries in the key log, or beyond the bounds of a server, is refused and not made")
    func refused() throws {
        defer { bench.stop() }
        for more in [
            #","days":0"#, #","days":91"#, #","deposits":0"#, #","deposits":10001"#, #","bytes":0"#, #","days":"7""#,
        ] {
            let answer = try make(5, more: more)
            #expect(answer.status == 400 && answer.code == "invalid_request", "\(more): \(answer.body)")
        }
        #expect(try make(5, kind: "write").status == 400)
        let unlogged = try bench.ask("POST", "auth/guests", token: owner, body: try body(5, isInLog: false))
        #expect(unlogged.status == 400)
        #expect(try bench.ask("POST", "auth/guests", token: nil, body: try body(5)).status == 401)
        #expect(try guests().isEmpty)
        #expect(try make(5).status == 200)
        let again = try make(5)
        #expect(again.status == 409 && again.code == "name_taken")
    }

    @Test(
        "A9: a guest makes no guests, tokens, buckets, entries and passwords, and reads nothing but its bundle and keys"
    )
    func rights() throws {
        defer { bench.stop() }
        #expect(try make(5).status == 200)
        let name = try name(5)
        let token = try logIn(name, 5).string("access_token")
        let words = SealedBodies.key(5)
        let asks: [(method: String, path: String, body: String)] = [
            ("POST", "auth/guests", try body(7)), ("GET", "auth/guests", ""), ("DELETE", "auth/guests/\(name)", ""),
            ("GET", "auth/tokens", ""), ("POST", "auth/tokens", #"{"r":"\#(words)"}"#), ("GET", "auth/notes", ""),
            ("PUT", "auth/bundle", #"{"version":1,"bundle":"AAAA"}"#),
            ("POST", "auth/password", #"{"a_old":"\#(words)"}"#), ("POST", "auth/delete", #"{"a":"\#(words)"}"#),
            ("POST", "auth/access", #"{"a":"\#(words)"}"#),
        ]
        for ask in asks {
            let answer = try bench.ask(ask.method, ask.path, token: token, body: ask.body)
            #expect(answer.status == 403 && answer.code == "guest", "\(ask): \(answer.status) \(answer.body)")
        }
        let person = KeyLogServer.Person(name, 5)
        var rotating = person
        let now = bench.clock.now
        let next = try rotating.rotate([try person.first(of: name, at: now)], at: now)
        let appended = try bench.ask(
            "POST", "keylog/entries", token: token, body: #"{"entries":\#(KeyLogServer.list(next))}"#)
        #expect(appended.status == 403 && appended.code == "guest")
        let recovered = try HTTPPeer.ask(
            bench.server.port, "POST", "/1/notes/auth/recover", ["x-simperium-api-key": bench.apiKey],
            body: SealedBodies.signup(name, a: 8, words: 5, more: #","r":"\#(words)","device":"d""#))
        #expect(recovered.status == 403, "\(recovered.body)")
        for path in ["user", "buckets", "notes/index", "tree/\(name)/inbox", "tree/\(name)/usage", "notes/i/k"] {
            #expect(try bench.ask("GET", path, token: token).status == 401, "\(path)")
        }
        #expect(try bench.ask("POST", "notes/i/k", token: token, body: #"{"a":1}"#).status == 401)
        #expect(try bench.ask("GET", "auth/bundle", token: token).status == 200)
        #expect(try bench.ask("GET", "keys/\(name)", token: token).status == 200)
        #expect(try logIn(name, 5).status == 200, "the password is the same")
        #expect(try bench.ask("POST", "auth/logout", token: token).status == 204)
        #expect(try bench.ask("GET", "auth/bundle", token: token).status == 401)
    }

    @Test("names like those of guests are refused to all other accounts, in any case of the letters")
    func reserved() throws {
        defer { bench.stop() }
        for name in ["guest-ann", "GUEST-ann", try self.name(9)] {
            let answer = try bench.signUp(KeyLogServer.Person(name, 9), entries: nil)
            #expect(answer.status == 400 && answer.code == "invalid_request", "\(answer.body)")
        }
        #expect(try bench.signUp(KeyLogServer.Person("guestann", 9), entries: nil).status == 200)
    }

    @Test("a guest that has ended neither logs in nor uses an earlier login, and a sweep removes its account")
    func ended() throws {
        #expect(try make(5, more: #","days":1"#).status == 200)
        #expect(try make(6).status == 200)
        let (name, other) = (try name(5), try self.name(6))
        let token = try logIn(name, 5).string("access_token")
        bench.clock.pass(seconds: 86_399)
        #expect(try bench.ask("GET", "auth/bundle", token: token).status == 200)
        bench.clock.pass(seconds: 1)
        #expect(try bench.ask("GET", "auth/bundle", token: token).status == 401)
        let late = try logIn(name, 5)
        #expect(late.status == 403 && late.code == "link_ended", "\(late.body)")
        #expect(try guests().count == 2)
        bench.stop()
        let store = try SQLiteStore(path: bench.path)
        let writer = try store.makeWriter()
        let maintenance = try store.makeMaintenance(RetentionSettings())
        for _ in 0..<100 {
            guard let work = try maintenance.nextBatch(now: bench.clock.now) else { break }
            _ = try writer.apply(work)
        }
        let accounts = try AccountStore(path: bench.path)
        #expect(try accounts.account(name, in: "notes") == nil && accounts.guest(name, in: "notes") == nil)
        #expect(try accounts.bundle(of: name) == nil)
        #expect(try accounts.guest(other, in: "notes") != nil, "this one goes on")
        #expect(try accounts.isFree(name, in: "notes"), "nothing is left to be erased")
    }

    @Test("a guest is removed by its owner alone, and with its owner; its login ends")
    func removed() throws {
        defer { bench.stop() }
        #expect(try make(5).status == 200)
        #expect(try make(6).status == 200)
        let (first, second) = (try name(5), try name(6))
        let tokens = [try logIn(first, 5).string("access_token"), try logIn(second, 6).string("access_token")]
        let stranger = try bench.token(of: KeyLogServer.Person("bob", 3))
        for name in [first, "guest-x", "ann"] {
            let answer = try bench.ask("DELETE", "auth/guests/\(name)", token: stranger)
            #expect(answer.status == 404 && answer.code == "no_such_user", "\(name): \(answer.body)")
        }
        #expect(try bench.ask("DELETE", "auth/guests/\(first)", token: owner).status == 204)
        #expect(try bench.ask("GET", "auth/bundle", token: tokens[0]).status == 401)
        #expect(try logIn(first, 5).status == 401)
        #expect(try bench.ask("DELETE", "auth/guests/\(first)", token: owner).status == 404)
        #expect(try guests().count == 1)
        let a = SealedBodies.key(1)
        #expect(try bench.ask("POST", "auth/delete", token: owner, body: #"{"a":"\#(a)"}"#).status == 200)
        #expect(try bench.ask("GET", "auth/bundle", token: tokens[1]).status == 401)
        #expect(try logIn(second, 6).status == 401)
    }

    @Test("an account has as many guests as the setting says; the refusal has a code and a metric")
    func bound() throws {
        defer { bench.stop() }
        let service = try AccountBench()
        service.service.rules.guestsPerAccountMax = 1
        #expect(AccountService.Rules().guestsPerAccountMax == 100)
        let token = try service.post("auth/signup", SealedBodies.signup("ann")).string("access_token")
        let now = Int64(service.now * 1_000)
        func ask(_ words: UInt8) throws -> HTTPResponse {
            let name = try name(words)
            let person = KeyLogServer.Person(name, words)
            let entries = [try person.first(of: name, at: now), try person.first(of: try person.handle, at: now)]
            return try service.send(
                "POST", "auth/guests", token: token,
                SealedBodies.signup(
                    name, words: words,
                    more: #","kind":"read","root":"\#(root)","entries":\#(KeyLogServer.list(entries))"#))
        }
        #expect(try ask(5).status == 200)
        let refused = try ask(6)
        #expect(refused.status == 409 && refused.member("code")?.stringValue == "too_many_guests")
        #expect(service.outcome?.limit == .guests && Metrics.LimitName(.guests).rawValue == "guests")
        var config = ServerConfig()
        config.guestsPerAccountMax = 7
        #expect(AccountService.Rules(config).guestsPerAccountMax == 7)
    }

    @Test("a store from before guests is migrated: its accounts go on, and make guests")
    func migrated() throws {
        let older = try KeyLogServer()
        let token = try older.token(of: KeyLogServer.Person("ann", 2))
        older.stop()
        try KeyLogUpkeepTests.makeOlder(older.path, before: "CREATE TABLE guest ")
        let again = try KeyLogServer(after: older)
        defer {
            again.stop()
            bench.stop()
        }
        #expect(try again.ask("GET", "auth/guests", token: token).object?["guests"] == .array([]))
        #expect(try again.ask("POST", "auth/guests", token: token, body: try body(5)).status == 200)
        #expect(try again.ask("GET", "auth/bundle", token: token).status == 200)
    }
}
