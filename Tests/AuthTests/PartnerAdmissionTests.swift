import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol

/// Login tokens as sync tokens, and logout.
@Suite("Partner tokens in the stream, and logout")
struct PartnerAdmissionTests {
    private static let key = String(repeating: "k", count: 88)
    private let directory = MemoryDirectory()
    private let apiKey = "11111111-2222-4333-8444-555555555555"
    private let now: Double = 1_800_000_000

    init() {
        directory.partners[apiKey] = Partner(id: "12", authKeys: [Array(Self.key.utf8)])
        directory.partners["other"] = Partner(id: "13", authKeys: [Array(String(repeating: "o", count: 88).utf8)])
        directory.apps = ["notes": "12", "tags": "13"]
        directory.entities["e1"] = Entity(id: "e1", partner: "12", partnerEntity: "p1")
    }

    private func service() -> PartnerService { PartnerService(directory: directory, random: RandomBytes.make) }

    private func token(_ expiry: String = "1800000900", key: String = PartnerAdmissionTests.key) -> String {
        TokenMaker.login(entity: "e1", partnerEntity: "p1", device: "d/1", expiry: expiry, key: key)
    }

    private func admit(
        _ service: inout PartnerService, _ token: String, device: String? = "d/1", app: String = "notes",
        now: Double? = nil
    ) -> Result<PartnerPass, TokenRefusal>? {
        switch service.admit(token, device: device, app: app, from: "1", now: now ?? self.now) {
        case .admitted(let pass): .success(pass)
        case .refused(let refusal): .failure(refusal)
        case .tooMany, .failed: nil
        }
    }

    @Test("the app names the partner, the token the user; the pass ends at the token's end plus the leeway")
    func good() throws {
        var service: PartnerService = service()
        let pass = try admit(&service, token("1800000900.5"))?.get()
        #expect(pass?.entity == "e1")
        #expect(pass?.partner == "12")
        #expect(pass?.device == "d/1")
        #expect(pass?.ends == 1_800_000_900.5)
        #expect(directory.devices["e1"] == ["d/1"])
        service.verifier.rules.expiryLeeway = 30
        #expect(try admit(&service, token("1800000900"))?.get().ends == 1_800_000_930)
    }

    @Test("T10, T11: a token is refused with another or no device, another app, an app without partner, another key")
    func refused() throws {
        var service: PartnerService = service()
        for (device, app, key) in [
            ("D/1", "notes", Self.key), (nil, "notes", Self.key), ("", "notes", Self.key), ("d/1", "tags", Self.key),
            ("d/1", "nobody", Self.key), ("d/1", "notes", String(repeating: "o", count: 88)),
        ] {
            let result = admit(&service, token(key: key), device: device, app: app)
            guard case .failure(.denied)? = result else {
                Issue.record("\(device ?? "nil") \(app): \(String(describing: result))")
                continue
            }
        }
        let registration = TokenMaker.registration(partnerEntity: "p1", expiry: "1800000900", key: Self.key)
        #expect(throws: TokenRefusal.denied(.header)) { try admit(&service, registration)?.get() }
        #expect(directory.devices.isEmpty)
    }

    @Test("T17: a token is refused from its end on, and at once when its partner is disabled")
    func times() throws {
        var service: PartnerService = service()
        #expect(try admit(&service, token(), now: now + 899)?.get().entity == "e1")
        #expect(throws: TokenRefusal.expired) { try admit(&service, token(), now: now + 900)?.get() }
        #expect(throws: TokenRefusal.denied(.lifetime)) { try admit(&service, token(), now: now - 961)?.get() }
        directory.partners[apiKey] = Partner(id: "12", authKeys: [Array(Self.key.utf8)], isEnabled: false)
        #expect(throws: TokenRefusal.denied(.partner)) { try admit(&service, token())?.get() }
    }

    @Test(
        "T16: after 120 failed tokens a minute of one app and address none is checked; expired ones do not count")
    func attempts() throws {
        var service: PartnerService = service()
        for _ in 0..<300 { _ = admit(&service, token("1799999999")) }
        for _ in 0..<120 { #expect(admit(&service, "x", device: "d/1") != nil) }
        #expect(admit(&service, token()) == nil)
        #expect(admit(&service, token(), app: "tags") != nil)
        #expect(try admit(&service, token(), now: now + 120)?.get().entity == "e1")
    }

    @Test("a directory that fails is reported as a failure, not as a refusal")
    func broken() throws {
        var service = service()
        directory.isBroken = true
        guard case .failed = service.admit(token(), device: "d/1", app: "notes", from: "1", now: now) else {
            Issue.record("not told")
            return
        }
    }

    @Test("T18: a signed-out token is refused everywhere until its end; another token of the device is not")
    func logout() throws {
        var service = service()
        let shown = token()
        let request = try RequestVectors.request(
            Array(
                """
                POST /v1/user/logout HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nx-rezolve-partner-apikey: \(apiKey)\r
                x-rezolve-device-id: d/1\r\nauthorization: Bearer \(shown)\r\n\r\n
                """.utf8))
        let route = try #require(PartnerService.route(of: request.path))
        #expect(route == .logout)
        let outcome: PartnerService.Outcome = service.answer(request, to: route, from: "1", now: now)
        #expect(outcome.response.status == 204)
        #expect(outcome.revocation == .device("d/1", of: "e1"))
        #expect(throws: TokenRefusal.denied(.signedOut)) { try admit(&service, shown)?.get() }
        let again = service.answer(request, to: route, from: "1", now: now)
        #expect(again.response == PartnerAnswer.denied)
        #expect(again.revocation == nil)
        #expect(try admit(&service, token("1800000901"))?.get().entity == "e1")
    }

    @Test("a user's devices are listed to that user")
    func devices() throws {
        directory.devices["e1"] = ["a"]
        let request = try RequestVectors.request(
            Array(
                """
                GET /api/v1/partner/12/customer/e1/devices HTTP/1.1\r\nhost: x\r\nx-rezolve-partner-apikey: \(apiKey)\r
                x-rezolve-device-id: d/1\r\nauthorization: Bearer \(token())\r\n\r\n
                """.utf8))
        let route = try #require(PartnerService.route(of: request.path))
        var service = service()
        let answer: HTTPResponse = service.answer(request, to: route, from: "1", now: now).response
        #expect(
            String(decoding: answer.body, as: UTF8.self)
                == #"{"devices":[{"device_id":"a","first_seen":1,"last_seen":2},"#
                + #"{"device_id":"d/1","first_seen":1,"last_seen":2}]}"#)
        #expect(
            service.answer(request, to: .devices(partner: "12", entity: "e2"), from: "1", now: now).response
                == PartnerAnswer.denied)
    }
}
