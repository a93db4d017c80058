import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTreeShape

/// Verifies the signatures of a batch's copies. Each takes about 100 µs, so that it is done on a reader's thread before
/// the shard decides the batch.
public struct CopyCheck: Sendable {
    let request: TreeBatchRequest
    /// The user of the token.
    let caller: UserID
    let app: AppID
    /// nil: the server has no key log.
    let directory: (any KeyDirectory)?
    /// Bytes of the request.
    var bytes = 0

    /// The request with the verdict.
    func checked() -> TreeBatchRequest {
        var request = request
        request.copies = verdict()
        return request
    }

    /// The first copy that is not signed by the caller decides.
    private func verdict() -> CopyVerdict {
        guard let directory else { return .noDirectory }
        var receivers = Set<UserID>()
        // One snapshot of the caller's keys for all records of the batch.
        let keys = directory.newestKeys(of: caller, in: app)
        for (index, operation) in request.batch.operations.enumerated() {
            guard case .copy(let copy) = operation else { continue }
            guard let keys, isSigned(copy, keys) else { return .unsigned(index) }
            let isKnown = receivers.contains(copy.receiver)
            if isKnown || directory.newestKeys(of: copy.receiver, in: app) != nil { receivers.insert(copy.receiver) }
        }
        return .signed(receivers)
    }

    private func isSigned(_ copy: TreeCopy, _ keys: PublicKeys) -> Bool {
        guard let signature = copy.record.signature, signature.author == caller,
            signature.keyID.utf8.elementsEqual(keys.id.utf8)
        else { return false }
        let tree = TreePlace(app: app, owner: copy.receiver)
        return RecordSignature.verify(copy.record, copy.node, in: tree, with: keys.identity)
    }
}
