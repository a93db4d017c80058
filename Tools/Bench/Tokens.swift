import COpenSSL
import ThicketAuth
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Tokens of partners, verified on one core from the API key to the clock, beside the HMAC-SHA-512 that any
/// verification needs. Not included is the rest of a request: the check whether the token was signed out, the count of
/// attempts, and the record of the device.
///
/// The token is a login's, some 300 bytes; the partner has one live auth key, and 1,000 users. CPU time of one thread.
func tokens(rounds: Int = 15) throws -> [Figure] {
    let house = TokenHouse(users: 1_000)
    let signed: [ArraySlice<UInt8>] = house.tokens.map { $0[..<($0.lastIndex(of: UInt8(ascii: ".")) ?? 0)] }
    for place in house.tokens.indices { _ = try house.verify(place) }
    var bare: [Double] = []
    var own: [Double] = []
    var whole: [Double] = []
    var failure: (any Error)?
    for _ in 0..<rounds {
        bare.append(
            perSecond { (place: Int) in
                let one: Int = place % signed.count
                return Int(bareHMAC(house.key, signed[one]))
            })
        own.append(
            perSecond { (place: Int) in
                let one: Int = place % signed.count
                return Int(Hash.hmacSHA512(key: house.key, signed[one])[0])
            })
        whole.append(
            perSecond { (place: Int) in
                do {
                    return try house.verify(place % signed.count).utf8.count
                } catch {
                    failure = error
                    return 0
                }
            })
    }
    if let failure { throw failure }
    let ratios: [Double] = zip(whole, bare).map { $0 / $1 }
    return [
        Figure(name: "tokens verified, one core", samples: whole, unit: "1/s"),
        Figure(name: "floor: HMAC-SHA-512 of the same bytes, OpenSSL", samples: bare, unit: "1/s"),
        Figure(name: "ratio to the floor", samples: ratios, unit: "", goal: .atLeast(0.5)),
        Figure(name: "HMAC-SHA-512 of the same bytes, ours", samples: own, unit: "1/s"),
        Figure(name: "bytes of a token", value: Double(house.tokens[0].count), unit: "B"),
    ]
}

/// The first byte of the code, by OpenSSL's single call for it. Our own HMAC caches half of the work and is not a
/// floor.
private func bareHMAC(_ key: [UInt8], _ message: ArraySlice<UInt8>) -> UInt8 {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 64) { code in
        message.withUnsafeBytes { message in
            let start: UnsafePointer<UInt8>? = message.bindMemory(to: UInt8.self).baseAddress
            let made: UnsafeMutablePointer<UInt8>? = COpenSSL.HMAC(
                EVP_sha512(), key, Int32(key.count), start, message.count, code.baseAddress, nil)
            precondition(made != nil, "OpenSSL refused an HMAC")
        }
        return code[0]
    }
}

/// Calls per second of CPU time, over a tenth of a second.
private func perSecond(_ body: (Int) -> Int) -> Double {
    var (count, sum): (Int, Int) = (0, 0)
    let start: UInt64 = cpuNanoseconds()
    var now: UInt64 = start
    while now - start < 100_000_000 {
        for _ in 0..<64 {
            sum &+= body(count)
            count += 1
        }
        now = cpuNanoseconds()
    }
    precondition(sum != 0, "nothing was computed")
    return Double(count) / Double(now - start) * 1e9
}

/// A partner with users, in memory, and a valid token of each.
private struct TokenHouse {
    let key: [UInt8] = Array(Base64.encode(RandomBytes.make(64)).utf8)
    private(set) var tokens: [[UInt8]] = []
    private let apiKey = "6d0f5d0e-8a0c-4a53-9d0b-0a4b1c1f5b0e"
    private let nameKey = MessageKey256(RandomBytes.make(32))
    private var partners: [[UInt8]: Partner] = [:]
    private var entities: [String: Entity] = [:]
    private let verifier = TokenVerifier()
    private static let now: Double = 1_800_000_000

    init(users: Int) {
        let partner = Partner(id: "1000", authKeys: [key])
        partners[nameKey.code(of: Array(apiKey.utf8))] = partner
        for user: Int in 0..<users {
            let id: String = "403c1677-4917-2fcb-b788-" + String(100_000_000_000 + user)
            entities[id] = Entity(id: id, partner: "1000", partnerEntity: "customer-\(user)@example.com")
            let header: String = #"{"alg":"HS512","auth":"v2","typ":"JWT"}"#
            let payload: String =
                #"{"rezolve_entity_id":"\#(id)","partner_entity_id":"customer-\#(user)@example.com","#
                + #""exp":1800000900.25,"device_id":"wlkCDA2Hy/CfMqVAShslBAR/0sAiuRIUm5jOg0a"}"#
            let text: String = [header, payload].map { Base64.encodeURL(Array($0.utf8)) }.joined(separator: ".")
            tokens.append(
                Array((text + "." + Base64.encodeURL(Hash.hmacSHA512(key: key, Array(text.utf8)[...]))).utf8))
        }
    }

    /// Every step of docs/AUTH.md, as for a request with this token.
    /// - Returns: the token's user.
    func verify(_ place: Int) throws -> String {
        let partner: Partner? = partners[nameKey.code(of: Array(apiKey.utf8))]
        let claims: TokenClaims = try verifier.read(
            tokens[place][...], of: partner, phase: .login(device: "wlkCDA2Hy/CfMqVAShslBAR/0sAiuRIUm5jOg0a"),
            now: Self.now)
        guard let partner else { throw BenchError("no partner") }
        let entity: Entity? = entities[claims.entity]
        try verifier.expectOwner(claims, entity, partner: partner)
        try verifier.expectLive(claims, now: Self.now)
        return claims.entity
    }
}
