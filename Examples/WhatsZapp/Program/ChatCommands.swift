import ThicketCLI
import ThicketClient
import ThicketCommandLine
import ThicketProtocol
import ThicketTreesystem
import WhatsZapp

/// Runs the commands of `whatszapp`.
enum ChatCommands {
    /// The chat of the profile's account, open for one command.
    struct Opened: Sendable {
        let chat: ChatManager
        let tree: OpenTree
        let names: PersonNames
        /// Changes of earlier commands that wait.
        let earlier: Set<OperationID>
    }

    static func run(_ call: Call) async throws(Failure) {
        switch call.name {
        case "conversations": try await opened(call, conversations)
        case "open": try await opened(call, open)
        case "read": try await opened(call, read)
        case "send": try await opened(call, send)
        case "unread": try await opened(call, unread)
        case "queue":
            try await opened(call, isOnline: false) { opened, call throws(Failure) in
                try await TreeSync.list(opened.tree, nil, call)
            }
        case "queue retry":
            try await opened(call) { opened, call throws(Failure) in
                try await TreeSync.retry(opened.tree, call)
            }
        case "queue discard":
            try await opened(call, isOnline: false) { opened, call throws(Failure) in
                try await TreeSync.discard(opened.tree, call)
            }
        case "status": try await opened(call, status)
        case "fetch": try await opened(call, fetch)
        case "delete": try await opened(call, delete)
        case "watch": try await ChatWatch.run(call)
        default: try await ThicketCommand.perform(call)
        }
    }

    static let opening: OpenTree.Opening = { client throws(TreeError) in try await ChatManager(client).tree }

    /// Opens the chat, waits until it has what the server has, and runs a command.
    private static func opened(
        _ call: Call, isOnline: Bool = true, _ body: @escaping @Sendable (Opened, Call) async throws(Failure) -> Void
    ) async throws(Failure) {
        let isOnline = isOnline && !call.flag("offline")
        try await OpenTree.run(
            call, isOnline: isOnline, isAboutQueue: true, place: .program("whatszapp"), by: opening
        ) { (tree) throws(Failure) in
            var alarm: Failure?
            if isOnline {
                try await tree.ready("the messages were not read", offline: "shows those that are here")
                // Keys of one person that are not those that were known do not keep the user from all others.
                do throws(Failure) { try await InboxCall.verify(tree, call) } catch {
                    guard error.code == .alarm else { throw error }
                    alarm = error
                }
            }
            let opened = try await opened(tree)
            if isOnline { try await sendKept(opened) }
            let result: Result<Void, Failure>
            do throws(Failure) { result = .success(try await body(opened, call)) } catch { result = .failure(error) }
            let reviewed = await reviewed(opened)
            for message in (try? reviewed.get()) ?? [] {
                let text = Screen.safe(String(message.text.prefix(40)))
                Terminal.writeError("whatszapp: the message '\(text)' was not sent; 'open' marks it with !\n")
            }
            // What went wrong first is reported.
            try result.get()
            let failed = try reviewed.get()
            if let alarm { throw alarm }
            if !failed.isEmpty { throw Failure("", .refused) }
        }
    }

    private static func reviewed(_ opened: Opened) async -> Result<[Message], Failure> {
        do throws(Failure) {
            return .success(
                try await chatting("the queue was not read") { () throws(TreeError) in
                    try await opened.chat.reviewOutgoing()
                })
        } catch { return .failure(error) }
    }

    /// Waits until the server has what earlier commands have left. What it refuses keeps no command from its work.
    private static func sendKept(_ opened: Opened) async throws(Failure) {
        if opened.earlier.isEmpty { return }
        do throws(TreeError) {
            let tree = opened.tree.tree
            // A conversation that another device has removed, and in which something was written meanwhile.
            for operation in try await tree.queue where operation.state == .removedElsewhere {
                if try await opened.chat.message(operation.node.text) == nil { try await tree.retry(operation.id) }
            }
        } catch { throw Failure("what was kept was not sent", tree: error) }
        for id in opened.earlier.sorted() {
            do throws(Failure) { try await opened.tree.confirm([id], "send what was kept", earlier: [id]) } catch {
                guard error.code == .refused || error.code == .failure, !error.endsCommand else { throw error }
            }
        }
    }

    static func opened(_ tree: OpenTree) async throws(Failure) -> Opened {
        let chat = try await chatting("the chat was not opened") { () throws(TreeError) in
            try ChatManager(tree.client)
        }
        return Opened(
            chat: chat, tree: tree, names: await PersonNames(tree.client), earlier: try await tree.queued())
    }

    // MARK: - Commands

    private static func conversations(_ opened: Opened, _ call: Call) async throws(Failure) {
        let what = "the conversations were not listed"
        let view = ChatText(opened.names, isJSON: call.flag("json"))
        var last: Conversation?
        while true {
            let page = try await chatting(what) { [last] () throws(TreeError) in
                try await opened.chat.conversations(after: last)
            }
            for conversation in page { Terminal.write(view.line(conversation)) }
            guard let end = page.last else { return }
            last = end
        }
    }

    private static func open(_ opened: Opened, _ call: Call) async throws(Failure) {
        let what = "the conversation was not opened"
        let person = try await person(call, opened, what)
        let count = try call.number("last", in: 1...10_000, default: 20)
        let messages = try await chatting(what) { () throws(TreeError) in
            try await opened.chat.messages(with: person, limit: count)
        }
        try await show(messages.reversed(), with: person, opened, call)
    }

