import Testing
import ThicketAuth
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol

@testable import ThicketServer

/// Entries that a client appends with its token, at a real server.
@Suite("Key log: appending")
struct KeyLogAppendTests {
    private let bench: KeyLogServer

    init() throws { bench = try KeyLogServer() }

    private func append(_ entries: [KeyLogEntry], _ token: String, app: String = "notes") throws -> KeyLogServer.Answer
    {
        try bench.ask(
            "POST", "keylog/entries", token: token, app: app, body: #"{"entries":\#(KeyLogServer.list(entries))}"#)
    }

    @Test("a rotation signed by the old key is appended for id and name, and devices that know the old key follow it")
    func rotation() throws {
        defer { bench.stop() }
        var ann = KeyLogServer.Person("ann", 2)
        let token = try bench.token(of: ann)
        let device = try bench.device(token)
        let firsts = try ann.firsts(at: bench.clock.now)
        #expect(try device.lookUp(try ann.user).keys == firsts[0].keys)
        let next = try ann.rotate(firsts, at: bench.clock.now)
        #expect(try append(next, token).appended == 2)
        #expect(
            try device.lookUp(try ann.user)
                == .verified(next[0].keys, .rotated(from: firsts[0].keys)))
        #expect(bench.logs.newestKeys(of: try UserID(try ann.user), in: try AppID("notes")) == next[0].keys)
    }

    @Test("A14: a change of keys without the old key's signature is refused, and so are those of other users")
    func unsigned() throws {
        defer { bench.stop() }
        let (ann, eve) = (KeyLogServer.Person("ann", 2), KeyLogServer.Person("eve", 3))
        let (token, now) = (try bench.token(of: ann), bench.clock.now)
        let other = try bench.token(of: eve)
        let firsts = try ann.firsts(at: now)
        var (rotating, resetting) = (ann, ann)
        let rotation = try rotating.rotate(firsts, at: now)
        let forged = try firsts.map {
            try $0.rotated(
                to: try rotating.identity, encryption: try rotating.encryption, signedBy: try eve.identity,
                validFrom: UInt64(now))
        }
        let reset = try resetting.reset(firsts, at: now)
        let refused: [(entries: [KeyLogEntry], token: String, reason: String)] = [
            (forged, token, "signature"),
            ([reset[0]], token, "resetNotAuthorised"),
            // The handle still has keys of this account.
            ([reset[1]], token, "sameKeys"),
            (reset, token, "resetNotAuthorised"),
            (rotation, other, "otherUser"),
            ([rotation[1]], token, "sameKeys"),
            ([try rotating.first(of: try ann.user, at: now)], token, "sequence"),
            ([rotation[0], firsts[0]], token, "sequence"),
        ]
        for (entries, token, reason) in refused {
            let answer = try append(entries, token)
            #expect(answer.status == 400 && answer.code == "bad_entry" && answer.reason == reason, "\(answer.body)")
        }
        let device = try bench.device(token)
        #expect(try device.lookUp(try ann.user).keys == firsts[0].keys)
        #expect(device.reader.head?.size == 8, "nothing was appended")
    }

    @Test("a name that was another account's gets the new holder's keys by a reset, which devices have to confirm")
    func handleOfAnother() throws {
        defer { bench.stop() }
        let (old, holder) = (KeyLogServer.Person("ann", 2), KeyLogServer.Person("ann", 3))
        let now = bench.clock.now
        let oldToken = try bench.token(of: old)
        let device = try bench.device(oldToken)
        #expect(try device.lookUp(try old.handle).keys != nil)
        let body = #"{"a":"\#(SealedBodies.key(1))"}"#
        #expect(try bench.ask("POST", "auth/delete", token: oldToken, body: body).status == 200)
        // The log has a chain for the name: two first entries are not possible.
        let refused = try bench.signUp(holder, entries: try holder.firsts(at: now))
        #expect(refused.code == "bad_entry" && refused.reason == "sequence")
        #expect(try refused.bytes("newest") == old.firsts(at: now)[1].bytes)
        let user = try holder.first(of: try holder.user, at: now)
        let token = try bench.signUp(holder, entries: [user]).string("access_token")
        device.token = token
        let last = try old.firsts(at: now)[1]
        let reset = try last.reset(
            to: try holder.identity, encryption: try holder.encryption, validFrom: UInt64(now))
        #expect(try append([reset], token).appended == 1)
        let verdict = try device.lookUp(try holder.handle)
        #expect(verdict == .needsConfirmation(old: last.keys, new: reset.keys))
        // The account that ended keeps its entries: what devices have seen of it stays provable.
        #expect(try device.lookUp(try old.user).keys != nil)
    }

