import Testing
import ThicketProtocol

@testable import ThicketServer

/// From the bytes of a request to a checked call, without a server.
@Suite("REST requests")
struct RESTHandlerTests {
    private static func request(
        _ line: String, token: String? = "t0ken", fields: [String] = [], body: String = ""
    ) throws -> HTTPRequest {
        var text = "\(line) HTTP/1.1\r\nhost: x\r\n"
        if let token { text += "X-Simperium-Token: \(token)\r\n" }
        for field in fields { text += "\(field)\r\n" }
        if !body.isEmpty { text += "content-length: \(body.utf8.count)\r\n" }
        var reader = HTTPRequestReader()
        let bytes: [UInt8] = Array((text + "\r\n" + body).utf8)
        return try #require(
            try bytes.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                var input: UnsafeRawBufferPointer = bytes
                return try reader.next(&input)
            })
    }

    private static func read(_ request: HTTPRequest, origins: String = "none") -> RESTHandler.Reading {
        RESTHandler(cors: CORSPolicy(origins), documentBytesMax: 1_000, makeChangeID: { "made" }).read(request)
    }

    private static func call(_ line: String, fields: [String] = [], body: String = "") throws -> RESTCall {
        guard case .call(let call) = read(try request(line, fields: fields, body: body)) else {
            Issue.record("\(line) was answered at once")
            throw Unexpected()
        }
        return call
    }

    private static func refusal(_ request: HTTPRequest) -> (status: Int, code: String)? {
        guard case .answer(let response) = read(request) else { return nil }
        let body: JSONObject? = (try? JSONValue(parsing: response.body))?.objectValue
        guard case .string(let code)? = body?["code"], body?["message"] != nil, body?["hint"] != nil else {
            return (response.status, "")
        }
        return (response.status, code)
    }

    @Test(
        "the handler owns the paths of the data API and no others",
        arguments: [
            ("/1/app/notes/index", true), ("/1/app/notes/i/a", true), ("/1/app/buckets", true),
            ("/1/app/user/", true), ("/1/app/notes/anything", true), ("/1/app/authorize/", false),
            ("/1/app/create", false), ("/1/app", false), ("/1/", false), ("/sock/1/app/websocket", false),
            ("/health/live", false), ("/", false), ("*", false),
        ] as [(String, Bool)])
    func owned(path: String, isOurs: Bool) {
        #expect(RESTHandler.owns(path[...]) == isOurs)
    }

    @Test("an object is requested by key, by version and with If-None-Match")
    func objects() throws {
        let call: RESTCall = try Self.call("GET /1/APP/notes/i/a%40b.c?clientid=x+y%2B")
        #expect(call.app.text == "app" && call.bucket?.text == "notes" && call.token == "t0ken")
        #expect(call.clientID.text == "x y+")
        guard case .object(let key, nil, let terms) = call.operation, terms == ReadTerms() else { throw Unexpected() }
        #expect(key.text == "a@b.c")
        guard
            case .object(_, 7, let given) = try Self.call(
                "GET /1/app/notes/i/a/v/7", fields: ["If-None-Match: \"3\", W/\"4\",x"]
            ).operation, given.known == .these([3, 4]), given.wanted == nil
        else { throw Unexpected() }
        guard case .object = try Self.call("HEAD /1/app/notes/i/a/").operation else { throw Unexpected() }
        guard case .object(let raw, _, _) = try Self.call("GET /1/app/notes/i/100%").operation else {
            throw Unexpected()
        }
        #expect(raw.text == "100%", "a percent sign without an escape is literal")
        guard case .object(let once, _, _) = try Self.call("GET /1/app/notes/i/a%2541").operation else {
            throw Unexpected()
        }
        #expect(once.text == "a%41", "decoded once")
    }

    @Test("the last of repeated parameters counts, and a page has at most 1,000 entries")
    func index() throws {
        guard
            case .index(let request) = try Self.call("GET /1/app/notes/index?mark=m1&limit=7&data=1&mark=m2&since=s")
                .operation
        else { throw Unexpected() }
        #expect(request == IndexRequest(wantsData: true, mark: "m2", since: "s", limit: 7))
        guard case .index(let plain) = try Self.call("GET /1/app/notes/index?limit=5000").operation else {
            throw Unexpected()
        }
        #expect(plain.pageLimit == 1_000 && !plain.wantsData && plain.mark == nil)
    }

    @Test("a change carries its ccid, its version and its terms")
    func changes() throws {
        let call: RESTCall = try Self.call(
            "POST /1/app/notes/i/a/v/4?ccid=c1&response=1&clientid=me", body: #"{"t":"x"}"#)
        guard case .write(let change, let terms, true) = call.operation else { throw Unexpected() }
        #expect(change.key == "a" && change.ccid == "c1" && change.sv == 4 && change.operation == .modify)
        #expect(change.diff == nil && change.object?.object == JSONObject([(key: "t", value: .string("x"))]))
        #expect(terms == ChangeTerms(mergesObject: true, needsSource: true))
        #expect(call.clientID.text == "me" && call.bytes == 9)
        guard
            case .write(let made, let whole, false) = try Self.call(
                "POST /1/app/notes/i/a?replace=1&response=0", fields: ["If-None-Match: *"], body: "{}"
            ).operation
        else { throw Unexpected() }
        #expect(made.ccid == "made" && made.sv == nil)
        #expect(whole == ChangeTerms(needsSource: true, condition: .absent))
        guard
            case .write(let removal, let removing, false) = try Self.call(
                "DELETE /1/app/notes/i/a/v/2", fields: ["If-Match: \"2\""]
            ).operation
        else { throw Unexpected() }
        #expect(removal.operation == .remove && removal.sv == 2 && removing.condition == .version(2))
    }

    @Test("changes come as one array or alone, and EMPTY is one of them")
    func submissions() throws {
        let body: String =
            #"[{"id":"a","o":"-","ccid":"1"},{"id":"notes","o":"EMPTY","ccid":"2"},{"id":7}]"#
        guard case .submit(let changes) = try Self.call("POST /1/app/notes/changes?wait=1", body: body).operation else {
            throw Unexpected()
        }
        #expect(changes.count == 3 && changes[0].problems.isEmpty)
        #expect(changes[1].operation == .empty && changes[1].problems.isEmpty && !changes[2].problems.isEmpty)
        guard case .submit(let one) = try Self.call("POST /1/app/notes/changes", body: #"{"id":"a"}"#).operation else {
            throw Unexpected()
        }
        #expect(one.count == 1)
    }

    @Test(
        "an error is answered as JSON with its code",
        arguments: [
            ("GET /1/app/notes/nothing", 404, "no_such_path"), ("GET /1/app/notes/i/a/v", 404, "no_such_path"),
            ("PUT /1/app/notes/i/a", 405, "method_not_allowed"), ("POST /1/app/notes/index", 405, "method_not_allowed"),
            ("GET /1/app/no%20tes/index", 400, "invalid_bucket"), ("GET /1/app/notes/i/a%2Fb", 400, "invalid_key"),
            ("GET /1/app/notes/i/a/v/x", 400, "invalid_version"), ("GET /1/app/notes/i/a/v/0", 400, "invalid_version"),
            ("GET /1/app/notes/i/a/v/99999999999999999999", 400, "invalid_version"),
            ("GET /1/app/notes/index?limit=0", 400, "invalid_parameter"),
            ("GET /1/app/notes/index?limit=-1", 400, "invalid_parameter"),
            ("DELETE /1/app/notes/i/a?ccid=a%20b", 400, "invalid_parameter"),
            ("GET /1/app/notes/i/a?clientid=%00", 400, "invalid_parameter"),
            ("GET /1/a%20p/notes/index", 401, "unauthorized"),
            ("GET /1/app/notes/all?batch=0", 400, "invalid_parameter"),
            ("POST /1/app/notes/i/a", 400, "invalid_json"), ("POST /1/app/notes/changes", 400, "invalid_json"),
        ] as [(String, Int, String)])
    func refusals(line: String, status: Int, code: String) throws {
        let reported: (status: Int, code: String) = try #require(Self.refusal(try Self.request(line)))
        #expect(reported.status == status && reported.code == code)
    }

    @Test("invalid bodies and conditions are refused with their code")
    func bodies() throws {
        for body: String in ["[]", "1", "{", "\"x\"", "{\"a\":1,}", "null"] {
            #expect(Self.refusal(try Self.request("POST /1/app/notes/i/a", body: body))?.code == "invalid_json")
        }
        let large: String = "{\"t\":\"" + String(repeating: "x", count: 6_000) + "\"}"
        #expect(Self.refusal(try Self.request("POST /1/app/notes/i/a", body: large))?.code == "too_large")
        for field: String in ["If-Match: 7", "If-Match: \"x\"", "If-None-Match: \"3\""] {
            let request: HTTPRequest = try Self.request("POST /1/app/notes/i/a", fields: [field], body: "{}")
            #expect(Self.refusal(request)?.code == "invalid_condition", "\(field)")
        }
    }

    @Test("a missing, repeated, malformed or overlong token is answered with 401")
    func tokens() throws {
        #expect(Self.refusal(try Self.request("GET /1/app/user", token: nil))?.status == 401)
        #expect(Self.refusal(try Self.request("GET /1/app/user", token: "a b"))?.status == 401)
        let twice: HTTPRequest = try Self.request("GET /1/app/user", fields: ["x-simperium-token: other"])
        #expect(Self.refusal(twice)?.status == 401)
        let long = String(repeating: "t", count: 1_025)
        #expect(Self.refusal(try Self.request("GET /1/app/user", token: long))?.status == 401)
    }

    @Test("only pages of listed origins may use the API, and no answer allows credentials")
    func cors() throws {
        let ask: [String] = ["Origin: https://a.example", "Access-Control-Request-Method: POST"]
        func preflight(_ origins: String, _ fields: [String]) throws -> HTTPResponse {
            let request: HTTPRequest = try Self.request("OPTIONS /1/app/notes/i/a", token: nil, fields: fields)
            guard case .answer(let response) = Self.read(request, origins: origins) else { throw Unexpected() }
            return response
        }
        let none: HTTPResponse = try preflight("none", ask)
        #expect(none.status == 204 && none.fields["access-control-allow-origin"] == nil)
        #expect(none.fields["allow"] == "GET, HEAD, POST, DELETE, OPTIONS")
        let listed: HTTPResponse = try preflight("https://b.example, https://a.example", ask)
        #expect(listed.fields["access-control-allow-origin"] == "https://a.example")
        #expect(listed.fields["vary"] == "origin")
        #expect(listed.fields["access-control-allow-methods"] == "GET, HEAD, POST, DELETE, OPTIONS")
        // A partner's users name their device.
        for name: String in ["X-Simperium-Token", "X-Rezolve-Device-Id"] {
            #expect(listed.fields["access-control-allow-headers"]?.contains(name) == true, "\(name)")
        }
        #expect(listed.fields["access-control-allow-credentials"] == nil)
        for other: String in ["https://a.example.evil", "http://a.example", "https://a.example:8443", "null"] {
            let refused: HTTPResponse = try preflight("https://a.example", ["Origin: \(other)", ask[1]])
            #expect(refused.fields["access-control-allow-origin"] == nil, "\(other)")
        }
        #expect(try preflight("*", ask).fields["access-control-allow-origin"] == "*")
        let twice: HTTPResponse = try preflight("https://a.example", ask + ["Origin: https://a.example"])
        #expect(twice.fields["access-control-allow-origin"] == nil)
        let request: HTTPRequest = try Self.request("GET /1/app/user", fields: ask)
        guard case .call(let call) = Self.read(request, origins: "https://a.example") else { throw Unexpected() }
        #expect(call.answerFields.contains { $0.name == "access-control-allow-origin" })
    }

    @Test(
        "a list of origins is checked when it is set",
        arguments: [
            ("none", true), ("*", true), ("https://a.example", true), ("http://localhost:3000,https://b.example", true),
            ("a.example", false), ("https://a.example/", false), ("https://", false), (",", false),
        ] as [(String, Bool)])
    func origins(list: String, isGood: Bool) {
        #expect((CORSPolicy.problem(list) == nil) == isGood)
    }
}

/// A request was not read as the test expects.
struct Unexpected: Error {}
