import ThicketTree
import ThicketTreeShape

/// Contents in blobs that the server has lost, or may have: after a restore from a backup, and a day after a removal
/// elsewhere. The record with the key is replaced or gone then, so the plan of the content (`SpoolRecord`) is kept
/// beside the operation, and the sealed file is sent as it is: a key never seals two contents.
enum LostContents {
    /// Sends a content in a blob again as it was sealed. Nothing happens for a content in the record.
    ///
    /// - Parameters:
    ///   - opened: the last record that had the content.
    ///   - operation: in the queue; the caller writes it.
    ///   - blobIsLost: otherwise the server keeps the blob for a day without a node, so that the record is sent at
    ///     once, and the file only if that is refused.
    static func send(
        _ opened: OpenedNode, _ operation: inout PendingOperation, blobIsLost: Bool, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard case .blob(_, _, let blob)? = opened.record.data, let plan = ContentSpool(sealedOf: opened) else {
            return
        }
        let record = SpoolRecord(plan, blob: blobIsLost ? nil : blob, wasConfirmed: true)
        operation.content = blobIsLost ? .spooled : .uploaded
        try skeleton.store.setSpool(operation.id, record.octets)
        skeleton.actions.append(.keepFile(operation.id))
    }

    /// The server does not have the blob of an operation any more: the sealed file is uploaded again.
    static func loseBlob(of operation: PendingOperation, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard var record = try skeleton.store.plan(of: operation.id) else { return }
        var operation = operation
        (record.blob, record.upload, operation.content) = (nil, [], .spooled)
        try skeleton.store.setSpool(operation.id, record.octets)
        try skeleton.write(operation)
    }

    /// The sealed file of an operation is gone. A content that the app made for it waits for the app at once, and
    /// `retry` asks for it. For one that was confirmed, the app has not been asked yet; its plan is kept.
    ///
    /// - Returns: whether the operation waits for the app.
    static func loseFile(of id: OperationID, _ skeleton: inout TreeSkeleton) throws(TreeError) -> Bool {
        guard var operation = skeleton.queue[id], operation.content == .spooled else { return false }
        operation.content = .ask
        let wasConfirmed = try skeleton.store.plan(of: id)?.wasConfirmed == true
        if !wasConfirmed { try skeleton.store.setSpool(id, nil) }
        skeleton.queue.asked.remove(id)
        try skeleton.write(operation)
        // The content of a re-key is read again from the server.
        return !wasConfirmed && !operation.fields.contains(.rekey)
    }

    /// The app's answer for an operation. A content that the server had is never replaced by none because the app does
    /// not have it; another content replaces the plan.
    static func provided(
        _ content: TreeMachine.Provided, _ id: OperationID, _ store: TreeStore
    ) throws(TreeError) -> TreeMachine.Provided {
        guard try store.spool(id) != nil else { return content }
        switch content {
        case .none: return .unavailable
        case .held, .source: try store.setSpool(id, nil)
        case .spooled, .unavailable: break
        }
        return content
    }

    /// Another device has sent the same sealed content: nothing of it is left to send.
    static func drop(equalTo opened: OpenedNode, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard let id = opened.record.data?.id else { return }
        for operation in skeleton.queue.operations(of: opened.id)
        where operation.fields.contains(.content) && !operation.isSending {
            guard try skeleton.store.plan(of: operation.id)?.plan.id == id else { continue }
            var operation = operation
            let fields = operation.fields.subtracting(.content)
            if fields.isEmpty {
                try skeleton.drop(operation)
                continue
            }
            (operation.kind, operation.content) = (.write(fields), .none)
            if operation.state == .held(.content) { operation.state = .waiting }
            try skeleton.store.setSpool(operation.id, nil)
            skeleton.actions.append(.forget(operation.id))
            try skeleton.write(operation)
            try ContentMerges.ended(operation, &skeleton)
        }
    }

    /// The error of an operation whose content the app could not provide.
    static func missing(_ id: OperationID, _ store: TreeStore) -> TreeError {
        // Without the store's answer, the shorter text is true as well.
        guard (try? store.plan(of: id)) != nil else {
            return TreeError(.content, "the app could not provide the content")
        }
        return TreeError(
            .content, "this device has no whole file of the content, and the app could not provide the content")
    }
}

extension TreeStore {
    /// The kept plan of an operation's content.
    func plan(of id: OperationID) throws(TreeError) -> SpoolRecord? { try spool(id).flatMap(SpoolRecord.init(octets:)) }
}
