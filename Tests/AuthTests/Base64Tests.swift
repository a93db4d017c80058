import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketTestSupport

@Suite("base64 and AES-256-GCM")
struct Base64Tests {
    @Test(
        "RFC 4648, section 10, in both directions",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ])
    func standard(_ clear: String, _ text: String) {
        #expect(Base64.encode(Array(clear.utf8)) == text)
        #expect(Base64.decode(Array(text.utf8)[...]) == Array(clear.utf8))
        let bare = String(text.prefix { $0 != "=" })
        #expect(Base64.encodeURL(Array(clear.utf8)) == bare)
        #expect(Base64.decodeURL(Array(bare.utf8)[...]) == Array(clear.utf8))
    }

    @Test("the two alphabets differ in two characters, and neither decoder reads the other's")
    func alphabets() {
        let bytes: [UInt8] = [0xFB, 0xEF, 0xFF]
        #expect(Base64.encode(bytes) == "++//")
        #expect(Base64.encodeURL(bytes) == "--__")
        #expect(Base64.decodeURL(Array("++//".utf8)[...]) == nil)
        #expect(Base64.decode(Array("--__".utf8)[...]) == nil)
    }

    @Test(
        "base64 text that is not canonical is refused",
        arguments: ["Zg=", "Zg", "Zh==", "Z===", "====", "Zm9 v", "Zm9\n", "Zg==Zg==", "Zm9v=", "=Zm9"])
    func strictStandard(_ text: String) { #expect(Base64.decode(Array(text.utf8)[...]) == nil) }

    @Test(
        "base64url text that is not canonical, or that has padding, is refused",
        arguments: ["Z", "Zh", "Zm9vY", "Zm9vYmF", "Zg==", "Zm 9v", "Zm9v=", "Zm%v", "Zm9v\n"]
    )
    func strictURL(_ text: String) {
        // "Zm9vYmF" ends in bits that are not zero, as "Zh" does.
        #expect(Base64.decodeURL(Array(text.utf8)[...]) == nil)
    }

    @Test("random bytes of every length below 200 survive a round trip")
    func roundTrip() {
        var random = SeededRandom(seed: 64)
        for count in 0..<200 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Base64.decode(Array(Base64.encode(bytes).utf8)[...]) == bytes)
            #expect(Base64.decodeURL(Array(Base64.encodeURL(bytes).utf8)[...]) == bytes)
        }
    }

    @Test("a character outside the alphabet is refused at every place, whichever it is")
    func wrongLetters() {
        let letters: Set<UInt8> = Set(Base64.encodeURL((UInt8.min...UInt8.max).map(\.self)).utf8)
        for count in 0..<20 {
            let text: [UInt8] = Array(Base64.encodeURL((0..<UInt8(count)).map { $0 &* 37 &+ 5 }).utf8)
            for place in text.indices {
                for other: UInt8 in 0...255 where !letters.contains(other) {
                    var changed: [UInt8] = text
                    changed[place] = other
                    #expect(Base64.decodeURL(changed[...]) == nil)
                }
            }
        }
    }

    @Test("decoding in place writes the given range and no byte beside it")
    func inPlace() {
        for count in 0..<40 {
            let bytes = (0..<UInt8(count)).map { $0 &* 91 &+ 3 }
            let text: [UInt8] = Array(Base64.encodeURL(bytes).utf8)
            #expect(Base64.decodedCount(text.count) == count)
            var room = [UInt8](repeating: 0xEE, count: count + 8)
            let isRead = room.withUnsafeMutableBufferPointer { room in
                text.withUnsafeBufferPointer {
                    Base64.decodeURL($0, into: UnsafeMutableBufferPointer(rebasing: room[4..<4 + count]))
                }
            }
            #expect(isRead && Array(room[4..<4 + count]) == bytes)
            #expect(room[..<4] == [0xEE, 0xEE, 0xEE, 0xEE] && room[(4 + count)...] == [0xEE, 0xEE, 0xEE, 0xEE])
        }
        for letters in [1, 5, 9, 401] { #expect(Base64.decodedCount(letters) == nil) }
    }

    @Test("HMAC-SHA-512 (RFC 4231, test case 2)")
    func hmac() {
        let tag = Hash.hmacSHA512(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8)[...])
        #expect(
            Hex.encode(tag)
                == "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
                + "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737")
    }
}
