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
                // The call repeats a request whose answer is lost, with the same id. The id itself is not passed on.
                try await open.waiting(.unread("\(text) was not sent")) { () throws(TreeError) -> Void in
                    try await client.deposit(
                        NodeSections(data: .file(source.path)), named: name, into: invite.owner, root: invite.root,
                        tags: [tag.tag].compactMap(\.self), modified: tag.modified)
                }
                try LineOutput.write("\(text) is in \(TreeText.shown(argument.path))\n")
            }
        }
    }
}
