import ThicketTree
import ThicketTreeShape

/// Contents in blobs that an eager re-key seals again: they are downloaded whole, and sealed into a new file.
enum RekeyContents {
    /// Whether the content of an operation is that of its own node.
    static func isAsked(for id: OperationID, _ tree: isolated Treesystem) -> Bool {
        tree.core?.machine.queue[id]?.fields.contains(.rekey) == true
    }

    /// Hands the content over, or reports why there is none for now.
    static func seal(_ id: OperationID, _ number: UInt64, _ node: NodeID, _ tree: Treesystem) async {
        do throws(TreeError) {
            let (reference, content) = try await source(of: node, tree)
            guard let reference else {
                return await tree.spooled(id, number, node, NodeSections(content))
            }
            let kept: RetainedFile?
            let manager = try await tree.downloadManager
            let sections: NodeSections
            do throws(ContentError) {
                kept = try await manager.downloadNodeData(reference, components: .all).value()
                guard let file = kept?.file else { throw .missing }
                sections = NodeSections(
                    metadata: .bytes(try file.read(.metadata)), thumbnail: .bytes(try file.read(.thumbnail)),
                    data: .sealedFile(file))
            } catch { throw TreeError(error) }
            await tree.spooled(id, number, node, sections)
            // The file is not evicted before it was read.
            kept?.token.release()
        } catch {
            switch error.code {
            case .network, .cancelled, .limit, .store, .closed, .deadline, .offline:
                await tree.feed { machine throws(TreeError) in machine.uploadFailed(id) }
            default: await tree.failed(id, number)
            }
        }
    }

    /// What the record has now; its id is kept beside the operation.
    private static func source(
        of node: NodeID, _ tree: isolated Treesystem
    ) throws(TreeError) -> (reference: BlobReference?, content: NodeContent?) {
        try tree.act { machine throws(TreeError) in
            let reference = try machine.skeleton.reference(of: node)
            let id = try machine.skeleton.store.row(node)?.content?.id
            let opened = try machine.skeleton.shownRow(node)
            let record = opened.record.flatMap { try? NodeRecord(parsing: $0, from: .server) }
            machine.skeleton.hasWritten = true
            try machine.store.rekeys.setSource(node, record?.data?.id ?? id)
            return (reference, try machine.skeleton.confirmedContent(of: node))
        }
    }
}

extension NodeSections {
    fileprivate init(_ content: NodeContent?) {
        self.init(
            metadata: content.map { .bytes($0.metadata) }, thumbnail: content.map { .bytes($0.thumbnail) },
            data: content.map { .bytes($0.data) })
    }
}
