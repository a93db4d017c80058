import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// The owner: a link by which one form of at most 10 MiB is put into the branch within three days.
func makeLink(to applications: NodeID, in session: ClientSession) async throws -> String {
    let links = try await session.links()
    let limits = LinkLimits(days: 3, deposits: 1, bytes: 10 << 20)
    return try await links.make(applications, for: .deposit, limits: limits).text
}

/// The person who got it, without an account: the form is sealed to the owner alone.
func apply(_ text: String) async throws {
    let holder = try await BranchLink(text).open()
    try await holder.deposit(NodeSections(data: .file("/home/ben/form.pdf")), named: try NodeName("form.pdf"))
    await holder.close()
}

/// The owner again: who has written what is there.
func show(_ applications: NodeID, in tree: Treesystem) async throws {
    for node in try await tree.children(of: .node(applications)) {
        let author = try await tree.sharing.author(of: node.id)
        print("\(node.name) by \(author.map { $0.isGuest ? "a guest, not verified" : "\($0)" } ?? "you")")
    }
}
