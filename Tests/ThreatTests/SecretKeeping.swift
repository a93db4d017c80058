import Glibc
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol
import ThicketThreats

/// Uses every entry point, validly and invalidly, and records each secret that it sent or received, and every refusal.
final class EveryEndpoint {
    private(set) var canaries = [Canary]()
    /// Refusals, with what was asked.
    private(set) var refusals = [(asked: String, bytes: [UInt8])]()
    /// Statuses of all answers.
    private(set) var seen = [Int: Int]()
    /// A token that the server made, in clear.
    private(set) var opaqueToken = ""

    private let house: ThreatHouse
    private let caller: Caller

    init(_ house: ThreatHouse) throws {
        self.house = house
        caller = try house.caller()
        keep("the app's API key", house.apiKey)
        keep("the app's admin key", house.adminKey)
        keep("the partner's API key", house.partnerKey)
        keep("the partner's auth key", house.authKey)
    }

    func keep(_ name: String, _ secret: String) { canaries.append(Canary(name, secret)) }

    /// A new password, recorded as a secret.
    private func password(_ name: String) -> String {
        let text = "pw-" + RandomBytes.hex(12)
        keep("the password of \(name)", text)
        return text
    }

    @discardableResult
    private func ask(
        _ method: String, _ path: String, _ fields: [(String, String)] = [], body: String? = nil, expect: Int
    ) throws -> Caller.Reply {
        let reply = try caller.ask(method, path, fields, body: body)
        seen[reply.status, default: 0] += 1
        if reply.status >= 400 { refusals.append(("\(method) \(path)", reply.head + reply.body)) }
        guard reply.status == expect else {
            throw ProcessError("\(method) \(path): \(reply.status), not \(expect): \(reply.text)")
        }
        return reply
    }

