import ThicketCommandLine
import ThicketPlatform
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree export`: writes a tree, or a branch of it, to a plain folder (`PlainForm`).
enum TreeExport {
    static func run(_ call: Call) async throws(Failure) {
        let text = call.argument("PATH")
        let argument = text.isEmpty ? nil : try TreeArgument(text)
        let (folder, isOffline) = (call.argument("DIR"), call.flag("offline"))
        try await OpenTree.run(call, isOnline: !isOffline) { open throws(Failure) in
            if !isOffline { try await open.ready("nothing was written", offline: "what is here is written") }
            if let argument { _ = try await TreeListing.place(argument, in: open) }
            try begin(folder)
            var writer = PlainWriter(
                NodeDownload(open: open, isOffline: isOffline, isForced: call.flag("force")), folder,
                isVerbose: call.flag("verbose"))
            for trunk in Trunk.allCases where argument == nil || argument?.path.trunk == trunk {
                try await writer.write(argument?.path ?? TreePath(trunk))
            }
            try writer.finish()
        }
    }

    /// The folder is a new one, an empty one, or one that an export has written.
    private static func begin(_ folder: String) throws(Failure) {
        if Files.isFolder(folder), !Files.names(in: folder).isEmpty {
            do throws(Failure) { try PlainForm.check(folder) } catch {
                throw Failure("\(folder) is not empty, and was not written by 'thicket tree export'", .usage)
            }
            return
        }
        try Files.makeFolder(folder)
        try Files.replace("\(folder)/\(PlainForm.marker)", PlainForm.markerBytes, mode: 0o600)
    }
}

/// Writes nodes to a plain folder.
struct PlainWriter {
    private let download: NodeDownload
    private let folder: String
    private let isVerbose: Bool
    private var problems = [(name: String, reason: String)]()
    private var (written, unchanged) = (0, 0)

    init(_ download: NodeDownload, _ folder: String, isVerbose: Bool) {
        (self.download, self.folder, self.isVerbose) = (download, folder, isVerbose)
    }

    /// Writes a place and everything below it, into the folders of the nodes above it.
    mutating func write(_ path: TreePath) async throws(Failure) {
        var local = "\(folder)/\(path.trunk.rawValue)"
        try Files.makeFolder(local)
        let open = download.open
        for depth in stride(from: 1, through: path.depth, by: 1) {
            let above = TreePath(path.trunk, names: Array(path.names.prefix(depth)))
            let node = try await TreeListing.node(at: above, in: open)
            let text = try await NodeText.of(node, at: above, in: open)
            guard let next = try await writeNode(text, in: local, isFolder: depth < path.depth) else { return }
            local = next
        }
        var places = LocalPlaces(path, local)
        var walk = open.tree.walk(from: path).makeAsyncIterator()
        while true {
            let next: (path: TreePath, node: Node)?
            do { next = try await walk.next() } catch { throw Failure("cannot read the tree: \(error)") }
            if Task.isCancelled { throw .interrupted }
            guard let next else { return }
            guard let above = places.folder(above: next.path) else { continue }
            let text = try await NodeText.of(next.node, at: next.path, in: open)
            if let made = try await writeNode(text, in: above, isFolder: false) { places.add(next.path, made) }
        }
    }

    /// - Parameter isFolder: the node is only on the way to what is exported: its content is not written.
    /// - Returns: the folder for what is below the node; nil for a file and for what is left out.
    private mutating func writeNode(
        _ text: NodeText, in above: String, isFolder: Bool
    ) async throws(Failure) -> String? {
        let name = PlainName.file(for: text.node.name)
        let local = "\(above)/\(name.text)"
        do throws(Failure) {
            if name.isLong { try replace(local + PlainForm.nameEnding, text.node.name.octets) }
            let isFile = text.kind == .file && !isFolder
            if !isFile { try Files.makeFolder(local) }
            if isFolder { return local }
            let extras = try await extras(of: text)
            if !extras.isEmpty {
                let meta = isFile ? local + PlainForm.metaEnding : "\(local)/\(PlainForm.metaEnding)"
                try replace(meta, extras.json)
            }
            if text.kind != .folder {
                let target = isFile ? local : "\(local)/\(PlainForm.content)"
                let outcome = try await download.get(text.node, at: text.path, to: target)
                if outcome == .same { unchanged += 1 } else { written += 1 }
                if isVerbose { try LineOutput.write("\(TreeText.shown(target))\n") }
            }
            return isFile ? nil : local
        } catch {
            guard !error.endsCommand, error.code != .unauthorized,
                error.code != .offline || download.isOffline
            else { throw error }
            problems.append((TreeText.named(text.path), error.text))
            return text.kind == .file ? nil : local
        }
    }

    private func replace(_ path: String, _ bytes: [UInt8]) throws(Failure) {
        if case .bytes(bytes) = Files.read(path, bytesMax: PlainForm.extrasBytesMax) { return }
        try Files.replace(path, bytes, mode: 0o600)
    }

    private func extras(of text: NodeText) async throws(Failure) -> NodeExtras {
        let (node, tree) = (text.node, download.open.tree)
        var extras = NodeExtras()
        extras.tags = node.tags.filter { !same($0.key, FileTag.key) }
        extras.burnTime = node.burnTime
        guard text.kind != .folder else {
            if let modified = node.modified { extras.modified = .some(modified) }
            return extras
        }
        if node.modified == nil { extras.modified = .some(nil) }
        guard let sizes = node.content?.sizes else { return extras }
        let what = "cannot read \(TreeText.named(text.path))"
        extras.metadata =
            sizes.metadata == 0
            ? [] : try await growing(what) { () throws(TreeError) in try await tree.data(of: node.id, .metadata) ?? [] }
        extras.thumbnail =
            sizes.thumbnail == 0
            ? []
            : try await growing(what) { () throws(TreeError) in try await tree.data(of: node.id, .thumbnail) ?? [] }
        return extras
    }

    func finish() throws(Failure) {
        try LineOutput.write(
            "\(Counts.files(written + unchanged)): \(written) written, \(unchanged) the same already, to \(folder), in clear: "
                + "every reader of the folder can read them\n")
        try Folders.report(problems, .failure)
    }
}
