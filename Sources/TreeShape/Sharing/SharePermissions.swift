/// What a member of a shared branch may do: the letters of the list on the branch's root (treesystem 2.5, S7).
///
/// Written in the order of `letters`, each letter once.
public struct SharePermissions: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// One bit for each letter, in the order of `letters`.
    public let rawValue: UInt8

    /// Bits in the order of `letters`; others are dropped.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `r`: opens and lists nodes, and receives their changes.
    public static let read = SharePermissions(rawValue: 1)
    /// `w`: writes, moves and removes nodes of the branch, its root's content included.
    public static let write = SharePermissions(rawValue: 1 << 1)
    /// `s`: changes the list, but never the owner's rights, and only with a grant of the owner.
    public static let share = SharePermissions(rawValue: 1 << 2)
    /// `R`: children have no content.
    public static let recordsOnly = SharePermissions(rawValue: 1 << 3)
    /// `L`: children have no children.
    public static let leavesOnly = SharePermissions(rawValue: 1 << 4)
    /// `U`: one child of the root, and no second one.
    public static let oneChild = SharePermissions(rawValue: 1 << 5)
    /// `W`: children are written once, and not changed later.
    public static let writeOnce = SharePermissions(rawValue: 1 << 6)
    /// `B`: removes nodes that the member has written.
    public static let burnOwn = SharePermissions(rawValue: 1 << 7)

    /// Everything that a member may have: reads, writes, shares.
    public static let all: SharePermissions = [.read, .write, .share]
    /// Reads and writes.
    public static let readWrite: SharePermissions = [.read, .write]
    /// Deposits, and nothing else: a drop box.
    public static let deposit: SharePermissions = [.writeOnce, .burnOwn]

    /// The letters in their written order; letter i is bit i.
    private static let letters: [Character] = ["r", "w", "s", "R", "L", "U", "W", "B"]

    /// Reads letters in their written order.
    ///
    /// - Returns: nil for an unknown or repeated letter, another order, or none.
    public init?(text: String) {
        var (bits, next) = (UInt8(0), 0)
        for letter in text {
            guard let place = Self.letters[next...].firstIndex(of: letter) else { return nil }
            bits |= 1 << UInt8(place)
            next = place + 1
        }
        guard bits != 0 else { return nil }
        self.init(rawValue: bits)
    }

    /// The letters, in their written order.
    public var text: String {
        String(Self.letters.enumerated().filter { rawValue & 1 << UInt8($0.offset) != 0 }.map(\.element))
    }

    /// The letters.
    public var description: String { text }

    /// Whether a member with these letters may create nodes at all.
    public var canCreate: Bool { !isDisjoint(with: [.write, .writeOnce, .oneChild]) }
}
