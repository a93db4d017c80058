import ThicketClient
import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree audit`: what the server stores of the tree, next to what the user sees.
enum TreeAudit {
    /// Characters in one line.
    private static let lineMax = 400
    /// The bucket in which the server keeps records.
    private static let bucket = "tree"

    static func run(_ call: Call) async throws(Failure) {
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready()
            let stored = try await trying("cannot read the tree at the server") { () throws(ClientError) in
                try await open.client.storedObjects(of: bucket)
            }
            for object in stored { try await show(object, open, isJSON: call.flag("json")) }
            let tree = open.tree
            let faults = try await growing("cannot read the tree") { () throws(TreeError) in try await tree.quarantined
            }
            for fault in faults {
                Terminal.writeError("\(fault.node.text): its record is not genuine: \(fault.detail)\n")
            }
            guard !call.flag("json") else { return }
            if stored.count == ClientSession.storedObjectsMax {
                try LineOutput.write("the first \(stored.count) nodes are shown\n")
            }
            if stored.isEmpty { try LineOutput.write("the server stores no node\n") }
            if !faults.isEmpty { throw Failure("\(Counts.nodes(faults.count)) cannot be opened") }
        }
    }

    private static func show(_ object: StoredObject, _ open: OpenTree, isJSON: Bool) async throws(Failure) {
        let tree = open.tree
        let mine = try await growing("cannot read the tree") { () throws(TreeError) -> (node: Node, path: TreePath)? in
            guard let id = NodeID(text: object.key), let node = try await tree.node(id),
                let path = try await tree.path(of: id)
            else { return nil }
            return (node, path)
        }
        if isJSON {
            var row: JSONObject = [
                "id": .string(object.key), "version": .number(JSONNumber(object.version)),
                "server": (try? JSONValue(parsing: Array(object.text.utf8))) ?? .string(object.text),
            ]
            if let mine { row["path"] = .string(mine.path.description) }
            return try LineOutput.write(JSONValue.object(row).serializedText + "\n")
        }
        var you = "nothing that opens"
        if let mine {
            let text = try await NodeText.of(mine.node, at: mine.path, in: open)
            let size = text.size.map { ", \(TreeText.size($0))" } ?? ""
            you = "\(TreeText.shown(mine.path)): \(text.kind.rawValue)\(size)"
        }
        let safe = Screen.safe(object.text)
        let shown = safe.count > lineMax ? safe.prefix(lineMax) + "…" : safe
        try LineOutput.write("\(object.key)\n  server  version \(object.version): \(shown)\n  you     \(you)\n")
    }
}
