import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol

/// Requests as clients send them, for every path of the server, each as the bytes of one connection: mutations must
/// start from requests that the server would accept.
public struct HostileCorpus: Sendable {
    /// One connection's bytes.
    public struct Entry: Sendable {
        public let name: String
        public let bytes: [UInt8]
    }

    public private(set) var entries: [Entry] = []
    /// A token of the user of most requests. A mixture of two requests may sign this user out.
    private let token: String
    /// A token of a user that no request mentions: no request may affect that user.
    public let witness: String

    /// A token of another user, to be signed out.
    private let spare: String

    /// Logs in at every entry point of a house and records the requests of each.
    public init(_ house: ThreatHouse) throws(ProcessError) {
        let caller = try house.caller()
        let key = [("x-simperium-api-key", house.apiKey)]
        let app = "/1/\(ThreatHouse.app)"
        let made = try caller.ask(
            "POST", "\(app)/create/", key, body: #"{"username":"ann@example.com","password":"open sesame"}"#)
        token = try made.string("access_token")
        spare = try caller.ask(
            "POST", "\(app)/create/", key, body: #"{"username":"leaver@example.com","password":"open sesame"}"#
        ).string("access_token")
        witness = try caller.ask(
            "POST", "\(app)/create/", key, body: #"{"username":"witness@example.com","password":"open sesame"}"#
        ).string("access_token")
        let entity = try house.register("p1", by: caller)
        _ = try caller.ask(
            "POST", "/v2/credentials/register", [("x-rezolve-partner-apikey", house.partnerKey)],
            body: #"{"username":"rua@example.com","password":"open sesame","phone":"1"}"#)
        addPages()
        addData()
        addAdministration(house)
        addAccounts(house)
        addPartners(house, entity)
        addSockJS()
        addSockets(house, entity)
    }

    private mutating func add(
        _ method: String, _ path: String, _ fields: [(String, String)] = [], _ body: String? = nil
    ) {
        entries.append(
            Entry(name: "\(method) \(path)", bytes: Caller.request(method, path, fields, body: body)))
    }

    // MARK: HTTP

    private mutating func addPages() {
        for path in [
            "/", "/page.css", "/page.js", "/page.svg", "/openapi.yaml", "/health/live", "/health/ready", "/metrics",
            "/nothing",
        ] {
            add("GET", path)
        }
        add("HEAD", "/health/live")
        add("OPTIONS", "/1/notes/b/i/k", [("origin", "https://example.com"), ("access-control-request-method", "PUT")])
        // A body in chunks, with an extension and a trailer.
        let head =
            "POST /1/notes/b/i/c?response=1 HTTP/1.1\r\nhost: x\r\nx-simperium-token: \(token)\r\n"
            + "transfer-encoding: chunked\r\n\r\n"
        entries.append(
            Entry(
                name: "chunks", bytes: Array((head + "4;a=b\r\n{\"a\"\r\n5\r\n:[1]}\r\n0\r\nx: y\r\n\r\n").utf8)))
    }

    private mutating func addData() {
        let shown = [("x-simperium-token", token)]
        for path in [
            "b/i/k", "b/i/k/v/1", "b/index?data=1&limit=10", "b/index?mark=zz&since=00", "b/changes", "b/changes?cv=77",
            "buckets", "user", "b/all", "b/__options__", "b%20c/i/%C3%A9",
        ] {
            add("GET", "/1/notes/\(path)", shown)
        }
        add("POST", "/1/notes/b/i/k?ccid=c1&clientid=h&response=1", shown, #"{"a":{"b":[1,2.5e3,"é\u00e9"]},"n":1}"#)
        add("POST", "/1/notes/b/i/k?replace=1", shown + [("if-match", "\"3\"")], #"{"text":"words and words"}"#)
        add("POST", "/1/notes/b/i/k/v/1", shown + [("expect", "100-continue")], #"{"t":null}"#)
        add("DELETE", "/1/notes/b/i/k2", shown + [("if-match", "*")])
        let changes = [
            #"{"id":"k","o":"M","ccid":"d1","v":{"t":{"o":"+","v":"abc"}}}"#,
            #"{"id":"k","o":"M","sv":1,"ccid":"d2","v":{"t":{"o":"d","v":"=1\t-1\t+xy"},"l":{"o":"L","v":{}}}}"#,
            #"{"id":"k3","o":"-","ccid":"d3"}"#,
        ]
        add("POST", "/1/notes/b/changes?wait=1", shown, "[\(changes.joined(separator: ","))]")
    }

    private mutating func addAdministration(_ house: ThreatHouse) {
        let admin = [("x-simperium-token", house.adminKey)]
        add("GET", "/1/notes/b/all?data=1&username=1", admin)
        add("POST", "/1/notes/__options__/i/b", admin, #"{"capacity":1000,"version_max":5}"#)
        add("GET", "/1/notes/__options__/i/b", admin)
        add("DELETE", "/1/notes/__options__/i/c", admin)
        add("GET", "/1/notes/b/index", admin + [("x-simperium-user", "ann@example.com")])
    }

    private mutating func addAccounts(_ house: ThreatHouse) {
        let key = [("x-simperium-api-key", house.apiKey)]
        let admin = [("x-simperium-api-key", house.adminKey)]
        let shown = [("x-simperium-token", token)]
        let login = #"{"username":"ann@example.com","password":"wrong one"}"#
        for path in ["create/", "authorize/", "delete/"] { add("POST", "/1/notes/\(path)", key, login) }
        add("POST", "/1/notes/authorize", [], "client_id=\(house.apiKey)&username=ann%40example.com&password=wrong")
        add("POST", "/1/notes/update/", key, #"{"username":"ann@example.com","password":"no","new_username":"bob"}"#)
        add("POST", "/1/notes/reset_password/", admin, #"{"username":"nobody","new_password":"something"}"#)
        add("POST", "/1/notes/forgot/", key, #"{"username":"ann@example.com"}"#)
        add(
            "POST", "/1/notes/verify/", key,
            #"{"username":"ann@example.com","code":"12345678","new_password":"another one"}"#)
        let (a, box, salt) = (
            Base64.encodeURL(.init(repeating: 7, count: 32)), Base64.encodeURL(.init(repeating: 9, count: 200)),
            Base64.encodeURL(.init(repeating: 3, count: 16))
        )
        let rest = #""a":"\#(a)","kdf":1,"salt":"\#(salt)","access":"\#(box)""#
        add("POST", "/1/notes/auth/prelogin", key, #"{"u":"kay"}"#)
        add("POST", "/1/notes/auth/signup", key, #"{"u":"kay",\#(rest),"bundle":"\#(box)","recover":"\#(a)","n":17}"#)
        add("POST", "/1/notes/auth/login", key, #"{"u":"kay","a":"\#(a)","device":"phone"}"#)
        add("POST", "/1/notes/auth/recover", key, #"{"u":"kay","r":"\#(a)",\#(rest)}"#)
        add("POST", "/1/notes/auth/password", shown, #"{"a_old":"\#(a)",\#(rest)}"#)
        add("PUT", "/1/notes/auth/bundle", shown, #"{"version":0,"bundle":"\#(box)"}"#)
        add(
            "POST", "/1/notes/auth/access", shown,
            #"{"a":"\#(a)","r":"\#(a)","version":1,"access":"\#(box)","bundle":"\#(box)","recover":"\#(a)"}"#)
        for path in ["bundle", "tokens"] { add("GET", "/1/notes/auth/\(path)", shown) }
        add("DELETE", "/1/notes/auth/tokens/0123456789abcdef", shown)
        add("POST", "/1/notes/auth/forgot", key, #"{"u":"kay"}"#)
        add("POST", "/1/notes/auth/verify", key, #"{"u":"kay","code":"12345678",\#(rest)}"#)
        add("POST", "/1/notes/auth/delete", shown, #"{"a":"\#(a)"}"#)
        // A separate token: the others are still needed.
        add("POST", "/1/notes/auth/logout", [("x-simperium-token", spare)])
    }

    private mutating func addPartners(_ house: ThreatHouse, _ entity: String) {
        let login = house.partnerFields(house.login(entity, "p1", device: "D"), device: "D")
        let registration = house.partnerFields(
            SignedTokens.registration(user: "p2", ends: ThreatHouse.now + 1_500, key: house.authKey))
        let key = [("x-rezolve-partner-apikey", house.partnerKey)]
        let customer = "/api/v1/partner/\(ThreatHouse.partner)/customer/\(entity)"
        for last in ["publickey", "devices"] { add("GET", "\(customer)/\(last)", login) }
        let publicKey = Base64.encode(.init(repeating: 4, count: 32))
        add("PUT", "\(customer)/publickey", login, #"{"public_key":"\#(publicKey)","sign_key":"\#(publicKey)"}"#)
        add("POST", "/v1/user/logout", house.partnerFields(house.login(entity, "p1", device: "gone"), device: "gone"))
        add("POST", "/api/v1/authentication/register", registration, #"{"email":"a@example.com"}"#)
        add("POST", "/api/v2/authentication/register/guest", registration, "{}")
        add("POST", "/api/v2/authentication/login/guest", login, #"{"deviceId":"D","entityId":"\#(entity)"}"#)
        add("GET", "/v2/credentials/ping", login)
        let shown = [
            ("x-simperium-token", house.login(entity, "p1", device: "D")), ("x-rezolve-device-id", "D"),
        ]
        let (key32, salt) = (
            Base64.encodeURL(.init(repeating: 5, count: 32)), Base64.encodeURL(.init(repeating: 3, count: 16))
        )
        let sealed =
            #""bundle":"\#(key32)","recover":"\#(key32)","access":"\#(key32)","kdf":1,"salt":"\#(salt)""#
        add("PUT", "/1/\(ThreatHouse.shop)/auth/bundle", shown, #"{"version":0,\#(sealed)}"#)
        add("PUT", "/1/\(ThreatHouse.shop)/auth/bundle", shown, #"{"version":1,"r":"\#(key32)",\#(sealed)}"#)
        add("GET", "/1/\(ThreatHouse.shop)/auth/bundle", shown)
        let user = #""username":"rua@example.com""#
        add(
            "POST", "/v2/credentials/register", key,
            #"{"username":"another@example.com","password":"open sesame","phone":"1"}"#)
        add("POST", "/v2/credentials/login", key, #"{"deviceId":"R",\#(user),"password":"wrong one"}"#)
        add("POST", "/v2/credentials/forgot", key, "{\(user)}")
        add("POST", "/v2/credentials/verify", key, #"{\#(user),"code":"12345678","password":"another one"}"#)
        add("POST", "/v2/credentials/change", login, #"{"oldPassword":"a wrong one","newPassword":"another one"}"#)
    }

    // MARK: SockJS and sockets

    private var initialize: String {
        #"0:init:{"clientid":"h","api":"1.1","token":"\#(token)","app_id":"notes","name":"b","cmd":"i:1:::5"}"#
    }

    private mutating func addSockJS() {
        let base = "/sock/1/notes"
        for path in [
            "", "/info?t=1", "/iframe-1.html", "/000/h9/jsonp?c=cb", "/000/ha/htmlfile?c=cb", "/sockjs.min.js",
        ] {
            add("GET", base + path)
        }
        add("GET", "\(base)/000/hb/eventsource")
        add("OPTIONS", "\(base)/000/h1/xhr", [("origin", "https://example.com")])
        add("POST", "\(base)/000/hc/xhr_streaming", [("cookie", "JSESSIONID=a")], "")
        let quoted = String(decoding: JSONValue.string(initialize).serialized(), as: UTF8.self)
        // A session that opens, receives messages and answers, all on one connection.
        let messages = #"[\#(quoted),"h:1","0:i:1:::10","0:cv:","log:{\"log\":\"x\"}"]"#
        for last in ["h1", "h2"] {
            let way = "\(base)/000/\(last)"
            let bytes =
                Caller.request("POST", "\(way)/xhr", body: "")
                + Caller.request("POST", "\(way)/xhr_send", body: messages)
                + Caller.request("POST", "\(way)/xhr", body: "")
            entries.append(Entry(name: "polling", bytes: bytes))
        }
        add(
            "POST", "\(base)/000/h1/jsonp_send", [("content-type", "application/x-www-form-urlencoded")],
            "d=%5B%22h:1%22%5D")
    }

    private mutating func addSockets(_ house: ThreatHouse, _ entity: String) {
        func handshake(_ target: String) -> [UInt8] {
            WebSocketHandshake.request(host: "127.0.0.1", target: target, nonce: .init(repeating: 5, count: 16))
        }
        func frames(_ texts: [String]) -> [UInt8] {
            texts.flatMap { WebSocketWriter.frame(.text, Array($0.utf8), mask: 0x0102_0304) }
        }
        let words = [
            initialize, "h:7", "0:i:1:::10", "0:e:k.1", "0:cv:00",
            #"0:c:{"id":"w","o":"M","ccid":"w1","v":{"t":{"o":"+","v":"some words"}}}"#,
            #"0:c:{"id":"w","o":"M","sv":1,"ccid":"w2","v":{"t":{"o":"d","v":"=5\t+more "}}}"#, "0:index:{}",
        ]
        let ping = WebSocketWriter.frame(.ping, [1, 2, 3], mask: 9)
        entries.append(
            Entry(name: "WebSocket", bytes: handshake("/sock/1/notes/websocket") + frames(words) + ping))
        let framed = words.map {
            "[" + String(decoding: JSONValue.string($0).serialized(), as: UTF8.self) + "]"
        }
        entries.append(
            Entry(
                name: "SockJS WebSocket",
                bytes: handshake("/sock/1/notes/000/w1/websocket") + frames(framed + ["[]", "\"h:1\""])))
        let partner = house.login(entity, "p1", device: "D")
        let shop =
            #"0:init:{"clientid":"h","api":"1.1","token":"\#(partner)","app_id":"shop","name":"b","device_id":"D"}"#
        entries.append(
            Entry(
                name: "WebSocket of a partner", bytes: handshake("/sock/1/shop/websocket") + frames([shop, "0:i:::5"])))
    }
}
