import ThicketCommandLine
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree import`: reads a folder that `thicket tree export` has written. What the tree has and the folder has
/// not stays.
struct TreeImport {
    private let upload: FolderUpload

    static func run(_ call: Call) async throws(Failure) {
        let (folder, isOffline) = (call.argument("DIR"), call.flag("offline"))
        guard Files.isFolder(folder) else { throw Failure("\(folder) is not a folder", .notFound) }
        try PlainForm.check(folder)
        try await OpenTree.run(call, isOnline: !isOffline) { open throws(Failure) in
            if !isOffline { try await open.ready("nothing was sent", offline: "the changes are kept here") }
            let reader = TreeImport(upload: FolderUpload(open, call, isOffline: isOffline))
            for trunk in Trunk.allCases where Files.isFolder("\(folder)/\(trunk.rawValue)") {
                try await reader.read("\(folder)/\(trunk.rawValue)", into: TreePath(trunk))
            }
            try await reader.upload.drain(to: 0)
            try reader.upload.finish(isSingle: false)
        }
    }

    /// Reads what is below a node.
    private func read(_ folder: String, into path: TreePath) async throws(Failure) {
        let content: LocalFolder
        do throws(Failure) { content = try LocalFolder(folder) } catch { return try upload.record(folder, error) }
        for problem in content.problems { upload.leaveOut("\(folder)/\(problem.name)", problem.reason) }
        var siblings = [Sibling]()
        for entry in content.entries where !Self.isAside(entry.name) {
            let source = "\(folder)/\(entry.name)"
            guard let name = Self.name(of: entry.name, in: folder) else {
                upload.leaveOut(source, "no export has written a file of this name")
                continue
            }
            siblings.append(Sibling(source: source, name: name, isFolder: entry.isFolder))
        }
        for sibling in try await upload.withoutTwins(siblings, below: path) {
            if Task.isCancelled { throw .interrupted }
            let (source, child) = (sibling.source, path.appending(sibling.name))
            do throws(Failure) { try await readNode(source, isFolder: sibling.isFolder, at: child) } catch {
                try upload.record(source, error)
            }
            if sibling.isFolder { try await read(source, into: child) }
            try await upload.drain(to: FolderUpload.waitingMax)
        }
    }

    private func readNode(_ source: String, isFolder: Bool, at path: TreePath) async throws(Failure) {
        let meta = isFolder ? "\(source)/\(PlainForm.metaEnding)" : source + PlainForm.metaEnding
        let extras: NodeExtras
        switch Files.read(meta, bytesMax: PlainForm.extrasBytesMax) {
        case .absent: extras = NodeExtras()
        case .failed(let reason): throw Failure("\(meta) cannot be read: \(reason)")
        case .bytes(let bytes):
            guard let found = NodeExtras(json: bytes) else { throw Failure("\(meta) is damaged") }
            extras = found
        }
        let content = isFolder ? "\(source)/\(PlainForm.content)" : source
        if !isFolder || Files.stamp(content) != nil {
            try await upload.queue(LocalFile(path: content), at: path, extras: extras)
        } else {
            try await upload.makeContainer(path, extras: extras)
        }
    }

    /// What belongs to another file or to the folder itself.
    private static func isAside(_ name: String) -> Bool {
        name.hasSuffix(PlainForm.metaEnding) || name.hasSuffix(PlainForm.nameEnding) || same(name, PlainForm.content)
    }

    /// The name of the node.
    private static func name(of file: String, in folder: String) -> NodeName? {
        guard file.hasPrefix(PlainName.longMark) else { return PlainName.node(for: file) }
        guard
            case .bytes(let bytes) = Files.read(
                "\(folder)/\(file)\(PlainForm.nameEnding)", bytesMax: NodeName.bytesMax),
            let name = try? NodeName(octets: bytes)
        else { return nil }
        let (text, isLong) = PlainName.file(for: name)
        return isLong && same(text, file) ? name : nil
    }
}
