import Testing
import ThicketCrypto
import ThicketPlatform

@Suite("Hashes and the AES block against the standards' own examples")
struct PrimitiveTests {
    @Test("SHA-256 of 'abc' (FIPS 180-4 example)")
    func sha256() {
        #expect(
            Hex.encode(Hash.sha256(Array("abc".utf8)))
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    @Test("SHA-1 of 'abc' (FIPS 180-4 example)")
    func sha1() {
        #expect(Hex.encode(Hash.sha1(Array("abc".utf8))) == "a9993e364706816aba3e25717850c26c9cd0d89d")
    }

    @Test("HMAC-SHA-256 (RFC 4231, test case 2)")
    func hmac() {
        let tag = Hash.hmacSHA256(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
        #expect(Hex.encode(tag) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    }

    @Test("AES-128 of one block (FIPS 197, appendix C.1), and back")
    func aes() throws {
        let key = try #require(Hex.decode("000102030405060708090a0b0c0d0e0f"))
        let clear = try #require(Hex.decode("00112233445566778899aabbccddeeff"))
        let cipher = AESBlock(key: key)
        let sealed = cipher.encrypt(clear)
        #expect(Hex.encode(sealed) == "69c4e0d86a7b0430d8cdb78070b4c55a")
        #expect(cipher.decrypt(sealed) == clear)
        let numbers = cipher.encrypt(0x0011_2233_4455_6677, 0x8899_aabb_ccdd_eeff)
        #expect(numbers == (0x69c4_e0d8_6a7b_0430, 0xd8cd_b780_70b4_c55a))
    }

    @Test("hex refuses odd lengths and other letters")
    func hex() {
        #expect(Hex.decode("abc") == nil)
        #expect(Hex.decode("zz") == nil)
        #expect(Hex.decode("00fF") == [0, 255])
    }

    @Test("two random draws differ")
    func random() { #expect(RandomBytes.make(16) != RandomBytes.make(16)) }
}
