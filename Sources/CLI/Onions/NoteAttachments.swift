import ThicketCommandLine
import ThicketOnions
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Files attached to encrypted notes: `thicket onions attach`, `detach` and `save`.
///
/// An attachment is a node of the account's tree, in `prefs/onions/ID/NAME`, where `ID` is the note's id: a note keeps
/// its attachments when its title changes. `thicket onions rm` removes them with the note; those of a note that another
/// program has removed stay until `detach --orphans`.
enum NoteAttachments {
    private static let what = "nothing was attached"

    /// The container of all attachments.
    static func root() -> TreePath? { try? TreePath(.prefs, ["onions"]) }

    /// The container of a note's attachments.
    private static func place(of note: String) throws(Failure) -> TreePath {
        guard let root = root(), let path = try? root.appending(note) else {
            throw Failure("the note's id cannot be a name in the tree")
        }
        return path
    }

    /// The id of the note that a call names.
    private static func idOfNote(_ call: Call) async throws(Failure) -> String {
        let onions = try OnionCall(call)
        guard onions.isKeyed else { throw withoutKeys }
        return try await onions.with(what) { vault throws(Failure) in
            try await OnionCommands.find(call.argument("NOTE"), in: vault)
        }
    }

    private static var withoutKeys: Failure {
        Failure(
            "attachments need an account with keys: 'thicket onions upgrade' gives an account of the old notes app keys",
            .usage)
    }

    // MARK: - attach

    static func attach(_ call: Call) async throws(Failure) {
        let files = call.arguments("FILE")
        for file in files { _ = try LocalFile(path: file).facts() }
        let note = try await idOfNote(call)
        let place = try place(of: note)
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready("nothing was attached")
            guard !files.isEmpty else { return try await list(place, call, open) }
            try await PutCall.makeParents(place, in: open)
            let upload = FolderUpload(open, call, isOffline: false)
            for file in files {
                let name = try PutCall.name(of: file)
                try await upload.put(file: LocalFile(path: file), at: place.appending(name))
                try LineOutput.write(
                    "\(TreeText.shown(TreeText.name(name))) is attached to the note \(note.prefix(8))\n")
            }
        }
    }

    private static func list(_ place: TreePath, _ call: Call, _ open: OpenTree) async throws(Failure) {
        for (node, path) in try await attachments(at: place, in: open) {
            let text = try await NodeText.of(node, at: path, in: open)
            try LineOutput.write(
                call.flag("json") ? text.json : text.long(TreeText.shown(TreeText.name(node.name))) + "\n")
        }
    }

    private static func attachments(
        at place: TreePath, in open: OpenTree
    ) async throws(Failure) -> [(node: Node, path: TreePath)] {
        let tree = open.tree
        return try await growing("cannot list the attachments") { () throws(TreeError) in
            guard let note = try await tree.node(at: place) else { return [] }
            return try await tree.children(of: .node(note.id), order: .name).map { ($0, place.appending($0.name)) }
        }
    }

    /// The attachments that a call names; all without names.
    private static func chosen(
        _ names: [String], at place: TreePath, in open: OpenTree
    ) async throws(Failure) -> [(node: Node, path: TreePath)] {
        let all = try await attachments(at: place, in: open)
        guard !names.isEmpty else {
            guard !all.isEmpty else { throw Failure("the note has no attachments", .notFound) }
            return all
        }
        var chosen = [(node: Node, path: TreePath)]()
        for text in names {
            guard let name = try? NodeName(text), let found = all.first(where: { $0.node.name.isSame(as: name) }) else {
                throw Failure("the note has no attachment '\(Screen.safe(text))'", .notFound)
            }
            chosen.append(found)
        }
        return chosen
    }

    // MARK: - detach

    static func detach(_ call: Call) async throws(Failure) {
        if call.flag("orphans") { return try await detachOrphans(call) }
        guard !call.argument("NOTE").isEmpty, !call.arguments("NAME").isEmpty else {
            throw Failure("which note and which attachments? 'thicket onions attach NOTE' lists them", .usage)
        }
        let place = try place(of: try await idOfNote(call))
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready("nothing was removed")
            for found in try await chosen(call.arguments("NAME"), at: place, in: open) {
                try await remove(found.path, in: open)
                try LineOutput.write("\(TreeText.shown(TreeText.name(found.node.name))) is removed\n")
            }
            if try await attachments(at: place, in: open).isEmpty { try await remove(place, in: open) }
        }
    }

    private static func remove(_ path: TreePath, in open: OpenTree) async throws(Failure) {
        let (tree, what) = (open.tree, "remove \(TreeText.named(path))")
        let operation = try await growing("cannot \(what)") { () throws(TreeError) -> OperationID? in
            guard let node = try await tree.node(at: path) else { return nil }
            return try await tree.delete(node.id)
        }
        if let operation { try await open.confirm([operation], what) }
    }

    /// Removes the attachments of notes that do not exist any more.
    private static func detachOrphans(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call)
        guard onions.isKeyed else { throw withoutKeys }
        let notes = try await onions.with("nothing was removed") { vault throws(Failure) in
            try await OnionCall.trying("cannot list the notes") { () throws(OnionError) in
                Set(try await vault.list().map { Array($0.id.utf8) })
            }
        }
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready("nothing was removed")
            guard let root = root() else { return }
            var count = 0
            for (node, path) in try await attachments(at: root, in: open) where !notes.contains(node.name.octets) {
                try await remove(path, in: open)
                count += 1
            }
            try LineOutput.write("attachments of \(count == 1 ? "1 note" : "\(count) notes") are removed\n")
        }
    }

    /// Removes the attachments of notes that were removed, if this machine has a copy of the tree: without one, no
    /// tree is made for this.
    static func removeAll(of notes: [String], _ call: Call) async throws(Failure) {
        guard let folder = try Account(call).folder, Files.stamp("\(folder)/tree/tree.db") != nil else { return }
        do throws(Failure) {
            try await OpenTree.run(call, isOnline: true, isAboutQueue: true) { open throws(Failure) in
                try await open.ready("the attachments were not removed")
                for note in notes { try await remove(try place(of: note), in: open) }
            }
        } catch {
            Terminal.writeError(
                "warning: the note is removed, its attachments are not (\(error.text)): 'thicket onions detach "
                    + "--orphans' removes them\n")
        }
    }

    // MARK: - save

    static func save(_ call: Call) async throws(Failure) {
        let note = try await idOfNote(call)
        let place = try place(of: note)
        let target = call.value("to") ?? "."
        guard Files.isFolder(target) else { throw Failure("there is no folder \(target)", .notFound) }
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready("nothing was written")
            let download = FolderDownload(
                NodeDownload(open: open, isOffline: false, isForced: call.flag("force")), call)
            var failure: Failure?
            for found in try await chosen(call.arguments("NAME"), at: place, in: open) {
                let text = try await NodeText.of(found.node, at: found.path, in: open)
                guard let name = LocalName.of(found.node.name) else {
                    throw Failure("no file can have the name of \(TreeText.named(found.path))")
                }
                do throws(Failure) { try await download.get(file: text, to: "\(target)/\(name.text)") } catch {
                    guard error.code == .failure, !error.endsCommand else { throw error }
                    Terminal.writeError("thicket: \(error.text)\n")
                    failure = Failure("")
                }
            }
            if let failure { throw failure }
        }
    }
}
