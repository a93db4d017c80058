import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// An account whose password was sent gets keys, under the same user id (decision 0043).
@Suite("Accounts that get keys")
struct AccountUpgradeTests {
    private let bench: AccountBench

    init() throws { bench = try AccountBench() }

    private func begin(
        _ name: String = "old", password: String = "secret", to new: String = "ann", a: UInt8 = 1
    ) throws -> HTTPResponse {
        try bench.post(
            "auth/upgrade",
            #"{"username":"\#(name)","password":"\#(password)","u":"\#(new)","a":"\#(SealedBodies.key(a))","#
                + #""kdf":1,"salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(3, count: 61))","#
                + #""recover":"\#(SealedBodies.key(2))","bundle":"\#(SealedBodies.key(4, count: 200))","#
                + #""old_salt":"\#(SealedBodies.salt)","old_access":"\#(SealedBodies.key(5, count: 61))"}"#)
    }

    private func finish(_ name: String = "ann", r: UInt8 = 2) throws -> HTTPResponse {
        try bench.send(
            "PUT", "/1/notes/auth/upgrade", ["x-simperium-api-key: \(bench.apiKey)"],
            #"{"u":"\#(name)","r":"\#(SealedBodies.key(r))"}"#)
    }

    private func authorize(_ name: String = "old") throws -> HTTPResponse {
        try bench.post("authorize/", #"{"username":"\#(name)","password":"secret"}"#)
    }

    private func create(_ name: String = "old") throws -> HTTPResponse {
        try bench.post("create/", #"{"username":"\#(name)","password":"secret"}"#)
    }

    @Test("during an upgrade both logins are good for one user id; after it the old login is refused")
    func both() throws {
        let made = try create()
        let user = try made.string("userid")
        let begun = try begin()
        #expect(begun.status == 200 && begun.member("begun")?.boolValue == true)
        #expect(try begun.string("userid") == user)
        #expect(try bench.grant(try made.string("access_token")) == nil, "tokens from before have ended")
        #expect(try bench.grant(try begun.string("access_token"))?.user.text == user)
        let new = try bench.post("auth/login", SealedBodies.login("ann"))
        #expect(try new.string("userid") == user && new.string("bundle") == SealedBodies.key(4, count: 200))
        #expect(try authorize().string("userid") == user)
        let old = try authorize().string("access_token")
        let done = try finish()
        #expect(done.status == 200)
        #expect(try done.string("userid") == user)
        #expect(try bench.grant(try done.string("access_token"))?.user.text == user)
        #expect(try bench.grant(old) == nil && bench.grant(try new.string("access_token")) == nil)
        #expect(try authorize().status == 401)
        #expect(try bench.post("auth/login", SealedBodies.login("ann")).status == 200)
        // The old name is free, and leads to nothing of this account.
        #expect(try create().string("userid") != user)
    }

    @Test("the first upgrade wins: a second one gets the state of the first and changes nothing")
    func firstWriter() throws {
        let user = try create().string("userid")
        let first = try begin()
        let second = try begin(to: "bob", a: 9)
        #expect(second.status == 200 && second.member("begun")?.boolValue == false)
        #expect(second.names.sorted() == ["begun", "bundle", "old", "u", "userid", "version"])
        #expect(try second.string("userid") == user && second.string("u") == "ann")
        #expect(try second.string("bundle") == SealedBodies.key(4, count: 200))
        let wrap = try #require(second.member("old")?.objectValue)
        #expect(wrap["access"]?.stringValue == SealedBodies.key(5, count: 61))
        #expect(wrap["n"]?.intValue == 17 && wrap["salt"]?.stringValue == SealedBodies.salt)
        #expect(try bench.grant(try first.string("access_token")) != nil, "asking signs no device out")
        #expect(try bench.post("auth/login", SealedBodies.login("bob", a: 9)).status == 401)
        #expect(try bench.post("auth/login", SealedBodies.login("ann")).status == 200)
    }

    @Test("an upgrade is refused for a wrong password, an unknown name, a taken name or an existing bundle")
    func refused() throws {
        let made = try create()
        #expect(try begin(password: "wrong!").status == 401)
        #expect(try begin("nobody").text == begin(password: "wrong!").text)
        _ = try create("ann")
        let taken = try begin()
        #expect(taken.status == 409 && taken.text.contains("name_taken"))
        let put = try bench.send(
            "PUT", "auth/bundle", token: try made.string("access_token"),
            #"{"version":0,"bundle":"\#(SealedBodies.key(7))"}"#)
        #expect(put.status == 200)
        let there = try begin(to: "free")
        #expect(there.status == 409 && there.text.contains("version_mismatch"))
        #expect(try authorize().status == 200)
        #expect(try bench.grant(try made.string("access_token")) != nil)
    }

    @Test("only a client with the access key ends the old login; a repeated request gives a token again")
    func finishing() throws {
        _ = try create()
        _ = try begin()
        #expect(try finish(r: 8).status == 401)
        #expect(try finish("nobody").text == finish(r: 8).text)
        #expect(try authorize().status == 200)
        let first = try finish()
        let again = try finish()
        #expect(again.status == 200)
        for each in [first, again] {
            #expect(try bench.grant(try each.string("access_token")) != nil, "the second ends no login")
        }
    }

    @Test("during an upgrade the old name stays taken, sets no password, and may delete the account")
    func meanwhile() throws {
        let user = try create().string("userid")
        _ = try begin()
        #expect(try create("OLD").status == 409)
        #expect(try bench.post("auth/signup", SealedBodies.signup("old")).status == 409)
        let update = try bench.post(
            "update/", #"{"username":"old","password":"secret","new_password":"other"}"#)
        #expect(update.status == 400)
        #expect(try authorize().status == 200)
        #expect(try bench.post("delete/", #"{"username":"old","password":"secret"}"#).status == 200)
        #expect(try authorize().status == 401)
        #expect(try bench.post("auth/login", SealedBodies.login("ann")).status == 401)
        #expect(try create().string("userid") != user)
    }

    @Test("a password set by the words during an upgrade leaves the old login and its wrap as they are")
    func recovered() throws {
        _ = try create()
        _ = try begin()
        let words =
            #"{"u":"ann","r":"\#(SealedBodies.key(2))","a":"\#(SealedBodies.key(40))","kdf":1,"salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(41, count: 61))"}"#
        #expect(try bench.post("auth/recover", words).status == 200)
        let there = try begin()
        #expect(there.member("old")?.objectValue?["access"]?.stringValue == SealedBodies.key(5, count: 61))
        #expect(try bench.post("auth/login", SealedBodies.login("ann", a: 40)).status == 200)
    }
}
