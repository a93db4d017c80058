import ThicketCrypto
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// SHA-256 of contents in blobs, which the statement of a message names. It is computed once, before the content is
/// sent for the first time, from the sealed file on this device, or from the server's if that is gone.
enum ContentDigests {
    /// `TreeError.reason` of a draft that lacks a digest.
    static let missing = "digest"
    /// Bytes of a file that are read at once.
    private static let readBytes: UInt64 = 1 << 20

    /// A message cannot be sealed yet. It is not chosen again before the digests are known.
    ///
    /// - Returns: false for another error.
    static func want(
        _ operation: PendingOperation, after error: TreeError, _ skeleton: inout TreeSkeleton
    ) -> Bool {
        guard error.reason == missing else { return false }
        if skeleton.queue.asked.insert(operation.id).inserted {
            skeleton.actions.append(.message(.digest(operation.id, operation.node)))
        }
        return true
    }

    static func start(_ id: OperationID, _ node: NodeID, _ tree: isolated Treesystem) {
        Task { [weak tree] in
            guard let tree else { return }
            await compute(id, node, tree)
        }
    }

    private static func compute(_ id: OperationID, _ node: NodeID, _ tree: isolated Treesystem) async {
        do throws(TreeError) {
            for reference in try unknown(node, tree) {
                guard let ticket = try await tree.downloadNodeData(reference.node) else { continue }
                let digest: [UInt8]
                do throws(ContentError) {
                    guard let kept = try await ticket.value() else { continue }
                    digest = try await sum(kept.file)
                } catch { throw TreeError(error) }
                tree.feed { machine throws(TreeError) in try machine.store.setDigest(reference.id, digest) }
            }
            tree.feed { machine throws(TreeError) in machine.skeleton.queue.asked.remove(id) }
        } catch {
            // It is tried again after a pause.
            tree.feed { machine throws(TreeError) in machine.uploadFailed(id) }
        }
    }

    /// Blobs of the message and of its attachments that the server has, without a digest here. What is being sent has
    /// none yet: the message waits for it anyway.
    private static func unknown(_ node: NodeID, _ tree: isolated Treesystem) throws(TreeError) -> [BlobReference] {
        try tree.read { machine throws(TreeError) in
            var found = [BlobReference]()
            for id in [node] + (try machine.store.allChildren(of: .node(node)).map(\.id)) {
                guard let reference = try machine.skeleton.reference(of: id),
                    try machine.store.digest(reference.id) == nil
                else { continue }
                found.append(reference)
            }
            return found
        }
    }

    /// Not on the tree's thread: a content may have gigabytes.
    @concurrent
    static func sum(_ file: SealedFile) async throws(ContentError) -> [UInt8] {
        var (hash, start) = (SHA256(), UInt64(0))
        let length = file.map.layout.sealedLength
        while start < length {
            let end = min(length, start + readBytes)
            hash.update(try file.sealedBytes(start..<end))
            start = end
        }
        return hash.digest()
    }
}
