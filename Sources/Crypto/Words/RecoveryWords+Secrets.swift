/// Recovery words in memory for secrets, which is wiped.
extension RecoveryWords {
    /// The words of a secret, UTF-8, lower case, separated by one space.
    ///
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

    /// The secret of typed or pasted words, which may be numbered or separated by commas; see `PastedText` and `read`.
    ///
    /// - Throws: `Failure` when they are not valid recovery words.
    public static func entropy(_ text: SecureBytes) throws(Failure) -> SecureBytes {
        let text = PastedText.plain(text)
        var count = 0
        let room = try SecureBytes(count: 32) { room throws(Failure) in
            count = try text.withUnsafeBytes { text throws(Failure) in try read(text, to: room) }
        }
        return room.part(0..<count)
    }
}
