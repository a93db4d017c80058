import Testing
import ThicketCrypto
import ThicketPlatform

@Suite("Keys of Curve25519")
struct CurveTests {
    private func key(_ text: String) throws -> X25519.PrivateKey {
        try .init(SecureBytes(copying: try #require(Hex.decode(text))))
    }

    @Test("RFC 7748, 6.1: both sides find the same secret, and a third key finds another")
    func agreement() throws {
        let alice = try key("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
        let bob = try key("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
        let shared = try alice.sharedSecret(with: bob.publicKey)
        #expect(
            Hex.encode(bob.publicKey.octets) == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
        let wanted = try #require(
            Hex.decode("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"))
        #expect(shared == SecureBytes(copying: wanted))
        #expect(try shared == bob.sharedSecret(with: alice.publicKey))
        #expect(try shared != X25519.PrivateKey.random().sharedSecret(with: bob.publicKey))
    }

    @Test("keys have 32 bytes")
    func lengths() {
        for count in [0, 31, 33, 64] {
            #expect(throws: CryptoError.outOfBounds(.key)) { try X25519.PrivateKey(.random(count)) }
            #expect(throws: CryptoError.outOfBounds(.key)) { try Ed25519.SigningKey(seed: .random(count)) }
            #expect(throws: CryptoError.unusablePublicKey) { try X25519.PublicKey(RandomBytes.make(count)) }
            #expect(throws: CryptoError.unusablePublicKey) { try Ed25519.VerifyingKey(RandomBytes.make(count)) }
        }
        #expect(throws: CryptoError.outOfBounds(.key)) { try X25519.PrivateKey.derived(from: .random(31)) }
    }

    @Test("RFC 8032, 7.1, test 1: the signature of an empty message")
    func signature() throws {
        let seed = try #require(
            Hex.decode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
        let key = try Ed25519.SigningKey(seed: SecureBytes(copying: seed))
        #expect(
            Hex.encode(key.verifyingKey.octets) == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
        let signature = key.signature(of: [UInt8]())
        #expect(
            Hex.encode(signature)
                == "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                + "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b")
        #expect(key.verifyingKey.isSignature(signature, of: [UInt8]()))
        #expect(!key.verifyingKey.isSignature(signature, of: [0]))
        #expect(!key.verifyingKey.isSignature(Array(signature.dropLast()), of: [UInt8]()))
    }

    @Test("a signature is valid only for its label and its fields, however they are cut")
    func labels() throws {
        let key = Ed25519.SigningKey.random()
        let fields: [[UInt8]] = [Array("alice".utf8), Array("bob".utf8), []]
        let signature = try key.signature(for: .origin, fields)
        let verifier = try Ed25519.VerifyingKey(key.verifyingKey.octets)
        #expect(verifier.isSignature(signature, for: .origin, fields))
        for label in SignatureLabel.allCases where label != .origin {
            #expect(!verifier.isSignature(signature, for: label, fields))
        }
        let others: [[[UInt8]]] = [
            [Array("alicebob".utf8), [], []], [Array("aliceb".utf8), Array("ob".utf8), []],
            [Array("alice".utf8), Array("bob".utf8)], [Array("bob".utf8), Array("alice".utf8), []], [],
        ]
        for other in others { #expect(!verifier.isSignature(signature, for: .origin, other)) }
        #expect(!Ed25519.SigningKey.random().verifyingKey.isSignature(signature, for: .origin, fields))
    }

    @Test("labelled bytes have a zero after the label and 16 bits of length before each field of at most 65,535 bytes")
    func labelled() throws {
        var bytes = LabelledBytes("a/1")
        try bytes.add("xy".utf8)
        try bytes.add([UInt8]())
        bytes.add(bare: 258)
        #expect(bytes.octets == Array("a/1".utf8) + [0, 0, 2] + Array("xy".utf8) + [0, 0, 0, 0, 0, 0, 0, 0, 1, 2])
        #expect(try LabelledBytes("a").adding([UInt8](repeating: 1, count: 65_535)).octets.count == 65_539)
        #expect(throws: CryptoError.outOfBounds(.info)) {
            try LabelledBytes("a").adding([UInt8](repeating: 1, count: 65_536))
        }
        let key = Ed25519.SigningKey.random()
        let long = [UInt8](repeating: 0, count: 65_536)
        #expect(throws: CryptoError.outOfBounds(.info)) { try key.signature(for: .key, [long]) }
        #expect(!key.verifyingKey.isSignature([UInt8](repeating: 0, count: 64), for: .key, [long]))
    }
}
