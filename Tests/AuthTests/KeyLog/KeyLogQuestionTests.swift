import Testing
import ThicketAuth
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTestServer

@testable import ThicketServer

/// Questions about heads and sizes, and what a restart keeps.
@Suite("Key log: heads")
struct KeyLogQuestionTests {
    @Test("a head, and the proof between two heads, satisfy a device that has heard of a newer head")
    func consistency() throws {
        let bench = try KeyLogServer()
        defer { bench.stop() }
        let (ann, bob) = (KeyLogServer.Person("ann", 2), KeyLogServer.Person("bob", 3))
        let token = try bench.token(of: ann)
        let device = try bench.device(token)
        #expect(try device.lookUp(try ann.user).keys != nil)
        _ = try bench.token(of: bob)
        let head = try KeyLogHead(try bench.ask("GET", "keylog/head", token: token).bytes("head"))
        guard case .ask(let older, let newer) = device.reader.compare(head, now: UInt64(bench.clock.now)) else {
            Issue.record("the device does not ask")
            return
        }
        #expect((older, newer) == (4, 8))
        let answer = try bench.ask("GET", "keylog/consistency?older=\(older)&newer=\(newer)", token: token)
        let proof = try KeyLogConsistency(try answer.bytes("proof"))
        let gossip = device.reader.compare(head, way: .given(proof), now: UInt64(bench.clock.now))
        #expect(gossip == .consistent)
    }

    @Test("questions beyond the log are refused with the log's own code, also before the log has any entry")
    func beyond() throws {
        let bench = try KeyLogServer()
        defer { bench.stop() }
        let ann = KeyLogServer.Person("ann", 2)
        let token = try bench.signUp(ann, entries: nil).string("access_token")
        let empty = try bench.ask("GET", "keylog/head", token: token)
        #expect(empty.status == 200 && empty.object?["head"] == .null && empty.object?["rotations"] == .array([]))
        #expect(empty.object?["witnesses"] == .array([]))
        #expect(try empty.bytes("key").count == 32)
        for path in ["keys/x", "keys?name=ann", "keylog/consistency?older=2&newer=4"] {
            let answer = try bench.ask("GET", path, token: token)
            #expect(answer.status == 404 && answer.code == "empty_log", "\(path)")
        }
        let body = #"{"entries":\#(KeyLogServer.list(try ann.firsts(at: bench.clock.now)))}"#
        #expect(try bench.ask("POST", "keylog/entries", token: token, body: body).status == 200)
        let user = try ann.user
        for (path, code) in [
            ("keys/\(user)?known=6", "otherSize"), ("keys/\(user)?from=1", "sequence"),
            ("keys?name=ann&from_name=1", "sequence"), ("keys?name=ann&known=5", "otherSize"),
            ("keylog/consistency?older=2&newer=6", "otherSize"), ("keylog/consistency?older=0&newer=4", "otherSize"),
            ("keylog/consistency?older=4&newer=2", "otherSize"), ("keylog/consistency", "otherSize"),
            ("keys/\(user)?known=-1", "invalid_request"), ("keys/\(user)?from=9007199254740992", "invalid_request"),
            ("keys", "invalid_request"),
        ] {
            let answer = try bench.ask("GET", path, token: token)
            #expect(answer.status == 400 && answer.code == code, "\(path): \(answer.body)")
        }
        let unknown = try bench.ask("GET", "keys?name=nobody", token: token)
        #expect(unknown.object?["user"] == .null && unknown.object?["lookup"] == .null)
        let device = try bench.device(token)
        let handle = try KeyLogHandle.name("nobody", app: "notes")
        #expect(
            device.receive(try KeyLogLookup(try unknown.bytes("name_lookup")), of: handle)
                == .absent)
    }

    @Test("a restart gives the same head, and devices go on with what they have seen")
    func restart() throws {
        let bench = try KeyLogServer()
        let ann = KeyLogServer.Person("ann", 2)
        let token = try bench.token(of: ann)
        let device = try bench.device(token)
        #expect(try device.lookUp(try ann.user).keys != nil)
        let head = try bench.ask("GET", "keylog/head", token: token).string("head")
        bench.stop()
        let again = try KeyLogServer(after: bench)
        defer { again.stop() }
        let user = try UserID(try ann.user)
        #expect(again.logs.newestKeys(of: user, in: try AppID("notes")) != nil, "before any use")
        let keys = try ann.firsts(at: 0)[0].keys
        again.clock.pass(seconds: 30)
        device.bench = again
        #expect(try again.ask("GET", "keylog/head", token: token).string("head") == head)
        #expect(try again.logKey(token) == device.reader.logKey)
        _ = try again.token(of: KeyLogServer.Person("bob", 3))
        #expect(try device.lookUp(try ann.user) == .verified(keys, .same))
        #expect(device.reader.head?.size == 8)
    }

    @Test("a log whose stored entries contradict the stored head is not served")
    func damaged() throws {
        let bench = try KeyLogServer()
        let ann = KeyLogServer.Person("ann", 2)
        let token = try bench.token(of: ann)
        _ = try bench.token(of: KeyLogServer.Person("bob", 3))
        #expect(try bench.ask("GET", "keylog/head", token: token).status == 200)
        bench.stop()
        let database = try SQLiteStore.connect(bench.path, .readWrite, .init())
        try database.execute("DELETE FROM key_entry WHERE place = 3")
        let again = try KeyLogServer(after: bench)
        defer { again.stop() }
        for path in ["keylog/head", "keys/\(try ann.user)", "keylog/consistency?older=2&newer=4"] {
            #expect(try again.ask("GET", path, token: token).status == 503, "\(path)")
        }
        // Accounts go on: their requests do not need the log.
        #expect(try again.ask("GET", "auth/bundle", token: token).status == 200)
    }

    @Test("a preflight lists the methods of each path")
    func preflight() throws {
        let bench = try KeyLogServer()
        defer { bench.stop() }
        for (path, methods) in [("keylog/entries", "POST, OPTIONS"), ("keys/x", "GET, OPTIONS")] {
            let answer = try HTTPPeer.ask(bench.server.port, "OPTIONS", "/1/notes/\(path)")
            #expect(answer.status < 300 && answer.fields["allow"] == methods, "\(answer)")
        }
        let token = try bench.token(of: KeyLogServer.Person("ann", 2))
        #expect(try bench.ask("GET", "keylog/head", token: token).fields["cache-control"] == "no-store")
    }
}
