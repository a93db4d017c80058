import ThicketCommandLine
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree inbox`: messages of other accounts, with their verified authors.
package enum InboxCall {
    private static let what = "the inbox was not read"

    static func run(_ call: Call) async throws(Failure) {
        let isOffline = call.flag("offline")
        try await TreeListing.reading(call) { open throws(Failure) in
            let (tree, messages) = (open.tree, open.tree.messages)
            let waiting = try await growing(what) { () throws(TreeError) in
                isOffline ? [] : try await messages.lookUpAuthors()
            }
            var names = try await AuthorNames(open)
            let nodes = try await growing(what) { () throws(TreeError) in
                try await tree.children(of: .trunk(.inbox), order: .newestFirst)
            }
            if !isOffline { try await names.prove(nodes, open) }
            let sorted = nodes.sorted { ($0.origin?.sent ?? 0, $0.id) < ($1.origin?.sent ?? 0, $1.id) }
            for node in sorted {
                let message = try await InboxMessage(node, names, in: open)
                if call.flag("requests"), !same(message.standing, AuthorNames.request) { continue }
                try LineOutput.write(call.flag("json") ? message.json : message.text)
            }
            if nodes.count == Treesystem.childrenMax {
                Terminal.writeError(
                    "the newest \(nodes.count) are shown; 'thicket tree mv' makes space for the others\n")
            }
            try await reportHidden(waiting, names, open, call)
        }
    }

    /// Shows what can be verified of the inbox, and reports what cannot.
    ///
    /// - Throws: `alarm` when keys of an author are not those that were known.
    package static func verify(_ open: OpenTree, _ call: Call) async throws(Failure) {
        let waiting = try await growing(what) { () throws(TreeError) in try await open.tree.messages.lookUpAuthors() }
        try await reportHidden(waiting, try await AuthorNames(open), open, call)
    }

    /// What has arrived and is not shown, with the reason and what can be done.
    private static func reportHidden(
        _ waiting: [TreeMessages.UnverifiedAuthor], _ names: AuthorNames, _ open: OpenTree, _ call: Call
    ) async throws(Failure) {
        let (tree, messages) = (open.tree, open.tree.messages)
        let (counts, faults) = try await growing(what) { () throws(TreeError) in
            (try await messages.counts, try await tree.quarantined.filter { $0.kind == .origin })
        }
        var isAlarm = false
        for author in waiting {
            let isAlarming = ["alarm", "needs-confirmation"].contains { same($0, author.reason) }
            isAlarm = isAlarm || isAlarming
            try write(HiddenMessages(author, names), call)
        }
        let unknown = counts.awaitingKeys - waiting.reduce(0) { $0 + $1.messages }
        if waiting.isEmpty, unknown > 0 { try write(HiddenMessages(waiting: unknown), call) }
        for fault in faults.prefix(OpenTree.refusalsShownMax) { try write(HiddenMessages(fault), call) }
        if faults.count > OpenTree.refusalsShownMax {
            Terminal.writeError("\(faults.count - OpenTree.refusalsShownMax) more messages are not genuine\n")
        }
        if counts.repetitions > 0 { try write(HiddenMessages(repetitions: counts.repetitions), call) }
        if isAlarm { throw Failure("", .alarm) }
    }

    private static func write(_ hidden: HiddenMessages, _ call: Call) throws(Failure) {
        if call.flag("json") { try LineOutput.write(hidden.json) } else { Terminal.writeError(hidden.text) }
    }
}

/// A message of the inbox as it is printed.
struct InboxMessage: Sendable {
    let node: Node
    let path: TreePath
    /// The author's name or id; nil while this machine has not verified it.
    let author: String?
    let standing: String
    /// The content, if it is a text that is in the record.
    let words: String?
    let attachments: [Node]
    /// What it says about a shared branch; nil for any other message.
    let letter: ShareLetter?

    /// Most characters of a text in a line.
    private static let shownMax = 60

    init(_ node: Node, _ names: AuthorNames, in open: OpenTree) async throws(Failure) {
        let tree = open.tree
        (self.node, path) = (node, TreePath(.inbox, names: [node.name]))
        author = node.sender.map(names.name(of:))
        standing = node.sender.map(names.standing(of:)) ?? "unverified"
        let (bytes, below) = try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
            (try await tree.content(of: node.id)?.data, try await tree.children(of: .node(node.id), order: .name))
        }
        words = bytes.flatMap { String(validating: $0, as: UTF8.self) }
        attachments = below
        letter = try await ShareLetter(node, author ?? "", in: open)
    }

    var text: String {
        let time = node.origin.map { Days.text($0.sent / 1_000) } ?? "-"
        let from = Screen.safe(author ?? "not verified")
        var lines = ["\(time)  \(from) (\(standing))  \(TreeText.shown(path))"]
        lines.append("    " + summary)
        for node in attachments {
            let size = node.content.map { TreeText.size($0.sizes.data) } ?? "-"
            lines.append("    + \(TreeText.shown(TreeText.name(node.name)))  \(size)")
        }
        return lines.map { $0 + "\n" }.joined() + marks.map { "    ! \($0)\n" }.joined()
    }

    private var summary: String {
        if let letter { return letter.text }
        guard let words else { return "(\(node.content.map { TreeText.size($0.sizes.data) } ?? "no content"))" }
        let lines = words.split(separator: "\n")
        let line = Screen.safe(String(lines.first ?? ""))
        guard lines.count > 1 || line.count > Self.shownMax else { return line }
        return line.prefix(Self.shownMax) + "… (\(TreeText.size(UInt64(words.utf8.count))))"
    }

    /// What is wrong with the place of the message among those of its author, and what can be done.
    private var marks: [String] {
        guard let origin = node.origin else { return [] }
        var marks = [String]()
        let name = Screen.safe(author ?? "the author")
        if origin.missing > 0 {
            let (what, has) = origin.missing == 1 ? ("1 message", "has") : ("\(origin.missing) messages", "have")
            marks.append(
                "\(what) missing: \(name) sent \(origin.missing == 1 ? "it" : "them") before this one, and "
                    + "\(origin.missing == 1 ? "it" : "they") \(has) not arrived. If that stays so, ask \(name): "
                    + "either \(name) has burned \(origin.missing == 1 ? "it" : "them"), or the server holds "
                    + "\(origin.missing == 1 ? "it" : "them") back")
        }
        if origin.isForked {
            marks.append(
                "forked: the device of \(name) has shown another message in place of this one, or of the one before. "
                    + "Ask \(name) what was sent: a restored backup explains it, or the account writes different things "
                    + "to different people")
        }
        return marks
    }

    var json: String {
        var object: JSONObject = [
            "message": .string(node.id.text), "path": .string(path.description), "standing": .string(standing),
        ]
        if let sender = node.sender { object["author"] = .string(sender.text) }
        if let author, let sender = node.sender, !same(author, sender.text) { object["name"] = .string(author) }
        if let origin = node.origin {
            object["sent"] = .number(JSONNumber(origin.sent))
            object["counter"] = .number(JSONNumber(Int64(clamping: origin.counter)))
            object["missing"] = .number(JSONNumber(Int64(clamping: origin.missing)))
            object["forked"] = .bool(origin.isForked)
        }
        if let letter { object["branch"] = letter.json }
        if let words { object["text"] = .string(words) }
        if let size = node.content?.sizes.data { object["size"] = .number(JSONNumber(Int64(clamping: size))) }
        object["attachments"] = .array(
            attachments.map { node in
                var each: JSONObject = ["name": .string(node.name.text), "id": .string(node.id.text)]
                if let size = node.content?.sizes.data { each["size"] = .number(JSONNumber(Int64(clamping: size))) }
                return .object(each)
            })
        return JSONValue.object(object).serializedText + "\n"
    }
}

/// Messages that have arrived and are not shown, as they are reported.
struct HiddenMessages: Sendable {
    let text: String
    let json: String

    /// Messages of an author whose keys cannot be used.
    init(_ author: TreeMessages.UnverifiedAuthor, _ names: AuthorNames) {
        let name = Screen.safe(names.name(of: author.author))
        let next = Self.next(author.reason, name)
        text = "\(Self.count(author.messages)) of \(name) not shown: \(author.detail). \(next)\n"
        json = Self.line([
            "hidden": .string("not-verified"), "author": .string(author.author.text),
            "reason": .string(author.reason), "messages": .number(JSONNumber(Int64(author.messages))),
        ])
    }

    /// What to do about an author whose keys cannot be used.
    static func next(_ reason: String, _ name: String) -> String {
        switch reason {
        case "needs-confirmation": "'thicket verify \(name)' shows the number to compare with that person"
        case "alarm": "'thicket keylog' says what was found"
        case "not-witnessed": "'thicket keylog' looks again; its operator knows why"
        default: "The next command on the tree looks again"
        }
    }

    /// Messages whose authors were not looked up in this call.
    init(waiting count: Int) {
        text = "\(Self.count(count)) not shown: the keys of the authors are not known here. Leave out --offline\n"
        json = Self.line(["hidden": .string("not-verified"), "messages": .number(JSONNumber(Int64(count)))])
    }

    /// A message that is not genuine.
    init(_ fault: IntegrityFault) {
        text =
            "a message was not genuine and is not shown (\(fault.node.text)): \(fault.detail). The server, or another "
            + "account with its help, has made it\n"
        json = Self.line([
            "hidden": .string("not-genuine"), "message": .string(fault.node.text), "reason": .string(fault.detail),
        ])
    }

    /// Messages that were delivered again.
    init(repetitions count: Int) {
        text =
            "\(Self.count(count)) repeated: delivered again after this account had removed "
            + "\(count == 1 ? "it" : "them"), and dropped. Nothing is to be done\n"
        json = Self.line(["hidden": .string("repeated"), "messages": .number(JSONNumber(Int64(count)))])
    }

    private static func count(_ count: Int) -> String { count == 1 ? "1 message" : "\(count) messages" }
    private static func line(_ object: JSONObject) -> String { JSONValue.object(object).serializedText + "\n" }
}
