import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol

@Suite("Partner requests")
struct PartnerServiceTests {
    private static let key = String(repeating: "k", count: 88)
    private let directory = MemoryDirectory()
    private let apiKey = "11111111-2222-4333-8444-555555555555"
    private let now: Double = 1_800_000_000

    init() { directory.partners[apiKey] = Partner(id: "12", authKeys: [Array(Self.key.utf8)]) }

    private func service() -> PartnerService { PartnerService(directory: directory, random: RandomBytes.make) }

    private func request(_ line: String, _ fields: [String], _ body: String = "") throws -> HTTPRequest {
        let head = ["\(line) HTTP/1.1", "host: x", "content-length: \(body.utf8.count)"] + fields
        return try RequestVectors.request(Array((head.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8))
    }

    private func registration(_ partnerEntity: String = "p1", body: String = #"{"email":"a@b"}"#) throws -> HTTPRequest
    {
        let token = TokenMaker.registration(partnerEntity: partnerEntity, expiry: "1800000900", key: Self.key)
        return try request(
            "POST /api/v2/authentication/register",
            ["x-rezolve-partner-apikey: \(apiKey)", "authorization: Bearer \(token)"], body)
    }

    private func member(_ name: String, of response: HTTPResponse) throws -> String? {
        try JSONDocument(parsing: response.body[...]).root[name]?.string
    }

    @Test("a partner's user gets the same id each time, another user gets another id")
    func registers() throws {
        var service = service()
        let answers = try ["p1", "p1", "p2"].map {
            service.answer(try registration($0), to: .register, from: "1", now: now).response
        }
        #expect(answers.allSatisfy { $0.status == 200 })
        let ids = try answers.map { try member("entity_id", of: $0) }
        #expect(ids[0] == ids[1])
        #expect(ids[0] != ids[2])
        #expect(ids[0]?.utf8.count == 36)
    }

    @Test(
        "an invalid body is answered 400 with code 2, only with a good token",
        arguments: [
            "", "[]", "{}", #"{"email":7}"#, #"{"email":"a"}"#, #"{"email":"@b"}"#, #"{"email":"a@"}"#,
            #"{"email":"a@b@c"}"#, #"{"email":"a b@c"}"#, #"{"email":"a@b","email":"a@b"}"#,
            "{\"email\":\"\(String(repeating: "x", count: 253))@y\"}",
        ])
    func bodies(_ body: String) throws {
        var service = service()
        let outcome: PartnerService.Outcome = service.answer(
            try registration(body: body), to: .register, from: "1", now: now)
        #expect(outcome.response.status == 400)
        #expect(try member("code", of: outcome.response) == "2")
        #expect(directory.entities.isEmpty)
    }

    @Test("T13: an expired registration token is 401 even with a bad body, a bad one 403")
    func order() throws {
        var service = service()
        let late: PartnerService.Outcome = service.answer(
            try registration(body: "x"), to: .register, from: "1", now: now + 900)
        #expect(late.response == PartnerAnswer.expired)
        #expect(
            service.answer(
                try request("POST /api/v1/authentication/register", [], "x"), to: .register, from: "1", now: now
            ).response == PartnerAnswer.denied)
    }

    @Test(
        "T12: every fault of the authorization gets the very same answer",
        arguments: [
            [], ["authorization: Bearer"], ["authorization: Bearer  T"], ["authorization: Basic T"],
            ["authorization: T"],
            ["authorization: Bearer T", "authorization: Bearer T"], ["authorization: BearerT"],
            ["authorization: Bearer T", "x-rezolve-partner-apikey: 11111111-2222-4333-8444-555555555555"],
        ])
    func authorization(_ fields: [String]) throws {
        var service: PartnerService = service()
        let token = TokenMaker.registration(partnerEntity: "p", expiry: "1800000900", key: Self.key)
        let all =
            ["x-rezolve-partner-apikey: \(apiKey)"] + fields.map { $0.replacing(" T", with: " " + token) }
        let outcome: PartnerService.Outcome = service.answer(
            try request("POST /api/v1/authentication/register", all, #"{"email":"a@b"}"#), to: .register, from: "1",
            now: now)
        #expect(outcome.response == PartnerAnswer.denied)
        #expect(directory.entities.isEmpty)
    }

    @Test("T16: after 120 failures a minute an address is refused unread; other addresses are not")
    func failures() throws {
        var service: PartnerService = service()
        let bad: HTTPRequest = try request(
            "POST /api/v1/authentication/register", ["x-rezolve-partner-apikey: \(apiKey)"])
        for _ in 0..<120 {
            #expect(service.answer(bad, to: .register, from: "1", now: now).response.status == 403)
        }
        let blocked = service.answer(try registration(), to: .register, from: "1", now: now).response
        #expect(blocked.status == 429)
        #expect(blocked.fields["retry-after"] != nil)
        #expect(service.answer(try registration(), to: .register, from: "2", now: now).response.status == 200)
        let wait: Double = Double(blocked.fields["retry-after"] ?? "") ?? .infinity
        #expect(service.answer(try registration(), to: .register, from: "1", now: now + wait).response.status == 200)
    }

    @Test("T16: a partner may make 60 registrations a minute, counted when they are accepted")
    func registrations() throws {
        var service = service()
        for user in 0..<60 {
            let answer: PartnerService.Outcome = service.answer(
                try registration("u\(user)"), to: .register, from: "\(user)", now: now)
            #expect(answer.response.status == 200)
        }
        #expect(service.answer(try registration(), to: .register, from: "x", now: now).response.status == 429)
        #expect(directory.entities.count == 60)
    }

    @Test("a directory that fails gives 503, which does not count as a failure of the client")
    func broken() throws {
        var service: PartnerService = service()
        directory.isBroken = true
        for _ in 0..<200 {
            let answer: HTTPResponse = service.answer(try registration(), to: .register, from: "1", now: now).response
            #expect(answer.status == 503)
        }
        directory.isBroken = false
        #expect(service.answer(try registration(), to: .register, from: "1", now: now).response.status == 200)
    }

    @Test("public keys are null before a device uploads them, base64 afterwards; the device is remembered")
    func publicKeys() throws {
        directory.entities["e 1"] = Entity(id: "e 1", partner: "12", partnerEntity: "p1")
        let token = TokenMaker.login(
            entity: "e 1", partnerEntity: "p1", device: "d/1", expiry: "1800000900", key: Self.key)
        let asked = try request(
            "GET /api/v1/partner/12/customer/e%201/publickey",
            ["x-rezolve-partner-apikey: \(apiKey)", "x-rezolve-device-id: d/1", "authorization: bearer \(token)"])
        let route = try #require(PartnerService.route(of: asked.path))
        var service = service()
        let before: HTTPResponse = service.answer(asked, to: route, from: "1", now: now).response
        #expect(String(decoding: before.body, as: UTF8.self) == #"{"public_key":null,"sign_key":null}"#)
        directory.entities["e 1"] = Entity(
            id: "e 1", partner: "12", partnerEntity: "p1", publicKey: [1, 2, 3], signKey: [4])
        let after = service.answer(asked, to: route, from: "1", now: now).response
        #expect(String(decoding: after.body, as: UTF8.self) == #"{"public_key":"AQID","sign_key":"BA=="}"#)
        #expect(directory.devices["e 1"] == ["d/1"])
        directory.entities["e 1"] = Entity(id: "e 1", partner: "13", partnerEntity: "p1")
        #expect(service.answer(asked, to: route, from: "1", now: now).response == PartnerAnswer.denied)
    }

    @Test(
        "other paths are not partner requests",
        arguments: [
            "/", "/api/v3/authentication/register", "/api/v1/authentication/register/", "/api/v1/authentication",
            "/api/v2/partner/1/customer/2/publickey", "/api/v1/partner/1/customer/%zz/publickey",
            "/api/v1/partner/1/customer/%ff/publickey", "api/v1/authentication/register",
        ])
    func paths(_ path: String) { #expect(PartnerService.route(of: path[...]) == nil) }
}

@Suite("Counting attempts")
struct AttemptMeterTests {
    @Test("attempts leave the window within two minutes")
    func slides() {
        var meter = AttemptMeter(perMinute: 10)
        for _ in 0..<10 { meter.add("a", now: 1_000) }
        #expect(meter.wait("a", now: 1_000) != nil)
        #expect(meter.wait("b", now: 1_000) == nil)
        let wait = meter.wait("a", now: 1_000) ?? 0
        #expect(meter.wait("a", now: 1_000 + Double(wait) - 1) != nil)
        #expect(meter.wait("a", now: 1_000 + Double(wait)) == nil)
        #expect(meter.wait("a", now: 1_200) == nil)
    }

    @Test("T17: a clock that goes back does not end the wait")
    func back() {
        var meter = AttemptMeter(perMinute: 3)
        for _ in 0..<3 { meter.add("a", now: 6_000) }
        #expect(meter.wait("a", now: 2_400) != nil)
        #expect(meter.wait("a", now: -1e300) != nil)
    }

    @Test("the number of names is bounded; beyond it names share one count")
    func bounded() {
        var meter = AttemptMeter(perMinute: 2)
        for name in 0..<AttemptMeter.namesMax { meter.add("\(name)", now: 0) }
        for name in 0..<3 { meter.add("new \(name)", now: 0) }
        #expect(meter.wait("yet another", now: 0) != nil)
        #expect(meter.wait("7", now: 0) == nil)
    }
}
