import ThicketClient
import ThicketProtocol
import ThicketTreesystem

/// The owner: one signed list on the album's root, and an invitation. A later call takes one member out again.
func share(_ album: TreePath, with ben: UserID, _ cleo: UserID, in session: ClientSession) async throws {
    let tree = try await session.tree()
    guard let root = try await tree.node(at: album) else { return print("there is no \(album)") }
    try await tree.sharing.share(root.id, with: [ben: .readWrite, cleo: .read])
    try await tree.waitUntilSynced()
    try await tree.sharing.invite(root.id, for: [ben, cleo])
    // What is written from now on has keys that Cleo does not get.
    try await tree.sharing.remove(cleo, from: root.id)
}

/// A member: a pointer node in the own tree, and the branch as a tree of its own.
func join(_ session: ClientSession) async throws {
    let tree = try await session.tree()
    for invitation in try await tree.sharing.invitations {
        let name = try NodeName(invitation.name)
        try await tree.sharing.accept(invitation.message, at: TreePath(.home, names: [name]))
        let invite = invitation.invite
        let album = try await session.branch(of: invite.owner, root: invite.root, invite: invite)
        try await album.waitUntilSynced()
        for node in try await album.children(of: TreePath(.home, names: [name])) {
            let author = try await album.sharing.author(of: node.id)
            print("\(node.name) by \(author.map { "\($0)" } ?? "its owner")")
        }
    }
}
