import Testing
import ThicketProtocol

@Suite("Names that come from outside")
struct IdentifierTests {
    @Test("a key of an object admits letters, digits and five other characters, and no other byte")
    func keys() throws {
        let admitted: Set<UInt8> = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-%@".utf8)
        for byte: UInt8 in 0..<0x80 {
            let text: String = "a" + String(UnicodeScalar(byte)) + "b"
            let isTaken: Bool = (try? EntityKey(text)) != nil
            #expect(isTaken == admitted.contains(byte), "byte \(byte)")
        }
        // Bytes from 0x80 on, of sequences of two, three and four.
        for scalar: UInt32 in [0x80, 0xBF, 0xC0, 0xE9, 0x7FF, 0x800, 0xFFFD, 0x1_0000, 0x10_FFFF] {
            let text: String = try #require(UnicodeScalar(scalar).map { String($0) })
            #expect(throws: IdentifierError.self) { try EntityKey(text) }
        }
        #expect(throws: IdentifierError.self) { try EntityKey("") }
        let longest: String = .init(repeating: "k", count: Limits.entityKeyBytesMax)
        #expect(try EntityKey(longest).text == longest)
        #expect(throws: IdentifierError.self) { try EntityKey(longest + "k") }
    }
}
