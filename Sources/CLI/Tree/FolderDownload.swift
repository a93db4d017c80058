import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Copies branches of a tree to folders: a bounded number of files is transferred at any time.
///
/// A run that was interrupted is repeated: files that are whole are left as they are, and a download goes on behind its
/// last verified chunk.
final class FolderDownload {
    /// Files that are transferred at one time.
    static let runningMax = 4

    private typealias Result = (number: UInt64, path: TreePath, target: String, size: UInt64, outcome: Ended)

    private enum Ended: Sendable {
        case done(NodeDownload.Outcome)
        case failed(Failure)
    }

    private let download: NodeDownload
    private let isJSON: Bool
    private let isVerbose: Bool
    private var problems = [(name: String, reason: String)]()
    private var (written, same) = (0, 0)
    private var bar: TransferBar?
    private var number: UInt64 = 0

    init(_ download: NodeDownload, _ call: Call) {
        self.download = download
        (isJSON, isVerbose) = (call.flag("json"), call.flag("verbose"))
    }

    // MARK: - One file

    func get(file text: NodeText, to target: String) async throws(Failure) {
        let bar = TransferBar("receiving", bytes: text.node.content?.storedBytes ?? 0, files: 1)
        defer { bar.clear() }
        let outcome = try await download.get(text.node, at: text.path, to: target) { bar.update(0, bytes: $0) }
        bar.clear()
        try report(text.path, target, outcome, isShown: true)
    }

    // MARK: - A branch

    func get(folder path: TreePath, to target: String) async throws(Failure) {
        var total = (bytes: UInt64(0), files: 0)
        if Terminal.isTerminal(Terminal.standardError) {
            try await TreeListing.each(below: path, in: download.open) { text throws(Failure) in
                guard text.kind != .folder else { return }
                total = (total.bytes + (text.node.content?.storedBytes ?? 0), total.files + 1)
            }
            bar = TransferBar("receiving", bytes: total.bytes, files: total.files)
        }
        defer { bar?.clear() }
        try makeFolder(target)
        try await copy(path, target)
        bar?.clear()
        if !isJSON {
            try LineOutput.write("\(Counts.files(written + same)): \(written) written, \(same) the same already\n")
        }
        try Folders.report(problems, .failure)
    }

    private func makeFolder(_ path: String) throws(Failure) {
        let mask = umask(0)
        _ = umask(mask)
        try Files.makeFolder(path, mode: 0o777 & ~mask)
    }

    /// Goes through the branch with some transfers running; the first failure that is not about one file ends it.
    private func copy(_ path: TreePath, _ target: String) async throws(Failure) {
        var folders = LocalPlaces(path, target)
        let failure = await withTaskGroup(of: Result.self) { group -> Failure? in
            var running = 0
            do throws(Failure) {
                try await TreeListing.each(below: path, in: download.open) { text throws(Failure) in
                    guard let local = try await place(of: text, &folders) else { return }
                    if running == Self.runningMax, let ended = await group.next() {
                        running -= 1
                        try record(ended)
                    }
                    start(text, local, &group)
                    running += 1
                }
                for await ended in group { try record(ended) }
                return nil
            } catch {
                group.cancelAll()
                return error
            }
        }
        if let failure { throw failure }
    }

    private func start(_ text: NodeText, _ local: String, _ group: inout TaskGroup<Result>) {
        number += 1
        let (number, bar, download) = (number, bar, download)
        let size = text.node.content?.storedBytes ?? 0
        group.addTask {
            do throws(Failure) {
                let outcome = try await download.get(text.node, at: text.path, to: local) {
                    bar?.update(number, bytes: $0)
                }
                return (number, text.path, local, size, .done(outcome))
            } catch { return (number, text.path, local, size, .failed(error)) }
        }
    }

    /// The file of a node; nil for a container, whose folder is made, and for what is left out.
    private func place(of text: NodeText, _ folders: inout LocalPlaces) async throws(Failure) -> String? {
        guard let above = folders.folder(above: text.path) else { return nil }
        guard text.node.branch == nil else {
            problems.append(
                (
                    TreeText.named(text.path),
                    "it is a branch of another account: 'thicket tree get -r \(TreeText.named(text.path))' copies it"
                ))
            return nil
        }
        guard let name = LocalName.of(text.node.name) else {
            problems.append((TreeText.named(text.path), "no file can have its name; 'thicket tree export' writes it"))
            return nil
        }
        if name.isEscaped {
            // Another node may have the escaped name as its own.
            let tree = download.open.tree
            let twin = try? text.path.parent?.appending(name.text)
            let isTaken = try await growing("cannot read the tree") { () throws(TreeError) in
                if let twin { try await tree.node(at: twin) != nil } else { false }
            }
            guard !isTaken else {
                problems.append((TreeText.named(text.path), "its file would have the name of another node"))
                return nil
            }
            Terminal.writeError("\(TreeText.named(text.path)) is written as \(Screen.safe(name.text))\n")
        }
        let local = "\(above)/\(name.text)"
        guard text.kind != .file else { return local }
        if text.kind == .both {
            problems.append(
                (
                    TreeText.named(text.path),
                    "it has content, and others are below it: its content is left out; 'thicket tree export' writes both"
                ))
        }
        do throws(Failure) {
            try makeFolder(local)
            folders.add(text.path, local)
        } catch { problems.append((TreeText.named(text.path), error.text)) }
        return nil
    }

    private func record(_ ended: Result) throws(Failure) {
        bar?.finish(ended.number, bytes: ended.size)
        switch ended.outcome {
        case .done(let outcome): try report(ended.path, ended.target, outcome, isShown: isVerbose)
        case .failed(let error):
            guard !error.endsCommand, error.code != .unauthorized else { throw error }
            if error.code == .offline, !download.isOffline { throw error }
            problems.append((TreeText.named(ended.path), error.text))
        }
    }

    private func report(
        _ path: TreePath, _ target: String, _ outcome: NodeDownload.Outcome, isShown: Bool
    ) throws(Failure) {
        let isSame = outcome == .same
        if isSame { same += 1 } else { written += 1 }
        if isJSON {
            let object: JSONObject = [
                "path": .string(TreeText.text(path)), "file": .string(target),
                "outcome": .string(isSame ? "same" : "written"),
            ]
            return try LineOutput.write(JSONValue.object(object).serializedText + "\n")
        }
        guard isShown else { return }
        bar?.clear()
        try LineOutput.write("\(TreeText.shown(target)) is \(isSame ? "the same already" : "written")\n")
    }
}

/// The folders of the nodes on the way from the start of a copy to the node that is read.
struct LocalPlaces: Sendable {
    private var folders: [(path: TreePath, folder: String)]

    init(_ path: TreePath, _ folder: String) { folders = [(path, folder)] }

    /// Nodes are read from the top: what is not above the next one is over.
    ///
    /// - Returns: nil when a container on the way was left out.
    mutating func folder(above path: TreePath) -> String? {
        while let last = folders.last, last.path.depth >= path.depth { folders.removeLast() }
        guard let last = folders.last, last.path.depth == path.depth - 1 else { return nil }
        return last.folder
    }

    mutating func add(_ path: TreePath, _ folder: String) { folders.append((path, folder)) }
}
