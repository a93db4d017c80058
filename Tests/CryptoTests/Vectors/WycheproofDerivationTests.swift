import Glibc
import Testing
import ThicketCrypto
import ThicketTestSupport

/// Wycheproof's cases of codes and of keys derived from secrets.
@Suite("Wycheproof: HMAC, HKDF, PBKDF2")
struct WycheproofDerivationTests {
    @Test(
        "HMAC", .enabled(if: Vectors.has("wycheproof/hmac_sha256_test.json")),
        arguments: [(HashFunction.sha256, 66, 108), (.sha512, 66, 108)])
    func hmac(function: HashFunction, valid: Int, refused: Int) throws {
        var count = VectorCount()
        for each in try VectorFile("wycheproof/hmac_\(function.rawValue)_test.json").cases() {
            let (key, message) = (try each.secret("key"), try each.bytes("msg"))
            let code = HMAC.code(function, key: key, message)
            let wanted = try each.bytes("tag")
            let prepared =
                function == .sha256
                ? MessageKey256(try each.bytes("key")).code(of: message)
                : MessageKey512(try each.bytes("key")).code(of: message[...])
            #expect(prepared == code, "\(each)")
            // Half of the cases have codes cut to half; ours are whole.
            let isGood = ConstantTime.equal(Array(code.prefix(wanted.count)), wanted)
            if wanted.count == function.digestBytes {
                #expect(HMAC.isCode(wanted, function, key: key, of: message) == isGood, "\(each)")
            }
            #expect(isGood == (each.result == "valid"), "\(each)")
            if isGood { count.valid += 1 } else { count.refused += 1 }
        }
        #expect(count == VectorCount(valid: valid, refused: refused))
    }

    @Test(
        "HKDF, in one step and in two", .enabled(if: Vectors.has("wycheproof/hkdf_sha256_test.json")),
        arguments: [(HashFunction.sha256, 83, 3), (.sha512, 80, 3)])
    func hkdf(function: HashFunction, valid: Int, refused: Int) throws {
        var count = VectorCount()
        for each in try VectorFile("wycheproof/hkdf_\(function.rawValue)_test.json").cases() {
            let (secret, salt) = (try each.secret("ikm"), try each.bytes("salt"))
            let (info, size) = (try each.bytes("info"), try each.number("size"))
            let half = try HKDF.extract(function, secret: secret, salt: SecureBytes(copying: salt))
            guard each.result == "valid" else {
                count.refused += 1
                #expect(throws: CryptoError.outOfBounds(.count), "\(each)") {
                    try HKDF.derive(function, secret: secret, salt: salt, info: info, count: size)
                }
                #expect(throws: CryptoError.outOfBounds(.count), "\(each)") {
                    try HKDF.expand(function, key: half, info: info, count: size)
                }
                continue
            }
            count.valid += 1
            let wanted = try each.secret("okm")
            #expect(
                try HKDF.derive(function, secret: secret, salt: salt, info: info, count: size) == wanted, "\(each)")
            #expect(try HKDF.expand(function, key: half, info: info, count: size) == wanted, "\(each)")
        }
        #expect(count == VectorCount(valid: valid, refused: refused))
    }

    /// Cases with more rounds have a separate test.
    private static let roundsMax = 100_000

    @Test(
        "PBKDF2 of at most 100,000 rounds", .enabled(if: Vectors.has("wycheproof/pbkdf2_hmacsha1_test.json")),
        arguments: [(HashFunction.sha1, 63), (.sha256, 60), (.sha512, 58)])
    func pbkdf2(function: HashFunction, valid: Int) throws {
        let count = try pbkdf2(function) { $0 <= Self.roundsMax }
        #expect(count == VectorCount(valid: valid))
    }

    @Test(
        "PBKDF2 of 16,777,216 rounds (RFC 6070), which take half a minute: THICKET_LONG_VECTORS=1",
        .enabled(if: getenv("THICKET_LONG_VECTORS") != nil && Vectors.has("wycheproof/pbkdf2_hmacsha1_test.json")))
    func manyRounds() throws {
        #expect(try pbkdf2(.sha1) { $0 > Self.roundsMax } == VectorCount(valid: 1))
    }

    private func pbkdf2(_ function: HashFunction, _ isWanted: (Int) -> Bool) throws -> VectorCount {
        var count = VectorCount()
        for each in try VectorFile("wycheproof/pbkdf2_hmac\(function.rawValue)_test.json").cases() {
            let rounds = try each.number("iterationCount")
            guard isWanted(rounds) else { continue }
            let made = try PBKDF2.derive(
                function, password: each.secret("password"), salt: each.bytes("salt"), rounds: rounds,
                count: each.number("dkLen"))
            #expect(made == (try each.secret("dk")), "\(each)")
            count.valid += 1
        }
        return count
    }
}
