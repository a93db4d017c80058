extension ObjectDiff {
    /// Reads a change's `v`, in any form of fragment.
    ///
    /// - Throws: `DiffError` when it is not a diff.
    public init(_ fragment: JSONFragment) throws(DiffError) {
        switch fragment {
        case .node(let node): try self.init(node)
        case .value, .bytes: try self.init(fragment.value)
        }
    }
}
