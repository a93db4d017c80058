import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree link`, `links` and `unlink`: the links that this account has made.
enum TreeLinkCall {
    private static let unmade = "no link was made"
    private static let unread = "the links were not read"
    private static let unchanged = "nothing was changed"

    // MARK: - link

    static func make(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"))
        let purpose = try purpose(call)
        let limits = try limits(call, purpose)
        let wantsPassphrase = call.flag("passphrase") || call.value("link-passphrase-file") != nil
        let passphrase =
            wantsPassphrase
            ? try await Secrets.secret(call, "link-passphrase", label: "Passphrase of the link: ", isNew: true) : nil
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unmade)
            let node = try await ShareCall.root(argument, in: open)
            let links = try await links(open, unmade)
            let link = try await open.waiting(.unread(unmade)) { () throws(TreeError) in
                try await links.make(
                    node.id, for: purpose, passphrase: passphrase, limits: limits,
                    timeout: .seconds(OpenTree.longestWaitSeconds))
            }
            try LineOutput.write(link.text + "\n")
            let way =
                passphrase == nil ? "who has it may use it" : "it opens with the passphrase: send that by another way"
            Terminal.writeError(
                "a link to \(purpose == .deposit ? "put files into" : "read") \(TreeText.shown(argument.path)) for "
                    + "\(limits.days) days; \(way). It is not shown again\n")
        }
    }

    private static func purpose(_ call: Call) throws(Failure) -> LinkPurpose {
        switch (call.flag("read"), call.flag("deposit")) {
        case (true, false): .reading
        case (false, true): .deposit
        default: throw Failure("\(unmade): say what the link is for, either --read or --deposit", .usage)
        }
    }

    private static func limits(_ call: Call, _ purpose: LinkPurpose) throws(Failure) -> LinkLimits {
        var limits = LinkLimits()
        func number(_ name: String, _ max: Int) throws(Failure) -> Int? {
            guard let text = call.value(name) else { return nil }
            guard let number = Int(text), (1...max).contains(number) else {
                throw Failure("--\(name) is a whole number from 1 to \(max), not '\(Screen.safe(text))'", .usage)
            }
            return number
        }
        limits.days = try number("days", 90) ?? limits.days
        guard purpose == .deposit || (call.value("files") == nil && call.value("size") == nil) else {
            throw Failure("--files and --size are bounds of --deposit", .usage)
        }
        limits.deposits = try number("files", 10_000) ?? limits.deposits
        if let text = call.value("size") {
            guard let bytes = NodeFilter.bytes(text), bytes > 0, bytes <= 1 << 40 else {
                throw Failure("--size is a size such as 500, 20K, 3M or 1G, not '\(Screen.safe(text))'", .usage)
            }
            limits.bytes = Int64(bytes)
        }
        return limits
    }

    private static func links(_ open: OpenTree, _ what: String) async throws(Failure) -> BranchLinks {
        let client = open.client
        var links = try await growing(what) { () throws(TreeError) in try await client.links() }
        links.stretch = open.account.stretch
        return links
    }

    // MARK: - links

    static func list(_ call: Call) async throws(Failure) {
        let argument = call.argument("PATH").isEmpty ? nil : try TreeArgument(call.argument("PATH"))
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unread)
            var root: NodeID?
            if let argument { root = try await TreeListing.node(at: argument.path, in: open).id }
            let (links, wanted) = (try await links(open, unread), root)
            let entries = try await open.waiting(.unread(unread)) { () throws(TreeError) in
                try await links.list(of: wanted)
            }
            for entry in entries { try await write(entry, open, call) }
        }
    }

    private static func write(_ entry: BranchLinks.Entry, _ open: OpenTree, _ call: Call) async throws(Failure) {
        let (tree, root) = (open.tree, entry.root)
        let path = try await growing(unread) { () throws(TreeError) in try await tree.path(of: root) }
        let account = entry.account
        guard !call.flag("json") else {
            var line: JSONObject = [
                "guest": .string(entry.guest.text), "kind": .string(entry.purpose.rawValue),
                "root": .string(entry.root.text), "open": .bool(entry.isOpen),
            ]
            if let path { line["path"] = .string(path.description) }
            if let account {
                line["expires"] = .number(JSONNumber(account.expires))
                line["deposits_left"] = .number(JSONNumber(account.depositsLeft))
                line["bytes_left"] = .number(JSONNumber(account.bytesLeft))
            }
            return try LineOutput.write(JSONValue.object(line).serializedText + "\n")
        }
        let place = path.map { TreeText.shown($0) } ?? "(a branch that is gone)"
        let guest = AuthorNames.link(of: entry.guest)
        try LineOutput.write("\(guest)  \(entry.purpose.rawValue)  \(place)  \(state(entry))\n")
    }

    private static func state(_ entry: BranchLinks.Entry) -> String {
        guard let account = entry.account else { return "has ended; 'thicket tree unlink' removes it from the branch" }
        guard entry.isShared else { return "opens nothing; 'thicket tree unlink' removes it" }
        let end = "until \(Days.text(account.expires))"
        guard entry.purpose == .deposit else { return end }
        let files = Counts.files(Int(clamping: account.depositsLeft))
        return "\(end), \(files) and \(TreeText.size(UInt64(max(0, account.bytesLeft)))) left"
    }

    // MARK: - unlink

    static func remove(_ call: Call) async throws(Failure) {
        let argument = try TreeArgument(call.argument("PATH"))
        let word = call.argument("GUEST")
        guard !word.isEmpty else { throw Failure("\(unchanged): GUEST is empty", .usage) }
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unchanged)
            let root = try await TreeListing.node(at: argument.path, in: open).id
            let links = try await links(open, unchanged)
            let entries = try await open.waiting(.unread(unchanged)) { () throws(TreeError) in
                try await links.list(of: root)
            }
            let found = entries.filter { entry in
                entry.guest.text.hasPrefix(word) || entry.guest.text.dropFirst(GuestName.prefix.count).hasPrefix(word)
            }
            guard let guest = found.first?.guest, found.count == 1 else {
                let (path, name) = (TreeText.named(argument.path), Screen.safe(word))
                throw Failure(
                    found.isEmpty
                        ? "\(path) has no link \(name): 'thicket tree links' lists them"
                        : "\(found.count) links begin with \(name): name more of it", .notFound)
            }
            let removal = links.removal(of: guest, from: root, timeout: .seconds(OpenTree.longestWaitSeconds))
            try await open.waiting(.unread("the link may be open still: repeat the command")) { () throws(TreeError) in
                try await removal.run()
            }
            try LineOutput.write("link \(AuthorNames.link(of: guest)) to \(TreeText.shown(argument.path)) has ended\n")
        }
    }
}
