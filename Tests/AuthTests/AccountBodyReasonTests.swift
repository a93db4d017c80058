import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer

@testable import ThicketAuth

/// What the APIs of accounts and of partners report about a body that they cannot read: the reason and the place, and
/// nothing of the body, which holds a password.
@Suite("Bodies of accounts and partners that are not JSON")
struct AccountBodyReasonTests {
    /// Sends bytes as a body and returns the answer.
    private static func ask(
        _ peer: HTTPPeer, _ method: String, _ path: String, _ fields: [String: String], _ body: [UInt8]
    ) throws -> HTTPPeer.Answer {
        var head = "\(method) \(path) HTTP/1.1\r\nhost: x\r\ncontent-length: \(body.count)\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        try peer.send(raw: Array((head + "\r\n").utf8) + body)
        return try peer.answer()
    }

    private static let texts = [
        "create/", "authorize/", "update/", "forgot/", "verify/", "reset_password/", "delete/",
    ]
    private static let sealed = [
        "auth/prelogin", "auth/signup", "auth/login", "auth/recover", "auth/upgrade", "auth/forgot", "auth/verify",
    ]

    @Test("an account request reports reason and place in its own format, and repeats no password")
    func accounts() throws {
        let house = try AccountAPIFixture()
        let peer = try house.peer()
        for path in Self.texts + Self.sealed {
            for bad in BadJSON.all {
                let answer = try Self.ask(
                    peer, "POST", "/1/notes/\(path)", ["x-simperium-api-key": house.adminKey], bad.bytes)
                #expect(answer.status == 400, "\(path), \(bad.name): \(answer)")
                let message =
                    Self.texts.contains(path) ? answer.body : AccountAPIFixture.member("message", of: answer)
                #expect(message == "the body is \(bad.reason)", "\(path)")
                #expect(!answer.body.contains(BadJSON.secret), "\(path)")
            }
        }
    }

    @Test(
        "a partner request with a good token or key reports reason and place, and repeats no password")
    func partners() throws {
        let house = try AccountAPIFixture()
        let peer = try house.peer()
        let registration = TokenMaker.registration(
            partnerEntity: "p9", expiry: "1800000600", key: house.authKey)
        let (registering, loggedIn) = (
            house.partnerFields(registration), house.partnerFields(house.login())
        )
        let keys = "/api/v1/partner/\(house.partner)/customer/\(house.user)/publickey"
        let bundle = ["x-simperium-token": house.login(), "x-rezolve-device-id": "d"]
        for (method, path, fields) in [
            ("POST", "/api/v1/authentication/register", registering),
            ("POST", "/api/v2/authentication/register/guest", registering),
            ("POST", "/api/v2/authentication/login/guest", loggedIn), ("PUT", keys, loggedIn),
            ("POST", "/v2/credentials/register", house.partnerFields()),
            ("POST", "/v2/credentials/login", house.partnerFields()),
            ("POST", "/v2/credentials/forgot", house.partnerFields()),
            ("POST", "/v2/credentials/verify", house.partnerFields()), ("PUT", "/1/app/auth/bundle", bundle),
        ] {
            for bad in BadJSON.all {
                let answer = try Self.ask(peer, method, path, fields, bad.bytes)
                #expect(answer.status == 400, "\(path), \(bad.name): \(answer)")
                #expect(AccountAPIFixture.member("type", of: answer) == "Validation", "\(path): \(answer)")
                let start = path.hasSuffix("bundle") ? "the" : "The"
                let message = AccountAPIFixture.member("message", of: answer)
                #expect(message == "\(start) body is \(bad.reason)" + (start == "The" ? "." : ""), "\(path)")
                #expect(!answer.body.contains(BadJSON.secret), "\(path)")
            }
        }
        let outsider = try Self.ask(
            peer, "POST", "/api/v1/authentication/register", house.partnerFields("x"), BadJSON.all[0].bytes)
        #expect(outsider.status == 403 && !outsider.body.contains("JSON"))
    }

    private static func refusal(_ body: [UInt8]) -> String? {
        do throws(AccountRefusal) { _ = try AccountBody(body) } catch {
            if case .badRequest(let text) = error { return text }
            return "another refusal"
        }
        return nil
    }

    @Test("nesting that is too deep is reported with its levels and its place, for accounts and for partners")
    func deep() throws {
        let lists = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
        let body: [UInt8] = Array("{\"p\":\(lists)}".utf8)
        #expect(Self.refusal(body) == "the body is nested deeper than 8 levels (line 1, column 13)")
        let bench = try CredentialBench()
        let answer = try bench.ask(
            "POST /v2/credentials/login", String(decoding: body, as: UTF8.self)
        ).response
        #expect(answer.status == 400)
        #expect(
            bench.member("message", of: answer)?.stringValue
                == "The body is nested deeper than 64 levels (line 1, column 69).")
    }

    @Test(
        "a refusal names a form's bad member, JSON that is not one object, or a text that is neither form nor JSON",
        arguments: [
            ("username=ann&password=%zz", "a form whose member 2 (byte 14) is not percent-encoded UTF-8"),
            ("%=1", "a form whose member 1 (byte 1) is not percent-encoded UTF-8"),
            ("a=1&&b=%C3", "a form whose member 2 (byte 6) is not percent-encoded UTF-8"),
            ("[\"hunter2\"]", "JSON, but not one object"), ("\"a=hunter2\"", "JSON, but not one object"),
            ("hunter2", "not a form, and not JSON: an unexpected character (line 1, column 1)"),
            ("NaN", "not a form, and not JSON: an unexpected character (line 1, column 1)"),
            ("  {\"password\":\"a=hunter2\"", "not JSON: it ends too early (line 1, column 26)"),
        ])
    func forms(body: String, reason: String) { #expect(Self.refusal(Array(body.utf8)) == "the body is \(reason)") }

    @Test("bytes of a form that are not UTF-8 are reported by their member")
    func formBytes() {
        let body: [UInt8] = Array("username=ann&password=".utf8) + [0xFF]
        #expect(
            Self.refusal(body) == "the body is a form whose member 2 (byte 14) is not percent-encoded UTF-8")
    }

    @Test(
        "forms are read whatever their first character is",
        arguments: ["a=1&b=2", " a=1", "\u{E9}=1", "a=[{&b", "+=1"])
    func goodForms(body: String) { #expect(Self.refusal(Array(body.utf8)) == nil) }
}
