import Glibc
import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// Users whose passwords the server keeps: login by name and password, renewal, logout.
@Suite("Passwords of partners' users")
struct PartnerCredentialTests {
    @Test("T10: a registered user logs in and gets the user object and a token that is good on its device only")
    func whole() throws {
        let bench = try CredentialBench()
        let made = try bench.register("ann@example.com")
        #expect(made.status == 200)
        #expect(made.fields["authorization"] == nil, "registering is not logging in")
        let entity = try #require(bench.member("sdkEntity", of: made)?.stringValue)
        #expect(
            String(decoding: made.body, as: UTF8.self)
                == #"{"id":1,"username":"ann@example.com","firstName":null,"lastName":null,"email":"ann@example.com","#
                + #""phone":"+1","language":null,"sdkEntity":"\#(entity)","sdkPartner":"1000","partnerId":1000,"#
                + #""createdAt":"2027-01-15T08:00:00","updatedAt":"2027-01-15T08:00:00","enabled":true,"#
                + #""timesLoggedIn":0,"roles":[{"role":"ROLE_USER"}],"guest":false,"accountNonExpired":true,"#
                + #""accountNonLocked":true,"credentialsNonExpired":true,"timezone":null}"#)
        let answer = try bench.login("ann@example.com")
        #expect(answer.status == 200)
        #expect(bench.member("timesLoggedIn", of: answer)?.intValue == 1)
        let token = try bench.token(answer)
        #expect(bench.admits(token))
        #expect(!bench.admits(token, device: "D"), "T10")
        let listed = try bench.ask(
            "GET /api/v1/partner/1000/customer/\(entity)/devices", token: token, device: "d"
        ).response
        #expect(String(decoding: listed.body, as: UTF8.self).contains(#""device_id":"d""#))
        bench.now += 1_799
        #expect(bench.admits(token))
        bench.now += 1
        #expect(!bench.admits(token))
    }

    @Test("T12, T16: a wrong password and an unknown name get the same bytes for the same work")
    func masked() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann")
        var (bodies, works): (Set<[UInt8]>, Set<Int>) = ([], [])
        for name in ["ann", "nobody"] {
            let before: Int = bench.stretches
            let answer = try bench.login(name, "wrong password")
            #expect(answer == PartnerAnswer.denied)
            bodies.insert(answer.encoded(for: nil))
            works.insert(bench.stretches - before)
        }
        #expect(bodies.count == 1)
        #expect(works == [1])
        #expect(try bench.login("ann").status == 200)
        for name in ["A\u{308}nn", "Ann", "ann "] { #expect(try bench.login(name).status == 403) }
    }

    @Test(
        "T16: after five wrong passwords the waits double up to a quarter of an hour, for known and unknown names"
    )
    func lockout() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann")
        var waits = [[Int]]()
        for name in ["ann", "nobody"] {
            var found = [Int]()
            for _ in 0..<5 { #expect(try bench.login(name, "wrong password", from: name).status == 403) }
            for _ in 0..<13 {
                let answer = try bench.login(name, from: "other \(name)")
                #expect(answer.status == 429)
                let seconds: Int = try #require(answer.fields["retry-after"].flatMap { Int($0) })
                found.append(seconds)
                bench.now += Double(seconds)
                #expect(try bench.login(name, "wrong password", from: name).status == 403)
            }
            waits.append(found)
        }
        #expect(waits[0] == waits[1])
        #expect(waits[0] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900])
        bench.now += 900
        #expect(try bench.login("ann").status == 200)
        #expect(try bench.login("ann", "wrong password").status == 403, "a success resets the count")
    }

    @Test("T16: after thirty failures a minute an address is refused, whatever the names; other addresses are not")
    func addresses() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann")
        for number in 0..<30 { #expect(try bench.login("n\(number)").status == 403) }
        let before = bench.stretches
        #expect(try bench.login("ann").status == 429)
        #expect(bench.stretches == before)
        #expect(try bench.login("ann", from: "192.0.2.2").status == 200)
        bench.now += 120
        #expect(try bench.login("ann").status == 200)
    }

