import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketTestSupport

/// Wycheproof's cases of Curve25519.
@Suite("Wycheproof: X25519 and Ed25519")
struct WycheproofCurveTests {
    @Test(
        "T20: X25519 gives the value, and refuses a shared secret of zero",
        .enabled(if: Vectors.has("wycheproof/x25519_test.json")))
    func x25519() throws {
        var count = VectorCount()
        for each in try VectorFile("wycheproof/x25519_test.json").cases() {
            let key = try X25519.PrivateKey(each.secret("private"))
            let other = try X25519.PublicKey(each.bytes("public"))
            let shared = try each.bytes("shared")
            // "acceptable" leaves it open; RFC 9180, 7.1.4 does not: zero is refused, and every other value is given.
            if shared.allSatisfy({ $0 == 0 }) {
                count.refused += 1
                #expect(throws: CryptoError.unusablePublicKey, "\(each)") { try key.sharedSecret(with: other) }
            } else {
                count.valid += 1
                #expect(try key.sharedSecret(with: other) == SecureBytes(copying: shared), "\(each)")
            }
        }
        #expect(count == VectorCount(valid: 487, refused: 31))
    }

    @Test(
        "T20: Ed25519 accepts what is valid, and no second signature made from a good one",
        .enabled(if: Vectors.has("wycheproof/ed25519_test.json")))
    func ed25519() throws {
        var count = VectorCount()
        for each in try VectorFile("wycheproof/ed25519_test.json").cases() {
            let text = try #require(each.group["publicKey"]?["pk"]?.string)
            let key = try Ed25519.VerifyingKey(try #require(Hex.decode(text)))
            let isGood = key.isSignature(try each.bytes("sig"), of: try each.bytes("msg"))
            #expect(isGood == (each.result == "valid"), "\(each)")
            if isGood { count.valid += 1 } else { count.refused += 1 }
        }
        #expect(count == VectorCount(valid: 88, refused: 63))
    }
}
