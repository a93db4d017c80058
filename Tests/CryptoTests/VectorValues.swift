import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Values in the vectors' JSON.
extension JSONValue {
    /// The text of a member, which must exist.
    func text(_ name: String) throws -> String { try #require(self[name]?.stringValue, "no text '\(name)'") }
    /// A member in hex.
    func hex(_ name: String) throws -> [UInt8] { try #require(Hex.decode(text(name)), "no hex '\(name)'") }
    /// A member in base64.
    func base64(_ name: String) throws -> [UInt8] {
        try #require(Base64.decode(Array(text(name).utf8)[...]), "no base64 '\(name)'")
    }
    /// A member's elements.
    func list(_ name: String) throws -> [JSONValue] { try #require(self[name]?.arrayValue, "no list '\(name)'") }
    /// A whole number.
    func int(_ name: String) throws -> Int { Int(try #require(self[name]?.intValue, "no number '\(name)'")) }
    /// A whole number of 64 bits without a sign.
    func unsigned(_ name: String) throws -> UInt64 {
        let number = try #require(self[name])
        return try #require(UInt64(number.serializedText), "no number '\(name)'")
    }
}