    @Test("a name is unique; a partner that keeps no passwords, is disabled or unknown has no registration or login")
    func registration() throws {
        let bench = try CredentialBench()
        #expect(try bench.register("ann").status == 200)
        #expect(try bench.register("ann", "other password").status == 400)
        #expect(try bench.login("ann").status == 200)
        #expect(try bench.login("ann", "other password").status == 403)
        #expect(
            try bench.ask(
                "POST /v2/credentials/login", #"{"deviceId":"d","username":"ann","password":"correct horse"}"#,
                apiKey: "unknown"
            ).response == PartnerAnswer.denied)
        try bench.admin.setKeepsPasswords(false, id: bench.partner)
        #expect(try bench.register("bob") == PartnerAnswer.denied)
        #expect(try bench.login("ann") == PartnerAnswer.denied)
        try bench.admin.setKeepsPasswords(true, id: bench.partner)
        #expect(try bench.login("ann").status == 200)
        try bench.admin.setEnabled(false, id: bench.partner)
        #expect(try bench.login("ann") == PartnerAnswer.denied)
    }

    @Test("registering a name that a partner uses for a user does not give access to that user")
    func namespaces() throws {
        let bench = try CredentialBench()
        let known = try bench.store.register(
            partner: bench.partner, partnerEntity: "ann", email: "a@b", newID: "theirs", now: 0)
        let made = try bench.register("ann")
        #expect(bench.member("sdkEntity", of: made)?.stringValue != known.id)
    }

    @Test(
        "invalid bodies get 400 and cost no derivation",
        arguments: [
            "", "[]", "{}", #"{"username":"a","password":"12345678"}"#,
            #"{"deviceId":"d","username":"","password":"12345678"}"#,
            #"{"deviceId":"d","username":"a","password":"1234567"}"#,
            #"{"deviceId":"","username":"a","password":"12345678"}"#,
            #"{"deviceId":7,"username":"a","password":"12345678"}"#,
            #"{"deviceId":"d","username":"a\n","password":"12345678"}"#,
            #"{"deviceId":"d","username":"a","username":"b","password":"12345678"}"#,
        ])
    func bodies(_ body: String) throws {
        let bench = try CredentialBench()
        #expect(try bench.ask("POST /v2/credentials/login", body).response.status == 400)
        #expect(bench.stretches == 0)
    }

    @Test("a login whose header names another device than its body is refused")
    func devices() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann")
        let body = #"{"deviceId":"d","username":"ann","password":"correct horse"}"#
        #expect(try bench.ask("POST /v2/credentials/login", body, device: "x").response.status == 400)
        #expect(try bench.ask("POST /v2/credentials/login", body, device: "d").response.status == 200)
    }

    // MARK: Renewal

    @Test("a token is renewed up to a day after its end, a session up to thirty days")
    func renewal() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann")
        var token = try bench.token(try bench.login("ann"))
        let begin: Double = bench.now
        bench.now += 1_800 + 86_399
        #expect(!bench.admits(token))
        token = try bench.renewed(try bench.ping(token))
        #expect(bench.admits(token))
        bench.now += 1_800 + 86_400
        #expect(try bench.ping(token).response == PartnerAnswer.expired)
        token = try bench.token(try bench.login("ann"))
        let last: Double = bench.now + LoginSession.secondsMax
        while bench.now + 86_400 < last {
            bench.now += 86_400
            token = try bench.renewed(try bench.ping(token))
        }
        #expect(bench.now - begin > 30 * 86_400)
        bench.now = last - 1
        let final = try bench.renewed(try bench.ping(token))
        #expect(bench.admits(final))
        bench.now = last
        #expect(!bench.admits(final))
        #expect(try bench.ping(final).response == PartnerAnswer.denied)
    }

    @Test("only tokens that this server made are renewed, on their own device")
    func foreign() throws {
        let bench = try CredentialBench()
        let made = try bench.register("ann")
        let entity = try #require(bench.member("sdkEntity", of: made)?.stringValue)
        let signed = TokenMaker.login(
            entity: entity, partnerEntity: "password:" + entity, device: "d", expiry: "1800000900", key: bench.authKey)
        #expect(bench.admits(signed))
        #expect(try bench.ping(signed).response == PartnerAnswer.denied)
        let token = try bench.token(try bench.login("ann"))
        #expect(try bench.ping(token, device: "x").response == PartnerAnswer.denied)
        #expect(try bench.ping(token).response.status == 200)
        let other = try bench.token(try bench.login("ann", device: "x"))
        #expect(try bench.ping(other, device: "x").response.status == 200)
        #expect(try bench.ping(token).response.status == 200, "each device has its own")
        _ = try bench.login("ann")
        #expect(try bench.ping(token).response == PartnerAnswer.denied, "a new login on a device ends the one before")
    }

    @Test("T18: a logout with an expired token is answered as expired, and the session ends all the same")
    func lateLogout() throws {
        let bench = try CredentialBench()
        #expect(try bench.register("ann").status == 200)
        let token = try bench.token(try bench.login("ann"))
        let other = try bench.token(try bench.login("ann", device: "x"))
        bench.now += 3_600
        // With any other fault it is refused as usual, and nothing ends.
        let first = try #require(token.split(separator: ".").last?.first)
        let forged = token.replacing(".\(first)", with: first == "A" ? ".B" : ".A")
        for (token, device) in [(token, "x"), (forged, "d")] {
            let outcome = try bench.ask("POST /v1/user/logout", token: token, device: device)
            #expect(outcome.response == PartnerAnswer.denied && outcome.revocation == nil)
        }
        let renewed = try bench.renewed(try bench.ping(token))
        #expect(bench.admits(renewed))
        let outcome = try bench.ask("POST /v1/user/logout", token: token, device: "d")
        #expect(outcome.response == PartnerAnswer.expired && outcome.refusal == .expired)
        guard case .device("d", of: _)? = outcome.revocation else {
            Issue.record("the device's connections stay: \(String(describing: outcome.revocation))")
            return
        }
        for token in [token, renewed] { #expect(try bench.ping(token).response == PartnerAnswer.denied) }
        #expect(!bench.admits(renewed))
        let again = try bench.ask("POST /v1/user/logout", token: token, device: "d")
        #expect(again.response == PartnerAnswer.denied && again.revocation == nil)
        #expect(try bench.ping(other, device: "x").response.status == 200, "another device's stays")
    }

    @Test("an expired token that the partner signed ends nothing, since it belongs to no session")
    func lateForeignLogout() throws {
        let bench = try CredentialBench()
        let entity: String = try bench.store.register(
            partner: bench.partner, partnerEntity: "p1", email: "a@b", newID: "e-1", now: bench.now
        ).id
        let token = { seconds in
            TokenMaker.login(
                entity: entity, partnerEntity: "p1", device: "d", expiry: "\(Int(bench.now) + seconds)",
                key: bench.authKey)
        }
        let outcome = try bench.ask("POST /v1/user/logout", token: token(-1), device: "d")
        #expect(outcome.response == PartnerAnswer.expired && outcome.revocation == nil)
        #expect(try bench.store.devices(of: entity).isEmpty, "nor was the device seen")
        #expect(bench.admits(token(60)))
    }

    @Test("T18: logout ends the session: all its tokens are refused, and none is renewed")
    func logout() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann")
        let first = try bench.token(try bench.login("ann"))
        bench.now += 60
        let second = try bench.renewed(try bench.ping(first))
        #expect(bench.admits(first) && bench.admits(second))
        let outcome = try bench.ask("POST /v1/user/logout", token: second, device: "d")
        #expect(outcome.response.status == 204)
        for token in [first, second] {
            #expect(!bench.admits(token))
            #expect(try bench.ping(token).response == PartnerAnswer.denied)
        }
    }

    @Test("a user's oldest sessions end beyond a bound")
    func bounded() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann")
        var tokens = [String]()
        for number in 0..<(LoginSession.perUserMax + 2) {
            bench.now += 1
            tokens.append(try bench.token(try bench.login("ann", device: "d\(number)")))
        }
        #expect(!bench.admits(tokens[1], device: "d1"))
        #expect(bench.admits(tokens[2], device: "d2"))
    }

    // MARK: Changed and forgotten passwords

    @Test("a password change by the old password ends the user's other sessions and keeps this one")
    func change() throws {
        let bench = try CredentialBench()
        let made = try bench.register("ann")
        let entity = try #require(bench.member("sdkEntity", of: made)?.stringValue)
        let other = try bench.token(try bench.login("ann", device: "x"))
        let token = try bench.token(try bench.login("ann"))
        func change(_ old: String, _ new: String) throws -> PartnerService.Outcome {
            try bench.ask(
                "POST /v2/credentials/change", #"{"oldPassword":"\#(old)","newPassword":"\#(new)"}"#, token: token,
                device: "d")
        }
        #expect(try change("wrong password", "better horse").response == PartnerAnswer.denied)
        #expect(try change("correct horse", "short").response.status == 400)
        #expect(bench.admits(other, device: "x"))
        let outcome = try change("correct horse", "better horse")
        #expect(outcome.response.status == 204)
        #expect(outcome.revocation == .user(entity, keeping: "d"))
        #expect(bench.admits(token))
        #expect(!bench.admits(other, device: "x"))
        #expect(try bench.login("ann").status == 403)
        #expect(try bench.login("ann", "better horse").status == 200)
        #expect(
            try bench.ask("POST /v2/credentials/change", "{}", token: "x.y.z", device: "d").response
                == PartnerAnswer.denied)
    }

    @Test("a request for a code is answered alike for every name; the code resets the password and nothing else")
    func forgotten() throws {
        let bench = try CredentialBench()
        let made = try bench.register("ann@example.com")
        let token = try bench.token(try bench.login("ann@example.com"))
        let asked = try bench.forget("ann@example.com")
        let nobody = try bench.forget("bob@example.com")
        #expect(asked.response == nobody.response)
        #expect(asked.response.status == 200)
        #expect(nobody.code == nil)
        #expect(bench.mails.all.map(\.to.text) == ["ann@example.com"])
        #expect(bench.mails.rehearsed == 1, "the same work for an unknown name")
        let code = try #require(asked.code)
        #expect(code.utf8.count == 8)
        #expect(try bench.verify("ann@example.com", code).response.status == 204)
        #expect(!bench.admits(token), "sessions end")
        #expect(try bench.login("ann@example.com").status == 403)
        let again = try bench.login("ann@example.com", "another one")
        #expect(again.status == 200)
        #expect(bench.member("sdkEntity", of: again) == bench.member("sdkEntity", of: made))
        #expect(try bench.verify("ann@example.com", code).response == PartnerAnswer.denied, "a code is good once")
    }

    @Test("T16: a code is good for fifteen minutes and five tries, and at most one is sent in five minutes")
    func codes() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann@example.com")
        let first = try #require(try bench.forget("ann@example.com").code)
        #expect(try bench.forget("ann@example.com").code == nil)
        bench.now += 899
        let wrong = first.hasPrefix("0") ? "1" + first.dropFirst() : "0" + first.dropFirst()
        for _ in 0..<4 { #expect(try bench.verify("ann@example.com", wrong).response == PartnerAnswer.denied) }
        #expect(try bench.verify("ann@example.com", first).response.status == 204)
        let second = try #require(try bench.forget("ann@example.com").code)
        for _ in 0..<5 { #expect(try bench.verify("ann@example.com", wrong).response.status == 403) }
        #expect(try bench.verify("ann@example.com", second).response.status == 429, "and names are guarded as at login")
        bench.now += 60
        #expect(try bench.verify("ann@example.com", second).response == PartnerAnswer.denied, "used up")
        bench.now += 1_000
        let third = try #require(try bench.forget("ann@example.com").code)
        bench.now += 900
        #expect(try bench.verify("ann@example.com", third).response == PartnerAnswer.denied)
    }

    @Test("T16: password guesses do not keep the owner from the code, and the code resets their count")
    func guessedPassword() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann@example.com")
        for _ in 0..<5 { #expect(try bench.login("ann@example.com", "a wrong guess").status == 403) }
        #expect(try bench.login("ann@example.com").status == 429)
        let code = try #require(try bench.forget("ann@example.com").code)
        #expect(try bench.verify("ann@example.com", code).response.status == 204)
        #expect(try bench.login("ann@example.com", "another one").status == 200)
    }

    @Test("a code for an unknown name, or a name that is not an address, costs the same work and sends nothing")
    func codesForNobody() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann")
        #expect(try bench.forget("ann").code == nil)
        #expect(bench.mails.all.isEmpty)
        var works = Set<Int>()
        for name in ["ann", "nobody"] {
            let before = bench.stretches
            #expect(try bench.verify(name, "12345678").response == PartnerAnswer.denied)
            works.insert(bench.stretches - before)
        }
        #expect(works == [1])
    }

    @Test("a failing outbox leaves the answer as it is and is reported")
    func brokenOutbox() throws {
        let bench = try CredentialBench()
        _ = try bench.register("ann@example.com")
        bench.mails.isBroken = true
        #expect(throws: DirectoryError.self) { try bench.forget("ann@example.com") }
    }

    @Test("codes have eight digits, each equally likely")
    func digits() {
        var counts = [Character: Int]()
        for _ in 0..<1_000 {
            let code = ResetCode.make(random: RandomBytes.make)
            #expect(code.utf8.count == 8)
            for digit in code { counts[digit, default: 0] += 1 }
        }
        #expect(counts.count == 10)
        #expect(counts.values.allSatisfy { (600...1_000).contains($0) })
        #expect(ResetCode.make { Array(repeating: 255, count: $0 - 1) + [7] } == "77777777")
    }
}

