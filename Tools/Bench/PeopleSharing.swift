import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// A branch of many nodes is shared with another account and taken back: records written, and the time until the
/// server has it; and the time until a member has opened the branch's root.
func shareBranch(nodes count: Int) async throws -> [Figure] {
    let stand = try PeopleStand()
    let ann = try await stand.person("ann@example.com")
    let ben = try await stand.person("ben@example.com")
    try await ann.desk.fill(1) { _ in try TreePath(.home, ["album"]) }
    try await ann.desk.fill(count - 1) { try TreePath(.home, ["album", "photo \($0).jpg"]) }
    guard let album = try await ann.desk.tree.node(at: TreePath(.home, ["album"])) else { throw BenchError("no album") }
    let sharing = ann.desk.tree.sharing
    let shared = try await stand.change(by: ann) { try await sharing.share(album.id, with: [ben.user: .readWrite]) }
    let start = nanoseconds()
    let branch = try await ben.desk.session.branch(of: ann.user, root: album.id)
    try await branch.waitUntilSynced()
    let opened = Double(nanoseconds() - start) / 1e9
    let ended = try await stand.change(by: ann) { try await sharing.unshare(album.id) }
    await ann.desk.session.close()
    await ben.desk.session.close()
    return [
        Figure(
            name: "share \(count) nodes: records written", value: Double(shared.records), unit: "", goal: .atMost(1)),
        Figure(name: "  until the server has it", value: shared.milliseconds, unit: "ms"),
        Figure(name: "  all of it on a member's new device", value: opened, unit: "s"),
        Figure(
            name: "unshare \(count) nodes: records written", value: Double(ended.records), unit: "", goal: .atMost(1)),
        Figure(name: "  until the server has it", value: ended.milliseconds, unit: "ms"),
    ]
}

extension PeopleStand {
    /// The records that the server writes for a change, and the time until its author has the confirmation.
    fileprivate func change(
        by person: Person, _ body: () async throws -> OperationID
    ) async throws -> (records: Int, milliseconds: Double) {
        let before = try metric("thicket_changes_applied_total")
        let start = nanoseconds()
        _ = try await body()
        try await person.desk.awaitSync()
        let milliseconds = Double(nanoseconds() - start) / 1e6
        return (try metric("thicket_changes_applied_total") - before, milliseconds)
    }
}
