public import ThicketTreeShape

/// Why a record of a shared branch is not believed. It is quarantined: reported, and never shown as genuine.
public enum BranchFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The list on the root is not one that may follow the list that is known.
    case list(ShareListError)
    /// The list is older than the one that is known.
    case olderList
    /// Another list has the version of the one that is known.
    case forkedList
    /// The list is missing, and the owner has not signed its end.
    case listMissing
    /// The record has no signature, and is not from before the branch was shared.
    case unsigned
    /// The signature does not verify.
    case badSignature
    /// The account that the record names has no such keys.
    case unknownKeys
    /// The list does not permit the author to write this.
    case notPermitted(ShareDenial)
    /// The record replaces another version than the one that is known: it is an earlier one, shown again.
    case replayed

    /// A sentence without content of the branch.
    public var description: String {
        switch self {
        case .list(let error): error.description
        case .olderList: "the list of the branch is older than the one that is known"
        case .forkedList: "two lists of the branch have one version"
        case .listMissing: "the list of the branch is missing, and its owner has not signed that"
        case .unsigned: "a record in a shared branch is not signed"
        case .badSignature: "the signature of a record in a shared branch does not verify"
        case .unknownKeys: "the account that the record names has no such keys"
        case .notPermitted(let denial): "the list of the branch does not permit the record (\(denial.rawValue))"
        case .replayed: "the record does not replace the version that is known"
        }
    }
}
