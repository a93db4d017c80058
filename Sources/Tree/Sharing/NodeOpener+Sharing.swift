public import ThicketTreeShape

/// Opening a branch of another account.
extension NodeOpener {
    /// Opens the root of a shared branch by the wrap for this account. Its place and its name are the owner's, and are
    /// not checked; nor is the list, which `BranchState` judges.
    ///
    /// - Throws: `NodeFault`; `noWrap` for a record without a list, or that this account may not read.
    public func openRoot(_ record: NodeRecord, _ id: NodeID) throws(NodeFault) -> OpenedNode {
        guard record.shareList != nil else { throw .noWrap }
        return try opened(record, id, ownKey(of: record, id), .member)
    }
}
