public import ThicketProtocol
import ThicketTreeShape

/// What is known of the copies of a batch before the shard decides it: it depends on the key log only.
public enum CopyVerdict: Sendable, Hashable {
    /// Not checked yet; the shard refuses copies.
    case unchecked
    /// Each copy is signed by the caller with its newest keys. These receivers have keys in the log; others do not
    /// exist.
    case signed(Set<UserID>)
    /// The copy at this index is not signed by the caller with its newest keys.
    case unsigned(Int)
    /// The server has no key log.
    case noDirectory

    /// Receivers that exist.
    var receivers: Set<UserID> { if case .signed(let receivers) = self { receivers } else { [] } }

    /// Refuses the batch unless all copies are signed.
    func check() throws(OperationRejection) {
        switch self {
        case .signed: return
        case .unsigned(let index): throw OperationRejection(ChangeRejection(TreeRefusal.badSignature), at: index)
        case .unchecked, .noDirectory:
            throw OperationRejection(
                ChangeRejection(.unavailable, "signatures cannot be verified: the server has no key log"), at: nil)
        }
    }
}

/// The rejection of one operation of a batch, or of the batch.
struct OperationRejection: Error {
    let reason: ChangeRejection
    /// The index of the operation; nil for the batch.
    let operation: Int?

    init(_ reason: ChangeRejection, at operation: Int?) { (self.reason, self.operation) = (reason, operation) }
}
