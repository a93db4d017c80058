/// The reason for refusing a reader list.
public enum ReaderListError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The bytes are not a list, or not in its unique encoding.
    case malformed
    /// An empty or too long name, or an invalid key id.
    case badName
    /// More readers, lists or epochs than `ReaderLimits` allows.
    case tooMany
    /// The owner is not among the readers, or has no write permission.
    case ownerMissing
    /// The same user is listed twice.
    case twice(String)
    /// Two epochs have the same secret.
    case repeatedSecret(epoch: UInt32)
    /// The list belongs to another bucket.
    case otherBucket
    /// The owner's keys have not been verified.
    case unknownOwner
    /// It names other keys of the owner than the verified ones.
    case otherOwnerKey
    /// It is not signed with the owner's key.
    case badSignature
    /// It does not follow the previous list: its version or its reference to the previous list is wrong.
    case notNext
    /// It has fewer epochs than the previous list.
    case epochBack
    /// It begins more than one epoch.
    case epochSkipped
    /// It names another secret for an existing epoch.
    case changedSecret(epoch: UInt32)
    /// A reader, or a reader's keys, were removed without beginning an epoch, so that the removed reader could read
    /// later values.
    case removedWithoutEpoch(String)

    /// Short identifier for programs.
    public var code: String {
        switch self {
        case .malformed: "malformed"
        case .badName: "bad_name"
        case .tooMany: "too_many"
        case .ownerMissing: "owner_missing"
        case .twice: "twice"
        case .repeatedSecret: "repeated_secret"
        case .otherBucket: "other_bucket"
        case .unknownOwner: "unknown_owner"
        case .otherOwnerKey: "other_owner_key"
        case .badSignature: "bad_signature"
        case .notNext: "not_next"
        case .epochBack: "epoch_back"
        case .epochSkipped: "epoch_skipped"
        case .changedSecret: "changed_secret"
        case .removedWithoutEpoch: "removed_without_epoch"
        }
    }

    /// For users and logs: contains names of users, no secrets.
    public var description: String {
        switch self {
        case .malformed: "the bytes are not a list of readers"
        case .badName: "a name in the list of readers is empty, too long or invalid"
        case .tooMany: "the list of readers is too long"
        case .ownerMissing: "the list of readers lacks its owner"
        case .twice(let user): "the list of readers names \(user) twice"
        case .repeatedSecret(let epoch): "epoch \(epoch) of the bucket has the secret of an older one"
        case .otherBucket: "the list of readers is another bucket's"
        case .unknownOwner: "the keys of the bucket's owner have not been verified"
        case .otherOwnerKey: "the list of readers names other keys of the owner than were verified"
        case .badSignature: "the bucket's owner has not signed this list of readers"
        case .notNext: "the list of readers does not follow the previous one"
        case .epochBack: "the list of readers has fewer epochs than the previous one"
        case .epochSkipped: "the list of readers skips an epoch"
        case .changedSecret(let epoch): "the list of readers names another secret for epoch \(epoch)"
        case .removedWithoutEpoch(let user): "\(user) is removed from the readers, and no new epoch begins"
        }
    }
}
