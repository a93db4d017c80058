public import ThicketTreeShape

/// A node whose content on this device is stale.
public struct DownloadMark: Sendable, Hashable {
    /// The node.
    public let node: NodeID
    /// The version of the record that made it stale.
    public var version: Int64
    /// The stale sections.
    public var components: ContentComponents
    /// Grows with each mark: a larger number was marked later.
    public var order: Int64

    /// A mark.
    public init(node: NodeID, version: Int64, components: ContentComponents, order: Int64) {
        (self.node, self.version, self.components, self.order) = (node, version, components, order)
    }
}

/// Where marks are stored. The store of nodes implements it, so that a mark is part of the transaction that writes the
/// record.
public protocol DownloadMarkStore {
    /// What the store throws.
    associatedtype Failure: Error
    /// The mark of a node.
    func mark(of node: NodeID) throws(Failure) -> DownloadMark?
    /// Writes or removes the mark of a node.
    mutating func setMark(_ mark: DownloadMark?, of node: NodeID) throws(Failure)
    /// All marks.
    func marks() throws(Failure) -> [DownloadMark]
    /// The number for the next mark.
    mutating func nextOrder() throws(Failure) -> Int64
}

/// The rules of needs-download marks. Pure, over a store that is passed in.
public enum DownloadMarks {
    /// Marks sections as stale at a version. Sections that are stale already stay so, at the newer version.
    public static func mark<Store: DownloadMarkStore>(
        _ node: NodeID, _ components: ContentComponents, version: Int64, in store: inout Store
    ) throws(Store.Failure) {
        guard !components.isEmpty else { return }
        let known = try store.mark(of: node)
        var mark = known ?? DownloadMark(node: node, version: version, components: [], order: 0)
        mark.components.formUnion(components)
        if known == nil || version > mark.version {
            mark.version = version
            mark.order = try store.nextOrder()
        }
        try store.setMark(mark, of: node)
    }

    /// Removes marks of sections that were downloaded, if the version that was downloaded is the marked one.
    ///
    /// - Returns: whether it was; otherwise a newer version arrived during the download, and the marks stay.
    @discardableResult
    public static func unmark<Store: DownloadMarkStore>(
        _ node: NodeID, _ components: ContentComponents, ifVersion version: Int64, in store: inout Store
    ) throws(Store.Failure) -> Bool {
        guard var mark = try store.mark(of: node), mark.version == version else { return false }
        mark.components.subtract(components)
        try store.setMark(mark.components.isEmpty ? nil : mark, of: node)
        return true
    }

    /// The marks of the nodes that a closure accepts, for example those below a node, in the order of `DownloadOrder`.
    public static func pending<Store: DownloadMarkStore>(
        in store: Store, where isWanted: (NodeID) throws(Store.Failure) -> Bool
    ) throws(Store.Failure) -> [DownloadMark] {
        var marks = [DownloadMark]()
        for mark in try store.marks() where try isWanted(mark.node) { marks.append(mark) }
        return marks.sorted { $0.order > $1.order }
    }
}

/// Marks in memory.
public struct MemoryDownloadMarks: DownloadMarkStore, Sendable {
    private var rows = [NodeID: DownloadMark]()
    private var order: Int64 = 0
    /// No marks.
    public init() {}
    /// The mark of a node.
    public func mark(of node: NodeID) -> DownloadMark? { rows[node] }
    /// Writes or removes the mark of a node.
    public mutating func setMark(_ mark: DownloadMark?, of node: NodeID) { rows[node] = mark }
    /// All marks.
    public func marks() -> [DownloadMark] { Array(rows.values) }
    /// The number for the next mark.
    public mutating func nextOrder() -> Int64 {
        order += 1
        return order
    }
}
