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
        /// - Parameter earlier: operations of the node that waited before.
        case queued(Node, [OperationID], earlier: Set<OperationID> = [])
    }

    /// A file that changes while it is read is read again so often.
    private static let attemptsMax = 3

    /// Makes the content of a node equal to a file. The content is sealed when this returns: it survives the end of
    /// the program.
    ///
    /// - Parameters:
    ///   - path: of the node; its parent exists.
    ///   - extras: what an import knows beside the file; nil: the node's own stays.
    /// - Throws: `notFound` without a parent, `refused` while a change of the node waits for the user.
    func put(_ source: LocalFile, at path: TreePath, extras: NodeExtras? = nil) async throws(Failure) -> Outcome {
        for _ in 0..<Self.attemptsMax {
            let tag = try source.tag()
            let outcome = try await growing("cannot put \(TreeText.named(path))") { () throws(TreeError) in
                try await Self.again { () throws(TreeError) in try await queue(source, tag, at: path, extras) }
            }
            guard case .queued = outcome else { return outcome }
            // The content is sealed from a second reading of the file.
            if try source.facts().modified == tag.modified { return outcome }
        }
        throw Failure("\(source.path) changes while it is read")
    }

    /// Runs a put, and once more if another device's node has taken the name since the put has looked for it.
    static func again<Value: Sendable>(
        _ body: () async throws(TreeError) -> Value
    ) async throws(TreeError) -> Value {
        do throws(TreeError) { return try await body() } catch {
            guard error.code == .nameTaken || error.code == .parentMissing else { throw error }
            return try await body()
        }
    }

    private func queue(
        _ source: LocalFile, _ tag: FileTag, at path: TreePath, _ extras: NodeExtras?
    ) async throws(TreeError) -> Outcome {
        let tree = open.tree
        guard let node = try await tree.node(at: path) else {
            let modified: Int64? = if case .some(let time)? = extras?.modified { time } else { tag.modified }
            let made = try await tree.createNode(
                at: path, content: sections(source, extras), tags: tag.replacing(in: extras?.tags ?? []),
                modified: modified, burnTime: extras?.burnTime)
            return .queued(made, try await tree.operations(of: made.id).map(\.id))
        }
        let waiting = try await tree.operations(of: node.id)
        if let problem = waiting.first(where: { $0.needsApp && $0.state != .contentUnavailable }) {
            throw TreeError(.refused, "an earlier change of it waits for you: \(QueueText.state(problem.state))")
        }
        let isLost = waiting.contains { $0.state == .contentUnavailable }
        let hasWaiting = waiting.contains(where: \.writesContent)
        let isWaiting = hasWaiting && !isLost && FileTag(node)?.hasSameContent(as: tag) == true
        if !isWaiting {
            let isSame = hasWaiting ? false : try await isSame(node, tag, extras)
            if !isSame {
                try await tree.setContent(
                    of: node.id, sections(source, extras), modified: tag.modified,
                    tags: tag.replacing(in: extras?.tags ?? node.tags))
            }
        }
        if let extras { try await setExtras(node.id, tag, extras) }
        let operations = try await tree.operations(of: node.id).map(\.id)
        return operations.isEmpty ? .same(node) : .queued(node, operations, earlier: Set(waiting.map(\.id)))
    }

    private func sections(_ source: LocalFile, _ extras: NodeExtras?) -> NodeSections {
        // A metadata section, though empty, makes the tree seal the file at once and not when it is sent.
        NodeSections(
            metadata: .bytes(extras?.metadata ?? []), thumbnail: .bytes(extras?.thumbnail ?? []),
            data: .file(source.path))
    }

    /// Pairs and burn time, if they differ.
    private func setExtras(_ id: NodeID, _ tag: FileTag, _ extras: NodeExtras) async throws(TreeError) {
        let tree = open.tree
        guard let node = try await tree.node(id) else { return }
        let own = FileTag(node) ?? tag
        let wanted = own.replacing(in: extras.tags)
        if Set(wanted) != Set(node.tags) { try await tree.setTags(of: id, wanted) }
        if node.burnTime != extras.burnTime { try await tree.setBurnTime(of: id, extras.burnTime) }
    }

    /// Whether the content of a node is that of a file: by size and digest, or, when the node has no digest of its
    /// content and the content is in the record, by its bytes.
    private func isSame(_ node: Node, _ tag: FileTag, _ extras: NodeExtras?) async throws(TreeError) -> Bool {
        guard let content = node.content, content.sizes.data == tag.size else { return false }
        if let extras {
            guard content.sizes.metadata == extras.metadata.count, content.sizes.thumbnail == extras.thumbnail.count,
                try await open.tree.data(of: node.id, .metadata) ?? [] == extras.metadata,
                try await open.tree.data(of: node.id, .thumbnail) ?? [] == extras.thumbnail
            else { return false }
        }
        if let known = FileTag.valid(of: node) { return known.hasSameContent(as: tag) }
        guard let inline = try await open.tree.content(of: node.id) else { return false }
        return FileTag.digest(of: inline.data) == tag.digest
    }
}

extension FileTag {
    /// SHA-256 of bytes in memory.
    static func digest(of bytes: [UInt8]) -> [UInt8] { Hash.sha256(bytes) }
}
