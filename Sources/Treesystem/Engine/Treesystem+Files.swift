import ThicketTree
public import ThicketTreeShape

/// What programs that copy files to and from a tree need beside the calls for apps.
extension Treesystem {
    /// Whether the tree is connected and has everything that the server had when the connection was made; changes of
    /// this device may still wait. Of shared branches it also has the records that it had to request, and the keys of
    /// authors as far as they can be looked up now. `events` reports the moment as `caughtUp`.
    public var isCaughtUp: Bool { core.map { CaughtUp.isReached($0.machine) } ?? false }

    /// `events` and `isCaughtUp` of one moment: if the tree is not caught up, the events have `caughtUp`.
    public func observe() -> (events: AsyncStream<TreeEvent>, isCaughtUp: Bool) { (events, isCaughtUp) }

    /// The sealed file with a content that waits for its upload.
    ///
    /// - Returns: nil when no content of the node waits, or it is not sealed in a file (`content(of:)` returns small
    ///   contents).
    /// - Throws: `closed`.
    public func waitingFile(of id: NodeID) async throws(TreeError) -> RetainedFile? {
        let operation = try read { machine throws(TreeError) in machine.contentOperation(of: id)?.id }
        guard let operation, let record = spools[operation], let disk = core?.contents.disk else { return nil }
        return await disk.spooled(record.plan.id, key: record.plan.key, map: record.plan.map)
    }
}