    @Test("a name that was another account's is had with the sign-up, by a reset that follows the last entry")
    func signUpWithNameOfAnother() throws {
        defer { bench.stop() }
        let (old, holder) = (KeyLogServer.Person("ann", 2), KeyLogServer.Person("ann", 3))
        let now = bench.clock.now
        let oldToken = try bench.token(of: old)
        let last = try old.firsts(at: now)
        func reset(_ last: KeyLogEntry) throws -> KeyLogEntry {
            try last.reset(to: holder.identity, encryption: holder.encryption, validFrom: UInt64(now))
        }
        let first = try holder.first(of: try holder.user, at: now)
        // While the account exists its name is taken, whatever the entries are.
        for entries in [[first, try reset(last[1])], try holder.firsts(at: now)] {
            let taken = try bench.signUp(holder, entries: entries)
            #expect(taken.status == 409 && taken.code == "name_taken", "\(taken.body)")
        }
        let body = #"{"a":"\#(SealedBodies.key(1))"}"#
        #expect(try bench.ask("POST", "auth/delete", token: oldToken, body: body).status == 200)
        // A reset of an id, and a rotation that the old keys have not signed, make no account.
        let identity = try holder.identity
        let rotation = try last[1].rotated(
            to: identity, encryption: holder.encryption, signedBy: identity, validFrom: UInt64(now))
        for entries in [[first, rotation], [try reset(last[0])], [first, try reset(last[0])]] {
            #expect(try bench.signUp(holder, entries: entries).code == "bad_entry")
        }
        let made = try bench.signUp(holder, entries: [first, try reset(last[1])])
        #expect(made.status == 200, "\(made.body)")
        let device = try bench.device(try made.string("access_token"))
        #expect(try device.lookUp(try holder.handle).keys == reset(last[1]).keys)
        #expect(try device.lookUp(try holder.user).keys == first.keys)
    }

    @Test("a partner's user appends with its login token, and begins again by a reset with its first bundle only")
    func partnersUser() throws {
        defer { bench.stop() }
        var user = KeyLogServer.Person("e-1", 9)
        let now = bench.clock.now
        let token = TokenMaker.login(
            entity: "e-1", partnerEntity: "p1", device: "d", expiry: "\(now / 1_000 + 600)", key: bench.authKey)
        let first = try user.first(of: "e-1", at: now, app: "app")
        let bundle = #""bundle":"\#(SealedBodies.key(4, count: 99))""#
        let bad = try bench.ask(
            "PUT", "auth/bundle", token: token, app: "app",
            body:
                #"{"version":0,\#(bundle),"entries":\#(KeyLogServer.list([try user.first(of: "e-2", at: now, app: "app")]))}"#
        )
        #expect(bad.status == 400 && bad.code == "bad_entry" && bad.reason == "otherUser", "\(bad.body)")
        let made = try bench.ask(
            "PUT", "auth/bundle", token: token, app: "app",
            body: #"{"version":0,\#(bundle),"entries":\#(KeyLogServer.list([first]))}"#)
        #expect(made.status == 200, "\(made.body)")
        let device = try bench.device(token, app: "app")
        #expect(try device.lookUp("e-1").keys == first.keys)
        let next = try user.rotate([first], at: now)
        #expect(try append(next, token, app: "app").appended == 1)
        let reset = try user.reset(next, at: now)
        #expect(try append(reset, token, app: "app").reason == "resetNotAuthorised")
        let second = try bench.ask(
            "PUT", "auth/bundle", token: token, app: "app",
            body: #"{"version":1,\#(bundle),"entries":\#(KeyLogServer.list(reset))}"#)
        #expect(second.status == 400)
        // The user's data is erased.
        try SQLiteStore.connect(bench.path, .readWrite, .init()).execute("DELETE FROM entity_bundle")
        let again = try bench.ask(
            "PUT", "auth/bundle", token: token, app: "app",
            body: #"{"version":0,\#(bundle),"entries":\#(KeyLogServer.list(reset))}"#)
        #expect(again.status == 200, "\(again.body)")
        #expect(
            try device.lookUp("e-1")
                == .needsConfirmation(old: first.keys, new: reset[0].keys))
    }

    @Test("requests without a good token, with unusable bodies or too many entries are refused")
    func badRequests() throws {
        defer { bench.stop() }
        let ann = KeyLogServer.Person("ann", 2)
        let token = try bench.token(of: ann)
        for token in [nil, "", "0123", "a.b.c"] {
            #expect(try bench.ask("GET", "keys/x", token: token).status == 401)
            #expect(try bench.ask("POST", "keylog/entries", token: token, body: "{}").status == 401)
        }
        #expect(try bench.ask("GET", "keylog/head", token: token, app: "app").status == 401)
        let first = try ann.first(of: try ann.user, at: bench.clock.now)
        let tooMany = KeyLogServer.list(Array(repeating: first, count: SentEntries.countMax + 1))
        for body in [
            "", "{}", #"{"entries":[]}"#, #"{"entries":[1]}"#, #"{"entries":["%"]}"#, #"{"entries":\#(tooMany)}"#,
        ] {
            #expect(try bench.ask("POST", "keylog/entries", token: token, body: body).status == 400, "\(body)")
        }
        #expect(
            try bench.ask("POST", "keylog/entries", token: token, body: #"{"entries":["AAAA"]}"#).reason == "malformed")
        #expect(try bench.ask("PUT", "keylog/entries", token: token).status == 405)
        #expect(try bench.ask("POST", "keylog/head", token: token).status == 405)
        #expect(try bench.ask("GET", "keylog/other", token: token).status == 404)
    }
}
