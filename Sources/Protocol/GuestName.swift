/// The reserved names of guests: accounts that an owner's device makes for a link (decision 0067).
///
/// A guest's user id is its login name: `guest-` and 32 hexadecimal digits, which follow from its keys. The id is in
/// everything that the guest signs, so a device recognises a guest without a statement of the server.
public enum GuestName {
    /// The beginning that no other account's name may have, in any case of its letters.
    public static let prefix = "guest-"
    /// Digits after the prefix.
    public static let digitsCount = 32

    /// Whether a text is the id of a guest.
    public static func isGuest(_ text: String) -> Bool {
        let bytes = text.utf8
        return bytes.count == prefix.utf8.count + digitsCount && bytes.starts(with: prefix.utf8)
            && bytes.dropFirst(prefix.utf8.count).allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
            }
    }

    /// Whether a name begins like that of a guest, so that no other account may have it.
    public static func isReserved(_ name: String) -> Bool { name.lowercased().utf8.starts(with: prefix.utf8) }

    /// The id of the guest whose id without the prefix is given.
    ///
    /// - Parameter digits: the id that any other account with the guest's keys would have.
    public static func of(_ digits: String) -> String { prefix + digits }
}

extension UserID {
    /// Whether it is the id of a guest, whose author nothing proves but the possession of a link.
    public var isGuest: Bool { GuestName.isGuest(text) }
}
