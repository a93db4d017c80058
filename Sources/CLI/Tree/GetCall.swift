import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree get` and `thicket tree cat`: copies from the tree.
enum GetCall {
    static func run(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"))
        let isOffline = call.flag("offline")
        try await OpenTree.run(call, isOnline: !isOffline) { open throws(Failure) in
            let offline = "what is here is written"
            if !isOffline { try await open.ready("nothing was written", offline: offline) }
            try await open.through(
                [argument], [.branch], isOffline: isOffline, "nothing was written", offline: offline
            ) { open, arguments throws(Failure) in try await get(arguments[0], call, isOffline, open) }
        }
    }

    private static func get(
        _ argument: TreeArgument, _ call: Call, _ isOffline: Bool, _ open: OpenTree
    ) async throws(Failure) {
        let download = FolderDownload(
            NodeDownload(open: open, isOffline: isOffline, isForced: call.flag("force")), call)
        if argument.path.isTrunk {
            guard call.flag("recursive") else { throw isContainer(argument.path) }
            let target = try target(call, name: argument.path.trunk.rawValue)
            return try await download.get(folder: argument.path, to: target)
        }
        let node = try await TreeListing.node(at: argument.path, in: open)
        let text = try await NodeText.of(node, at: argument.path, in: open)
        // A branch has the name of its pointer node here: the other account does not choose names on this machine.
        let pointer = TreeText.prefix.flatMap { argument.path == $0.inner ? $0.outer.names.last : nil }
        guard let name = LocalName.of(pointer ?? node.name) else {
            throw Failure("no file can have the name of \(TreeText.named(argument.path)): name the file", .usage)
        }
        let target = try target(call, name: name.text)
        if text.kind == .file || (text.kind == .both && !call.flag("recursive")) {
            return try await download.get(file: text, to: target)
        }
        guard call.flag("recursive") else { throw isContainer(argument.path) }
        try await download.get(folder: argument.path, to: target)
    }

    private static func isContainer(_ path: TreePath) -> Failure {
        Failure("\(TreeText.named(path)) is a container; -r copies what is below it", .usage)
    }

    /// Below the given folder when that ends in `/`, is `.` or `..`, or, for a file, exists; otherwise the given path.
    private static func target(_ call: Call, name: String) throws(Failure) -> String {
        let given = call.argument("TARGET")
        if given.isEmpty { return name }
        let isBelow =
            given.hasSuffix("/") || same(given, ".") || same(given, "..")
            || (!call.flag("recursive") && Files.isFolder(given))
        guard isBelow else { return given }
        guard Files.isFolder(given) else { throw Failure("there is no folder \(given)", .notFound) }
        return given.hasSuffix("/") ? given + name : "\(given)/\(name)"
    }

    // MARK: - cat

    static func cat(_ call: Call) async throws(Failure) {
        var arguments = [TreeArgument]()
        for text in call.arguments("PATH") { arguments.append(try TreeArgument(text)) }
        let (isOffline, all) = (call.flag("offline"), arguments)
        try await OpenTree.run(call, isOnline: !isOffline) { open throws(Failure) in
            let offline = "what is here is read"
            if !isOffline { try await open.ready("nothing was read", offline: offline) }
            let uses = all.map { _ in OpenTree.PointerUse.branch }
            try await open.through(all, uses, isOffline: isOffline, "nothing was read", offline: offline) {
                open, all throws(Failure) in try await write(all, isOffline, open)
            }
        }
    }

    private static func write(
        _ all: [TreeArgument], _ isOffline: Bool, _ open: OpenTree
    ) async throws(Failure) {
        let download = NodeDownload(open: open, isOffline: isOffline, isForced: false)
        for argument in all {
            guard !argument.path.isTrunk else { throw isContainer(argument.path) }
            let node = try await TreeListing.node(at: argument.path, in: open)
            let source = try await download.source(of: node, at: argument.path, streams: true)
            try await source.read { bytes throws(Failure) in
                guard Terminal.write(bytes, to: Terminal.standardOutput) else { throw .output }
            }
            await download.release(source, of: node)
        }
    }
}
