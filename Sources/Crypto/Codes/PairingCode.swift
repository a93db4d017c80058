/// The name of a pairing: the first 16 bytes of SHA-256 over `thicket/pair/1` ‖ 0x00 ‖ the new device's message, in
/// base32: 26 letters, which a person carries from one screen to the other. Finding another key with the same name is
/// infeasible.
public enum PairingCode {
    /// Letters of a code.
    public static let letters = 26

    /// The code of a new device's message.
    public static func text(of hello: [UInt8]) -> String {
        Base32.encode(Array(Hash.sha256(LabelledBytes("thicket/pair/1").octets + hello).prefix(16)))
    }

    /// Reads a typed code. Capitals, white space and hyphens are ignored; digits that are not in the alphabet are read
    /// as the letters that they resemble.
    ///
    /// - Returns: nil for a text that is not a code.
    public static func read(_ typed: String) -> String? {
        var text = [UInt8]()
        for byte in typed.utf8 {
            switch byte {
            case 0x20, 0x2D, 0x09, 0x0A, 0x0D: continue
            case 0x30: text.append(UInt8(ascii: "o"))
            case 0x31: text.append(UInt8(ascii: "l"))
            case 0x38: text.append(UInt8(ascii: "b"))
            case 0x41...0x5A: text.append(byte | 0x20)
            default: text.append(byte)
            }
        }
        guard text.count == letters, Base32.decode(text)?.count == 16 else { return nil }
        return String(decoding: text, as: UTF8.self)
    }
}
