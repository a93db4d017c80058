import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreesystem

/// A node as the commands print it.
struct NodeText: Sendable {
    let path: TreePath
    let node: Node
    let hasChildren: Bool
    /// The guest of a link that has written it; nil for any other author.
    var guest: UserID?

    /// Content and children decide what a node is to a person.
    enum Kind: String, Sendable {
        case file, folder, both
    }

    var kind: Kind {
        // A content that is not uploaded yet is known by what was remembered of its file.
        let hasContent = node.content != nil || (node.isPending && FileTag(node) != nil)
        return hasContent ? (hasChildren ? .both : .file) : .folder
    }

    /// Bytes of the data; nil without content.
    var size: UInt64? { node.isPending ? FileTag(node)?.size ?? node.content?.sizes.data : node.content?.sizes.data }

    static func of(_ node: Node, at path: TreePath, in open: OpenTree) async throws(Failure) -> NodeText {
        let tree = open.tree
        let hasChildren = try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
            try await tree.hasChildren(.node(node.id))
        }
        let author = try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
            try await tree.sharing.author(of: node.id)
        }
        return NodeText(
            path: path, node: node, hasChildren: hasChildren, guest: author.flatMap { $0.isGuest ? $0 : nil })
    }

    /// `1.5 MiB  v3  2026-11-27 19:14  plan.md`; a name that others are below ends in `/`.
    ///
    /// - Parameter name: the name or the path as it is printed.
    func long(_ name: String) -> String {
        let size = size.map(TreeText.size) ?? "-"
        let time = node.modified ?? node.changed
        let version = node.version == 0 ? "new" : "v\(node.version)"
        let columns = [Self.padded(size, 10), Self.padded(version, 5), time.map { Days.text($0 / 1_000) } ?? "-"]
        // Nothing proves which person has the link.
        let author = guest.map { "  (by \(AuthorNames.guest($0)), \(AuthorNames.unverified))" } ?? ""
        return columns.joined(separator: "  ") + "  " + short(name) + author + (node.isPending ? "  (not sent)" : "")
    }

    func short(_ name: String) -> String { name + (kind == .file ? "" : "/") }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    var json: String {
        var object: JSONObject = [
            "path": .string(TreeText.text(path)), "name": .string(node.name.text), "id": .string(node.id.text),
            "kind": .string(kind.rawValue), "version": .number(JSONNumber(node.version)),
        ]
        if let size { object["size"] = .number(JSONNumber(Int64(clamping: size))) }
        if let modified = node.modified { object["modified"] = .number(JSONNumber(modified)) }
        if let changed = node.changed { object["changed"] = .number(JSONNumber(changed)) }
        if let burns = node.burnTime { object["burns"] = .number(JSONNumber(burns)) }
        if node.isPending { object["pending"] = .bool(true) }
        if let guest {
            object["author"] = .string(guest.text)
            object["verified"] = .bool(false)
        }
        if let invite = node.branch { object["branch"] = .string(invite.branch.text) }
        return JSONValue.object(object).serializedText + "\n"
    }
}

/// Writes lines to standard output until its reader is gone.
struct LineOutput {
    /// - Throws: `Failure.output` when the pipe is closed or the disk is full.
    static func write(_ text: String) throws(Failure) {
        guard Terminal.write(text) else { throw .output }
    }
}
