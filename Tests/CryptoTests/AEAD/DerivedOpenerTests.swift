import Testing
import ThicketNonces

@testable import ThicketCrypto

@Suite("Opening under keys derived from one root", .nonceWatch)
struct DerivedOpenerTests {
    /// A text sealed under the key that HKDF derives from a root.
    private struct Sealed {
        let root = SecureBytes.random(32)
        let info: [UInt8]
        let nonce = AEADNonce.random()
        let data: [UInt8]
        let clear: [UInt8]
        let bytes: [UInt8]

        init(_ suite: AEADSuite, _ clear: [UInt8], info: [UInt8] = [1, 2, 3], data: [UInt8] = [4, 5]) throws {
            (self.info, self.data, self.clear) = (info, data, clear)
            let key = try HKDF.expand(.sha256, key: root, info: info)
            bytes = try AEAD(suite, key: key).seal(clear, nonce: nonce, data: data)
        }
    }

    /// The opener's result and the room that it wrote: zeros when it refuses.
    private func open(
        _ opener: DerivedOpener, _ bytes: [UInt8], info: [UInt8], nonce: [UInt8], data: [UInt8]
    ) -> (isOpen: Bool, room: [UInt8]) {
        var room = [UInt8](repeating: 9, count: max(0, bytes.count - AEADSuite.tagBytes))
        let isOpen = room.withUnsafeMutableBytes { room in
            bytes.withUnsafeBytes { bytes in
                nonce.withUnsafeBytes { nonce in
                    data.withUnsafeBytes {
                        opener.open(.init(sealed: bytes, nonce: nonce, data: $0), info: info, into: room)
                    }
                }
            }
        }
        return (isOpen, room)
    }

    @Test("an opener opens what HKDF's key has sealed, key after key, also after one that did not open")
    func opens() throws {
        for suite in AEADSuite.allCases {
            for count in [0, 1, 15, 16, 17, 1_000] {
                let sealed = try Sealed(suite, RandomBytes.make(count))
                let opener = DerivedOpener(suite, root: sealed.root)
                let key = try HKDF.expand(.sha256, key: sealed.root, info: [7])
                let second = try AEAD(suite, key: key).seal([8, 8], nonce: sealed.nonce, data: [])
                for _ in 0..<2 {
                    let first = open(
                        opener, sealed.bytes, info: sealed.info, nonce: sealed.nonce.octets, data: sealed.data)
                    #expect(first.isOpen && first.room == sealed.clear)
                    let other = open(
                        opener, second, info: [7], nonce: sealed.nonce.octets, data: [])
                    #expect(other.isOpen && other.room == [8, 8])
                    #expect(!open(opener, second, info: [6], nonce: sealed.nonce.octets, data: []).isOpen)
                }
            }
        }
    }

    @Test("every bit counts, and so do info, nonce, data, length and root; a refusal leaves nothing in the room")
    func bits() throws {
        let sealed = try Sealed(.aes256GCM, Array("the key".utf8))
        let opener = DerivedOpener(.aes256GCM, root: sealed.root)
        func expectFailure(
            _ what: String, _ opener: DerivedOpener, _ bytes: [UInt8], info: [UInt8]? = nil, nonce: [UInt8]? = nil,
            data: [UInt8]? = nil
        ) {
            let found = open(
                opener, bytes, info: info ?? sealed.info, nonce: nonce ?? sealed.nonce.octets,
                data: data ?? sealed.data)
            #expect(!found.isOpen && found.room.allSatisfy { $0 == 0 }, "\(what)")
        }
        for bit in 0..<(sealed.bytes.count * 8) {
            var flipped = sealed.bytes
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            expectFailure("bit \(bit)", opener, flipped)
        }
        for count in 0..<sealed.bytes.count {
            expectFailure("\(count) bytes", opener, Array(sealed.bytes.prefix(count)))
        }
        expectFailure("one byte more", opener, sealed.bytes + [0])
        expectFailure("another info", opener, sealed.bytes, info: [1, 2])
        expectFailure("other data", opener, sealed.bytes, data: [4])
        expectFailure("no data", opener, sealed.bytes, data: [])
        expectFailure("another nonce", opener, sealed.bytes, nonce: .init(repeating: 1, count: 12))
        expectFailure("a nonce of 11 bytes", opener, sealed.bytes, nonce: Array(sealed.nonce.octets.dropLast()))
        expectFailure("a nonce of 13 bytes", opener, sealed.bytes, nonce: sealed.nonce.octets + [0])
        expectFailure("another root", .init(.aes256GCM, root: .random(32)), sealed.bytes)
        expectFailure("the other suite", .init(.chaCha20Poly1305, root: sealed.root), sealed.bytes)
        #expect(open(opener, sealed.bytes, info: sealed.info, nonce: sealed.nonce.octets, data: sealed.data).isOpen)
    }
}
