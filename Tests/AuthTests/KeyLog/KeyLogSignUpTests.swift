import Synchronization
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTestServer

@testable import ThicketServer

/// Entries of the key log that come with new accounts, at a real server.
@Suite("Key log: sign-up")
struct KeyLogSignUpTests {
    private let bench: KeyLogServer

    init() throws { bench = try KeyLogServer() }

    @Test("keys sent at sign-up are found by id and by name, and a device verifies both")
    func signUp() throws {
        defer { bench.stop() }
        let ann = KeyLogServer.Person("Ann@Example.com", 2)
        let token = try bench.token(of: ann)
        let device = try bench.device(token)
        let firsts = try ann.firsts(at: bench.clock.now)
        #expect(try device.lookUp(try ann.user) == .verified(firsts[0].keys, .first))
        let answer = try bench.ask(
            "GET", "keys?name=ann@EXAMPLE.com&known=\(device.reader.head?.size ?? 0)", token: token)
        #expect(try answer.string("user") == (try ann.user))
        let byName = try KeyLogLookup(try answer.bytes("name_lookup"))
        #expect(
            device.receive(byName, of: try ann.handle)
                == .verified(firsts[1].keys, .first))
        let byID = try KeyLogLookup(try answer.bytes("lookup"))
        #expect(byID.head == byName.head && byID.chain.map(\.hash) == [firsts[0].hash])
        // The directory for other parts of the server has them at once.
        #expect(bench.logs.newestKeys(of: try UserID(try ann.user), in: try AppID("notes")) == firsts[0].keys)
        #expect(bench.logs.newestKeys(of: try UserID("nobody"), in: try AppID("notes")) == nil)
        #expect(bench.logs.newestKeys(of: try UserID(try ann.user), in: try AppID("app")) == nil)
    }

    @Test("an account made without entries has none, adds them later with its token, and a repetition adds nothing")
    func later() throws {
        defer { bench.stop() }
        let ann = KeyLogServer.Person("ann", 2)
        let token = try bench.signUp(ann, entries: nil).string("access_token")
        #expect(try bench.ask("GET", "keys/\(try ann.user)", token: token).code == "empty_log")
        let body = #"{"entries":\#(KeyLogServer.list(try ann.firsts(at: bench.clock.now)))}"#
        #expect(try bench.ask("POST", "keylog/entries", token: token, body: body).appended == 2)
        let again = try bench.ask("POST", "keylog/entries", token: token, body: body)
        #expect(again.status == 200 && again.appended == 0)
        let device = try bench.device(token)
        #expect(try device.lookUp(try ann.user).keys != nil)
        #expect(try device.lookUp("0123456789abcdef") == .absent)
    }

    @Test("A14: entries that are not exactly those of the account being made are refused, and no account is made")
    func tampered() throws {
        defer { bench.stop() }
        let (ann, eve) = (KeyLogServer.Person("ann", 2), KeyLogServer.Person("eve", 3))
        let now = bench.clock.now
        let firsts = try ann.firsts(at: now)
        var rotating = ann
        let rotation = try rotating.rotate([firsts[0]], at: now)[0]
        var resetting = ann
        let reset = try resetting.reset([firsts[0]], at: now)[0]
        var flipped = firsts[0].bytes
        flipped[flipped.count - 3] ^= 1
        let refused: [(entries: [KeyLogEntry], reason: String)] = [
            ([try eve.first(of: try eve.user, at: now)], "otherUser"),
            ([firsts[1]], "otherUser"),
            ([firsts[0], try ann.first(of: try eve.handle, at: now)], "otherUser"),
            ([firsts[0], try eve.first(of: try ann.handle, at: now)], "sameKeys"),
            ([try ann.first(of: try ann.user, at: now, app: "app")], "otherApp"),
            ([try ann.first(of: try ann.user, at: now + 3_600_000)], "time"),
            ([rotation], "sequence"), ([reset], "sequence"),
            ([try KeyLogEntry(flipped)], "signature"),
        ]
        for (entries, reason) in refused {
            let answer = try bench.signUp(ann, entries: entries)
            #expect(answer.status == 400 && answer.code == "bad_entry" && answer.reason == reason, "\(answer.body)")
        }
        let rows = KeyLogRows(database: try SQLiteStore.connect(bench.path, .readOnly, .init()))
        #expect(try rows.count(of: "notes") == 0)
        // The name is still free: nothing was made.
        #expect(try bench.signUp(ann, entries: firsts).status == 200)
        #expect(try rows.count(of: "notes") == 2)
    }

    @Test("sign-ups at once are all in the log, and every head is consistent with those before it")
    func concurrent() async throws {
        defer { bench.stop() }
        let watcher = try bench.token(of: KeyLogServer.Person("watcher", 200))
        let people = (1...8).map { KeyLogServer.Person("user-\($0)", UInt8($0)) }
        let (port, apiKey, now) = (bench.server.port, bench.apiKey, bench.clock.now)
        let bodies = try people.map {
            SealedBodies.signup(
                $0.name, words: $0.words, more: #","entries":\#(KeyLogServer.list(try $0.firsts(at: now)))"#)
        }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for body in bodies {
                group.addTask {
                    try HTTPPeer.ask(
                        port, "POST", "/1/notes/auth/signup", ["x-simperium-api-key": apiKey], body: body
                    ).status
                }
            }
            let device = try bench.device(watcher)
            for try await status in group {
                #expect(status == 200)
                // Each look-up proves that the log only grew since the one before.
                for person in people {
                    let verdict = try device.lookUp(try person.user)
                    #expect(!verdict.isWrong, "\(verdict)")
                }
            }
            for person in people { #expect(try device.lookUp(try person.user).keys != nil) }
            #expect(device.reader.head?.size == 2 * 2 * 9)
        }
    }

    @Test("a commit that fails leaves log and accounts as they were, in memory and on disk")
    func failedCommit() throws {
        defer { bench.stop() }
        let ann = KeyLogServer.Person("ann", 2)
        let token = try bench.token(of: ann)
        let database = try SQLiteStore.connect(bench.path, .readWrite, .init())
        // Fails after the entries of the same transaction were written.
        try database.execute(
            """
            CREATE TRIGGER broken AFTER INSERT ON key_entry WHEN NEW.number = 0 AND NEW.place % 2 = 1
            BEGIN SELECT RAISE(FAIL, 'the disk is full'); END
            """)
        let bob = KeyLogServer.Person("bob", 3)
        let failed = try bench.signUp(bob, entries: try bob.firsts(at: bench.clock.now))
        #expect(failed.status == 503)
        let device = try bench.device(token)
        #expect(try device.lookUp(try bob.user) == .absent)
        #expect(device.reader.head?.size == 4)
        #expect(bench.logs.newestKeys(of: try UserID(try bob.user), in: try AppID("notes")) == nil)
        try database.execute("DROP TRIGGER broken")
        #expect(try bench.signUp(bob, entries: try bob.firsts(at: bench.clock.now)).status == 200)
        #expect(try device.lookUp(try bob.user).keys != nil)
        #expect(device.reader.head?.size == 8)
    }
}

extension KeyLogVerdict {
    /// The keys that a device would use.
    var keys: PublicKeys? {
        if case .verified(let keys, _) = self { return keys }
        return nil
    }

    /// Whether a device would refuse the answer, or raise an alarm.
    var isWrong: Bool {
        switch self {
        case .refused, .alarm: true
        default: false
        }
    }
}
