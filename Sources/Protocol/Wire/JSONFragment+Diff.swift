extension ObjectDiff {
    /// Reads a change's `v`, in whichever form it is at hand.
    public init(_ fragment: JSONFragment) throws(DiffError) {
        switch fragment {
        case .node(let node): try self.init(node)
        case .value, .bytes: try self.init(fragment.value)
        }
    }
}
