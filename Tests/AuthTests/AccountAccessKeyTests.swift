import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// A change of the access key, as the server sees it (decision 0043).
@Suite("Accounts whose access key changes")
struct AccountAccessKeyTests {
    private let bench: AccountBench
    private let token: String
    private let user: String

    init() throws {
        bench = try AccountBench()
        let made = try bench.post("auth/signup", SealedBodies.signup("ann"))
        (token, user) = (try made.string("access_token"), try made.string("userid"))
    }

    /// Changes from the recovery words of byte `r` to those of byte `recover`; the password's key is of byte 1.
    private func change(
        a: UInt8 = 1, r: UInt8 = 2, version: Int = 1, recover: UInt8 = 22, token: String? = nil, without: String = ""
    ) throws -> HTTPResponse {
        let members = [
            ("a", SealedBodies.key(a)), ("r", SealedBodies.key(r)), ("access", SealedBodies.key(23, count: 61)),
            ("bundle", SealedBodies.key(24, count: 200)), ("recover", SealedBodies.key(recover)),
        ]
        var parts = members.filter { $0.0 != without }.map { "\"\($0.0)\":\"\($0.1)\"" }
        if without != "version" { parts.append("\"version\":\(version)") }
        return try bench.send(
            "POST", "auth/access", token: token ?? self.token, "{\(parts.joined(separator: ","))}")
    }

    private func recover(_ r: UInt8) throws -> HTTPResponse {
        try bench.post(
            "auth/recover",
            #"{"u":"ann","r":"\#(SealedBodies.key(r))","a":"\#(SealedBodies.key(11))","kdf":1,"salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(12, count: 61))"}"#
        )
    }

    private func password(_ old: UInt8 = 1, r: UInt8?) throws -> HTTPResponse {
        let proof = r.map { #""r":"\#(SealedBodies.key($0))","# } ?? ""
        return try bench.send(
            "POST", "auth/password", token: token,
            #"{\#(proof)"a_old":"\#(SealedBodies.key(old))","a":"\#(SealedBodies.key(31))","salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(32, count: 61))"}"#
        )
    }

    /// Expects the wrap, bundle and version of the sign-up, which only a change of the access key replaces.
    private func expectUnchanged() throws {
        let back = try bench.post("auth/login", SealedBodies.login("ann"))
        #expect(try back.string("access") == SealedBodies.key(3, count: 61))
        #expect(try back.string("bundle") == SealedBodies.key(4, count: 200))
        #expect(back.member("version")?.intValue == 1)
    }

    @Test(
        "one step changes bundle, wrap and proof and voids the old words; password, id and tokens stay")
    func changed() throws {
        let other = try bench.post("auth/login", SealedBodies.login("ann")).string("access_token")
        let done = try change()
        #expect(done.status == 200 && done.text == #"{"version":2}"#, "\(done.text)")
        #expect(bench.outcome?.ended == nil)
        #expect(try bench.grant(token) != nil && bench.grant(other) != nil)
        let back = try bench.post("auth/login", SealedBodies.login("ann"))
        #expect(try back.string("access") == SealedBodies.key(23, count: 61))
        #expect(try back.string("bundle") == SealedBodies.key(24, count: 200))
        #expect(try back.string("userid") == user && back.member("version")?.intValue == 2)
        #expect(try recover(2).status == 401)
        let added = try bench.send(
            "POST", "auth/tokens", token: token, #"{"r":"\#(SealedBodies.key(2))"}"#)
        #expect(added.status == 401, "nor do they make a login")
        #expect(try recover(22).status == 200)
    }

    @Test("a change needs a token, the password, the proof of the current key and the newest version, each of them")
    func wanted() throws {
        for name in ["a", "r", "version", "access", "bundle", "recover"] {
            #expect(try change(without: name).status == 400, "without \(name)")
        }
        #expect(try change(token: "x").status == 401)
        #expect(try change(a: 7).status == 401)
        let stale = try change(r: 9)
        #expect(stale.status == 409)
        #expect(try stale.string("code") == "access_key_changed")
        let late = try change(version: 2)
        #expect(late.status == 409 && late.member("version")?.intValue == 1)
        #expect(try late.string("code") == "version_mismatch")
        #expect(try change(version: 0).status == 400)
        #expect(try change(recover: 2).status == 400, "the same key is not a change")
        try expectUnchanged()
    }

    @Test("of two concurrent changes one wins; the other gets 409 and changes nothing")
    func race() throws {
        #expect(try change(recover: 22).status == 200)
        let second = try change(recover: 29)
        #expect(try second.status == 409 && second.string("code") == "access_key_changed")
        #expect(try recover(29).status == 401)
        #expect(try recover(22).status == 200)
    }

    @Test(
        "after a change a new password needs the new key's proof, so a stale device seals no old key under it")
    func stalePassword() throws {
        #expect(try password(r: 9).status == 409, "a wrong proof is refused before, too")
        try expectUnchanged()
        #expect(try change().status == 200)
        for r: UInt8? in [nil, 2] {
            let refused: HTTPResponse = try password(r: r)
            #expect(try refused.status == 409 && refused.string("code") == "access_key_changed")
        }
        let back = try bench.post("auth/login", SealedBodies.login("ann"))
        #expect(try back.string("access") == SealedBodies.key(23, count: 61))
        #expect(try password(r: 22).status == 200)
        #expect(try bench.post("auth/login", SealedBodies.login("ann", a: 31)).status == 200)
    }

    @Test("T16: guesses at the password are counted as those at a login")
    func guessing() throws {
        let tries = try (0..<7).map { try change(a: UInt8(40 + $0)).status }
        #expect(tries == [401, 401, 401, 401, 401, 429, 429])
        #expect(try change().status == 429)
        bench.seconds(1)
        #expect(try change().status == 200)
    }

    @Test("accounts with a sent password, or in the middle of an upgrade, have no access key to change")
    func others() throws {
        let sent = try bench.create("bob").string("access_token")
        #expect(try change(token: sent).status == 400)
        let begun = try bench.post(
            "auth/upgrade",
            #"{"username":"bob","password":"open sesame","u":"bea","a":"\#(SealedBodies.key(1))","#
                + #""kdf":1,"salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(3, count: 61))","#
                + #""recover":"\#(SealedBodies.key(2))","bundle":"\#(SealedBodies.key(4, count: 200))","#
                + #""old_salt":"\#(SealedBodies.salt)","old_access":"\#(SealedBodies.key(5, count: 61))"}"#)
        try #require(begun.status == 200, "\(begun.text)")
        let refused = try change(token: try begun.string("access_token"))
        #expect(refused.status == 400 && refused.text.contains("finish that first"), "\(refused.text)")
    }

    @Test("each change of an account's key raises its key number by one")
    func counted() throws {
        #expect(try bench.store.account(user, in: "notes")?.keyProof?.keyNumber == 1)
        #expect(try change().status == 200)
        #expect(try bench.store.account(user, in: "notes")?.keyProof?.keyNumber == 2)
        #expect(try change(r: 22, version: 2, recover: 33).status == 200)
        #expect(try bench.store.account(user, in: "notes")?.keyProof?.keyNumber == 3)
    }
}
