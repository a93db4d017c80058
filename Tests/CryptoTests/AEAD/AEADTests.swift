import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform

@Suite("Sealing and opening", .nonceWatch)
struct AEADTests {
    @Test("every bit of a sealed text counts, and so do key, nonce, data and length", arguments: AEADSuite.allCases)
    func bits(suite: AEADSuite) throws {
        let secret = SecureBytes.random(32)
        let (key, nonce): (AEAD, AEADNonce) = (try AEAD(suite, key: secret), .random())
        let sealed: [UInt8] = key.seal(Array("the key".utf8), nonce: nonce, data: [1, 2])
        #expect(try key.open(sealed, nonce: nonce, data: [1, 2]) == Array("the key".utf8))
        for bit in 0..<(sealed.count * 8) {
            var flipped = sealed
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            expectFailure("bit \(bit)") { _ = try key.open(flipped, nonce: nonce, data: [1, 2]) }
        }
        for count in 0..<sealed.count {
            expectFailure("\(count) bytes") {
                _ = try key.open(Array(sealed.prefix(count)), nonce: nonce, data: [1, 2])
            }
        }
        expectFailure("one byte more") { _ = try key.open(sealed + [0], nonce: nonce, data: [1, 2]) }
        expectFailure("other data") { _ = try key.open(sealed, nonce: nonce, data: [1, 3]) }
        expectFailure("no data") { _ = try key.open(sealed, nonce: nonce, data: []) }
        expectFailure("another nonce") { _ = try key.open(sealed, nonce: .random(), data: [1, 2]) }
        let other = try AEAD(suite, key: .random(32))
        expectFailure("another key") { _ = try other.open(sealed, nonce: nonce, data: [1, 2]) }
        let strange: AEADSuite = suite == .aes256GCM ? .chaCha20Poly1305 : .aes256GCM
        let swapped = try AEAD(strange, key: secret)
        expectFailure("the other suite") { _ = try swapped.open(sealed, nonce: nonce, data: [1, 2]) }
    }

    @Test(
        "texts of lengths around blocks, also empty ones, are sealed and opened by one object in any order",
        arguments: AEADSuite.allCases)
    func lengths(suite: AEADSuite) throws {
        let key = try AEAD(suite, key: .random(32))
        for count in [0, 1, 15, 16, 17, 63, 64, 65, 1_000, 65_536] {
            for dataCount in [0, 1, 16, 100] {
                let (clear, data) = (RandomBytes.make(count), RandomBytes.make(dataCount))
                let nonce = AEADNonce.random()
                let sealed = key.seal(clear, nonce: nonce, data: data)
                #expect(sealed.count == count + 16)
                #expect(try key.open(sealed, nonce: nonce, data: data) == clear)
                #expect(key.seal(SecureBytes(copying: clear), nonce: nonce, data: data) == sealed)
            }
        }
    }

    @Test("a lent buffer is sealed and opened in place", arguments: AEADSuite.allCases)
    func inPlace(suite: AEADSuite) throws {
        let (key, nonce, clear): (AEAD, AEADNonce, [UInt8]) = (
            try AEAD(suite, key: .random(32)), .random(), RandomBytes.make(1_000)
        )
        var room = clear + [UInt8](repeating: 0, count: 16)
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        try room.withUnsafeMutableBytes { room in
            let text = UnsafeMutableRawBufferPointer(rebasing: room[..<1_000])
            key.seal(UnsafeRawBufferPointer(text), nonce: nonce, data: none, into: room)
            #expect(Array(room) == key.seal(clear, nonce: nonce, data: []))
            try key.open(UnsafeRawBufferPointer(room), nonce: nonce, data: none, into: text)
        }
        #expect(Array(room.prefix(1_000)) == clear)
    }

    @Test("a failed opening leaves zeros in place of the text, and the object stays usable")
    func wiped() throws {
        let (key, nonce): (AEAD, AEADNonce) = (try AEAD(.aes256GCM, key: .random(32)), .random())
        var sealed = key.seal([UInt8](repeating: 7, count: 100), nonce: nonce, data: [])
        sealed[115] ^= 1
        var room = [UInt8](repeating: 9, count: 100)
        room.withUnsafeMutableBytes { room in
            sealed.withUnsafeBytes { sealed in
                expectFailure("a wrong tag") {
                    try key.open(sealed, nonce: nonce, data: UnsafeRawBufferPointer(start: nil, count: 0), into: room)
                }
            }
        }
        #expect(room == [UInt8](repeating: 0, count: 100))
        sealed[115] ^= 1
        #expect(try key.open(sealed, nonce: nonce, data: []) == [UInt8](repeating: 7, count: 100))
    }

    @Test("many threads seal with one object")
    func threads() async throws {
        let key = try AEAD(.aes256GCM, key: .random(32))
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    (0..<50).allSatisfy { number in
                        let nonce = AEADNonce.random()
                        let clear = RandomBytes.make(number)
                        let sealed = key.seal(clear, nonce: nonce, data: [])
                        return (try? key.open(sealed, nonce: nonce, data: [])) == clear
                    }
                }
            }
            for await isGood in group { #expect(isGood) }
        }
    }

    @Test("the only suites are 1 and 2; keys and nonces of other lengths are refused")
    func bounds() throws {
        #expect(try AEADSuite(number: 1) == .aes256GCM)
        #expect(try AEADSuite(number: 2) == .chaCha20Poly1305)
        for number: UInt8 in [0, 3, 4, 127, 255] {
            #expect(throws: CryptoError.outOfBounds(.suite)) { try AEADSuite(number: number) }
        }
        for count in [0, 16, 31, 33] {
            #expect(throws: CryptoError.outOfBounds(.key)) { try AEAD(.aes256GCM, key: .random(count)) }
        }
        #expect(throws: CryptoError.outOfBounds(.nonce)) { try AEADNonce([UInt8](repeating: 0, count: 11)) }
    }

    @Test("AES-256-GCM gives the bytes of the GCM specification's test case 14")
    func published() throws {
        let zeros = { [UInt8](repeating: 0, count: $0) }
        // A published key; other tests' seals under it are recorded apart.
        let sealed = try SealRecorder.$current.withValue(SealRecorder()) {
            let key = try AEAD(.aes256GCM, key: SecureBytes(copying: zeros(32)))
            return key.seal(zeros(16), nonce: try AEADNonce(zeros(12)), data: [])
        }
        #expect(Hex.encode(sealed) == "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919")
    }

    @Test("the nonce of a chunk is its number in 11 bytes and a byte that marks the last")
    func chunks() {
        #expect(AEADNonce.chunk(0, isLast: false).octets == [UInt8](repeating: 0, count: 12))
        #expect(AEADNonce.chunk(0x0102_0304, isLast: true).octets == [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 1])
    }
}
