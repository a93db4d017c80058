import Testing
import ThicketAuth
import ThicketCrypto
import ThicketPlatform

/// The rules of partner tokens one by one, from the standards (RFC 7515, 7519, 8725) and our own decisions.
@Suite("Partner tokens")
struct TokenVerifierTests {
    private static let key = String(repeating: "k", count: 88)
    private static let other = String(repeating: "o", count: 88)
    private static let now: Double = 1_800_000_000
    private let partner = Partner(id: "12", authKeys: [Array(TokenVerifierTests.key.utf8)])

    private func read(
        _ token: String, _ partner: Partner?, rules: TokenRules = .init()
    ) -> Result<TokenClaims, TokenRefusal> {
        do throws(TokenRefusal) {
            return .success(
                try TokenVerifier(rules).read(
                    Array(token.utf8)[...], of: partner, phase: .login(device: "d/1+x"), now: Self.now))
        } catch {
            return .failure(error)
        }
    }

    private func token(
        header: String = TokenMaker.loginHeader, members: [String: String] = [:], without: String = "",
        key: String = key
    ) -> String {
        var all = [
            "rezolve_entity_id": #""e1""#, "partner_entity_id": #""p1""#, "device_id": #""d/1+x""#,
            "exp": "1800000900",
        ]
        for (name, value) in members { all[name] = value }
        all[without] = nil
        let payload = all.sorted { $0.key < $1.key }.map { #""\#($0.key)":\#($0.value)"# }.joined(
            separator: ",")
        return TokenMaker.sign(header, "{\(payload)}", key: key)
    }

    @Test("a good token is read")
    func good() throws {
        let claims = try read(token(), partner).get()
        #expect(claims.entity == "e1")
        #expect(claims.partnerEntity == "p1")
        #expect(claims.device == "d/1+x")
        #expect(claims.expiry == 1_800_000_900)
    }

