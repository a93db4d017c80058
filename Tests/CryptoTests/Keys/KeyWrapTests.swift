import Testing
import ThicketCrypto
import ThicketNonces

@Suite("Wraps of keys, and commitments to them", .nonceWatch)
struct KeyWrapTests {
    private let place = KeyWrap(
        owner: "alice", app: "app", node: "n1", epoch: 3, recipient: "bob", recipientKey: "k0")

    @Test("a wrap opens only in its place, and after no flipped bit", arguments: AEADSuite.allCases)
    func places(suite: AEADSuite) throws {
        let (receiver, key): (X25519.PrivateKey, SecureBytes) = (.random(), .random(32))
        let wrap: [UInt8] = try place.seal(key, suite, to: receiver.publicKey)
        #expect(try place.open(wrap, with: receiver) == key)
        let others: [KeyWrap] = [
            .init(owner: "alicf", app: "app", node: "n1", epoch: 3, recipient: "bob", recipientKey: "k0"),
            .init(owner: "alice", app: "ap", node: "pn1", epoch: 3, recipient: "bob", recipientKey: "k0"),
            .init(owner: "alice", app: "app", node: "n2", epoch: 3, recipient: "bob", recipientKey: "k0"),
            .init(owner: "alice", app: "app", node: "n1", epoch: 4, recipient: "bob", recipientKey: "k0"),
            .init(owner: "alice", app: "app", node: "n1", epoch: 3, recipient: "eve", recipientKey: "k0"),
            .init(owner: "alice", app: "app", node: "n1", epoch: 3, recipient: "bob", recipientKey: "k1"),
        ]
        for other in others { expectFailure("\(other)") { _ = try other.open(wrap, with: receiver) } }
        for byte in wrap.indices where byte != 32 {
            var flipped = wrap
            flipped[byte] ^= 1
            expectFailure("byte \(byte)") { _ = try place.open(flipped, with: receiver) }
        }
        for suite: UInt8 in [0, 3, 4, 255] {
            expectFailure("suite \(suite)") { _ = try place.open([suite] + wrap.dropFirst(), with: receiver) }
        }
        for count in [0, 1, 33, 80] {
            expectFailure("\(count) bytes") { _ = try place.open(Array(wrap.prefix(count)), with: receiver) }
        }
        expectFailure("one more") { _ = try place.open(wrap + [0], with: receiver) }
        expectFailure("another") { _ = try place.open(wrap, with: .random()) }
    }

    @Test("only keys of 32 bytes are wrapped")
    func lengths() {
        for count in [0, 16, 31, 33] {
            #expect(throws: CryptoError.outOfBounds(.key)) {
                try place.seal(.random(count), to: X25519.PrivateKey.random().publicKey)
            }
            #expect(throws: CryptoError.outOfBounds(.key)) { try NodeKey(.random(count)) }
        }
    }

    @Test("T21: of two keys that open one ciphertext the commitment refuses one")
    func twoKeys() throws {
        let (first, second): (NodeKey, NodeKey) = (.random(), .random())
        let nonce = AEADNonce.random()
        let keys = [try first.subkey(.meta), try second.subkey(.meta)]
        let sealed = try GCMCollision.make(keys[0], keys[1], nonce)
        // It does open under both: that is the attack.
        let texts = try keys.map { try AEAD(.aes256GCM, key: $0).open(sealed, nonce: nonce, data: []) }
        #expect(texts[0] != texts[1])
        let record = try first.commitment()
        #expect(try first.isCommitted(by: record))
        #expect(try !second.isCommitted(by: record))
        #expect(try !first.isCommitted(by: second.commitment()))
    }
}
