public import ThicketTree
public import ThicketTreeShape

/// What a delegate can read and write in the transaction that changes the tree: nodes, and what the app keeps. It is
/// valid during the call only.
public struct TreeTransaction {
    /// A copy, whose caches end with the call. Only reads use it.
    private var skeleton: TreeSkeleton
    private let store: TreeStore

    init(_ skeleton: TreeSkeleton) { (self.skeleton, store) = (skeleton, skeleton.store) }

    /// The node with this id; nil when it is not shown.
    public func node(_ id: NodeID) throws(TreeError) -> Node? { try store.row(id)?.node(isPending: false) }

    /// The path of a node; nil when it is not shown.
    public func path(of id: NodeID) throws(TreeError) -> TreePath? { try store.path(of: .node(id)) }

    /// The content of a node if it fits into the record; nil for a node without content, and for one whose content is
    /// in a file. Also nil for a node that is gone already: calls come at the end of a turn, which may have shown and
    /// removed it; and for a content that does not open, which an author of a message can make.
    ///
    /// - Throws: `store`.
    public mutating func content(of id: NodeID) throws(TreeError) -> NodeContent? {
        do throws(TreeError) { return try skeleton.content(of: id) } catch {
            if error.code == .notFound || error.code == .contentDamaged { return nil }
            throw error
        }
    }

    /// A value of the app.
    ///
    /// - Parameters:
    ///   - collection: a name of the app's choice, such as `messages`.
    ///   - key: the key in the collection.
    public func value(_ collection: String, _ key: String) throws(TreeError) -> [UInt8]? {
        try store.appValue(collection, key)
    }

    /// Stores or removes a value of the app.
    ///
    /// - Parameters:
    ///   - value: nil removes it.
    ///   - collection: a name of the app's choice.
    ///   - key: the key in the collection.
    ///   - order: where it is in a page of the collection.
    public func set(
        _ value: [UInt8]?, _ collection: String, _ key: String, order: Int64 = 0
    ) throws(TreeError) { try store.setAppValue(value, collection, key, order: order) }

    /// Values of the app, as `Treesystem.page(of:after:isDescending:limit:)`.
    public func page(
        of collection: String, after last: AppValue? = nil, isDescending: Bool = false, limit: Int
    ) throws(TreeError) -> [AppValue] {
        try store.appPage(collection, after: last, isDescending: isDescending, limit: limit)
    }

    /// Marks the content of a node as to be downloaded.
    public func markNodeAsNeedsDownload(_ id: NodeID) throws(TreeError) { try store.mark(id) }
}

/// A value that the app keeps beside the tree.
public struct AppValue: Sendable, Hashable {
    /// Its key in the collection.
    public let key: String
    /// The bytes.
    public let value: [UInt8]
    /// Where it is in its collection; values of one order follow by their keys.
    public let order: Int64

    /// Makes a value; for `after` of a page, the bytes do not count.
    public init(key: String, value: [UInt8] = [], order: Int64) {
        (self.key, self.value, self.order) = (key, value, order)
    }
}
