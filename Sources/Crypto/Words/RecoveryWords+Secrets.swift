/// The same with secrets that wipe themselves.
extension RecoveryWords {
    /// The words of a secret, UTF-8, lower case, one space between them.
    /// - Parameter entropy: 16, 20, 24, 28 or 32 bytes.
    /// - Throws: `count` for another number of bytes.
    public static func words(_ entropy: SecureBytes) throws(Failure) -> SecureBytes {
        var written: Int?
        let room = SecureBytes(count: writtenBytesMax) { room in
            written = entropy.withUnsafeBytes { write($0, to: room) }
        }
        guard let written else { throw .count }
        return room.part(0..<written)
    }

    /// The secret of words as people type and paste them, numbered or with commas; see `PastedText` and `read`.
    public static func entropy(_ text: SecureBytes) throws(Failure) -> SecureBytes {
        let text = PastedText.plain(text)
        var count = 0
        let room = try SecureBytes(count: 32) { room throws(Failure) in
            count = try text.withUnsafeBytes { text throws(Failure) in try read(text, to: room) }
        }
        return room.part(0..<count)
    }
}
