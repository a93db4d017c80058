import ThicketCrypto
import ThicketPlatform
import ThicketTree

/// Names of files in an exported tree: one for each name of a node, so that an import reads them back exactly.
///
/// | file | node |
/// |---|---|
/// | `plan.md` | `plan.md` |
/// | `a%2Fb`, `100%25`, `two%0Alines` | `a/b`, `100%`, a name with a line feed |
/// | `%2E`, `%2E.` | `.`, `..` |
/// | `%~0123…` | a name that is too long for a file with its escapes; it is in `%~0123…%name` |
///
/// A `%` in front of another letter than a hexadecimal digit begins what is not a name (`PlainForm`).
enum PlainName {
    /// Bytes of a file's name at most, so that the longest ending fits.
    static let bytesMax = LocalName.bytesMax - PlainForm.endingBytesMax
    /// Begins the name of a file that stands for a long name.
    static let longMark = "%~"

    private static let digits = Array("0123456789ABCDEF".utf8)

    /// The name with escapes, however long.
    private static func escaped(_ name: NodeName) -> String {
        let octets = name.octets
        let isDots = same(name.text, ".") || same(name.text, "..")
        let isTemporary = name.text.hasPrefix(Files.temporaryPrefix)
        var bytes = [UInt8]()
        for (place, byte) in octets.enumerated() {
            let isSpecial = byte < 0x20 || byte == 0x7F || byte == 0x2F || byte == 0x25
            if isSpecial || (place == 0 && (isDots || isTemporary)) {
                bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The name of the file.
    ///
    /// - Returns: also whether the node's name must be in a file of its own.
    static func file(for name: NodeName) -> (text: String, isLong: Bool) {
        let text = escaped(name)
        guard text.utf8.count > bytesMax else { return (text, false) }
        return (longMark + Hex.encode(Hash.sha256(name.octets).prefix(20)), true)
    }

    /// The name of the node for a file whose name is not a long one.
    ///
    /// - Returns: nil for a file that no export has written.
    static func node(for file: String) -> NodeName? {
        var bytes = [UInt8]()
        var rest = Array(file.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        guard let name = try? NodeName(octets: bytes), same(escaped(name), file) else { return nil }
        return name
    }

    private static func digit(_ byte: UInt8) -> UInt8? { digits.firstIndex(of: byte).map { UInt8($0) } }
}
