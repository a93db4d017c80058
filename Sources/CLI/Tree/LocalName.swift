import ThicketTree

/// The name of a file for the name of a node.
enum LocalName {
    /// Bytes of a name that usual file systems hold.
    static let bytesMax = 255

    /// The name itself where a file can have it; otherwise with escapes as in URLs.
    ///
    /// - Returns: nil when the escaped name is longer than `bytesMax`.
    static func of(_ name: NodeName) -> (text: String, isEscaped: Bool)? {
        let isSpecial = same(name.text, ".") || same(name.text, "..") || name.text.hasPrefix(Files.temporaryPrefix)
        guard isSpecial || name.text.utf8.contains(0x2F) else { return (name.text, false) }
        var bytes = [UInt8]()
        for (place, byte) in name.octets.enumerated() {
            if byte == 0x2F {
                bytes += Array("%2F".utf8)
            } else if byte == 0x2E, isSpecial, place < 2, place == 0 || same(name.text, "..") {
                bytes += Array("%2E".utf8)
            } else {
                bytes.append(byte)
            }
        }
        return bytes.count <= bytesMax ? (String(decoding: bytes, as: UTF8.self), true) : nil
    }
}
