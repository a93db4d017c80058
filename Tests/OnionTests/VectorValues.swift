import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Typed access to the vectors' JSON.
extension JSONValue {
    func text(_ name: String) throws -> String { try #require(self[name]?.stringValue, "no text '\(name)'") }
    func hex(_ name: String) throws -> [UInt8] { try #require(Hex.decode(text(name)), "no hex '\(name)'") }
    func list(_ name: String) throws -> [JSONValue] { try #require(self[name]?.arrayValue, "no list '\(name)'") }
    func int(_ name: String) throws -> Int { Int(try #require(self[name]?.intValue, "no number '\(name)'")) }
}
