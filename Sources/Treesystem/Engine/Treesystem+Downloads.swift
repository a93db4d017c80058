import ThicketClient
public import ThicketTree
public import ThicketTreeShape

/// Contents on this device and from the server.
extension Treesystem {
    /// Downloads of this tree.
    ///
    /// - Throws: `closed`.
    public var downloadManager: DownloadManager {
        get throws(TreeError) {
            guard let manager = core?.contents.downloads else { throw .closed }
            return manager
        }
    }

    /// The folder of sealed files of this tree.
    ///
    /// - Throws: `closed`.
    public var disk: DiskStore {
        get throws(TreeError) {
            guard let disk = core?.contents.disk else { throw .closed }
            return disk
        }
    }

    /// Names the blob of a node for transfers.
    ///
    /// - Returns: nil for a node without content, and for content in the record.
    /// - Throws: `notFound`, `contentDamaged`, `store`, `closed`.
    public func reference(of id: NodeID) throws(TreeError) -> BlobReference? {
        try read { machine throws(TreeError) in try machine.skeleton.reference(of: id) }
    }

    /// Downloads sections of a node's content into the folder.
    ///
    /// - Returns: nil for a node without content, and for content in the record (`content(of:)`).
    /// - Throws: `notFound`, `contentDamaged`, `limit`, `store`, `closed`.
    public func downloadNodeData(
        _ id: NodeID, components: ContentComponents = .all, options: DownloadOptions = DownloadOptions()
    ) async throws(TreeError) -> DownloadTicket? {
        guard let reference = try reference(of: id) else { return nil }
        let manager = try downloadManager
        do throws(ContentError) {
            return try await manager.downloadNodeData(reference, components: components, options: options)
        } catch { throw TreeError(error) }
    }

    /// The content of a node without network, if it fits into the record: what waits for the server, otherwise what the
    /// server has.
    ///
    /// - Returns: nil for a node without content, and for one whose content is in a file (`reference(of:)`).
    /// - Throws: `notFound`, `contentDamaged`, `store`, `closed`.
    public func content(of id: NodeID) throws(TreeError) -> NodeContent? {
        try read { machine throws(TreeError) in try machine.skeleton.content(of: id) }
    }

    /// A section of a node's content, in memory: from this device if it is here, otherwise downloaded.
    ///
    /// - Returns: nil for a node without this section.
    /// - Throws: `notFound`; `content` while the app has not provided it; `contentDamaged`, `contentMismatch`,
    ///   `network`, `refused`, `store`, `closed`, `cancelled`.
    public func data(of id: NodeID, _ section: ContentSection = .data) async throws(TreeError) -> [UInt8]? {
        if let content = try content(of: id) { return content.bytes(of: section) }
        let operation = try read { machine throws(TreeError) in machine.contentOperation(of: id) }
        if let operation { return try await waiting(operation, section) }
        return try await MessageContents.downloaded(id, section, self)
    }

    /// A section of the content that the server has, in memory. While a local content waits because another device
    /// changed the node (`TreeConflict.data`), this is the other device's: an app that merges both gives the result to
    /// `setContent`, and calls `retry` for all operations of the node: the local content is sent, then the merged one.
    ///
    /// - Returns: nil for a node without this section.
    /// - Throws: `notFound`, `contentDamaged`, `contentMismatch`, `network`, `refused`, `store`, `closed`, `cancelled`.
    public func confirmedData(of id: NodeID, _ section: ContentSection = .data) async throws(TreeError) -> [UInt8]? {
        let content = try read { machine throws(TreeError) in try machine.skeleton.confirmedContent(of: id) }
        return if let content { content.bytes(of: section) } else {
            try await MessageContents.downloaded(id, section, self)
        }
    }

    /// A section of a content that is not uploaded yet.
    private func waiting(
        _ operation: PendingOperation, _ section: ContentSection
    ) async throws(TreeError) -> [UInt8]? {
        if operation.content == .none { return nil }
        guard let kept = try await waitingFile(of: operation.node) else {
            let isKnown = spools[operation.id] != nil
            throw TreeError(
                .content,
                isKnown ? "no file on this device has the content" : "the app has not provided the content yet")
        }
        if kept.file.map.sizes[section] == 0 { return nil }
        do throws(ContentError) { return try kept.file.read(section) } catch { throw TreeError(error) }
    }

    // MARK: - Marks

    /// Marks sections of a node as stale, in the version that this device has: the next drain downloads those that the
    /// policy wants.
    ///
    /// - Throws: `notFound`, `store`, `closed`.
    public func markNodeAsNeedsDownload(
        _ id: NodeID, components: ContentComponents = .all
    ) throws(TreeError) {
        try act { machine throws(TreeError) in
            _ = try machine.shownRow(id)
            try machine.store.mark(id, components)
        }
    }

    /// Removes marks, if the marked version is this one.
    ///
    /// - Returns: whether it was.
    /// - Throws: `store`, `closed`.
    @discardableResult
    public func unmark(
        _ id: NodeID, components: ContentComponents = .all, ifVersion version: Int64
    ) throws(TreeError) -> Bool {
        try act { machine throws(TreeError) in
            var marks = StoredMarks(store: machine.store)
            return try DownloadMarks.unmark(id, components, ifVersion: version, in: &marks)
        }
    }

    /// The nodes that are marked, what was marked last first.
    ///
    /// - Throws: `store`, `closed`.
    public var downloadMarks: [DownloadMark] {
        get throws(TreeError) {
            try read { machine throws(TreeError) in
                try DownloadMarks.pending(in: StoredMarks(store: machine.store)) { _ throws(TreeError) in true }
            }
        }
    }

    /// Downloads what is marked, by the policy. The tree calls it whenever it has caught up with the server.
    public func didReconnect() {
        // The marks that this device cannot read now are drained the next time.
        let moved = try? act { machine throws(TreeError) in
            var marks = StoredMarks(store: machine.store)
            return try marks.moved()
        }
        guard let manager = core?.contents.downloads, let marks = moved, !marks.isEmpty else { return }
        let policy = policy
        drain?.cancel()
        drain = Task { [weak self] in
            let tree = self
            await MarkDrain(manager, policy).drain(
                marks, reference: { await tree?.reference(of: $0) }, downloaded: { await tree?.downloaded($0) })
        }
    }

    private func reference(of wish: DownloadWish) -> BlobReference? {
        do throws(TreeError) {
            if let reference = try reference(of: wish.node) { return reference }
        } catch {
            // A node that is hidden, or whose record does not open for now, keeps its mark.
            guard let store = core?.machine.store, case .some(.none) = try? store.row(wish.node) else { return nil }
        }
        // Nothing is left to download of a node that is gone or whose content is in its record.
        downloaded(wish)
        return nil
    }

    private func downloaded(_ wish: DownloadWish) {
        // A mark that stays is drained again.
        _ = try? unmark(wish.node, components: wish.components, ifVersion: wish.version)
    }
}

extension NodeContent {
    /// nil for an empty section.
    fileprivate func bytes(of section: ContentSection) -> [UInt8]? {
        let bytes =
            switch section {
            case .metadata: metadata
            case .thumbnail: thumbnail
            case .data: data
            }
        return bytes.isEmpty ? nil : bytes
    }
}
