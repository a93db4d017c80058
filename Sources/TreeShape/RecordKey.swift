/// The members of a record, in the order in which they are written and authenticated.
public enum RecordKey: String, Sendable, Hashable, CaseIterable {
    /// The format.
    case format = "v"
    /// The parent.
    case parent = "p"
    /// The tag of the name.
    case tag = "n"
    /// The epoch of the node's key.
    case epoch = "e"
    /// The wrapped keys.
    case wraps = "w"
    /// The commitment to the node's key.
    case commitment = "q"
    /// The sealed metadata.
    case metadata = "m"
    /// The content.
    case data = "d"
    /// The list of accounts that share the branch.
    case shareList = "l"
    /// The time at which the server removes the node.
    case burnTime = "x"
    /// The version that the record replaces.
    case base = "s"
    /// The author.
    case author = "by"
    /// The id of the key of the signature.
    case signingKey = "k"
    /// The signature.
    case signature = "sig"
    /// Stamp: time of the last change.
    case changed = "_t"
    /// Stamp: time at which the node came into this tree.
    case created = "_c"
    /// Stamp: the user who wrote it, if not the owner.
    case sender = "_from"

    /// Members that only the server writes, and that nothing authenticates.
    static let stamps: Set<RecordKey> = [.changed, .created, .sender]
}
