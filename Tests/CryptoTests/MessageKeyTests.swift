import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketTestSupport

/// Prepared keys, which have done a part of the work, must give what OpenSSL's own HMAC gives.
@Suite("Prepared keys of HMAC")
struct MessageKeyTests {
    @Test("RFC 4231, cases 1, 2, 4 and 6: short keys, short data, a key longer than a block")
    func published() {
        let cases: [(key: [UInt8], data: String, sha256: String, sha512: String)] = [
            (
                .init(repeating: 0x0B, count: 20), "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
                "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
                    + "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"
            ),
            (
                Array("Jefe".utf8), "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
                    + "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
            ),
            (
                .init(repeating: 0xAA, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
                "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352"
                    + "6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"
            ),
        ]
        for each in cases {
            #expect(Hex.encode(MessageKey256(each.key).code(of: Array(each.data.utf8))) == each.sha256)
            let key = MessageKey512(each.key)
            #expect(Hex.encode(key.code(of: Array(each.data.utf8)[...])) == each.sha512)
        }
    }

    @Test(
        "a prepared key gives HMAC's code for all lengths of key and message around the blocks, and can be reused"
    )
    func lengths() {
        var random = SeededRandom(seed: 512)
        for keyCount in [0, 1, 63, 64, 65, 88, 127, 128, 129, 300] {
            let bytes = (0..<keyCount).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let (long, short): (MessageKey512, MessageKey256) = (.init(bytes), .init(bytes))
            let secret = SecretMessageKey256(SecureBytes(copying: bytes))
            for count in [0, 1, 55, 56, 63, 64, 111, 112, 127, 128, 129, 255, 256, 1_000] {
                let message = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
                let code = Hash.hmacSHA512(key: bytes, message[...])
                #expect(long.code(of: message[...]) == code)
                #expect(long.isCode(code, of: message[...]))
                #expect(!long.isCode(Array(code.dropLast()), of: message[...]))
                #expect(short.code(of: message) == Hash.hmacSHA256(key: bytes, message))
                var room = [UInt8](repeating: 0, count: 32)
                room.withUnsafeMutableBytes { room in message.withUnsafeBytes { secret.write($0, into: room) } }
                #expect(room == short.code(of: message))
            }
        }
    }

    @Test("every bit of a code counts")
    func bits() {
        let key = MessageKey512(Array("key".utf8))
        let message: [UInt8] = Array("message".utf8)
        let code = key.code(of: message[...])
        for bit in 0..<512 {
            var other = code
            other[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(!key.isCode(other, of: message[...]))
        }
    }
}