@Suite("Guests of partners")
struct PartnerGuestTests {
    private func registration(_ bench: CredentialBench, _ name: String) -> String {
        TokenMaker.registration(partnerEntity: name, expiry: "1800000900", key: bench.authKey)
    }

    @Test("a registration token makes a guest, once for each of the partner's ids")
    func register() throws {
        let bench = try CredentialBench(keepsPasswords: false)
        func make(_ name: String, _ body: String = "{}") throws -> HTTPResponse {
            try bench.ask(
                "POST /api/v2/authentication/register/guest", body, token: registration(bench, name)
            ).response
        }
        let first = try make("g1")
        #expect(first.status == 200)
        #expect(bench.member("guest", of: first) == .bool(true))
        #expect(bench.member("username", of: first) == .null)
        let entity = try #require(bench.member("sdkEntity", of: first)?.stringValue)
        #expect(bench.member("sdkEntity", of: try make("g1"))?.stringValue == entity)
        #expect(bench.member("sdkEntity", of: try make("g2"))?.stringValue != entity)
        #expect(try make("g3", "[]").status == 400)
        #expect(
            try bench.ask("POST /api/v2/authentication/register/guest", "{}").response == PartnerAnswer.denied)
        _ = try bench.store.register(partner: bench.partner, partnerEntity: "u", email: "a@b", newID: "u1", now: 0)
        #expect(bench.member("guest", of: try make("u")) == .bool(false), "a known user is not a guest")
    }

    @Test("a guest logs in with a login token, which comes back; T11: no other token or entity works")
    func login() throws {
        let bench = try CredentialBench(keepsPasswords: false)
        let made = try bench.ask(
            "POST /api/v2/authentication/register/guest", "{}", token: registration(bench, "g1")
        ).response
        let entity = try #require(bench.member("sdkEntity", of: made)?.stringValue)
        let token = TokenMaker.login(
            entity: entity, partnerEntity: "g1", device: "d/1", expiry: "1800000900", key: bench.authKey)
        func login(_ body: String, _ token: String) throws -> HTTPResponse {
            try bench.ask("POST /api/v2/authentication/login/guest", body, token: token, device: "d/1").response
        }
        let answer = try login(#"{"deviceId":"d/1","entityId":"\#(entity)"}"#, token)
        #expect(answer.status == 200)
        #expect(answer.fields["authorization"] == "Bearer " + token)
        #expect(bench.member("timesLoggedIn", of: answer)?.intValue == 1)
        #expect(try login(#"{"deviceId":"d/2","entityId":"\#(entity)"}"#, token).status == 400)
        #expect(try login(#"{"deviceId":"d/1","entityId":"other"}"#, token).status == 400)
        #expect(try login("{}", registration(bench, "g1")) == PartnerAnswer.denied)
    }
}

