import ThicketCLI
import ThicketClient
import ThicketCommandLine

/// The declaration of `whatszapp`. Accounts, keys and contacts are those of `thicket`, with the same profiles: those
/// commands are here, too, unchanged.
enum WhatsZappProgram {
    static let program = Program(
        name: "whatszapp", summary: "messages between people, which only they can read", version: Thicket.version,
        commands: doors + [
            conversations, open, send, read, unread, fetch, watch, delete, queue, retry, discard, status,
        ],
        footer: """
            The profile is that of 'thicket': 'whatszapp signup' or 'thicket signup', on each machine 'pair' or 'login'.
            Messages are kept on this machine, sealed; everything works offline, and is sent with the next command.
            """)

    private static let doors =
        [
            ThicketProgram.signup, ThicketProgram.login, ThicketProgram.recover, ThicketProgram.pair,
            ThicketProgram.verify,
            ThicketProgram.audit, ThicketProgram.logout,
        ] + ThicketProgram.people

    private static let options = ThicketProgram.accountOptions
    private static let json = ThicketProgram.jsonOption
    private static let offline = Option.flag("offline", "without the server; what is changed is sent later")
    private static let user = Argument.one("USER", "a login name, a contact, or the id of an account")

    private static let conversations = Command(
        "conversations", summary: "list the conversations, the one with the newest message first",
        details: "Who, when, unread messages, and the beginning of the newest message.",
        options: [json, offline] + options,
        examples: [Example("whatszapp conversations", "all of them")])

    private static let open = Command(
        "open", summary: "show the messages with a person, and leave them unread",
        details: """
            The oldest first. A message of this account is marked: … it waits here, ✓ the server has put it into the
            other person's inbox, ! it was not sent. Messages of a person that are unread have a *.
            """,
        arguments: [user],
        options: [.value("last", "N", "so many messages", defaultText: "20"), json, offline] + options,
        examples: [Example("whatszapp open bob", "the last ones")])

    private static let read = Command(
        "read", summary: "show the unread messages of a person, and mark them as read on all devices",
        details: "They move out of the inbox into the conversation.",
        arguments: [user], options: [json, offline] + options,
        examples: [Example("whatszapp read bob", "what is new")])

    private static let unread = Command(
        "unread", summary: "mark a conversation as unread on all devices",
        details: "'read' clears the mark. The messages stay where they are.", arguments: [user],
        options: [offline] + options, examples: [Example("whatszapp unread bob", "to come back to it")])

    private static let ids = Argument.any("ID", "numbers of 'queue'; without them, all that wait for a decision")
    private static let all = Option.flag("all", "every change that waits")

    private static let queue = Command(
        "queue", summary: "list what the server has not confirmed",
        details: "With the number of each change, what it does, and what it waits for.", options: [json] + options,
        examples: [Example("whatszapp queue", "all of it")])

    private static let retry = Command(
        "queue retry", summary: "send again what waits for a decision", arguments: [ids], options: [all] + options,
        examples: [Example("whatszapp queue retry 12", "one of them")])

    private static let discard = Command(
        "queue discard", summary: "drop what the server has not confirmed",
        details: "A message that was not sent stays in the conversation, marked with !; 'delete' removes it.",
        arguments: [ids], options: [all] + options, examples: [Example("whatszapp queue discard 12", "one of them")])

    private static let status = Command(
        "status", summary: "show how many conversations, unread messages and waiting changes there are",
        options: [json, offline] + options, examples: [Example("whatszapp status", "of this profile")])

    private static let send = Command(
        "send", summary: "send a text to a person",
        details: """
            Ends when the server has put it into the other person's inbox. What is not confirmed stays here, and is sent
            with the next command. The person's keys are looked up in the server's key log first: nothing is sent to
            keys that the log does not prove. Messages of one conversation arrive in their order.
            """,
        arguments: [user, .one("TEXT", "the text, '-' for standard input: arguments are visible to other users")],
        options: [
            .value("file", "FILE", "a file that goes with the text", isRepeatable: true, completion: .file), json,
            offline,
        ] + options,
        examples: [
            Example("whatszapp send bob 'Hello Bob'", "a text"),
            Example("whatszapp send bob 'our cat' --file cat.jpg", "with a picture"),
        ])

    private static let fetch = Command(
        "fetch", summary: "write the files of a message into a folder",
        details: "An existing file with other content is kept unless --force is given.",
        arguments: [
            .one("MESSAGE", "the id of the message, as --json prints it"),
            .optional("DIR", "the folder; this one, if none is given", .folder),
        ],
        options: [.flag("force", short: "f", "replace files that differ"), json, offline] + options,
        examples: [Example("whatszapp fetch kq3x… photos/", "all files of a message")])

    private static let watch = Command(
        "watch", summary: "print what happens as lines of JSON, until Ctrl-C",
        details: """
            {"event":"message",…} with the members of a message, {"event":"removed","id":…}, {"event":"caught-up"},
            {"event":"missed"} for a reader that is too slow, {"event":"alarm","detail":…}. No other command of
            whatszapp runs beside it on one profile.
            """,
        options: options, examples: [Example("whatszapp watch | jq -r .text", "for a script")])

    private static let delete = Command(
        "delete", summary: "remove messages, or a conversation, from this account's devices",
        details: "The other person keeps them.",
        arguments: [
            user, .any("MESSAGE", "ids of messages, as --json prints them; without any, the whole conversation"),
        ],
        options: [offline] + options,
        examples: [Example("whatszapp delete bob", "the conversation with bob")])
}
