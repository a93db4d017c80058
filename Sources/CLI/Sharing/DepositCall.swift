import ThicketCommandLine
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree put --into`: puts files into a drop box of another account.
enum DepositCall {
    static func run(_ call: Call, into pointer: String) async throws(Failure) {
        let (argument, what) = (try TreeArgument(pointer), "nothing was sent")
        var files = [(source: LocalFile, name: NodeName)]()
        for word in [call.argument("FILE")] + call.arguments("MORE") {
            guard !Files.isFolder(word) else { throw Failure("\(word) is a folder; a drop box has files", .usage) }
            guard !same(word, "-") else { throw Failure("standard input has no name: name a file", .usage) }
            files.append((LocalFile(path: word), try PutCall.name(of: word)))
        }
        guard !call.flag("offline") else { throw Failure("a drop box needs the server: leave out --offline", .usage) }
        let all = files
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(what)
            guard let invite = try await TreeListing.node(at: argument.path, in: open).branch else {
                throw Failure("\(TreeText.named(argument.path)) is not a branch of another account", .usage)
            }
            let client = open.client
            for (source, name) in all {
                let tag = try source.tag()
                let text = Screen.safe(name.text)
                // A repetition after a lost answer makes no second node.
                let id = NodeID.random()
                _ = try await open.waiting(.unread("\(text) was not sent")) { () throws(TreeError) in
                    try await repeating { () throws(TreeError) in
                        try await client.deposit(
                            NodeSections(data: .file(source.path)), named: name, into: invite.owner, root: invite.root,
                            tags: [tag.tag].compactMap(\.self), modified: tag.modified, id: id)
                    }
                }
                try LineOutput.write("\(text) is in \(TreeText.shown(argument.path))\n")
            }
        }
    }

    /// Times that a file is sent whose answer was lost.
    private static let attemptsMax = 3

    /// Sends a file again while it is not known whether the server has it.
    private static func repeating(
        _ send: () async throws(TreeError) -> NodeID
    ) async throws(TreeError) -> NodeID {
        for _ in 1..<attemptsMax {
            do throws(TreeError) { return try await send() } catch {
                guard error.code == .network, error.reason == nil else { throw error }
            }
        }
        return try await send()
    }
}
