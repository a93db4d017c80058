import ThicketProtocol
import ThicketTreesystem

/// The name of a conversation's node: `chat` and the other person's account id, in letters that stay the same if case is
/// ignored. Other nodes of the account, such as a folder with the name of a person, are no conversations.
///
/// Names of a tree ignore case, and account ids do not: without this the conversations with `Ann` and `ann` would be one.
/// Small letters, digits and `-._@+` stay; every other byte becomes `%` and two hexadecimal digits.
enum ConversationName {
    private static let prefix = "chat "
    private static let kept = Set("abcdefghijklmnopqrstuvwxyz0123456789-._@+".utf8)

    /// - Throws: `invalidName` for an id whose form is longer than a name: no conversation with it can be kept.
    static func of(_ person: UserID) throws(TreeError) -> NodeName {
        var text = prefix
        for byte in person.text.utf8 {
            if kept.contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16)
                text += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        do throws(NodeName.Fault) { return try NodeName(text) } catch {
            throw TreeError(.invalidName, "the account's id is too long for a conversation: \(error)")
        }
    }

    /// The person of a conversation. The tree gives a second node of one name a number (`chat ann 2`).
    ///
    /// - Returns: nil for a name that is not one of a conversation, such as that of another app's node.
    static func person(_ name: NodeName) -> UserID? {
        guard name.text.hasPrefix(prefix) else { return nil }
        let parts = name.text.dropFirst(prefix.count).split(separator: " ", omittingEmptySubsequences: false)
        guard let form = parts.first, parts.count == 1 || parts.count == 2 && Int(parts[1]) != nil else { return nil }
        var (bytes, rest) = ([UInt8](), form.utf8)
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                let digits = rest.prefix(2)
                guard digits.count == 2, let escaped = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) else {
                    return nil
                }
                bytes.append(escaped)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        guard let text = String(validating: bytes, as: UTF8.self), let person = try? UserID(text),
            let back = try? of(person), back.text.utf8.elementsEqual((prefix + form).utf8)
        else { return nil }
        return person
    }
}
