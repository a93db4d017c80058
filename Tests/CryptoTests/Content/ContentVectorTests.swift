import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@Suite(
    "Sealed content against the published cases",
    .enabled(
        if: Vectors.has("container/content.json"),
        "needs the container vectors"))
struct ContentVectorTests {
    private static func key(_ each: JSONValue, suite: UInt8? = nil) throws -> ContentKey {
        try ContentKey(
            AEADSuite(number: suite ?? UInt8(each.int("suite"))), key: SecureBytes(copying: each.hex("content_key")),
            dataID: each.hex("data_id"))
    }

    /// The plain text that the vectors write as `SHAKE128('x')`, of the case's length.
    private static func plaintext(_ each: JSONValue) throws -> [UInt8] {
        let text = try each.text("plaintext")
        let name: Substring = text.dropFirst("SHAKE128('".count).dropLast(2)
        return Hash.shake128(Array(name.utf8), count: try each.int("length"))
    }

    @Test("every case seals to the published bytes and opens to the plain text, whole and in ranges")
    func cases() throws {
        let cases = try Vectors.json("container/content.json").list("cases")
        #expect(cases.count == 22)
        for each in cases {
            let (key, plain) = (try Self.key(each), try Self.plaintext(each))
            #expect(Hex.encode(Hash.sha256(plain)) == (try each.text("plaintext_sha256")))
            let sealed = try ContentSealer.seal(plain, key)
            #expect(sealed.count == (try each.int("sealed_length")))
            #expect(Hex.encode(Hash.sha256(sealed)) == (try each.text("sealed_sha256")))
            let firstEnd = min(sealed.count, ContentLayout.sealedChunkBytes)
            #expect(Hex.encode(Array(sealed[firstEnd - 16..<firstEnd])) == (try each.text("first_tag")))
            #expect(Hex.encode(sealed.suffix(16)) == (try each.text("last_tag")))
            if let hex = each["sealed_hex"]?.stringValue { #expect(Hex.encode(sealed) == hex) }
            #expect(try ContentOpener.open(sealed, key, length: UInt64(plain.count)) == plain)

            let stored = StoredContent(sealed)
            let opener = try ContentOpener(
                key, length: UInt64(plain.count), storedLength: UInt64(sealed.count))
            for range in [
                0..<plain.count, plain.count / 2..<plain.count, 0..<1, plain.count - 1..<plain.count,
            ] {
                #expect(try stored.read(range, opener) == Array(plain[range]))
            }
        }
    }

    @Test("T5: every published change is refused, with the one error")
    func mutations() throws {
        let group = try #require(Vectors.json("container/content.json")["must_fail"])
        let (key, plain) = (try Self.key(group), try Self.plaintext(group))
        let sealed = try ContentSealer.seal(plain, key)
        #expect(Hex.encode(Hash.sha256(sealed)) == (try group.text("sealed_sha256")))
        let mutations = try group.list("mutations")
        #expect(mutations.count == 12)
        for each in mutations {
            let name = try each.text("name")
            let changed = try #require(Self.mutated(sealed, name), "\(name)")
            #expect(changed.count == (try each.int("sealed_length")), "\(name)")
            #expect(Hex.encode(Hash.sha256(changed)) == (try each.text("how_sha256")), "\(name)")
            let length = UInt64(try each.int("declared_length"))
            expectFailure(name) { _ = try ContentOpener.open(changed, key, length: length) }
            expectFailure(name) {
                let opener = try ContentOpener(key, length: length, storedLength: UInt64(changed.count))
                _ = try StoredContent(changed).read(0..<Int(length), opener)
            }
        }
    }

    @Test("T5: another data id, key, suite or length is refused, with the one error")
    func others() throws {
        let group = try #require(Vectors.json("container/content.json")["must_fail"])
        let (key, plain) = (try Self.key(group), try Self.plaintext(group))
        let sealed = try ContentSealer.seal(plain, key)
        let secret = SecureBytes(copying: try group.hex("content_key"))
        var otherID = try group.hex("data_id")
        otherID[15] ^= 1
        var otherKey = try group.hex("content_key")
        otherKey[0] ^= 0x80
        for (name, wrong) in [
            ("data id", try ContentKey(.aes256GCM, key: secret, dataID: otherID)),
            ("key", try ContentKey(.aes256GCM, key: SecureBytes(copying: otherKey), dataID: try group.hex("data_id"))),
            ("suite", try Self.key(group, suite: 2)),
        ] { expectFailure(name) { _ = try ContentOpener.open(sealed, wrong, length: UInt64(plain.count)) } }
        for length in [0, 1, 149_999, 150_001, 131_072, .max, ContentLayout.lengthMax] {
            expectFailure("length \(length)") { _ = try ContentOpener.open(sealed, key, length: length) }
        }
    }

    /// The published changes by their names.
    private static func mutated(_ sealed: [UInt8], _ name: String) -> [UInt8]? {
        let chunk = ContentLayout.sealedChunkBytes
        var bytes = sealed
        switch name {
        case "drop last chunk", "drop last chunk, true length kept": return Array(sealed[..<(2 * chunk)])
        case "one byte short", "length one less": return sealed.dropLast()
        case "one byte more": return sealed + [0]
        case "swap chunks 0 and 1":
            return Array(sealed[chunk..<2 * chunk]) + sealed[..<chunk] + sealed[(2 * chunk)...]
        case "chunk 0 twice": return Array(sealed[..<chunk]) + sealed[..<chunk] + sealed[(2 * chunk)...]
        case "flip first byte": bytes[0] ^= 1
        case "flip tag of chunk 1": bytes[2 * chunk - 1] ^= 1
        case "flip last byte": bytes[bytes.count - 1] ^= 1
        case "empty": return []
        case "cut to one chunk as if last": return Array(sealed[..<chunk])
        default: return nil
        }
        return bytes
    }
}

/// Sealed bytes that are read like a file, and the number of bytes read.
final class StoredContent {
    private let sealed: [UInt8]
    private(set) var bytesRead = 0

    init(_ sealed: [UInt8]) { self.sealed = sealed }

    func read(_ range: Range<Int>, _ opener: borrowing ContentOpener) throws -> [UInt8] {
        var clear = [UInt8]()
        try opener.read(
            UInt64(range.lowerBound)..<UInt64(range.upperBound),
            from: { offset, room in
                let part = self.sealed.dropFirst(Int(offset)).prefix(room.count)
                room.copyBytes(from: part)
                self.bytesRead += part.count
                return part.count
            }
        ) { clear += $0 }
        return clear
    }
}
