/// The byte order mark U+FEFF that some editors write at the start of a UTF-8 file. It is not part of the text, and
/// JSON does not permit it.
enum ByteOrderMark {
    private static let bytes: [UInt8] = [0xEF, 0xBB, 0xBF]

    static func isFirst(in content: some Collection<UInt8>) -> Bool { content.starts(with: bytes) }

    /// The content without the mark at its start.
    static func removed(from content: [UInt8]) -> ArraySlice<UInt8> {
        isFirst(in: content) ? content[bytes.count...] : content[...]
    }
}
