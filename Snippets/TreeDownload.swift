import ThicketClient
import ThicketTreesystem

/// Opens a recipe: the preview at once, the video while it arrives.
func open(_ path: TreePath, in tree: Treesystem) async throws {
    guard let node = try await tree.node(at: path) else { return print("there is no \(path)") }

    // A preview takes a few kilobytes from the server, however large the rest is.
    let preview = try await tree.data(of: node.id, .thumbnail)
    print("a preview of \(preview?.count ?? 0) bytes")

    // One transfer for any number of callers; what has arrived is kept when the program ends.
    guard let ticket = try await tree.downloadNodeData(node.id, components: .data) else { return }
    let bar = Task { for await value in ticket.progress { print("\(value.bytes) of \(value.total)") } }
    guard let kept = try await ticket.value() else { return }
    bar.cancel()

    // The file stays sealed on the disk, and is read from any place.
    let head = try kept.file.read(0..<16)
    print("begins with \(head)")
    try kept.file.copy(to: "/home/ada/bread.mp4")
}
