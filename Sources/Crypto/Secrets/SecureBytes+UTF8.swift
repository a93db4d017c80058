extension SecureBytes {
    /// Whether the bytes are valid UTF-8 (RFC 3629).
    public var isUTF8: Bool {
        withUnsafeBytes { bytes in
            var (decoder, place) = (UTF8(), bytes.makeIterator())
            while true {
                switch decoder.decode(&place) {
                case .scalarValue: continue
                case .emptyInput: return true
                case .error: return false
                }
            }
        }
    }

    /// Number of UTF-16 code units of the text. The bytes must be UTF-8.
    public var utf16Count: Int {
        // A character begins with a byte that is not 10xxxxxx, and has two units if that byte is 11110xxx or above.
        withUnsafeBytes { bytes in bytes.reduce(0) { $0 + ($1 & 0xC0 == 0x80 ? 0 : $1 >= 0xF0 ? 2 : 1) } }
    }
}
