import ThicketProtocol

/// An address that messages are sent to. It cannot break out of a header line or an SMTP command.
///
/// Accepted are plain addresses: a dot-string of at most 64 bytes, `@`, and a host name (RFC 5321, 4.1.2). Quoted
/// local parts, address literals and characters outside ASCII are refused.
public struct MailAddress: Sendable, Hashable, CustomStringConvertible {
    /// The whole address.
    public let text: String
    /// The whole address.
    public var description: String { text }

    /// Longest address, bytes (RFC 5321, 4.5.3.1.3), and longest part before the `@`.
    public static let bytesMax = 254
    static let localBytesMax = 64

    /// The recipient of rehearsed messages, which are never sent (RFC 2606).
    static let nobody = MailAddress(known: "nobody@host.invalid")

    private init(known text: String) { self.text = text }

    /// - Returns: nil for any other text.
    public init?(_ text: String) {
        let parts: [Substring.UTF8View] = text.utf8.split(
            separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.bytesMax, parts.count == 2, parts[0].count <= Self.localBytesMax,
            Self.areDotted(parts[0], Self.isAtom), Self.areDotted(parts[1], Self.isHost),
            !parts[1].split(separator: UInt8(ascii: ".")).contains(where: { label in
                label.first == UInt8(ascii: "-") || label.last == UInt8(ascii: "-") || label.count > 63
            })
        else { return nil }
        self.text = text
    }

    private static func areDotted(_ part: Substring.UTF8View, _ isGood: (UInt8) -> Bool) -> Bool {
        part.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            .allSatisfy { !$0.isEmpty && $0.allSatisfy(isGood) }
    }

    /// RFC 5322, 3.2.3: `atext`.
    private static func isAtom(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-/=?^_`{|}~".utf8.contains(byte)
        }
    }

    private static func isHost(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"): true
        default: false
        }
    }
}

/// A message to a user.
public struct Mail: Sendable, Hashable {
    /// The only recipient.
    public let to: MailAddress
    /// A fixed text on one line of ASCII, never a user's input.
    public let subject: String
    /// Lines end in a line feed.
    public let text: String

    /// A message; a subject that is not one line of ASCII is a programming error.
    public init(to: MailAddress, subject: String, text: String) {
        precondition(!subject.utf8.contains { $0 < 0x20 || $0 > 0x7E }, "a subject is one line of ASCII")
        (self.to, self.subject, self.text) = (to, subject, text)
    }
}

/// Takes messages to users and delivers them in its own way.
public protocol MailOutbox: AnyObject {
    /// The message is on disk, or sent, when the call returns.
    func put(_ mail: Mail, now: Double) throws(DirectoryError)
    /// Does the same work as `put` in the same time, but the message is not sent.
    func rehearse(_ mail: Mail, now: Double) throws(DirectoryError)
}

extension ResetCode {
    /// The message with a code.
    /// - Parameter place: what the password is for, ASCII; nil: the message does not say.
    static func mail(_ code: String, to address: MailAddress, place: String? = nil) -> Mail {
        let minutes = Int(seconds / 60)
        return Mail(
            to: address, subject: "Your code",
            text: "Your code for another password\(place.map { " in " + $0 } ?? ""): \(code)\n\n"
                + "It can be used once, within \(minutes) minutes. If you did not ask for it,\n"
                + "you need not do anything: the password stays unchanged.\n")
    }
}
