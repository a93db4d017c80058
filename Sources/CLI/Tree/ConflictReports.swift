import Synchronization
import ThicketCommandLine
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// What changes of other devices did to changes of this one while a command ran: printed at its end.
final class ConflictReports: Sendable {
    private struct State {
        /// With the node whose new name the line is about.
        var lines = [(node: NodeID?, text: String)]()
        var more = 0
    }

    /// Most lines that one command prints.
    static let linesMax = 20

    private let state = Mutex(State())

    /// Collects the conflicts of a tree until the tree ends.
    ///
    /// - Parameter pointer: the pointer node of the branch that the tree is, through which its paths are named; nil:
    ///   the own tree.
    func follow(
        _ events: AsyncStream<TreeEvent>, in tree: Treesystem, at pointer: TreePath? = nil
    ) -> Task<Void, Never> {
        TreeText.$prefix.withValue(pointer.map(TreeText.Prefix.init(pointer:))) { follow(events, in: tree) }
    }

    private func follow(_ events: AsyncStream<TreeEvent>, in tree: Treesystem) -> Task<Void, Never> {
        Task { [weak tree] in
            for await event in events {
                guard case .conflict(let conflict) = event else { continue }
                if case .adopted(let id, _, _, _) = conflict {
                    state.withLock { $0.lines.removeAll { $0.node == id } }
                    continue
                }
                guard let line = await Self.line(conflict, in: tree) else { continue }
                state.withLock { state in
                    // A content may be merged several times.
                    if state.lines.contains(where: { $0.text == line.text }) { return }
                    if state.lines.count < Self.linesMax { state.lines.append(line) } else { state.more += 1 }
                }
            }
        }
    }

    /// - Returns: nil for what waits for a decision: the queue has it.
    private static func line(
        _ conflict: TreeConflict, in tree: Treesystem?
    ) async -> (node: NodeID?, text: String)? {
        switch conflict {
        case .name(let node, let from, let to):
            let what = TreeText.named(from)
            return (node.id, "\(what): another device has made a node of this name; yours is \(TreeText.named(to))")
        case .location(let node):
            // Without a path the conflict is reported all the same, with the node's name alone.
            let path = (try? await tree?.path(of: node.id)) ?? nil
            let what = TreeText.named(path ?? TreePath(.home, names: [node.name]))
            return (nil, "\(what): another device has moved it too; it is here again")
        case .merged(let node):
            let path = (try? await tree?.path(of: node.id)) ?? nil
            let what = TreeText.named(path ?? TreePath(.home, names: [node.name]))
            return (nil, "\(what): another device has changed it too; both changes are merged")
        // Its children are where they were to be.
        case .data, .removed, .adopted: return nil
        }
    }

    /// Prints the lines on standard error.
    func report() {
        let (lines, more) = state.withLock { ($0.lines, $0.more) }
        for line in lines { Terminal.writeError("thicket: \(line.text)\n") }
        if more > 0 { Terminal.writeError("thicket: \(more) more conflicts\n") }
    }
}
