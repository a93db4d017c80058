import Testing
import ThicketCrypto

@Suite("Secrets in separate memory")
struct SecureBytesTests {
    @Test(
        "the bytes put in are lent again, from none to more than whole pages",
        arguments: [
            0, 1, 31, 32, 33, 64, 65, 4_095, 4_096, 4_097, 8_192, 100_000,
        ])
    func lent(count: Int) {
        let bytes = RandomBytes.make(count)
        let secret = SecureBytes(copying: bytes)
        #expect(secret.count == count)
        secret.withUnsafeBytes { #expect(Array($0) == bytes && $0.baseAddress != nil) }
    }

    @Test("secrets that exist at one time share no byte, and a new one begins with zeros")
    func places() {
        var random = [Int]()
        for _ in 0..<3 {
            let secrets = (0..<3_000).map { number in
                SecureBytes(count: 1 + number % 200) { room in
                    #expect(room.allSatisfy { $0 == 0 })
                    for place in room.indices { room[place] = UInt8(truncatingIfNeeded: number &* 31 + place) }
                }
            }
            for (number, secret) in secrets.enumerated() {
                secret.withUnsafeBytes { bytes in
                    let isWhole = bytes.indices.allSatisfy {
                        bytes[$0] == UInt8(truncatingIfNeeded: number &* 31 + $0)
                    }
                    #expect(isWhole)
                    random.append(bytes.count)
                }
            }
        }
        #expect(random.count == 9_000)
    }

    @Test("equality looks at every byte, and at the length")
    func equality() {
        let bytes = RandomBytes.make(40)
        let secret = SecureBytes(copying: bytes)
        #expect(secret == SecureBytes(copying: bytes))
        #expect(secret != SecureBytes(copying: Array(bytes.dropLast())))
        for bit in 0..<320 {
            var other = bytes
            other[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(secret != SecureBytes(copying: other))
        }
        #expect(SecureBytes(copying: []) == SecureBytes(copying: []))
    }

    @Test("no text made of a secret reveals anything of it")
    func texts() {
        let secret = SecureBytes(copying: Array("canary-4711".utf8))
        struct Holder { let secret: SecureBytes }
        var dumped = ""
        dump(Holder(secret: secret), to: &dumped)
        let texts = [
            "\(secret)", String(describing: secret), String(reflecting: secret), "\(Holder(secret: secret))", dumped,
            "\([secret])", "\(Optional(secret) as Any)",
        ]
        for text in texts {
            #expect(text.contains("(secret)"), "\(text)")
            #expect(!text.contains("canary") && !text.contains("4711"), "\(text)")
        }
        #expect(Mirror(reflecting: secret).children.isEmpty)
        #expect("\(secret)" == "\(SecureBytes(copying: []))", "not even its length")
    }

    @Test("bytes that are taken over are gone from their source; parts and joins have the right bytes")
    func parts() {
        var bytes: [UInt8] = [1, 2, 3, 4, 5]
        let secret = SecureBytes(taking: &bytes)
        #expect(bytes.isEmpty)
        #expect(secret == SecureBytes(copying: [1, 2, 3, 4, 5]))
        #expect(secret.part(1..<3) == SecureBytes(copying: [2, 3]))
        #expect(SecureBytes.joined([secret.part(3..<5), secret.part(0..<0), secret]).count == 7)
        #expect(SecureBytes.joined([secret.part(0..<2), secret.part(2..<5)]) == secret)
    }

    @Test("an error that the maker throws is passed on")
    func thrown() {
        #expect(throws: CryptoError.openingFailed) {
            try SecureBytes(count: 8) { room throws(CryptoError) in
                room[0] = 1
                throw .openingFailed
            }
        }
    }

    @Test("random secrets differ") func random() { #expect(SecureBytes.random(32) != SecureBytes.random(32)) }
}
