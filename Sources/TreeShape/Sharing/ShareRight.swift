/// What an account wants to do with a node of a shared branch; what the server and every device judge by the list
/// (treesystem 4.8, rules 5 and 8).
public enum ShareAction: Sendable, Hashable {
    /// Reads a record or content, or lists children.
    case read
    /// Creates a node.
    ///
    /// - Parameters:
    ///   - depth: levels below the root of the branch, from 1.
    ///   - hasContent: whether the record has `d`.
    ///   - others: nodes directly below the root that the account has created and that exist.
    case create(depth: Int, hasContent: Bool, others: Int)
    /// Replaces a node's record at its place, or moves it within the branch.
    ///
    /// - Parameters:
    ///   - isRoot: whether it is the root of the branch.
    ///   - depth: levels below the root at its new place; 0 for the root.
    ///   - hasContent: whether the new record has `d`.
    case change(isRoot: Bool, depth: Int, hasContent: Bool)
    /// Removes a node with everything below it.
    ///
    /// - Parameters:
    ///   - isRoot: whether it is the root of the branch.
    ///   - isOwn: whether the account has created it, and nothing below it is another account's.
    case remove(isRoot: Bool, isOwn: Bool)
    /// Replaces the list on the root.
    case share
    /// Moves the root, renames it for the owner's tree, or moves a node out of the branch.
    case leave
}

/// Why an account may not do something in a shared branch, as the word beside 401.
public enum ShareDenial: String, Sendable, Hashable, CaseIterable {
    /// The account may not read there. The same answer as for a node that does not exist.
    case noRead = "no-read"
    /// The account may not write there.
    case noWrite = "no-write"
    /// The account may not change the list, or this part of it.
    case noShare = "no-share"
}

/// The rights of one account in one shared branch.
public struct ShareRight: Sendable, Hashable {
    /// Whether the account owns the tree. The owner may do everything, whatever the list says.
    public let isOwner: Bool
    /// The account's letters, those of every account included.
    public let permissions: SharePermissions

    /// The rights of an account by its letters.
    public init(isOwner: Bool, permissions: SharePermissions) {
        (self.isOwner, self.permissions) = (isOwner, permissions)
    }

    /// Why the action is refused; nil when it is allowed.
    public func denial(of action: ShareAction) -> ShareDenial? {
        if isOwner { return nil }
        switch action {
        case .read: return permissions.contains(.read) ? nil : .noRead
        case .create(let depth, let hasContent, let others):
            return canCreate(at: depth, hasContent: hasContent, others: others) ? nil : .noWrite
        case .change(let isRoot, let depth, let hasContent):
            guard permissions.contains(.write) else { return .noWrite }
            return isRoot || isAllowed(at: depth, hasContent: hasContent) ? nil : .noWrite
        case .remove(let isRoot, let isOwn):
            if isRoot { return .noWrite }
            if permissions.contains(.write) { return nil }
            return isOwn && permissions.contains(.burnOwn) ? nil : .noWrite
        case .share: return permissions.contains(.share) ? nil : .noShare
        case .leave: return .noWrite
        }
    }

    private func canCreate(at depth: Int, hasContent: Bool, others: Int) -> Bool {
        guard isAllowed(at: depth, hasContent: hasContent) else { return false }
        if permissions.contains(.write) || permissions.contains(.writeOnce) { return true }
        return permissions.contains(.oneChild) && depth == 1 && others == 0
    }

    /// Whether the letters `R` and `L` allow a node at a place.
    private func isAllowed(at depth: Int, hasContent: Bool) -> Bool {
        if hasContent, permissions.contains(.recordsOnly) { return false }
        return depth <= 1 || !permissions.contains(.leavesOnly)
    }
}
