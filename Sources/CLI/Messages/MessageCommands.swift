import ThicketCommandLine

/// The commands about messages between accounts.
enum MessageCommands {
    static let all = [send, inbox, policy, signal, burn]

    private static let accountOptions = ThicketProgram.accountOptions
    private static let jsonOption = ThicketProgram.jsonOption

    private static let users = """
        USER is a login name, a contact, or the id of an account. Its keys are looked up in the server's key log first:
        nothing is sent to keys that the log does not prove (exit code 9 for an alarm, and for keys that were replaced
        without a signature of the old ones). A person who was found by name becomes a contact.
        """
    private static let text = Option.value(
        "text", "TEXT", "a text, '-' for standard input: arguments are visible to other users of this machine")

    private static let send = Command(
        "tree send", summary: "send a text or a node of the tree to other accounts",
        details: """
            A node goes with what is directly below it; a text is kept below outbox. All receivers get it at once, or
            none. Ends when the server has put it into their inboxes; what was not confirmed stays here and is sent with
            the next command on the tree.
            \(users)
            """,
        arguments: [
            .one("USER", "a receiver"), .any("MORE", "more of them, and last the path of the node, without --text"),
        ],
        options: [
            text,
            .value("attach", "FILE", "a file that goes with the text", isRepeatable: true, completion: .file),
            jsonOption,
        ] + accountOptions,
        examples: [
            Example("thicket tree send ben cem --text 'hello' --attach cat.jpg", "a text with a picture"),
            Example("thicket tree send ben trips/plan.md", "a copy of a node"),
        ])

    private static let inbox = Command(
        "tree inbox", summary: "list the messages of other accounts, with their verified authors",
        details: """
            The oldest first: time and author, beginning of the text, attachments. 'tree cat' and 'tree get' read them
            by their paths, 'tree mv' keeps one, 'tree rm' removes it. Only messages whose author is proved are listed;
            (compared) means that you have compared the safety number with that person. A line with ! says that messages
            are missing before one, or that its author's device has contradicted itself. (request) is an author who is no
            contact of this machine: 'contacts add' accepts, 'tree policy --block' refuses what comes later.
            """,
        options: [
            jsonOption, .flag("requests", "only messages of authors who are no contacts"),
            .flag("offline", "show the copy kept here, without the server"),
        ] + accountOptions,
        examples: [
            Example("thicket tree inbox", "all of them"),
            Example("thicket tree inbox --json | jq -r .text", "for a script"),
        ])

    private static let policy = Command(
        "tree policy", summary: "show or replace the policy of the inbox: which accounts may write to this one",
        details: """
            POLICY is one of: everyone (the default), contacts, nobody. 'contacts' admits all contacts of this machine,
            and those of --admit; later contacts need another --admit. The server keeps the policy and answers a
            refused sender as if the account did not exist. Messages that have arrived stay. It is replaced as a whole:
            of two machines that change it at the same moment, the last one counts.
            """,
        arguments: [.optional("POLICY", "everyone, contacts or nobody", .oneOf(["everyone", "contacts", "nobody"]))],
        options: [
            .value("admit", "USER", "an account that may write under 'contacts'", isRepeatable: true),
            .value("block", "USER", "an account that may not write, whatever the policy", isRepeatable: true),
            .value("unblock", "USER", "no longer block this account", isRepeatable: true), jsonOption,
        ] + accountOptions,
        examples: [
            Example("thicket tree policy contacts", "only people whom you know"),
            Example("thicket tree policy --block ben", "nothing more of ben"),
        ])

    private static let signal = Command(
        "tree signal", summary: "send a short text to other accounts, and keep nothing of it",
        details: "The text has at most some 8,000 bytes.\n\(users)",
        arguments: [.atLeastOne("USER", "a receiver")], options: [text, jsonOption] + accountOptions,
        examples: [Example("thicket tree signal ben --text 'typing…'", "for programs")])

    private static let burn = Command(
        "tree burn", summary: "remove a sent message from the inboxes of its receivers",
        details: """
            Only while it is there: what a receiver has moved, or read elsewhere, stays (exit code 3). Without USER, all
            to which this machine has sent it.
            """,
        arguments: [
            .one("MESSAGE", "its path, or the id that 'tree send' and 'tree signal' print"),
            .any("USER", "receivers of whom it is removed"),
        ],
        options: accountOptions, examples: [Example("thicket tree burn outbox/ID ben", "of one receiver")])
}
