import ThicketClient
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

/// `thicket tree send`, `tree signal` and `tree burn`: messages to other accounts.
package enum SendCall {
    /// Most bytes of a text that is given as a word or by standard input.
    private static let textBytesMax = 1 << 20
    private static let unsent = "nothing was sent"

    static func send(_ call: Call) async throws(Failure) {
        let words = [call.argument("USER")] + call.arguments("MORE")
        guard call.value("text") != nil else {
            guard words.count > 1 else {
                throw Failure("the last word is the path of what is sent; --text TEXT sends a text", .usage)
            }
            guard call.invocation.values("attach").isEmpty else {
                throw Failure("--attach goes with --text; a node is sent with what is below it", .usage)
            }
            let argument = try TreeArgument(words[words.count - 1])
            return try await send(argument, to: Array(words.dropLast()), call)
        }
        let text = try text(call)
        let attachments = try attachments(call.invocation.values("attach"))
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unsent)
            let receivers = try await Receivers.find(words, in: open, unsent)
            let messages = open.tree.messages
            let sent = try await growing(unsent) { () throws(TreeError) in
                try await messages.send(
                    to: receivers.users, content: NodeSections(data: .bytes(text)),
                    attachments: attachments.map { ($0.name, $0.content) })
            }
            try await open.deliver(sent, to: receivers, isDraft: true, call)
        }
    }

    private static func send(_ argument: TreeArgument, to users: [String], _ call: Call) async throws(Failure) {
        guard !argument.path.isTrunk else {
            throw Failure("\(TreeText.named(argument.path)) cannot be sent: name a node in it", .usage)
        }
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unsent)
            let node = try await TreeListing.node(at: argument.path, in: open)
            let receivers = try await Receivers.find(users, in: open, unsent)
            let messages = open.tree.messages
            let sent = try await growing(unsent) { () throws(TreeError) in
                try await messages.copy(node.id, toInboxOf: receivers.users)
            }
            try await open.deliver(sent, to: receivers, isDraft: false, call)
        }
    }

    static func signal(_ call: Call) async throws(Failure) {
        let (users, text) = (call.arguments("USER"), try text(call))
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(unsent)
            let receivers = try await Receivers.find(users, in: open, unsent)
            let messages = open.tree.messages
            let sent = try await growing(unsent) { () throws(TreeError) in
                try await messages.signal(to: receivers.users, content: NodeContent(data: text))
            }
            try await open.deliver(sent, to: receivers, isDraft: false, call)
        }
    }

    // MARK: - What is sent

    /// The text of `--text`; `-` is standard input.
    private static func text(_ call: Call) throws(Failure) -> [UInt8] {
        guard let word = call.value("text") else { throw Failure("--text TEXT is what is sent", .usage) }
        return try text(of: word)
    }

    /// The text of a word of a command; `-` is standard input.
    package static func text(of word: String) throws(Failure) -> [UInt8] {
        var bytes = Array(word.utf8)
        if same(word, "-") {
            switch Files.read(STDIN_FILENO, bytesMax: textBytesMax + 1) {
            case .bytes(let found): bytes = found
            case .absent: throw Failure("there is no standard input", .usage)
            case .failed(let reason): throw Failure("standard input cannot be read: \(reason)", .usage)
            }
        }
        guard !bytes.isEmpty else { throw Failure("\(unsent): the text is empty", .usage) }
        guard bytes.count <= textBytesMax else {
            throw Failure("\(unsent): a text has at most \(textBytesMax >> 20) MiB; --attach FILE sends more", .usage)
        }
        return bytes
    }

    /// Files that are sent with a text: each under its own name.
    private static func attachments(
        _ paths: [String]
    ) throws(Failure) -> [(name: NodeName, content: NodeSections)] {
        var found = [(name: NodeName, content: NodeSections)]()
        for path in paths {
            _ = try LocalFile(path: path).facts()
            let name = try PutCall.name(of: path)
            guard !found.contains(where: { $0.name.isSame(as: name) }) else {
                throw Failure("\(unsent): two attachments have the name \(Screen.safe(name.text))", .usage)
            }
            // With a metadata section, though empty, the file is sealed at once: its later changes change nothing.
            found.append((name, NodeSections(metadata: .bytes([]), thumbnail: .bytes([]), data: .file(path))))
        }
        return found
    }

    // MARK: - burn

    static func burn(_ call: Call) async throws(Failure) {
        let (text, users) = (call.argument("MESSAGE"), call.arguments("USER"))
        let what = "nothing was burned"
        try await OpenTree.run(call, isOnline: true) { open throws(Failure) in
            try await open.ready(what)
            let id = try await node(text, in: open)
            let messages = open.tree.messages
            var receivers = [Receivers.Receiver]()
            if users.isEmpty {
                let sent = try await growing(what) { () throws(TreeError) in try await messages.deliveries(of: id) }
                let names = try await AuthorNames(open)
                receivers = sent.map { Receivers.Receiver(text: names.name(of: $0.receiver), user: $0.receiver) }
                guard !receivers.isEmpty else {
                    throw Failure("\(what): this machine has sent \(Screen.safe(text)) to no account", .notFound)
                }
            } else {
                receivers = try await Receivers.find(users, in: open, what).all
            }
            for receiver in receivers { try await burn(id, receiver, in: open) }
        }
    }

    /// A message for a path, or for the id that `send` has printed.
    private static func node(_ text: String, in open: OpenTree) async throws(Failure) -> NodeID {
        if let id = NodeID(text: text) { return id }
        return try await TreeListing.node(at: try TreeArgument(text).path, in: open).id
    }

    private static func burn(
        _ id: NodeID, _ receiver: Receivers.Receiver, in open: OpenTree
    ) async throws(Failure) {
        let messages = open.tree.messages
        let operation = try await growing("nothing was burned") { () throws(TreeError) in
            try await messages.burn(id, sentTo: receiver.user)
        }
        let name = Screen.safe(receiver.text)
        guard try await open.burned(operation, "burn \(id.text) at \(name)") else {
            throw Failure(
                "nothing was burned: \(id.text) is not in the inbox of \(name) any more, or never was. What its "
                    + "receiver has moved or read elsewhere stays there.", .notFound)
        }
        try LineOutput.write("\(id.text) is removed from the inbox of \(name)\n")
    }
}