@Suite("Dates for apps")
struct CalendarTimeTests {
    @Test(
        "days, leap years and moments before 1970",
        arguments: [
            (0, "1970-01-01T00:00:00"), (-1, "1969-12-31T23:59:59"), (951_782_400_000, "2000-02-29T00:00:00"),
            (4_107_542_400_000, "2100-03-01T00:00:00"), (1_795_324_861_999, "2026-11-22T05:21:01"),
            (-62_135_596_800_000, "0001-01-01T00:00:00"),
        ] as [(Int64, String)])
    func dates(_ milliseconds: Int64, _ text: String) { #expect(CalendarTime.text(milliseconds) == text) }

    @Test("dates equal those of the C library on every day of four centuries")
    func all() {
        for day in Int64(-40_000)..<110_000 {
            var seconds = time_t(day * 86_400)
            var parts = tm()
            gmtime_r(&seconds, &parts)
            let month = parts.tm_mon < 9 ? "0\(parts.tm_mon + 1)" : "\(parts.tm_mon + 1)"
            let date = parts.tm_mday < 10 ? "0\(parts.tm_mday)" : "\(parts.tm_mday)"
            let text: String = CalendarTime.text(day * 86_400_000)
            guard text == "\(1_900 + parts.tm_year)-\(month)-\(date)T00:00:00" else {
                Issue.record("day \(day): \(text)")
                return
            }
        }
    }
}
