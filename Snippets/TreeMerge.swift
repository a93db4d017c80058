import ThicketTree
import ThicketTreesystem

/// A recipe as this app stores it: lines of text, the first of which is the title.
struct Recipe: Mergeable {
    var title: String
    var steps: [String]

    init(title: String, steps: [String]) { (self.title, self.steps) = (title, steps) }

    init(merging content: NodeContent) throws {
        let lines = String(decoding: content.data, as: UTF8.self).split(separator: "\n").map(String.init)
        self.init(title: lines.first ?? "", steps: Array(lines.dropFirst()))
    }

    var mergedContent: NodeContent {
        NodeContent(data: Array(([title] + steps).joined(separator: "\n").utf8))
    }

    /// The title character by character; each step is there once, unless one of the two devices has removed it.
    static func merged(base: Recipe, local: Recipe, remote: Recipe) throws -> Recipe {
        Recipe(
            title: try ThreeWay.text(base.title, local.title, remote.title),
            steps: ThreeWay.set(base.steps, local.steps, remote.steps))
    }
}

struct MergingApp: TreeDelegate {
    func mergeRule(for node: Node, at path: TreePath) -> MergeRule {
        switch path.names.first?.text {
        case "recipes": MergeRule(Recipe.self)
        // The device that is later decides each value that both have changed.
        case "settings": .jsonKeepingLocal
        // Never merged: the app asks its user.
        case "contracts": .none
        default: .json
        }
    }

    func didDiscoverConflict(_ conflict: TreeConflict, in transaction: inout TreeTransaction) throws {
        switch conflict {
        // The content is shown again; it is sent by itself.
        case .merged(let node): try transaction.set([], "changed", node.id.text)
        // Only one of two changes can stay: `tree.retry` keeps this device's, `tree.discard` the other one.
        case .data(let node): try transaction.set([], "conflicts", node.id.text)
        default: break
        }
    }
}
