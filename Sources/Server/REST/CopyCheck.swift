import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTreeShape

/// Verifies the signatures of a batch's copies and puts. Each takes about 100 µs, so that it is done on a reader's
/// thread before the shard decides the batch.
public struct CopyCheck: Sendable {
    let request: TreeBatchRequest
    /// The user of the token.
    let caller: UserID
    /// The owner of the tree, which is another account for a member of a shared branch.
    let owner: UserID
    let app: AppID
    /// nil: the server has no key log.
    let directory: (any KeyDirectory)?
    /// Bytes of the request.
    var bytes = 0

    /// The request with the verdict.
    func checked() -> TreeBatchRequest {
        var request = request
        request.isChecked = true
        if request.hasCopies { request.copies = verdict() }
        guard let directory, let keys = directory.newestKeys(of: caller, in: app) else { return request }
        for (index, operation) in request.batch.operations.enumerated() {
            guard case .put(let node, _, let record) = operation, record.signature != nil else { continue }
            var proof = PutProof(isSigned: isSigned(record, node, in: owner, keys))
            if let list = record.shareList { proof.listFault = fault(of: list, at: node, directory) }
            request.proofs[index] = proof
        }
        return request
    }

    /// A list is often written again with its signature, and the keys of its author and the owner may be others by now.
    private func fault(of list: ShareList, at node: NodeID, _ directory: any KeyDirectory) -> ShareListError? {
        do throws(ShareListError) {
            try list.checkSignatures(at: ShareList.Place(TreePlace(app: app, owner: owner), root: node)) {
                user, keyID in
                directory.keys(of: user, id: keyID, in: app)?.identity
            }
            return nil
        } catch { return error }
    }

    /// The first copy that is not signed by the caller decides.
    private func verdict() -> CopyVerdict {
        guard let directory else { return .noDirectory }
        var receivers = Set<UserID>()
        // One snapshot of the caller's keys for all records of the batch.
        let keys = directory.newestKeys(of: caller, in: app)
        for (index, operation) in request.batch.operations.enumerated() {
            guard case .copy(let copy) = operation else { continue }
            guard let keys, isSigned(copy.record, copy.node, in: copy.receiver, keys) else { return .unsigned(index) }
            let isKnown = receivers.contains(copy.receiver)
            if isKnown || directory.newestKeys(of: copy.receiver, in: app) != nil { receivers.insert(copy.receiver) }
        }
        return .signed(receivers)
    }

    private func isSigned(_ record: NodeRecord, _ node: NodeID, in owner: UserID, _ keys: PublicKeys) -> Bool {
        guard let signature = record.signature, signature.author == caller,
            signature.keyID.utf8.elementsEqual(keys.id.utf8)
        else { return false }
        return RecordSignature.verify(record, node, in: TreePlace(app: app, owner: owner), with: keys.identity)
    }
}