    private static func read(_ opened: Opened, _ call: Call) async throws(Failure) {
        let what = "nothing was marked as read"
        let person = try await person(call, opened, what)
        let messages = try await chatting(what) { () throws(TreeError) in try await opened.chat.read(person) }
        try await show(messages, with: person, opened, call)
        if !call.flag("offline") { try await confirm(opened, "mark as read") }
    }

    private static func send(_ opened: Opened, _ call: Call) async throws(Failure) {
        let what = "the message was not sent"
        let person = try await person(call, opened, what)
        let text = String(decoding: try SendCall.text(of: call.argument("TEXT")), as: UTF8.self)
        var files = [ChatManager.File]()
        for path in call.invocation.values("file") {
            files.append(ChatManager.File(name: try PutCall.name(of: path), path: path))
        }
        let all = files
        let message = try await chatting(what) { () throws(TreeError) in
            try await opened.chat.send(text, to: person, files: all)
        }
        if !call.flag("offline") { try await confirm(opened, "send the message") }
        if call.flag("json") {
            let sent = try await chatting(what) { () throws(TreeError) in
                try await opened.chat.message(message.id) ?? message
            }
            try await show([sent], with: person, opened, call)
        }
    }

    private static func unread(_ opened: Opened, _ call: Call) async throws(Failure) {
        let what = "nothing was marked as unread"
        let person = try await person(call, opened, what)
        try await chatting(what) { () throws(TreeError) in try await opened.chat.markUnread(person) }
        if !call.flag("offline") { try await confirm(opened, "mark as unread") }
    }

    private static func status(_ opened: Opened, _ call: Call) async throws(Failure) {
        var line = StatusLine(account: opened.chat.me.text)
        var last: Conversation?
        while true {
            let page = try await chatting("the conversations were not counted") { [last] () throws(TreeError) in
                try await opened.chat.conversations(after: last)
            }
            line.conversations += page.count
            line.unread += page.reduce(0) { $0 + $1.unread }
            guard let end = page.last else { break }
            last = end
        }
        line.waiting = try await opened.tree.queued().count
        Terminal.write(call.flag("json") ? ChatText.json(line) : line.text)
    }

    private static func fetch(_ opened: Opened, _ call: Call) async throws(Failure) {
        let what = "nothing was written"
        let id = call.argument("MESSAGE")
        guard let message = try await chatting(what, { () throws(TreeError) in try await opened.chat.message(id) })
        else {
            throw Failure("\(what): there is no message \(Screen.safe(id)); 'open --json' prints the ids", .notFound)
        }
        if message.attachments.isEmpty { throw Failure("\(what): the message has no files", .notFound) }
        let folder = call.argument("DIR").isEmpty ? "." : call.argument("DIR")
        for attachment in message.attachments {
            let node = try await chatting(what) { () throws(TreeError) -> Node? in
                guard let id = NodeID(text: attachment.id) else { return nil }
                return try await opened.tree.tree.node(id)
            }
            guard let node else {
                Terminal.writeError("whatszapp: \(Screen.safe(attachment.name)) is not on this machine yet\n")
                continue
            }
            let file = try await NodeDownload.get(
                node, into: folder, in: opened.tree, isOffline: call.flag("offline"), isForced: call.flag("force"))
            Terminal.write("\(Screen.safe(file.path)) \(file.isWritten ? "was written" : "is there already")\n")
        }
    }

    private static func delete(_ opened: Opened, _ call: Call) async throws(Failure) {
        let what = "nothing was removed"
        let person = try await person(call, opened, what)
        let ids = call.arguments("MESSAGE")
        try await chatting(what) { () throws(TreeError) in
            if ids.isEmpty { try await opened.chat.removeConversation(with: person) }
            for id in ids {
                guard let message = try await opened.chat.message(id), message.conversation == person.text else {
                    throw TreeError(.notFound, "this conversation has no message \(id)")
                }
                try await opened.chat.remove(message)
            }
        }
        if !call.flag("offline") { try await confirm(opened, "remove") }
    }

    // MARK: - Helpers

    /// Waits until the server has what was changed.
    private static func confirm(_ opened: Opened, _ what: String) async throws(Failure) {
        let earlier = opened.earlier
        let new = try await chatting(what) { () throws(TreeError) in
            try await opened.tree.tree.queue.map(\.id).filter { !earlier.contains($0) }
        }
        try await opened.tree.confirm(new, what)
    }

    private static func person(_ call: Call, _ opened: Opened, _ what: String) async throws(Failure) -> UserID {
        let text = call.argument("USER")
        if let known = opened.names.person(text) { return known }
        // A person with whom there is a conversation is known without the server.
        let found = try await Receivers.find([text], in: opened.tree, what)
        guard let person = found.users.first else { throw Failure("\(what): there is no \(text)", .notFound) }
        return person
    }

    private static func show(
        _ messages: [Message], with person: UserID, _ opened: Opened, _ call: Call
    ) async throws(Failure) {
        let conversation = try await chatting("the messages were not shown") { () throws(TreeError) in
            try await opened.chat.conversation(with: person)
        }
        let name = conversation.map(opened.names.name) ?? person.text
        let view = ChatText(opened.names, isJSON: call.flag("json"))
        for message in messages { Terminal.write(view.line(message, with: name)) }
    }
}

/// Runs calls of the library and reports their errors with the words for what was not done.
func chatting<Value: Sendable>(
    _ what: String, _ body: () async throws(TreeError) -> Value
) async throws(Failure) -> Value {
    do throws(TreeError) { return try await body() } catch { throw Failure(what, tree: error) }
}
