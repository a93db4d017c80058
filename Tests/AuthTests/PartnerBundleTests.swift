import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// Sealed keys of users for whom a partner vouches.
@Suite("Bundles of partners' users")
struct PartnerBundleTests {
    private let bench: CredentialBench
    private let entity: String

    init() throws {
        bench = try CredentialBench(keepsPasswords: false)
        entity = try bench.store.register(
            partner: bench.partner, partnerEntity: "p1", email: "a@b", newID: "e-1", now: bench.now
        ).id
    }

    private func token(_ entity: String? = nil, user: String = "p1", device: String = "d", ends: Double = 900) -> String
    {
        TokenMaker.login(
            entity: entity ?? self.entity, partnerEntity: user, device: device, expiry: "\(Int(bench.now + ends))",
            key: bench.authKey)
    }

    /// Makes a request for a bundle, on the route that the request matches.
    private func ask(
        _ method: String, _ body: String = "", token: String? = nil, device: String = "d", app: String = "app"
    ) throws -> HTTPResponse {
        let head: [String] = [
            "\(method) /1/\(app)/auth/bundle HTTP/1.1", "host: x", "content-length: \(body.utf8.count)",
            "x-rezolve-device-id: \(device)", "x-simperium-token: \(token ?? self.token())",
        ]
        let request: HTTPRequest = try RequestVectors.request(
            Array((head.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8))
        let account = try #require(AccountRoute(request.path))
        let route: PartnerService.Route = try #require(account.ofPartner(request), "an account's token?")
        #expect(PartnerService.accepts(method, route) && !PartnerService.isCostly(route))
        return bench.service.answer(request, to: route, from: "192.0.2.1", now: bench.now).response
    }

    private func put(_ version: Int, _ byte: UInt8, _ more: String = "") throws -> HTTPResponse {
        try ask("PUT", #"{"version":\#(version),"bundle":"\#(SealedBodies.key(byte, count: 90))"\#(more)}"#)
    }

    private static let wrap =
        #","kdf":1,"n":18,"p":2,"salt":"\#(SealedBodies.salt)","access":"\#(SealedBodies.key(3, count: 61))""#
    private static let none = #"{"bundle":null,"version":0,"access":null}"#

    @Test("a user without keys gets none; a written bundle comes back, its first writer wins, no version is lost")
    func versions() throws {
        #expect(try ask("GET").text == Self.none)
        #expect(try put(1, 9).status == 409, "there is none to replace")
        let first = try put(0, 1)
        #expect(first.status == 200 && first.text == #"{"version":1}"#, "\(first.text)")
        #expect(first.fields["cache-control"] == "no-store")
        let late = try put(0, 2)
        #expect(late.status == 409)
        #expect(
            late.text
                == #"{"type":"Conflict","code":"7","message":"Another version was written meanwhile.","version":1}"#)
        #expect(try put(1, 3).text == #"{"version":2}"#)
        #expect(try put(1, 4).member("version")?.intValue == 2)
        let kept = SealedBodies.key(3, count: 90)
        #expect(try ask("GET").text == #"{"bundle":"\#(kept)","version":2,"access":null}"#)
    }

    @Test("T23: with a stored proof of the access key a token alone, which the partner can make, replaces nothing")
    func proof() throws {
        let words = SealedBodies.key(5)
        #expect(try put(0, 1, #","recover":"\#(words)""#).status == 200)
        #expect(try put(1, 2).status == 400, "r is wanted")
        #expect(try put(1, 2, #","r":"\#(SealedBodies.key(6))""#) == PartnerAnswer.denied)
        #expect(try put(1, 2, #","recover":"\#(SealedBodies.key(6))""#).status == 400, "nor another proof")
        #expect(try ask("GET").string("bundle") == SealedBodies.key(1, count: 90))
        #expect(try put(1, 2, #","r":"\#(words)","recover":"\#(SealedBodies.key(7))""#).status == 200)
        #expect(try put(2, 3, #","r":"\#(words)""#) == PartnerAnswer.denied, "another access key, another proof")
        #expect(try put(2, 3, #","r":"\#(SealedBodies.key(7))""#).status == 200)
        #expect(try ask("GET").string("bundle") == SealedBodies.key(3, count: 90))
    }

    @Test(
        "a new access key comes with a new wrap or removes the old wrap, which is never left behind"
    )
    func otherKey() throws {
        let (old, new) = (SealedBodies.key(5), SealedBodies.key(7))
        #expect(try put(0, 1, #","recover":"\#(old)""# + Self.wrap).status == 200)
        let change = #","r":"\#(old)","recover":"\#(new)""#
        #expect(try put(1, 2, change).status == 400)
        #expect(try put(1, 2, #","r":"\#(old)","recover":"\#(old)""#).status == 200, "the same key's wrap stays")
        #expect(try put(2, 3, change + Self.wrap.replacing(SealedBodies.key(3, count: 61), with: "AAAA")).status == 200)
        #expect(try ask("GET").string("access") == "AAAA")
        #expect(try put(3, 4, change + #","access":null"#) == PartnerAnswer.denied, "the old key proves nothing")
        #expect(try put(3, 4, #","r":"\#(new)","recover":"\#(old)","access":null"#).status == 200)
        #expect(try ask("GET").member("access") == .null)
    }

    @Test("T16: guesses at the proof lead to a wait; the right proof works after it")
    func guessing() throws {
        let words = #","r":"\#(SealedBodies.key(5))""#
        #expect(try put(0, 1, #","recover":"\#(SealedBodies.key(5))""#).status == 200)
        let tries = try (0..<7).map { try put(1, 2, #","r":"\#(SealedBodies.key(UInt8(10 + $0)))""#).status }
        #expect(tries == [403, 403, 403, 403, 403, 429, 429])
        #expect(try put(1, 2, words).status == 429)
        bench.now += 1
        #expect(try put(1, 2, words).status == 200)
    }

    @Test("the access key under a passphrase is kept with its stretching parameters; null removes it")
    func wrap() throws {
        #expect(try put(0, 1, Self.wrap).status == 200)
        let shown = try ask("GET")
        #expect(shown.names == ["bundle", "version", "access", "kdf", "n", "r", "p", "salt"])
        #expect(shown.member("n")?.intValue == 18 && shown.member("p")?.intValue == 2)
        #expect(try shown.string("access") == SealedBodies.key(3, count: 61))
        #expect(try shown.string("salt") == SealedBodies.salt)
        #expect(try put(1, 2).status == 200)
        #expect(try ask("GET").string("access") == SealedBodies.key(3, count: 61), "what is left out stays")
        #expect(try put(2, 3, #","access":null"#).status == 200)
        #expect(try ask("GET").names == ["bundle", "version", "access"])
        #expect(try ask("GET").member("access") == .null)
    }

    @Test(
        "a passphrase with too little or far too much stretching is refused",
        arguments: [
            #""n":16"#, #""n":21"#, #""n":17,"p":5"#, #""n":17,"p":0"#, #""n":17,"r":16"#, #""kdf":2"#,
            #""salt":"AAAA""#,
        ])
    func stretches(members: String) throws {
        let rest = members.contains("salt") ? "" : #","salt":"\#(SealedBodies.salt)""#
        let answer = try put(0, 1, #","access":"AAAA",\#(members)\#(rest)"#)
        #expect(answer.status == 400, "\(answer.text)")
        #expect(try ask("GET").text == Self.none)
    }

    @Test(
        "T10, T11, T13: only the user, on the token's device, in the partner's app, is served; 401 is only for expiry")
    func outsiders() throws {
        #expect(try put(0, 1).status == 200)
        let other: Entity = try bench.store.register(
            partner: bench.partner, partnerEntity: "p2", email: "a@b", newID: "e-2", now: bench.now)
        #expect(try ask("GET", token: token(other.id, user: "p2")).text == Self.none, "each user has its own")
        #expect(try ask("GET", device: "other") == PartnerAnswer.denied)
        #expect(try ask("GET", app: "elsewhere") == PartnerAnswer.denied)
        #expect(try ask("GET", token: token(user: "p2")) == PartnerAnswer.denied)
        #expect(try ask("GET", token: "x.y.z") == PartnerAnswer.denied)
        let late = token(ends: -1)
        #expect(try ask("GET", token: late) == PartnerAnswer.expired)
        #expect(try ask("GET", token: late, device: "other") == PartnerAnswer.denied)
        let registration = TokenMaker.registration(
            partnerEntity: "p1", expiry: "\(Int(bench.now + 9))", key: bench.authKey)
        #expect(try ask("GET", token: registration) == PartnerAnswer.denied)
    }

    @Test("a bundle belongs to one app: another app of the partner does not see it")
    func apps() throws {
        let admin = try StoreAdmin(path: bench.path)
        _ = try admin.createApp(try AppID("second"), partner: bench.partner, now: 0)
        #expect(try put(0, 1).status == 200)
        #expect(try ask("GET", app: "second").text == Self.none)
        #expect(try ask("GET").member("version")?.intValue == 1)
    }

    @Test(
        "an invalid bundle is refused with its reason, and nothing is written",
        arguments: [
            ("", 400), ("[]", 400), ("{}", 400), (#"{"version":0}"#, 400), (#"{"version":-1,"bundle":"AAAA"}"#, 400),
            (#"{"version":0.5,"bundle":"AAAA"}"#, 400), (#"{"version":0,"bundle":"A"}"#, 400),
            (#"{"version":0,"bundle":"AAAA","recover":"AAAA"}"#, 400),
            (#"{"version":9223372036854775807,"bundle":"AAAA"}"#, 400),
            (#"{"version":0,"bundle":"\#(String(repeating: "A", count: 87_388))"}"#, 413),
        ] as [(String, Int)])
    func unfit(body: String, status: Int) throws {
        #expect(try ask("PUT", body).status == status)
        #expect(try ask("GET").text == Self.none)
    }

    @Test("an erased user leaves no bundle and is no longer Pro; other users' bundles stay")
    func erased() throws {
        #expect(try put(0, 1, Self.wrap).status == 200)
        let other: Entity = try bench.store.register(
            partner: bench.partner, partnerEntity: "p2", email: "a@b", newID: "e-2", now: bench.now)
        let theirs = token(other.id, user: "p2")
        #expect(try ask("PUT", #"{"version":0,"bundle":"AAAA"}"#, token: theirs).status == 200)
        let accounts = try AccountStore(path: bench.path)
        for user in [entity, other.id] {
            try accounts.setPro(user: user, in: "app", receipt: "", now: 1)
        }
        let admin = try StoreAdmin(path: bench.path)
        try admin.setNotes(.on, of: try AppID("app"))
        try bench.erase(entity)
        #expect(try ask("GET").text == Self.none)
        #expect(try ask("GET", token: theirs).member("version")?.intValue == 1)
        #expect(try accounts.notes(of: entity, in: "app")?.isPro == false)
        #expect(try accounts.notes(of: other.id, in: "app")?.isPro == true)
    }

    @Test("a request stays with accounts if its token has no dot or its path is another")
    func routes() throws {
        let shown: (String, String) throws -> PartnerService.Route? = { path, token in
            let request = try RequestVectors.request(
                Array("GET \(path) HTTP/1.1\r\nhost: x\r\nx-simperium-token: \(token)\r\n\r\n".utf8))
            return AccountRoute(request.path)?.ofPartner(request)
        }
        let app = try AppID("app")
        #expect(try shown("/1/app/auth/bundle", "a.b.c") == .bundle(app))
        #expect(try shown("/1/app/auth/bundle/", "a.b.c") == .bundle(app))
        #expect(try shown("/1/app/auth/bundle", "0123456789abcdef0123456789abcdef") == nil)
        for call in ["tokens", "logout", "password", "login", "delete"] {
            #expect(try shown("/1/app/auth/\(call)", "a.b.c") == nil)
        }
    }
}
