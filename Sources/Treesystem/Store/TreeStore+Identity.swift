import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// What a store keeps for good: its tree, its id as a client, and how much of the tree it has.
extension TreeStore {
    /// A store belongs to one tree, or to one branch of another account.
    func claim(_ tree: TreePlace, _ branch: BranchName? = nil) throws(TreeError) {
        let name = "\(tree.app.text)/\(branch?.text ?? tree.owner.text)"
        guard let known = try namedValue("tree") else { return try setNamedValue("tree", name) }
        guard known.utf8.elementsEqual(name.utf8) else {
            throw TreeError(.store, "the local tree belongs to another account or app")
        }
    }

    /// Whether the skeleton is lazy: a store that was read whole stays so; one that was not is read whole when the
    /// policy is full.
    func adopt(_ policy: SkeletonPolicy) throws(TreeError) -> Bool {
        let wasLazy = try namedValue("skeleton") != nil
        let (position, bucket) = (try namedValue("cv"), try namedValue("store"))
        let isNew = position == nil && bucket == nil
        let isLazy = policy.depth != nil && (wasLazy || isNew)
        if isLazy != wasLazy {
            try setNamedValue("skeleton", isLazy ? "lazy" : nil)
            if wasLazy { try setNamedValue("cv", nil) }
        }
        return isLazy
    }

    func clientID(_ random: inout any RandomNumberGenerator & Sendable) throws(TreeError) -> ClientID {
        if let known = try namedValue("client"), let id = try? ClientID(known) { return id }
        let fresh = "thicket-tree-" + [random.next(), random.next()].map { String($0, radix: 16) }.joined()
        guard let id = try? ClientID(fresh) else { preconditionFailure("letters and digits are a client id") }
        try setNamedValue("client", fresh)
        return id
    }
}
