import Testing
import ThicketCrypto
import ThicketPlatform

@Suite("scrypt against the examples of RFC 7914")
struct ScryptTests {
    @Test(
        "the examples of section 12 that need less than a gigabyte",
        arguments: [
            (
                "", "", Scrypt.Cost(n: 16, r: 1, p: 1),
                "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
                    + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
            ),
            (
                "password", "NaCl", Scrypt.Cost(n: 1_024, r: 8, p: 16),
                "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
                    + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
            ),
            (
                "pleaseletmein", "SodiumChloride", Scrypt.Cost.login,
                "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                    + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
            ),
        ])
    func examples(password: String, salt: String, cost: Scrypt.Cost, expected: String) {
        let made = Scrypt.derive(Array(password.utf8), salt: Array(salt.utf8), cost: cost, count: 64)
        #expect(made.map(Hex.encode) == expected)
    }

    @Test("scrypt may use more memory than OpenSSL's own bound of 32 MiB")
    func large() {
        #expect(Scrypt.derive([1], salt: [2], cost: Scrypt.Cost(n: 1 << 16, r: 8, p: 1))?.count == 32)
    }

    @Test(
        "costs out of bounds are refused and not tried",
        arguments: [
            Scrypt.Cost(n: 0, r: 8, p: 1), Scrypt.Cost(n: 1, r: 8, p: 1), Scrypt.Cost(n: 3, r: 8, p: 1),
            Scrypt.Cost(n: 1 << 30, r: 8, p: 1), Scrypt.Cost(n: 1 << 14, r: 0, p: 1),
            Scrypt.Cost(n: 1 << 14, r: 8, p: 0), Scrypt.Cost(n: 1 << 14, r: 1 << 40, p: 1),
            Scrypt.Cost(n: 1 << 20, r: 32, p: 1),
        ])
    func refused(cost: Scrypt.Cost) {
        #expect(Scrypt.derive([1], salt: [2], cost: cost) == nil)
    }

    @Test("counts below 1 and above 1,024 are refused", arguments: [0, -1, 1_025])
    func counts(count: Int) {
        #expect(Scrypt.derive([1], salt: [2], cost: Scrypt.Cost(n: 2, r: 1, p: 1), count: count) == nil)
    }
}
