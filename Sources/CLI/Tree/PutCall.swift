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

/// `thicket tree put`: copies files and folders to the tree.
package enum PutCall {
    static func run(_ call: Call) async throws(Failure) {
        if let pointer = call.value("into") { return try await DepositCall.run(call, into: pointer) }
        let words = [call.argument("FILE")] + call.arguments("MORE")
        let sources = words.count > 1 ? Array(words.dropLast()) : words
        let target = try TreeArgument(words.count > 1 ? words[words.count - 1] : "", standard: TreePath(.home))
        let isOffline = call.flag("offline")
        if sources.contains(where: { same($0, "-") }), sources.count > 1 {
            throw Failure("'-' is standard input, and cannot be put together with files", .usage)
        }
        for source in sources where Files.isFolder(source) && !call.flag("recursive") {
            throw Failure("\(source) is a folder; -r copies it with everything below it", .usage)
        }
        // Before the tree is open: a command that waits for its input keeps no other command from the tree.
        let input = same(sources[0], "-") ? try StandardInput(besideProfileOf: call) : nil
        defer { input?.close() }
        try await OpenTree.run(call, isOnline: !isOffline) { open throws(Failure) in
            let offline = "the change is kept here"
            if !isOffline { try await open.ready("nothing was sent", offline: offline) }
            try await open.through(
                [target], [.branch], isOffline: isOffline, "nothing was sent", offline: offline
            ) { open, targets throws(Failure) in try await put(sources, input, targets[0], call, isOffline, open) }
        }
    }

    private static func put(
        _ sources: [String], _ input: StandardInput?, _ target: TreeArgument, _ call: Call, _ isOffline: Bool,
        _ open: OpenTree
    ) async throws(Failure) {
        if call.flag("parents") {
            let above = target.isContainer ? target.path : target.path.parent ?? target.path
            try await makeParents(above, in: open)
        }
        let upload = FolderUpload(open, call, isOffline: isOffline)
        let places = try await places(of: sources, target, in: open)
        for (source, path) in try await apart(places, upload) {
            if let input {
                try await upload.put(file: input.file, at: path)
            } else if Files.isFolder(source) {
                try await upload.put(folder: source, at: path)
            } else {
                do throws(Failure) { try await upload.put(file: LocalFile(path: source), at: path) } catch {
                    guard places.count > 1 else { throw error }
                    try upload.record(source, error)
                }
            }
        }
        try upload.finish(isSingle: places.count == 1 && !Files.isFolder(places[0].source))
    }

    /// Makes the nodes of a path that do not exist.
    static func makeParents(_ path: TreePath, in open: OpenTree) async throws(Failure) {
        guard !path.isTrunk else { return }
        let tree = open.tree
        try await growing("cannot make \(TreeText.named(path))") { () throws(TreeError) in
            _ = try await tree.createAll(at: path)
        }
    }

    /// Where each source goes: below the target when that ends in `/`, is a trunk, or, for files, is a container that
    /// exists; otherwise at the target.
    private static func places(
        of sources: [String], _ target: TreeArgument, in open: OpenTree
    ) async throws(Failure) -> [(source: String, path: TreePath)] {
        let tree = open.tree
        let existing = try await growing("cannot read \(TreeText.named(target.path))") { () throws(TreeError) in
            try await tree.node(at: target.path)
        }
        let isContainer = existing.map { $0.content == nil && FileTag($0) == nil } ?? false
        if sources.count > 1, !target.isContainer, !isContainer {
            throw Failure(
                "\(TreeText.named(target.path)) is not a container that exists: several files need one; a path that ends "
                    + "in / names it", .usage)
        }
        var places = [(source: String, path: TreePath)]()
        for source in sources {
            let isFolder = Files.isFolder(source)
            let isBelow = target.isContainer || (isContainer && !isFolder) || sources.count > 1
            guard isBelow else {
                places.append((source, target.path))
                continue
            }
            guard !same(source, "-") else {
                throw Failure("standard input has no name: the path in the tree must name the node", .usage)
            }
            places.append((source, target.path.appending(try name(of: source))))
        }
        return places
    }

    /// The places without those that would be the node of another source.
    private static func apart(
        _ places: [(source: String, path: TreePath)], _ upload: FolderUpload
    ) async throws(Failure) -> [(source: String, path: TreePath)] {
        // Several sources are below one container.
        guard places.count > 1, let above = places[0].path.parent else { return places }
        let siblings = places.compactMap { place in
            place.path.names.last.map { Sibling(source: place.source, name: $0, isFolder: false) }
        }
        return try await upload.withoutTwins(siblings, below: above).map { ($0.source, above.appending($0.name)) }
    }

    /// The last name of a local path.
    package static func name(of source: String) throws(Failure) -> NodeName {
        var last = source.split(separator: "/").last.map(String.init) ?? ""
        if last.isEmpty || same(last, ".") || same(last, "..") {
            guard let real = realpath(source, nil) else {
                throw Failure("\(source) cannot be read: \(Files.reason())", .usage)
            }
            defer { free(real) }
            last = String(cString: real).split(separator: "/").last.map(String.init) ?? ""
        }
        do throws(NodeName.Fault) { return try NodeName(last) } catch {
            throw Failure("\(source): its name cannot be one in the tree: \(error)", .usage)
        }
    }
}
