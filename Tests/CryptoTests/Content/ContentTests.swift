import Testing
import ThicketCrypto
import ThicketTestSupport

@Suite("Content is sealed in pieces of any size and read at any place")
struct ContentTests {
    /// A new key, since each key seals one stream.
    private static func key(_ suite: AEADSuite = .aes256GCM) throws -> ContentKey {
        try ContentKey(suite, key: .random(32), dataID: RandomBytes.make(16))
    }

    private static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) } }

    @Test("a stream of length 0 is one tag, which opens, and which no other length has", arguments: AEADSuite.allCases)
    func nothing(suite: AEADSuite) throws {
        let key = try Self.key(suite)
        let sealed = try ContentSealer.seal([], key)
        #expect(sealed.count == 16)
        #expect(try ContentOpener.open(sealed, key, length: 0) == [])
        var changed = sealed
        changed[3] ^= 1
        expectFailure("a flipped bit of nothing") { _ = try ContentOpener.open(changed, key, length: 0) }
        expectFailure("no bytes at all") { _ = try ContentOpener.open([], key, length: 0) }
        let stored = StoredContent(changed)
        let opener = try ContentOpener(key, length: 0, storedLength: 16)
        expectFailure("an empty range of what is not empty by right") { _ = try stored.read(0..<0, opener) }

        var sealer = try ContentSealer(key, length: 0)
        var streamed: [UInt8] = []
        try [UInt8]().withUnsafeBytes { try sealer.seal($0) { streamed += $0 } }
        try sealer.finish { streamed += $0 }
        #expect(streamed == sealed)
    }

    @Test("the sealed bytes do not depend on the pieces in which a stream comes")
    func pieces() throws {
        var random = SeededRandom(seed: 33)
        for count in [1, 65_535, 65_536, 65_537, 131_072, 150_000] {
            let (key, plain) = (try Self.key(), Self.bytes(count))
            let whole = try ContentSealer.seal(plain, key)
            for sizes in [1...3_000, 65_536...65_536, 1...200_000] {
                var sealer: ContentSealer = try ContentSealer(key, length: UInt64(count))
                var (streamed, rest): ([UInt8], ArraySlice<UInt8>) = ([], plain[...])
                while !rest.isEmpty {
                    let piece = Array(rest.prefix(Int.random(in: sizes, using: &random)))
                    rest = rest.dropFirst(piece.count)
                    try piece.withUnsafeBytes { try sealer.seal($0) { streamed += $0 } }
                }
                #expect(sealer.layout.sealedLength == UInt64(whole.count))
                try sealer.finish { streamed += $0 }
                #expect(streamed == whole)
            }
        }
    }

    @Test("a range is read from its own chunks only")
    func ranges() throws {
        let (key, plain) = (try Self.key(.chaCha20Poly1305), Self.bytes(200_000))
        var sealed = try ContentSealer.seal(plain, key)
        // The first chunk is damaged; ranges that do not need it are not affected.
        sealed[100] ^= 1
        let opener = try ContentOpener(key, length: 200_000, storedLength: UInt64(sealed.count))
        for range in [
            65_536..<65_537, 70_000..<140_000, 199_999..<200_000, 131_072..<131_072, 65_536..<200_000,
        ] {
            let stored = StoredContent(sealed)
            #expect(try stored.read(range, opener) == Array(plain[range]))
            let fetched = try #require(
                opener.layout.sealedRange(holding: UInt64(range.lowerBound)..<UInt64(range.upperBound)))
            #expect(stored.bytesRead == fetched.count)
        }
        let stored = StoredContent(sealed)
        expectFailure("the damaged chunk") { _ = try stored.read(65_000..<66_000, opener) }
        #expect(throws: CryptoError.outOfBounds(.count)) { try stored.read(0..<200_001, opener) }
    }

    @Test("genuine chunks before a damaged one are returned, and nothing of it or after it")
    func prefix() throws {
        let (key, plain) = (try Self.key(), Self.bytes(200_000))
        var sealed = try ContentSealer.seal(plain, key)
        sealed[2 * ContentLayout.sealedChunkBytes - 1] ^= 1
        let opener = try ContentOpener(key, length: 200_000, storedLength: UInt64(sealed.count))
        var clear = [UInt8]()
        #expect(throws: CryptoError.openingFailed) {
            try opener.read(
                0..<200_000,
                from: { offset, room in
                    room.copyBytes(from: sealed[Int(offset)...].prefix(room.count))
                    return room.count
                }
            ) { clear += $0 }
        }
        #expect(clear == Array(plain[..<65_536]))
    }

    @Test("a source that has fewer bytes than it said counts as damage")
    func short() throws {
        let key = try Self.key()
        let opener = try ContentOpener(key, length: 10, storedLength: 26)
        expectFailure("a short source") {
            try opener.read(0..<10, from: { _, room in room.count - 1 }) { _ in Issue.record("clear text came out") }
        }
    }

    @Test("T5: every flipped bit of a short stream is refused", arguments: AEADSuite.allCases)
    func everyBit(suite: AEADSuite) throws {
        let key = try Self.key(suite)
        let sealed: [UInt8] = try ContentSealer.seal(Self.bytes(65), key)
        for bit in 0..<sealed.count * 8 {
            var changed = sealed
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            expectFailure("bit \(bit)") { _ = try ContentOpener.open(changed, key, length: 65) }
        }
        for count in 0..<sealed.count {
            expectFailure("cut to \(count)") {
                _ = try ContentOpener.open(Array(sealed.prefix(count)), key, length: 65)
            }
        }
    }

    @Test("more bytes than the length are refused before any is sealed, fewer bytes at the end")
    func wrongLength() throws {
        let (key, plain) = (try Self.key(), Self.bytes(65_537))
        let refused = Self.failure {
            var sealer = try ContentSealer(key, length: 65_536)
            try plain.withUnsafeBytes { try sealer.seal($0) { _ in Issue.record("a chunk came out") } }
        }
        #expect(refused == .outOfBounds(.count))
        let early = Self.failure {
            var sealer = try ContentSealer(key, length: 65_538)
            try plain.withUnsafeBytes { try sealer.seal($0) { _ in } }
            try sealer.finish { _ in Issue.record("a chunk came out") }
        }
        #expect(early == .outOfBounds(.count))
    }

    private static func failure(_ body: () throws -> Void) -> CryptoError? {
        do {
            try body()
            return nil
        } catch { return error as? CryptoError }
    }

    @Test("lengths up to 2^32 − 1 chunks have a layout, and no others")
    func layout() throws {
        let most = try ContentLayout(length: ContentLayout.lengthMax)
        #expect(most.chunks == 0xFFFF_FFFF && most.sealedLength == 0xFFFF_FFFF * 65_552)
        #expect(throws: CryptoError.outOfBounds(.count)) { try ContentLayout(length: ContentLayout.lengthMax + 1) }
        #expect(throws: CryptoError.outOfBounds(.count)) { try ContentLayout(length: .max) }
        #expect(throws: CryptoError.outOfBounds(.count)) {
            _ = try ContentSealer(try Self.key(), length: .max)
        }
        for (length, sealed): (UInt64, UInt64) in [
            (0, 16), (1, 17), (65_535, 65_551), (65_536, 65_552), (65_537, 65_569), (131_072, 131_104),
        ] { #expect(try ContentLayout(length: length).sealedLength == sealed) }
        let layout = try ContentLayout(length: 150_000)
        #expect(layout.sealedRange(of: 2) == 131_104..<150_048 && layout.clearRange(of: 2) == 131_072..<150_000)
        #expect(layout.chunks(holding: 0..<150_001) == nil && layout.chunks(holding: 65_535..<65_537) == 0..<2)
        #expect(layout.sealedRange(holding: 65_536..<65_537) == 65_552..<131_104)
        expectFailure("a stored length that does not belong") {
            _ = try ContentOpener(try Self.key(), length: .max, storedLength: 26)
        }
    }

    @Test("unknown suites, and keys and ids of other lengths, are refused")
    func parameters() {
        #expect(throws: CryptoError.outOfBounds(.suite)) { try AEADSuite(number: 3) }
        #expect(throws: CryptoError.outOfBounds(.key)) {
            try ContentKey(.aes256GCM, key: SecureBytes.random(16), dataID: RandomBytes.make(16))
        }
        #expect(throws: CryptoError.outOfBounds(.count)) {
            try ContentKey(.aes256GCM, key: SecureBytes.random(32), dataID: RandomBytes.make(15))
        }
    }
}
