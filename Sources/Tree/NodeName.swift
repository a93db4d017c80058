import ThicketCrypto

/// The name of a node below its parent: 1 to 255 bytes of UTF-8 without NUL. It may contain `/`.
///
/// Case is preserved and does not count: two names are the same if their folded forms are (`UnicodeText.folded`). `==`
/// compares the bytes.
public struct NodeName: Sendable, Hashable, CustomStringConvertible {
    /// Bytes of a name at most.
    public static let bytesMax = 255

    /// Why a text is not a name.
    public enum Fault: Error, Sendable, Hashable, CustomStringConvertible {
        /// It has no characters.
        case empty
        /// It has this number of bytes.
        case tooLong(Int)
        /// It contains U+0000.
        case nul
        /// The bytes are not UTF-8.
        case notUTF8

        /// A sentence without the name.
        public var description: String {
            switch self {
            case .empty: "a name has at least one character"
            case .tooLong(let count): "a name has at most \(NodeName.bytesMax) bytes of UTF-8, not \(count)"
            case .nul: "a name does not contain U+0000"
            case .notUTF8: "a name is UTF-8"
            }
        }
    }

    /// The name as given.
    public let text: String

    /// Checks a name.
    ///
    /// - Throws: `Fault`.
    public init(_ text: String) throws(Fault) {
        guard !text.isEmpty else { throw .empty }
        guard text.utf8.count <= Self.bytesMax else { throw .tooLong(text.utf8.count) }
        guard !text.utf8.contains(0) else { throw .nul }
        self.text = text
    }

    /// Checks a name given as bytes.
    ///
    /// - Throws: `Fault`.
    public init(octets: [UInt8]) throws(Fault) {
        guard octets.count <= Self.bytesMax else { throw .tooLong(octets.count) }
        guard let text = String(validating: octets, as: UTF8.self) else { throw .notUTF8 }
        try self.init(text)
    }

    /// The bytes of the name.
    public var octets: [UInt8] { Array(text.utf8) }

    /// The form by which names are compared: equal for names that people consider equal.
    public var folded: [UInt8] { (try? UnicodeText.folded(octets)) ?? octets }

    /// Whether both names have the same folded form, so that they cannot both be below one parent.
    public func isSame(as other: NodeName) -> Bool { folded == other.folded }

    /// The name as given.
    public var description: String { text }

    /// Compares the bytes.
    public static func == (left: NodeName, right: NodeName) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }
    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(octets) }
}