    /// Breaks a signature: another letter in its middle.
    private static func spoiled(_ token: String) -> String {
        var bytes: [UInt8] = Array(token.utf8)
        let place = bytes.count - 40
        bytes[place] = bytes[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Partners

    func partnerTokens() throws {
        let outsider = "stranger-" + RandomBytes.hex(10)
        keep("an API key that nobody has", outsider)
        let entity = try house.register("p1", by: caller)
        let token = house.login(entity, "p1", device: "D")
        let path = "/api/v1/partner/\(ThreatHouse.partner)/customer/\(entity)/publickey"
        try ask("GET", path, house.partnerFields(token, device: "D"), expect: 200)
        keep("a login token", token)
        let bad = Self.spoiled(token)
        keep("a token with a bad signature", bad)
        try ask("GET", path, house.partnerFields(bad, device: "D"), expect: 403)
        try ask("GET", path, house.partnerFields(token, device: "E"), expect: 403)
        try ask("GET", path, house.partnerFields("no.token.at-all-\(bad)", device: "D"), expect: 403)
        try ask(
            "GET", path, [("x-rezolve-partner-apikey", outsider), ("authorization", "Bearer \(token)")], expect: 403)
        let old = SignedTokens.login(
            entity: entity, user: "p1", device: "D", ends: ThreatHouse.now - 5, key: house.authKey)
        keep("an expired token", old)
        try ask("GET", path, house.partnerFields(old, device: "D"), expect: 401)
        let guest = SignedTokens.registration(
            user: "g1", ends: ThreatHouse.now + 900, key: house.authKey)
        keep("a registration token", guest)
        try ask("POST", "/api/v2/authentication/register/guest", house.partnerFields(guest), body: "{}", expect: 200)
        try ask(
            "POST", "/api/v1/authentication/register", house.partnerFields(guest), body: "{\"email\":\"\(outsider)\"}",
            expect: 400)
        try stream(ThreatHouse.shop, token, device: "D", isGood: true)
        try stream(ThreatHouse.shop, bad, device: "D", isGood: false)
        try ask("POST", "/v1/user/logout", house.partnerFields(token, device: "D"), expect: 204)
        try ask("POST", "/v1/user/logout", house.partnerFields(token, device: "D"), expect: 403)
    }

    func partnerPasswords() throws {
        let (name, good, wrong) = (
            "rua@example.com", password("a partner's user"), password("a partner's user, wrong")
        )
        let key = [("x-rezolve-partner-apikey", house.partnerKey)]
        func body(_ password: String) -> String {
            #"{"deviceId":"R","username":"\#(name)","password":"\#(password)"}"#
        }
        try ask("POST", "/v2/credentials/register", key, body: body(good), expect: 200)
        try ask("POST", "/v2/credentials/register", key, body: body(wrong), expect: 400)
        try ask("POST", "/v2/credentials/login", key, body: body(wrong), expect: 403)
        let login = try ask("POST", "/v2/credentials/login", key, body: body(good), expect: 200)
        let token = String((login.fields["authorization"] ?? "").dropFirst("Bearer ".count))
        keep("a token made for a partner's user", token)
        let shown = house.partnerFields(token, device: "R")
        let renewed = try ask("GET", "/v2/credentials/ping", shown, expect: 200).string("accessToken")
        keep("a renewed token", String(renewed.dropFirst("Bearer ".count)))
        let next = password("a partner's user, the next")
        try ask(
            "POST", "/v2/credentials/change", shown,
            body: #"{"oldPassword":"\#(wrong)","newPassword":"\#(next)"}"#, expect: 403)
        try ask(
            "POST", "/v2/credentials/change", shown,
            body: #"{"oldPassword":"\#(good)","newPassword":"\#(next)"}"#, expect: 204)
        try ask("POST", "/v2/credentials/forgot", key, body: #"{"username":"\#(name)"}"#, expect: 200)
        try ask(
            "POST", "/v2/credentials/verify", key,
            body: #"{"username":"\#(name)","code":"00000000","password":"\#(wrong)"}"#, expect: 403)
    }

    // MARK: Accounts

    func accounts() throws {
        let key = [("x-simperium-api-key", house.apiKey)]
        let admin = [("x-simperium-api-key", house.adminKey)]
        let outsider = [("x-simperium-api-key", RandomBytes.hex(16))]
        keep("an app's key that nobody has", outsider[0].1)
        let (good, wrong) = (password("an account"), password("an account, wrong"))
        let base = "/1/\(ThreatHouse.app)"
        func body(_ password: String, _ more: String = "") -> String {
            #"{"username":"ann@example.com","password":"\#(password)"\#(more)}"#
        }
        opaqueToken = try ask("POST", "\(base)/create/", key, body: body(good), expect: 200).string("access_token")
        keep("a token of an account", opaqueToken)
        try ask("POST", "\(base)/create/", key, body: body(wrong), expect: 409)
        try ask("POST", "\(base)/create/", outsider, body: body(good), expect: 401)
        try ask("POST", "\(base)/authorize/", key, body: body(wrong), expect: 401)
        keep(
            "another token of it",
            try ask("POST", "\(base)/authorize/", key, body: body(good), expect: 200).string("access_token"))
        try data(opaqueToken)
        let next = password("an account, the next")
        try ask("POST", "\(base)/update/", key, body: body(wrong, #","new_password":"\#(next)"}"#), expect: 400)
        try ask("POST", "\(base)/update/", key, body: body(wrong, #","new_password":"\#(next)""#), expect: 401)
        try ask("POST", "\(base)/update/", key, body: body(good, #","new_password":"\#(next)""#), expect: 200)
        let set = password("an account, as the operator set it")
        for (fields, status) in [(key, 401), (admin, 200)] {
            try ask(
                "POST", "\(base)/reset_password/", fields,
                body: #"{"username":"ann@example.com","new_password":"\#(set)"}"#, expect: status)
        }
        try ask("POST", "\(base)/delete/", key, body: body(wrong), expect: 401)
    }

    func sealedAccounts() throws {
        let key = [("x-simperium-api-key", house.apiKey)]
        let base = "/1/\(ThreatHouse.app)/auth"
        let (proof, words, wrong) = (
            RandomBytes.make(32), RandomBytes.make(32), RandomBytes.make(32)
        )
        for (name, secret) in [("a proof", proof), ("a recovery proof", words), ("no proof", wrong)] {
            canaries.append(Canary("\(name) of an account with keys", secret))
        }
        let salt = Base64.encodeURL(RandomBytes.make(16))
        let box = Base64.encodeURL(RandomBytes.make(61))
        func a(_ bytes: [UInt8]) -> String { Base64.encodeURL(bytes) }
        try ask("POST", "\(base)/prelogin", key, body: #"{"u":"kay"}"#, expect: 200)
        let made = try ask(
            "POST", "\(base)/signup", key,
            body: #"{"u":"kay","a":"\#(a(proof))","kdf":1,"salt":"\#(salt)","access":"\#(box)","bundle":"\#(box)","#
                + #""recover":"\#(a(words))"}"#, expect: 200)
        let token = try made.string("access_token")
        keep("a token of an account with keys", token)
        try ask("POST", "\(base)/login", key, body: #"{"u":"kay","a":"\#(a(wrong))","device":"K"}"#, expect: 401)
        let login = try ask(
            "POST", "\(base)/login", key, body: #"{"u":"kay","a":"\#(a(proof))","device":"K"}"#, expect: 200)
        keep("another token of it", try login.string("access_token"))
        let shown = [("x-simperium-token", token)]
        try ask("GET", "\(base)/bundle", shown, expect: 200)
        try ask("GET", "\(base)/bundle", [("x-simperium-token", RandomBytes.hex(16))], expect: 401)
        try ask("PUT", "\(base)/bundle", shown, body: #"{"version":9,"bundle":"\#(box)"}"#, expect: 409)
        try ask("GET", "\(base)/tokens", shown, expect: 200)
        let rest = #""a":"\#(a(wrong))","kdf":1,"salt":"\#(salt)","access":"\#(box)"}"#
        try ask("POST", "\(base)/recover", key, body: #"{"u":"kay","r":"\#(a(wrong))",\#(rest)"#, expect: 401)
        try ask("POST", "\(base)/password", shown, body: #"{"a_old":"\#(a(wrong))",\#(rest)"#, expect: 401)
        let others = RandomBytes.make(32)
        canaries.append(Canary("another recovery proof of an account with keys", others))
        for (recovery, status) in [(wrong, 409), (words, 200), (words, 409)] {
            try ask(
                "POST", "\(base)/access", shown,
                body: #"{"a":"\#(a(proof))","r":"\#(a(recovery))","version":1,"access":"\#(box)","bundle":"\#(box)","#
                    + #""recover":"\#(a(others))"}"#, expect: status)
        }
        try ask("POST", "\(base)/logout", shown, expect: 204)
        try ask("GET", "\(base)/tokens", shown, expect: 401)
    }

    // MARK: Data

    /// The data API, the stream and SockJS with a valid token, and with an unknown one.
    private func data(_ token: String) throws {
        let base = "/1/\(ThreatHouse.app)"
        let content = "content-" + RandomBytes.hex(12)
        let none = RandomBytes.hex(16)
        keep("a token that nobody has", none)
        contents.append(Canary("what a user wrote", content))
        for (token, status) in [(token, 200), (none, 401)] {
            let shown = [("x-simperium-token", token)]
            try ask("POST", "\(base)/b/i/k?response=1", shown, body: #"{"t":"\#(content)"}"#, expect: status)
            try ask("GET", "\(base)/b/index?data=1", shown, expect: status)
            try ask("GET", "\(base)/user", shown, expect: status)
        }
        let shown = [("x-simperium-token", token)]
        try ask("POST", "\(base)/b/i/k", shown, body: #"{"t":"\#(content)"#, expect: 400)
        try ask("POST", "\(base)/b/i/k?replace=1", shown, body: #"{"t":"\#(content)"}"#, expect: 412)
        try ask(
            "GET", "\(base)/b/index", [("x-simperium-token", house.adminKey), ("x-simperium-user", "nobody")],
            expect: 200)
        try stream(ThreatHouse.app, token, device: nil, isGood: true)
        try stream(ThreatHouse.app, none, device: nil, isGood: false)
        let session = "/sock/1/\(ThreatHouse.app)/000/leak"
        try ask("POST", "\(session)/xhr", body: "", expect: 200)
        let initialize =
            #"0:init:{\"clientid\":\"s\",\"api\":\"1.1\",\"token\":\"\#(token)\",\"app_id\":\"notes\",\"name\":\"b\"}"#
        try ask("POST", "\(session)/xhr_send", body: "[\"\(initialize)\"]", expect: 204)
        try ask("POST", "\(session)/xhr_send", body: "[\"\(initialize)", expect: 500)
        try ask("POST", "\(session)/xhr", body: "", expect: 200)
    }

    /// Texts of users: they are the users' own, and may be in the database and in no log.
    private(set) var contents = [Canary]()

    private func stream(_ app: String, _ token: String, device: String?, isGood: Bool) throws {
        let socket = try WireSocket(port: house.port, app: app)
        let device = device.map { ",\"device_id\":\"\($0)\"" } ?? ""
        socket.send(
            "0:init:{\"clientid\":\"c\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"\(app)\",\"name\":\"b\"\(device)}"
        )
        let answer = try socket.next { $0 }
        if case .channel(_, .authorized) = answer, isGood { return }
        if case .channel(_, .authFailed) = answer, !isGood {
            refusals.append(("init", Array("\(answer)".utf8)))
            return
        }
        throw ProcessError("init: \(answer)")
    }
}