    @Test(
        "a header needs alg HS512, auth v2 and typ JWT; duplicates, crit, b64, zip and key members are refused",
        arguments: [
            (#"{"alg":"HS512","auth":"v2","typ":"jwt"}"#, true),
            (#" { "typ" : "JWT" , "kid" : "../../etc/passwd", "auth":"v2", "alg" : "HS512" } "#, true),
            (#"{"alg":"HS512","auth":"v2"}"#, false), (#"{"alg":"HS512","auth":"v1","typ":"JWT"}"#, false),
            (#"{"alg":"HS512","typ":"JWT"}"#, false), (#"{"alg":"hs512","auth":"v2","typ":"JWT"}"#, false),
            (#"{"alg":"none","auth":"v2","typ":"JWT"}"#, false), (#"{"auth":"v2","typ":"JWT"}"#, false),
            (#"{"alg":["HS512"],"auth":"v2","typ":"JWT"}"#, false),
            (#"{"alg":"HS512","alg":"HS512","auth":"v2","typ":"JWT"}"#, false),
            (#"{"alg":"HS512","\u0061lg":"none","auth":"v2","typ":"JWT"}"#, false),
            (#"{"alg":"HS512","auth":"v2","typ":"JWT","crit":[]}"#, false),
            (#"{"alg":"HS512","auth":"v2","typ":"JWT","b64":true}"#, false),
            (#"{"alg":"HS512","auth":"v2","typ":"JWT","zip":"DEF"}"#, false),
            (#"{"alg":"HS512","auth":"v2","typ":"JWT","jku":"http://x"}"#, false),
            (#"{"alg":"HS512","auth":"v2","typ":"JWT","jwk":{}}"#, false),
            (#"{"alg":"HS512","auth":"v2","typ":"JWT","x5c":null}"#, false),
            (#"{"alg":"HS512","auth":"v2","typ":"JWT"} x"#, false), (#"[]"#, false), ("", false),
        ])
    func header(_ header: String, _ isGood: Bool) {
        #expect(((try? read(token(header: header), partner).get()) != nil) == isGood, "\(header)")
    }

    @Test(
        "a claim of a wrong type, range or device is refused; fractions, escapes and foreign claims are accepted",
        arguments: [
            ("exp", "1800000900.75", true), ("exp", "1.8000009e9", true), ("exp", "1800001860", true),
            ("exp", "1800001860.5", false), ("exp", "1e400", false), ("exp", "-1e400", false),
            ("exp", "9223372036854775808", false), ("exp", "1800000900000", false), ("exp", #""1800000900""#, false),
            ("exp", "true", false), ("exp", "null", false), ("exp", "NaN", false),
            ("nbf", "1800000060", true), ("nbf", "1800000061", false), ("nbf", "null", false), ("nbf", "1e400", false),
            ("iat", "1799999999", true), ("iat", "1800000061", false), ("iat", #""x""#, false),
            ("partner_entity_id", "649116074", true), ("partner_entity_id", "1.5", false),
            ("partner_entity_id", #""""#, false), ("partner_entity_id", "[]", false),
            ("rezolve_entity_id", #""""#, false), ("rezolve_entity_id", "7", false),
            ("device_id", #""D/1+X""#, false), ("device_id", #""d/1+x ""#, false), ("device_id", "null", false),
            ("device_id", #""d\/1+x""#, true), ("aud", #"["anything"]"#, true),
        ] as [(String, String, Bool)])
    func claims(_ name: String, _ value: String, _ isGood: Bool) {
        #expect(((try? read(token(members: [name: value]), partner).get()) != nil) == isGood, "\(name): \(value)")
    }

    @Test("each claim is required", arguments: ["exp", "device_id", "rezolve_entity_id", "partner_entity_id"])
    func missing(_ name: String) {
        #expect(throws: TokenRefusal.self) { try read(token(without: name), partner).get() }
    }

    @Test("device names that are only canonically equal are different devices")
    func canonical() {
        let composed: String = token(members: ["device_id": "\"\u{E9}\""])
        #expect(throws: TokenRefusal.denied(.device)) {
            try TokenVerifier().read(
                Array(composed.utf8)[...], of: partner, phase: .login(device: "e\u{301}"), now: Self.now)
        }
    }

    @Test("T9: either of two live keys signs; a third key, or one of them in another case or with a line end, does not")
    func keys() {
        let rotating = Partner(id: "12", authKeys: [Array(Self.other.utf8), Array(Self.key.utf8)])
        #expect((try? read(token(), rotating).get()) != nil)
        #expect((try? read(token(key: Self.other), rotating).get()) != nil)
        for key in [Self.key.uppercased(), Self.key + "\n", String(Self.key.dropLast()), "", "third"] {
            #expect(throws: TokenRefusal.denied(.signature)) { try read(token(key: key), rotating).get() }
        }
    }

    @Test("an unknown partner, a partner without keys and a disabled partner admit no token")
    func partners() {
        let disabled = Partner(id: "12", authKeys: partner.authKeys, isEnabled: false)
        for nobody in [nil, Partner(id: "12", authKeys: []), disabled] {
            #expect(throws: TokenRefusal.denied(.partner)) { try read(token(), nobody).get() }
        }
    }

    @Test("T9: nothing of a token is read before its signature is verified")
    func unsigned() {
        // If it were parsed first, the reason would be the header.
        let token = TokenMaker.sign("not JSON", "neither", key: "wrong")
        #expect(throws: TokenRefusal.denied(.signature)) { try read(token, partner).get() }
    }

    @Test("every bit of the signature counts")
    func flips() throws {
        let good: [Substring] = token().split(separator: ".")
        let signature = try #require(Base64.decodeURL(Array(good[2].utf8)[...]))
        for bit in stride(from: 0, to: 512, by: 7) {
            var flipped = signature
            flipped[bit / 8] ^= 1 << (bit % 8)
            #expect(throws: TokenRefusal.denied(.signature)) {
                try read("\(good[0]).\(good[1]).\(Base64.encodeURL(flipped))", partner).get()
            }
        }
        for cut in [0, 32, 63] {
            #expect(throws: TokenRefusal.denied(.structure)) {
                try read("\(good[0]).\(good[1]).\(Base64.encodeURL(Array(signature.prefix(cut))))", partner).get()
            }
        }
    }

    @Test("a token longer than 8 KiB, or nested deeper than 64, is refused")
    func abuse() {
        let deep = String(repeating: "[", count: 2_500) + String(repeating: "]", count: 2_500)
        #expect(throws: TokenRefusal.denied(.claims)) {
            try read(token(members: ["x": deep]), partner).get()
        }
        let long = token(members: ["x": "\"" + String(repeating: "a", count: 60_000) + "\""])
        #expect(throws: TokenRefusal.denied(.structure)) { try read(long, partner).get() }
        #expect((try? read(token(members: ["x": nested(63)]), partner).get()) != nil)
        #expect((try? read(token(members: ["x": nested(64)]), partner).get()) == nil)
    }

    private func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }

    @Test(
        "T17: a token expires at exp and not before; a leeway moves that",
        arguments: [
            (-1.0, 0.0, true), (-0.001, 0, true), (0, 0, false), (0.5, 0, false), (119, 120, true), (120, 120, false),
        ])
    func expiry(_ after: Double, _ leeway: Double, _ isLive: Bool) throws {
        var rules = TokenRules()
        rules.expiryLeeway = leeway
        let claims = try read(token(), partner, rules: rules).get()
        let live: Bool
        do throws(TokenRefusal) {
            try TokenVerifier(rules).expectLive(claims, now: claims.expiry + after)
            live = true
        } catch {
            #expect(error == .expired)
            live = false
        }
        #expect(live == isLive)
    }
}
