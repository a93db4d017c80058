import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// A message about a shared branch, as `thicket tree inbox` prints it.
struct ShareLetter: Sendable {
    let letter: BranchLetter
    let text: String

    /// - Parameter author: the author's name, as it is printed.
    /// - Returns: nil for any other message.
    init?(_ node: Node, _ author: String, in open: OpenTree) async throws(Failure) {
        let tree = open.tree
        let what = "the inbox was not read"
        let letter = try await growing(what) { () throws(TreeError) in try await tree.sharing.letter(of: node.id) }
        guard let letter else { return nil }
        self.letter = letter
        switch letter {
        case .invite:
            let bytes = try await growing(what) { () throws(TreeError) in try await tree.content(of: node.id)?.data }
            let name = Screen.safe(String(decoding: bytes ?? [], as: UTF8.self))
            text = "invitation to the branch '\(name)'; 'thicket tree accept \(node.id.text)' accepts it"
        case .leave(_, let root):
            let path = try await growing(what) { () throws(TreeError) in try await tree.path(of: root) }
            guard let path else {
                text = "asks to leave a branch that is not in the tree any more"
                return
            }
            text = "asks to leave: 'thicket tree unshare \(TreeText.named(path)) \(Screen.safe(author))' does it"
        }
    }

    var json: JSONValue {
        switch letter {
        case .invite(let invite):
            .object([
                "kind": "invite", "name": .string(invite.branch.text), "list": .number(JSONNumber(invite.version)),
            ])
        case .leave(let owner, let root):
            .object(["kind": "leave", "name": .string(BranchName(of: owner, root: root).text)])
        }
    }
}
