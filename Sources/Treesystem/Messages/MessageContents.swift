import ThicketCrypto
import ThicketProtocol
import ThicketTree
public import ThicketTreeShape

/// Contents of messages in blobs. Their chunks are sealed with a key that the author has too, so only the digest in the
/// author's statement shows that the server has the content that was sent.
enum MessageContents {
    /// What the author of a message has signed of a node's content.
    ///
    /// - Returns: nil for a node that is neither a message nor an attachment of one, for content in the record, which
    ///   is compared before it is shown, and for content that this account has written since.
    /// - Throws: `store`.
    static func listed(_ id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) -> ContentDigest? {
        guard let row = try skeleton.store.row(id), let opened = try skeleton.open(row),
            case .blob(let data, _, _)? = opened.record.data
        else { return nil }
        let statement: OriginStatement?
        if let own = (try? MessageCheck.keptStatement(of: opened)) ?? nil {
            statement = own
        } else if case .node(let above) = opened.record.parent, let message = try skeleton.store.row(above) {
            statement = try skeleton.open(message).flatMap { (try? MessageCheck.keptStatement(of: $0)) ?? nil }
        } else {
            statement = nil
        }
        guard let content = statement?.fields.nodes.first(where: { $0.id == id })?.content, content.id == data else {
            return nil
        }
        return content
    }

    /// A section of a content at the server, in memory: that of a message is compared first.
    static func downloaded(
        _ id: NodeID, _ section: ContentSection, _ tree: isolated Treesystem
    ) async throws(TreeError) -> [UInt8]? {
        let listed = try tree.read { machine throws(TreeError) in try self.listed(id, &machine.skeleton) }
        // The author has signed for all sections together.
        let components = listed == nil ? ContentComponents(section) : .all
        guard let ticket = try await tree.downloadNodeData(id, components: components) else { return nil }
        let kept: RetainedFile?
        do throws(ContentError) { kept = try await ticket.value() } catch { throw TreeError(error) }
        guard let kept else { return nil }
        if let listed { try await compare(kept.file, listed, tree.disk) }
        do throws(ContentError) { return try kept.file.read(section) } catch { throw TreeError(error) }
    }

    /// - Throws: `contentMismatch`; then the file is removed.
    static func compare(_ file: SealedFile, _ listed: ContentDigest, _ disk: DiskStore) async throws(TreeError) {
        do throws(ContentError) {
            guard try await ContentDigests.sum(file) != listed.digest.bytes else { return }
        } catch { throw TreeError(error) }
        // Without success it stays until it is evicted, and is compared whenever it is read.
        try? await disk.remove(listed.id)
        throw .otherContent
    }
}

extension TreeMessages {
    /// Compares a downloaded content with what the author of the message has signed. Does nothing for nodes that are no
    /// messages, and for content that this account has written. `Treesystem.data(of:)` does this by itself.
    ///
    /// - Parameters:
    ///   - file: has all sections of the content.
    ///   - id: the message, or one of its attachments.
    /// - Throws: `contentMismatch` for another content, which is removed from this device; `content` for a file that
    ///   lacks sections; `store`, `closed`.
    public func verify(_ file: SealedFile, isContentOf id: NodeID) async throws(TreeError) {
        let listed = try await act { skeleton throws(TreeError) in try MessageContents.listed(id, &skeleton) }
        guard let listed else { return }
        try await MessageContents.compare(file, listed, try await tree.disk)
    }
}

extension TreeError {
    /// A content is not the one that its author has signed.
    static let otherContent = TreeError(
        .contentMismatch, OriginFault.otherContent.description, reason: OriginFault.otherContent.rawValue)
}
