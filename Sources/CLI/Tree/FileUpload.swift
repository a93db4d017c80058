import ThicketCommandLine
import ThicketCrypto
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Copies single files to a tree.
struct FileUpload: Sendable {
    let open: OpenTree

    /// What became of a file.
    enum Outcome: Sendable {
        /// The node has this content already, confirmed.
        case same(Node)
        /// The content is in the queue, also from an earlier call that was interrupted.
        case queued(Node, [OperationID])
    }

    /// A file that changes while it is read is read again so often.
    private static let attemptsMax = 3

    /// Makes the content of a node equal to a file. The content is sealed when this returns: it survives the end of
    /// the program.
    ///
    /// - Parameter path: of the node; its parent exists.
    /// - Throws: `notFound` without a parent, `refused` while a change of the node waits for the user.
    func put(_ source: LocalFile, at path: TreePath) async throws(Failure) -> Outcome {
        for _ in 0..<Self.attemptsMax {
            let tag = try source.tag()
            let outcome = try await queue(source, tag, at: path)
            guard case .queued = outcome else { return outcome }
            // The content is sealed from a second reading of the file.
            if try source.facts().modified == tag.modified { return outcome }
        }
        throw Failure("\(source.path) changes while it is read")
    }

    private func queue(
        _ source: LocalFile, _ tag: FileTag, at path: TreePath
    ) async throws(Failure) -> Outcome {
        let (tree, what) = (open.tree, "cannot put \(TreeText.named(path))")
        // A metadata section, though empty, makes the tree seal the file at once and not when it is sent.
        let content = NodeSections(metadata: .bytes([]), data: .file(source.path))
        return try await growing(what) { () throws(TreeError) in
            guard let node = try await tree.node(at: path) else {
                let made = try await tree.createNode(
                    at: path, content: content, tags: [tag.tag].compactMap { $0 }, modified: tag.modified)
                return .queued(made, try await tree.operations(of: made.id).map(\.id))
            }
            let waiting = try await tree.operations(of: node.id)
            if let problem = waiting.first(where: { $0.needsApp && $0.state != .contentUnavailable }) {
                throw TreeError(
                    .refused, "an earlier change of it waits for you: \(QueueText.state(problem.state))", reason: nil)
            }
            let isLost = waiting.contains { $0.state == .contentUnavailable }
            let hasWaiting = waiting.contains(where: \.writesContent)
            if hasWaiting, !isLost, let known = FileTag(node), known.hasSameContent(as: tag) {
                return .queued(node, waiting.map(\.id))
            }
            if !hasWaiting, try await isSame(node, tag, source) { return .same(node) }
            let made = try await tree.setContent(
                of: node.id, content, modified: tag.modified, tags: tag.replacing(in: node.tags))
            return .queued(made, try await tree.operations(of: made.id).map(\.id))
        }
    }

    /// Whether the content of a node is that of a file: by size and digest, or, when the node has no digest of its
    /// content and the content is in the record, by its bytes.
    private func isSame(_ node: Node, _ tag: FileTag, _ source: LocalFile) async throws(TreeError) -> Bool {
        guard let content = node.content, content.sizes.data == tag.size else { return false }
        if let known = FileTag.valid(of: node) { return known.hasSameContent(as: tag) }
        guard let inline = try await open.tree.content(of: node.id) else { return false }
        return FileTag.digest(of: inline.data) == tag.digest
    }
}

extension FileTag {
    /// SHA-256 of bytes in memory.
    static func digest(of bytes: [UInt8]) -> [UInt8] { Hash.sha256(bytes) }
}
