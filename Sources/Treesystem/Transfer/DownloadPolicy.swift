public import ThicketTreeShape

/// One download that a drain starts.
public struct DownloadWish: Sendable, Hashable {
    /// The node.
    public let node: NodeID
    /// The version that is marked.
    public let version: Int64
    /// One section.
    public let components: ContentComponents
}

/// What is downloaded without being asked for.
public struct DownloadPolicy: Sendable {
    /// The sections to download of a node that is marked; the app looks at its path or size.
    public let wanted: @Sendable (DownloadMark) -> ContentComponents

    /// A policy.
    public init(_ wanted: @escaping @Sendable (DownloadMark) -> ContentComponents) { self.wanted = wanted }

    /// Downloads nothing.
    public static let nothing = DownloadPolicy { _ in [] }
    /// Downloads what is shown in lists.
    public static let previews = DownloadPolicy { _ in [.metadata, .thumbnail] }

    /// What to download, in order: metadata of all nodes before thumbnails before data, because the smaller sections
    /// make more nodes visible; within a section what was marked last comes first.
    public func order(_ marks: [DownloadMark]) -> [DownloadWish] {
        let newest = marks.sorted { $0.order > $1.order }.map { ($0, wanted($0).intersection($0.components)) }
        return [ContentComponents.metadata, .thumbnail, .data].flatMap { section in
            newest.filter { $0.1.contains(section) }.map {
                DownloadWish(node: $0.0.node, version: $0.0.version, components: section)
            }
        }
    }
}

/// Downloads what is marked, for example after a reconnect.
public struct MarkDrain: Sendable {
    private let manager: DownloadManager
    private let policy: DownloadPolicy

    /// A drain over a manager.
    public init(_ manager: DownloadManager, _ policy: DownloadPolicy) {
        (self.manager, self.policy) = (manager, policy)
    }

    /// Downloads the wishes of the policy in order, as many at one time as transfers run, and returns when all are
    /// over or the task is cancelled. What fails stays marked for the next drain.
    ///
    /// - Parameters:
    ///   - marks: the pending marks.
    ///   - reference: finds the content of a node; nil when the node has none or its version is not the wish's.
    ///   - downloaded: removes the mark with `DownloadMarks.unmark`.
    /// - Returns: wishes that were downloaded.
    @discardableResult
    public func drain(
        _ marks: [DownloadMark], reference: @escaping @Sendable (DownloadWish) async -> BlobReference?,
        downloaded: @escaping @Sendable (DownloadWish) async -> Void
    ) async -> Int {
        var wishes = policy.order(marks).makeIterator()
        return await withTaskGroup(of: Bool.self) { group in
            var (running, count) = (0, 0)
            while true {
                while running < TransferLimits.downloadsMax, !Task.isCancelled, let wish = wishes.next() {
                    group.addTask { await attempt(wish, reference, downloaded) }
                    running += 1
                }
                guard let isDone = await group.next() else { return count }
                running -= 1
                count += isDone ? 1 : 0
            }
        }
    }

    private func attempt(
        _ wish: DownloadWish, _ reference: @Sendable (DownloadWish) async -> BlobReference?,
        _ downloaded: @Sendable (DownloadWish) async -> Void
    ) async -> Bool {
        guard let node = await reference(wish), node.version == wish.version,
            let ticket = try? await manager.downloadNodeData(node, components: wish.components)
        else { return false }
        do throws(ContentError) { _ = try await ticket.value() } catch { return false }
        await downloaded(wish)
        return true
    }
}
