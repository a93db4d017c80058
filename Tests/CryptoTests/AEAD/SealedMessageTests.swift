import Testing
import ThicketCrypto
import ThicketNonces

@Suite("Sealed messages: suite, nonce, ciphertext, tag", .nonceWatch)
struct SealedMessageTests {
    @Test(
        "a message opens with its key and data; any changed bit, length or suite is refused",
        arguments: AEADSuite.allCases)
    func messages(suite: AEADSuite) throws {
        let key = SecureBytes.random(32)
        for clear in [[], [7], RandomBytes.make(70)] {
            let message: [UInt8] = try SealedMessage.seal(clear, suite, key: key, data: [1])
            #expect(message[0] == suite.rawValue && message.count == clear.count + SealedMessage.extraBytes)
            #expect(try SealedMessage.open(message, key: key, data: [1]) == clear)
            #expect(try SealedMessage.openSecret(message, key: key, data: [1]) == SecureBytes(copying: clear))
            expectFailure("other data") { _ = try SealedMessage.open(message, key: key, data: []) }
            expectFailure("another key") { _ = try SealedMessage.open(message, key: .random(32), data: [1]) }
            for bit in 0..<(message.count * 8) {
                var flipped = message
                flipped[bit / 8] ^= 1 << UInt8(bit % 8)
                expectFailure("bit \(bit)") { _ = try SealedMessage.open(flipped, key: key, data: [1]) }
            }
            for count in 0..<message.count {
                expectFailure("\(count) bytes") {
                    _ = try SealedMessage.open(Array(message.prefix(count)), key: key, data: [1])
                }
            }
            for number: UInt8 in 0...255 where number != suite.rawValue {
                expectFailure("suite \(number)") {
                    _ = try SealedMessage.open([number] + message.dropFirst(), key: key, data: [1])
                }
            }
        }
    }

    @Test("two seals of the same text differ")
    func nonces() throws {
        let key = SecureBytes.random(32)
        #expect(try SealedMessage.seal([1], key: key, data: []) != SealedMessage.seal([1], key: key, data: []))
    }
}
