public import ThicketCrypto

/// The tag under which a server knows a node among its siblings: equal for names that people consider equal
/// (`NameTag`). 32 letters of base32, of 20 bytes.
public struct NodeTag: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The letters.
    public let text: String

    /// Reads a text.
    ///
    /// - Returns: nil for anything but 32 letters of lower-case base32.
    public init?(text: String) {
        guard text.utf8.count == NameTag.letterCount, Base32.decode(text.utf8)?.count == NameTag.byteCount else {
            return nil
        }
        self.text = text
    }

    /// The tag of a name.
    ///
    /// - Parameters:
    ///   - name: UTF-8.
    ///   - salt: the parent's child salt.
    /// - Throws: `UnicodeText.Failure` for a name that is not UTF-8 or too long.
    public init(of name: [UInt8], salt: [UInt8]) throws(UnicodeText.Failure) {
        text = try NameTag.text(of: name, salt: salt)
    }

    /// The tag of a node in an inbox: its id is its name there.
    public init(inInbox node: NodeID) {
        guard let tag = try? NodeTag(of: Array(node.text.utf8), salt: Trunk.inboxSalt) else {
            preconditionFailure("an id is a name")
        }
        self = tag
    }

    /// The letters.
    public var description: String { text }
    /// The order of the letters.
    public static func < (left: NodeTag, right: NodeTag) -> Bool { left.text < right.text }
}
