import ThicketPlatform
public import ThicketProtocol

/// What a link is for.
public enum LinkPurpose: String, Sendable, Hashable, CaseIterable {
    /// Putting nodes into the branch; its holder neither lists nor reads.
    case deposit
    /// Reading the branch.
    case reading = "read"
}

/// Bounds of a link, which the server keeps. It refuses numbers beyond its own bounds.
public struct LinkLimits: Sendable, Hashable {
    /// Days until the link ends, 1 to 90.
    public var days: Int
    /// Nodes that may be put into the branch, 1 to 10,000; of no use for reading.
    public var deposits: Int
    /// Bytes of all deposits together with their attachments, as they are stored, 1 to 2^40; of no use for reading.
    public var bytes: Int64

    /// By default one deposit within seven days, of 100 MiB.
    public init(days: Int = 7, deposits: Int = 1, bytes: Int64 = 100 << 20) {
        (self.days, self.deposits, self.bytes) = (days, deposits, bytes)
    }
}

/// A guest of this account, as the server lists it: the account behind a link.
public struct GuestAccount: Sendable, Hashable, Identifiable {
    /// The guest's user id, which is its name.
    public let id: UserID
    /// What the link is for.
    public let purpose: LinkPurpose
    /// The id of the branch's root.
    public let root: String
    /// Seconds since 1970.
    public let created: Int64
    /// When it ends, seconds since 1970. The server removes it some time later.
    public let expires: Int64
    /// Deposits that it may still make.
    public let depositsLeft: Int64
    /// Bytes that it may still write.
    public let bytesLeft: Int64

    /// Reads an answer of the server; nil without its members.
    package init?(_ object: JSONObject) {
        func number(_ name: String) -> Int64 { object[name]?.intValue ?? 0 }
        guard let name = object["name"]?.stringValue, let id = try? UserID(name), id.isGuest,
            let purpose = object["kind"]?.stringValue.flatMap(LinkPurpose.init(rawValue:)),
            let root = object["root"]?.stringValue
        else { return nil }
        (self.id, self.purpose, self.root) = (id, purpose, root)
        (created, expires) = (number("created"), number("expires"))
        (depositsLeft, bytesLeft) = (number("deposits_left"), number("bytes_left"))
    }
}
