import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform

@Suite("HPKE beyond the vectors", .nonceWatch)
struct HPKETests {
    @Test(
        "a text sealed for one key opens for that key, with the same info, and after no flipped bit",
        arguments: AEADSuite.allCases)
    func sealed(suite: AEADSuite) throws {
        let (receiver, secret): (X25519.PrivateKey, SecureBytes) = (.random(), .random(32))
        let sealed = try HPKE.seal(secret, suite, to: receiver.publicKey, info: [1], data: [2])
        #expect(sealed.count == 32 + 32 + 16)
        #expect(try HPKE.open(sealed, suite, with: receiver, info: [1], data: [2]) == secret)
        expectFailure("other info") { _ = try HPKE.open(sealed, suite, with: receiver, info: [], data: [2]) }
        expectFailure("other data") { _ = try HPKE.open(sealed, suite, with: receiver, info: [1], data: []) }
        expectFailure("another") { _ = try HPKE.open(sealed, suite, with: .random(), info: [1], data: [2]) }
        let other: AEADSuite = suite == .aes256GCM ? .chaCha20Poly1305 : .aes256GCM
        expectFailure("the other suite") { _ = try HPKE.open(sealed, other, with: receiver, info: [1], data: [2]) }
        for count in 0..<sealed.count {
            expectFailure("\(count) bytes") {
                _ = try HPKE.open(Array(sealed.prefix(count)), suite, with: receiver, info: [1], data: [2])
            }
        }
        for bit in 0..<(sealed.count * 8) where bit != 255 {
            var flipped = sealed
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            expectFailure("bit \(bit)") {
                _ = try HPKE.open(flipped, suite, with: receiver, info: [1], data: [2])
            }
        }
    }

    @Test("T20: an encapsulated key of zeros, or of another small order, is refused with the one error")
    func smallOrder() throws {
        let points = [
            .init(repeating: 0, count: 32), [1] + .init(repeating: 0, count: 31),
            try #require(Hex.decode("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")),
            try #require(Hex.decode("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157")),
        ]
        for point in points {
            expectFailure("small order") {
                _ = try HPKE.Receiver(.aes256GCM, encapsulated: point, with: .random(), info: [])
            }
            expectFailure("a sender of small order") {
                _ = try HPKE.Receiver(
                    .aes256GCM, encapsulated: X25519.PrivateKey.random().publicKey.octets, with: .random(), info: [],
                    sender: X25519.PublicKey(point))
            }
            #expect(throws: CryptoError.unusablePublicKey) {
                _ = try HPKE.Sender(.aes256GCM, to: X25519.PublicKey(point), info: [])
            }
        }
    }

    @Test("an empty message, and an empty secret, are sealed and opened")
    func nothing() throws {
        let (receiver, none): (X25519.PrivateKey, SecureBytes) = (.random(), SecureBytes(copying: []))
        let sealed = try HPKE.seal(none, .aes256GCM, to: receiver.publicKey, info: [])
        #expect(sealed.count == 48)
        #expect(try HPKE.open(sealed, .aes256GCM, with: receiver, info: []) == none)
    }

    @Test("auth mode opens with the sender that it names, and with no other")
    func auth() throws {
        let (sender, receiver): (X25519.PrivateKey, X25519.PrivateKey) = (.random(), .random())
        var sealing = try HPKE.Sender(.chaCha20Poly1305, to: receiver.publicKey, info: [7], sender: sender)
        let sealed = [try sealing.seal([1], data: []), try sealing.seal([2], data: [])]
        func opening(_ sender: X25519.PublicKey?) throws -> HPKE.Receiver {
            try .init(
                .chaCha20Poly1305, encapsulated: sealing.encapsulated, with: receiver, info: [7], sender: sender)
        }
        var good = try opening(sender.publicKey)
        expectFailure("out of order") { _ = try good.open(sealed[1], data: []) }
        #expect(try good.open(sealed[0], data: []) == [1])
        #expect(try good.open(sealed[1], data: []) == [2])
        var none = try opening(nil)
        expectFailure("no sender") { _ = try none.open(sealed[0], data: []) }
        var other = try opening(X25519.PrivateKey.random().publicKey)
        expectFailure("another sender") { _ = try other.open(sealed[0], data: []) }
    }

    @Test("message numbers end in an error, and do not start again")
    func overflow() throws {
        let receiver = X25519.PrivateKey.random()
        var sender = try HPKE.Sender(.aes256GCM, to: receiver.publicKey, info: [])
        var opener = try HPKE.Receiver(
            .aes256GCM, encapsulated: sender.encapsulated, with: receiver, info: [])
        sender.skip(to: .max - 1)
        opener.skip(to: .max - 1)
        let last = try sender.seal([1], data: [])
        #expect(try opener.open(last, data: []) == [1])
        #expect(throws: CryptoError.messageLimitReached) { _ = try sender.seal([1], data: []) }
        #expect(throws: CryptoError.messageLimitReached) { _ = try opener.open(last, data: []) }
    }

    @Test("an export-only cipher seals nothing and exports secrets; counts out of bounds are refused")
    func exports() throws {
        let receiver = X25519.PrivateKey.random()
        var sender = try HPKE.Sender(.exportOnly, to: receiver.publicKey, info: [])
        #expect(throws: CryptoError.outOfBounds(.suite)) { _ = try sender.seal([1], data: []) }
        #expect(try sender.export([], count: 8_160).count == 8_160)
        for count in [-1, 0, 8_161, 65_536] {
            #expect(throws: CryptoError.outOfBounds(.count)) { _ = try sender.export([], count: count) }
        }
    }
}
