/// Why bytes are not JSON that we take (RFC 8259, with the stricter rules of `JSONDocument`).
public struct JSONError: Error, Equatable, Hashable, Sendable, CustomStringConvertible {
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A byte that cannot stand here.
        case unexpectedByte
        /// The text ends before the value does.
        case unexpectedEnd
        /// Something other than white space follows the value.
        case trailingBytes
        /// An object names one key twice (after escapes are read). The offset is that of the second one's quote.
        case duplicateKey
        /// Arrays and objects nest deeper than permitted. The offset is that of the bracket which goes too far.
        case tooDeep
        /// A `\u` escape gives half of a surrogate pair. The offset is that of its backslash.
        case loneSurrogate
        /// Not UTF-8. The offset is that of the first byte of the bad sequence.
        case invalidUTF8
        /// A number against the grammar. The offset is that of the first byte which does not fit.
        case invalidNumber
        /// An escape that JSON does not know. The offset is that of its backslash.
        case invalidEscape
        /// A byte below 0x20 inside a string.
        case controlCharacter
        /// The outermost array has more elements than its reader takes. The offset is that of the comma before the
        /// first one too many.
        case tooManyElements
        /// The text is longer than `Limits.jsonBytesMax`.
        case tooLarge
    }

    /// What is wrong.
    public let kind: Kind
    /// Bytes from the start of the text; the length of the text when it ends too early.
    public let offset: Int

    public init(_ kind: Kind, at offset: Int) {
        self.kind = kind
        self.offset = offset
    }

    /// Safe to log: holds nothing of the text.
    public var description: String { "JSON: \(kind.rawValue) at byte \(offset)" }
}
