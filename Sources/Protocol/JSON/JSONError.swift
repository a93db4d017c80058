/// Why bytes are not acceptable JSON (RFC 8259, with the stricter rules of `JSONDocument`).
public struct JSONError: Error, Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The rule that the text breaks.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A byte that the grammar does not permit at this place.
        case unexpectedByte
        /// The text ends before the value is complete.
        case unexpectedEnd
        /// Something other than white space follows the value.
        case trailingBytes
        /// An object has a key twice (compared after decoding escapes). The offset is that of the second key's opening
        /// quote.
        case duplicateKey
        /// Arrays and objects nest deeper than permitted. The offset is that of the first bracket beyond the bound.
        case tooDeep
        /// A `\u` escape encodes half of a surrogate pair. The offset is that of its backslash.
        case loneSurrogate
        /// The text is not UTF-8. The offset is that of the first byte of the invalid sequence.
        case invalidUTF8
        /// A number that breaks the grammar. The offset is that of the first byte that does not fit.
        case invalidNumber
        /// An escape that JSON does not define. The offset is that of its backslash.
        case invalidEscape
        /// A byte below 0x20 inside a string.
        case controlCharacter
        /// The outermost array has more elements than the reader accepts. The offset is that of the comma before the
        /// first one too many.
        case tooManyElements
        /// The text is longer than `Limits.jsonBytesMax`.
        case tooLarge
    }

    /// The rule that the text breaks.
    public let kind: Kind
    /// Offset in bytes from the start of the text; the length of the text when it ends too early.
    public let offset: Int

    /// Makes an error at a byte offset.
    public init(_ kind: Kind, at offset: Int) {
        self.kind = kind
        self.offset = offset
    }

    /// The kind and the offset. Safe to log: contains nothing of the text.
    public var description: String { "JSON: \(kind.rawValue) at byte \(offset)" }
}
