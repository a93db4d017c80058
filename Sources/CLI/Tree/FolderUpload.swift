import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Copies files and folders to a tree: a bounded number of changes waits for the server at any time.
///
/// A run that was interrupted is repeated: what the server has is left as it is, and what waits in the queue goes on
/// where it was, uploads behind the parts that have arrived.
final class FolderUpload {
    /// Most files that wait for the server.
    static let waitingMax = 200
    /// Most bytes of files that wait for the server, unless a single file is larger. They are sealed on this disk.
    static let waitingBytesMax: UInt64 = 64 << 20

    private struct Waiting {
        let source: String
        let path: TreePath
        let node: NodeID
        let operations: [OperationID]
        var earlier = Set<OperationID>()
        let size: UInt64
        let number: UInt64
        /// A container has no content, and no line of its own.
        var isContainer = false
    }

    private let open: OpenTree
    private let upload: FileUpload
    private let isOffline: Bool
    private let isJSON: Bool
    private let isVerbose: Bool
    private var waiting = [Waiting]()
    private var waitingBytes: UInt64 = 0
    private var number: UInt64 = 0
    private var problems = [(name: String, reason: String)]()
    private var code = ExitCode.failure
    private var (sent, same) = (0, 0)
    private var bar: TransferBar?
    private var follower: Task<Void, Never>?
    /// The line about the last file, for a call with one.
    private var lastLine = ""

    init(_ open: OpenTree, _ call: Call, isOffline: Bool) {
        (self.open, upload, self.isOffline) = (open, FileUpload(open: open), isOffline)
        (isJSON, isVerbose) = (call.flag("json"), call.flag("verbose"))
    }

    deinit { follower?.cancel() }

    // MARK: - Sources

    /// Copies a file, which is confirmed when this returns.
    func put(file: LocalFile, at path: TreePath) async throws(Failure) {
        startBar(bytes: try file.facts().size, files: 1)
        defer { endBar() }
        let earlier = problems.count
        try await queue(file, at: path)
        try await drain(to: 0)
        if problems.count > earlier, let problem = problems.popLast() { throw Failure(problem.reason, code) }
    }

    /// Copies a folder with everything below it. What cannot be copied is named at the end.
    func put(folder: String, at path: TreePath) async throws(Failure) {
        if Terminal.isTerminal(Terminal.standardError) {
            let total = Self.total(of: folder)
            startBar(bytes: total.bytes, files: total.files)
        }
        defer { endBar() }
        try await copy(folder, to: path)
        try await drain(to: 0)
    }

    private func copy(_ folder: String, to path: TreePath) async throws(Failure) {
        let content: LocalFolder
        do throws(Failure) {
            content = try LocalFolder(folder)
            try await makeContainer(path)
        } catch { return try record(folder, error) }
        for problem in content.problems { problems.append(("\(folder)/\(problem.name)", problem.reason)) }
        var siblings = [Sibling]()
        for entry in content.entries {
            let source = "\(folder)/\(entry.name)"
            guard let name = try? NodeName(entry.name) else {
                problems.append((source, "its name cannot be one in the tree"))
                continue
            }
            siblings.append(Sibling(source: source, name: name, isFolder: entry.isFolder))
        }
        for sibling in try await withoutTwins(siblings, below: path) {
            if Task.isCancelled { throw .interrupted }
            let (source, child) = (sibling.source, path.appending(sibling.name))
            if sibling.isFolder {
                try await copy(source, to: child)
                continue
            }
            do throws(Failure) { try await queueAgain(LocalFile(path: source), at: child) } catch {
                try record(source, error)
            }
            try await drain(to: Self.waitingMax)
        }
    }

    /// Queues a file. If the folder above has just given way to another device's of its name, the file is queued once
    /// more when the server has answered and the folder is there again.
    private func queueAgain(_ file: LocalFile, at path: TreePath) async throws(Failure) {
        do throws(Failure) { return try await queue(file, at: path) } catch {
            guard error.code == .notFound, !isOffline else { throw error }
            number -= 1
        }
        try await drain(to: 0)
        for depth in 1..<max(1, path.depth) {
            try await makeContainer(TreePath(path.trunk, names: Array(path.names.prefix(depth))))
        }
        try await queue(file, at: path)
    }

