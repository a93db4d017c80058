import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket link`: what the holder of a link does, without an account and a login.
enum LinkCall {
    private static let unread = "nothing was read"
    private static let unwritten = "nothing was written"
    private static let unsent = "nothing was sent"

    // MARK: - Reading

    static func list(_ call: Call) async throws(Failure) {
        try await reading(call, unread) { open, root throws(Failure) in
            try await TreeListing.each(below: root, in: open) { text throws(Failure) in
                if call.flag("json") { return try LineOutput.write(text.json) }
                let name = TreeText.shown(text.path.names.dropFirst().map(\.text).joined(separator: "/"))
                try LineOutput.write((call.flag("long") ? text.long(name) : text.short(name)) + "\n")
            }
        }
    }

    static func get(_ call: Call) async throws(Failure) {
        let given = call.argument("FOLDER")
        try await reading(call, unwritten) { open, root throws(Failure) in
            guard let name = root.names.last.flatMap(LocalName.of) else {
                throw Failure("no folder can have the name of the branch: name the folder", .usage)
            }
            let download = FolderDownload(
                NodeDownload(open: open, isOffline: false, isForced: call.flag("force")), call)
            let text = try await NodeText.of(try await TreeListing.node(at: root, in: open), at: root, in: open)
            guard text.kind == .file else {
                return try await download.get(folder: root, to: given.isEmpty ? name.text : given)
            }
            try await download.get(file: text, to: given.isEmpty ? name.text : "\(given)/\(name.text)")
        }
    }

    /// Opens the branch of a link, brought up to date.
    private static func reading(
        _ call: Call, _ what: String, _ body: @escaping @Sendable (OpenTree, TreePath) async throws(Failure) -> Void
    ) async throws(Failure) {
        try await opened(call, what) { holder, account throws(Failure) in
            guard holder.link.purpose == .reading else {
                throw Failure("\(what): the link is for putting files in: 'thicket link put'", .usage)
            }
            let tree = try await growing(what) { () throws(TreeError) in try await holder.branch() }
            let open = OpenTree(client: holder.client, tree: tree, account: account, keys: nil)
            try await open.ready(what)
            let root = holder.link.root
            let path = try await growing(what) { () throws(TreeError) in try await tree.path(of: root) }
            guard let path else { throw Failure("\(what): the link opens nothing any more", .notFound) }
            try await body(open, path)
        }
    }

    // MARK: - Depositing

    static func put(_ call: Call) async throws(Failure) {
        var files = [(source: LocalFile, name: NodeName)]()
        for word in call.arguments("FILE") {
            guard !Files.isFolder(word) else { throw Failure("\(word) is a folder; a link is for files", .usage) }
            guard !same(word, "-") else { throw Failure("standard input has no name: name a file", .usage) }
            files.append((LocalFile(path: word), try PutCall.name(of: word)))
        }
        let all = files
        try await opened(call, unsent) { holder, _ throws(Failure) in
            guard holder.link.purpose == .deposit else {
                throw Failure("\(unsent): the link is for reading: 'thicket link get'", .usage)
            }
            for (source, name) in all { try await put(source, name, holder) }
        }
    }

    private static func put(_ source: LocalFile, _ name: NodeName, _ holder: LinkSession) async throws(Failure) {
        let (tag, facts) = (try source.tag(), try source.facts())
        let text = Screen.safe(name.text)
        let bar = TransferBar("sending \(text)", bytes: facts.size, files: 1)
        defer { bar.clear() }
        try await growing("\(text) was not sent") { () throws(TreeError) in
            try await holder.deposit(
                NodeSections(data: .file(source.path)), named: name, tags: [tag.tag].compactMap(\.self),
                modified: tag.modified
            ) { bar.update(0, bytes: $0.bytes) }
        }
        bar.clear()
        try LineOutput.write("\(text) is sent\n")
    }

    // MARK: - Opening

    private static func opened(
        _ call: Call, _ what: String,
        _ body: @escaping @Sendable (LinkSession, Account) async throws(Failure) -> Void
    ) async throws(Failure) {
        let link = try link(call)
        let account = try Account(of: link, call)
        let passphrase =
            link.needsPassphrase
            ? try await Secrets.secret(call, "link-passphrase", label: "Passphrase of the link: ", isNew: false) : nil
        let holder = try await growing(what) { () throws(TreeError) in
            try await link.open(
                passphrase: passphrase, options: account.sessionOptions(isOnline: true), stretch: account.stretch,
                rules: CheapPasswords.rules(call))
        }
        let result = await OpenTree.interruptible { () throws(Failure) in try await body(holder, account) }
        await holder.close()
        try result.get()
    }

    private static func link(_ call: Call) throws(Failure) -> BranchLink {
        let word = call.argument("LINK")
        let text = same(word, "-") ? try Secrets.line("the link") : word
        do throws(TreeError) { return try BranchLink(text) } catch { throw Failure("nothing was done", tree: error) }
    }
}

extension Account {
    /// The account of a link's guest, of which nothing is kept.
    init(of link: BranchLink, _ call: Call) throws(Failure) {
        self.init(
            profile: Profile(
                server: link.server, app: link.app, token: "", user: link.guest.text,
                certificates: call.setting("ca"), proxy: call.setting("proxy"), pins: call.setting("pin")),
            timeout: try call.timeout(), wait: try call.wait(), call)
    }
}
