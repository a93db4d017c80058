/// The mark U+FEFF that some editors put in front of a file in UTF-8. It is no part of a text, and JSON has none.
enum ByteOrderMark {
    private static let bytes: [UInt8] = [0xEF, 0xBB, 0xBF]

    static func isFirst(in content: some Collection<UInt8>) -> Bool { content.starts(with: bytes) }

    /// The content without the mark in front.
    static func removed(from content: [UInt8]) -> ArraySlice<UInt8> {
        isFirst(in: content) ? content[bytes.count...] : content[...]
    }
}
