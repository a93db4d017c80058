/// Why a record cannot be opened, or is not what its names say. Such a record is quarantined: reported, never shown as
/// genuine, never dropped.
public enum NodeFault: Error, Sendable, CustomStringConvertible {
    /// The record names another parent than the one whose keys were given.
    case otherParent
    /// The record has another epoch than the parent's keys.
    case otherEpoch
    /// The record has no wrap for those who can open the parent.
    case noWrap
    /// The wrap does not open: it is damaged, or of another node, parent, epoch, app or account.
    case wrapDamaged
    /// The wrap for this account is for keys that this device does not have: another device may have replaced the
    /// account's keys.
    case otherKeys
    /// The record commits to another key than the one that is wrapped.
    case otherCommitment
    /// The metadata does not open: it, or any other member of the record, was changed, or is of another record.
    case metadataDamaged
    /// The metadata has fields that must be understood and that only a newer version knows.
    case newerMetadata
    /// The name does not give the tag: the node was opened and is genuine, but is not where a path finds it.
    case nameMismatch(OpenedNode)
    /// The metadata says that there is a content and the record has none, or the reverse.
    case contentMismatch
    /// The content is in a blob, and is not in the record.
    case notInline
    /// The content does not open, or has another form.
    case content(ContentFault)

    /// A sentence without content of the node.
    public var description: String {
        switch self {
        case .otherParent: "the record has another parent"
        case .otherEpoch: "the record has another key epoch than its parent"
        case .noWrap: "the record has no key for the owner of the parent"
        case .wrapDamaged: "the node's key does not open"
        case .otherKeys: "the node's key is sealed to keys of this account that this device does not have"
        case .otherCommitment: "the record commits to another key"
        case .metadataDamaged: "the metadata does not open: the record was changed, or is of another place"
        case .newerMetadata: "the metadata was written by a newer version"
        case .nameMismatch: "the name does not give the tag of the record"
        case .contentMismatch: "metadata and record disagree about the content"
        case .notInline: "the content is in a blob"
        case .content(let fault): fault.description
        }
    }
}

/// Why a record cannot be made.
public enum SealFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// Content for the record has more than `TreeLimits.inlineBytesMax` sealed bytes: it belongs into a blob.
    case contentTooLarge
    /// The plan of a blob is small enough for the record, where it belongs.
    case contentTooSmall
    /// Name, pairs of the app, and fields of a newer version together exceed `TreeLimits.metadataBytesMax`.
    case metadataTooLarge
    /// Too many pairs of the app, or two with one key.
    case badAppTags
    /// A time, or the base version, is outside the bounds of a record.
    case outOfBounds
    /// With its wraps for other readers, the record would exceed `TreeLimits.recordBytesMax`.
    case recordTooLarge
    /// Nothing can be sealed to the public key of the receiver.
    case unusableKey
    /// The node had as many keys as its metadata keeps: what is below it must be written first.
    case tooManyKeys
    /// The list of a shared branch cannot be changed in this way, or not by this account.
    case badShare
    /// The verified keys of a reader are not given.
    case missingKeys

    /// A sentence without content of the node.
    public var description: String {
        switch self {
        case .contentTooLarge: "the content is too large for a record"
        case .contentTooSmall: "the content belongs into the record"
        case .metadataTooLarge: "the metadata is too large"
        case .badAppTags: "too many pairs of the app, or a key twice"
        case .outOfBounds: "a time or the base version is out of bounds"
        case .recordTooLarge: "the record is too large"
        case .unusableKey: "nothing can be sealed to the key of the receiver"
        case .tooManyKeys: "the node had too many keys: what is below it must be written first"
        case .badShare: "the list of the branch cannot be changed in this way by this account"
        case .missingKeys: "the keys of a reader are not known"
        }
    }
}