    /// Makes a node without content, unless it exists.
    ///
    /// - Parameter extras: what an import knows of it; nil: the node's own stays.
    func makeContainer(_ path: TreePath, extras: NodeExtras? = nil) async throws(Failure) {
        guard !path.isTrunk else { return }
        if extras == nil { try await expectNoBranch(at: path) }
        let made = try await growing("cannot make \(TreeText.named(path))") { () throws(TreeError) in
            try await FileUpload.again { () throws(TreeError) in try await container(path, extras) }
        }
        guard let made else { return }
        waiting.append(
            Waiting(
                source: TreeText.named(path), path: path, node: made.node, operations: made.operations, size: 0,
                number: 0, isContainer: true))
    }

    /// What is put below a pointer node in the own tree is not in the branch, and no path leads to it.
    private func expectNoBranch(at path: TreePath) async throws(Failure) {
        let tree = open.tree
        let node = try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
            try await tree.node(at: path)
        }
        guard node?.branch == nil else {
            throw Failure(
                "\(TreeText.named(path)) is a branch of another account: put into it by its own path", .usage)
        }
    }

    /// - Returns: nil when the node is as it is to be.
    private func container(
        _ path: TreePath, _ extras: NodeExtras?
    ) async throws(TreeError) -> (node: NodeID, operations: [OperationID])? {
        let tree = open.tree
        guard let known = try await tree.node(at: path) else {
            let modified: Int64? = if case .some(let time)? = extras?.modified { time } else { nil }
            let node = try await tree.createNode(
                at: path, content: NodeSections(), tags: extras?.tags ?? [], modified: modified,
                burnTime: extras?.burnTime)
            return (node.id, try await tree.operations(of: node.id).map(\.id))
        }
        guard let extras else { return nil }
        if Set(known.tags) != Set(extras.tags) { try await tree.setTags(of: known.id, extras.tags) }
        if known.burnTime != extras.burnTime { try await tree.setBurnTime(of: known.id, extras.burnTime) }
        return (known.id, try await tree.operations(of: known.id).map(\.id))
    }

    /// Leaves out and names the entries of a folder that would be the node of another entry.
    func withoutTwins(_ siblings: [Sibling], below path: TreePath) async throws(Failure) -> [Sibling] {
        let (kept, leftOut) = try await Sibling.apart(siblings, below: path, in: open.tree)
        for (twin, keeper) in leftOut {
            let other = Screen.safe(keeper.source)
            leaveOut(twin.source, "it has the same name in the tree as \(other); rename one of them")
        }
        return kept
    }

    /// Names something that is left out.
    func leaveOut(_ name: String, _ reason: String) { problems.append((name, reason)) }

    /// A failure of one file is named at the end; others end the command.
    func record(_ source: String, _ error: Failure) throws(Failure) {
        guard !error.endsCommand, error.code != .offline, error.code != .unauthorized else {
            throw error
        }
        problems.append((source, error.text))
        if error.code == .refused { code = .refused }
    }

    // MARK: - Waiting for the server

    /// Puts the content of a file into the queue, or counts it as the same already.
    func queue(_ file: LocalFile, at path: TreePath, extras: NodeExtras? = nil) async throws(Failure) {
        number += 1
        switch try await upload.put(file, at: path, extras: extras) {
        case .same(let node):
            same += 1
            bar?.finish(number, bytes: node.content?.sizes.data ?? 0)
            try report(path, "same", version: node.version)
        case .queued(let node, let operations, let earlier):
            let size = FileTag(node)?.size ?? 0
            waiting.append(
                Waiting(
                    source: file.path, path: path, node: node.id, operations: operations, earlier: earlier, size: size,
                    number: number))
            waitingBytes += size
        }
    }

    /// Waits until at most so many files wait, and at most `waitingBytesMax` bytes of them.
    func drain(to count: Int) async throws(Failure) {
        while !waiting.isEmpty, waiting.count > count || (waitingBytes > Self.waitingBytesMax && waiting.count > 1) {
            let first = waiting.removeFirst()
            waitingBytes -= first.size
            if isOffline {
                if !first.isContainer { try reportSent(first, "kept", version: nil) }
                continue
            }
            do throws(Failure) {
                try await open.confirm(
                    first.operations, "put \(TreeText.named(first.path))", earlier: first.earlier)
                if first.isContainer { continue }
                let tree = open.tree
                // Another device may have made a node of this name meanwhile: then this one has another name.
                let (version, path) = try await growing("cannot read \(TreeText.named(first.path))") {
                    () throws(TreeError) in
                    (try await tree.node(first.node)?.version, try await tree.path(of: first.node))
                }
                if let path, path != first.path, first.earlier.isEmpty,
                    let other = try await upload.dropCopy(first.node, of: first.path)
                {
                    same += 1
                    bar?.finish(first.number, bytes: first.size)
                    try report(first.path, "same", version: other.version)
                    continue
                }
                try reportSent(first, "sent", version: version, path: path)
            } catch {
                try reportUnsent(first, error)
                try record(first.source, error)
            }
        }
    }

    /// With `--json`, also what is not confirmed has a line. If the server does not answer, nothing of the rest is.
    private func reportUnsent(_ first: Waiting, _ error: Failure) throws(Failure) {
        guard isJSON, !error.endsCommand else { return }
        let isKept = error.code == .offline || error.code == .unauthorized
        let outcome = isKept ? "kept" : error.code == .refused ? "refused" : "failed"
        for file in isKept ? [first] + waiting : [first] where !file.isContainer {
            try report(file.path, outcome, version: nil, reason: error.text)
        }
    }

    private func reportSent(
        _ file: Waiting, _ outcome: String, version: Int64?, path: TreePath? = nil
    ) throws(Failure) {
        sent += 1
        bar?.finish(file.number, bytes: file.size)
        try report(path ?? file.path, outcome, version: version)
    }

    private func report(
        _ path: TreePath, _ outcome: String, version: Int64?, reason: String? = nil
    ) throws(Failure) {
        if isJSON {
            var object: JSONObject = ["path": .string(TreeText.text(path)), "outcome": .string(outcome)]
            if let version { object["version"] = .number(JSONNumber(version)) }
            if let reason { object["reason"] = .string(reason) }
            return try LineOutput.write(JSONValue.object(object).serializedText + "\n")
        }
        let what =
            switch outcome {
            case "same": "is so already, version \(version ?? 0)"
            case "kept": "is kept here and is sent with \(TreeText.nextCommand)"
            default: "is at version \(version ?? 0)"
            }
        lastLine = "\(TreeText.shown(path)) \(what)\n"
        if isVerbose {
            bar?.clear()
            try LineOutput.write(lastLine)
        }
    }

    /// Prints what was done.
    ///
    /// - Parameter isSingle: the call has one source, a file.
    func finish(isSingle: Bool) throws(Failure) {
        if isSingle {
            if !isJSON, !isVerbose { try LineOutput.write(lastLine) }
        } else if !isJSON {
            let outcome = isOffline ? "kept here" : "sent"
            try LineOutput.write(
                "\(Counts.files(sent + same)): \(sent) \(outcome), \(same) as they were\n")
        }
        try Folders.report(problems, code)
    }

    // MARK: - Progress

    private static func total(of folder: String) -> (bytes: UInt64, files: Int) {
        guard let content = try? LocalFolder(folder) else { return (0, 0) }
        var total = (bytes: UInt64(0), files: 0)
        for entry in content.entries {
            let path = "\(folder)/\(entry.name)"
            if entry.isFolder {
                let below = Self.total(of: path)
                total = (total.bytes + below.bytes, total.files + below.files)
            } else {
                total = (total.bytes + UInt64(max(0, Files.stamp(path)?.size ?? 0)), total.files + 1)
            }
        }
        return total
    }

    private func startBar(bytes: UInt64, files: Int) {
        let bar = TransferBar("sending", bytes: bytes, files: files)
        self.bar = bar
        guard !isOffline, Terminal.isTerminal(Terminal.standardError) else { return }
        follower?.cancel()
        follower = bar.following(uploadsOf: open.tree)
    }

    private func endBar() {
        follower?.cancel()
        bar?.clear()
        bar = nil
    }
}
