import ThicketCommandLine

/// The commands about encrypted notes.
extension ThicketProgram {
    static let onions = [
        onionsList, onionsShow, onionsNew, onionsEdit, onionsRemove, onionsView, onionsAttach,
        onionsDetach, onionsSave, onionsExport, onionsImport,
        onionsSignup, onionsUpgrade, onionsDelete,
    ]

    private static let onionOptions =
        [
            .flag(
                "old-account",
                "the account is one of the old notes app, whose login is derived from the password without a salt; without this "
                    + "it is the profile's, which has keys")
        ] + oldAccountOptions

    /// Options of the commands that work on accounts of the old notes app only.
    private static let oldAccountOptions =
        [
            .value(
                "user", "NAME",
                "the user name; that of an old account never leaves this machine, and is asked for when it is not said "
                    + "(THICKET_USER)"),
            .value("api-key", "KEY", "names the app; printed by 'thicketd app create', no secret (THICKET_API_KEY)"),
            .value(
                "password-file", "FILE",
                "the password, from this file or '-' for standard input; else it is asked for "
                    + "(THICKET_PASSWORD_FILE, THICKET_PASSWORD)", completion: .file),
            .refused(
                "password",
                "\(seen) Leave it out and type the password when asked, or use --password-file FILE ('-' for standard "
                    + "input), or the variable THICKET_PASSWORD."),
        ] + accountOptions.filter { $0.name != "token-file" && $0.name != "token" }

    private static let slowOption = Option.flag(
        "slow", "open a note that asks for more than 1,000,000 rounds of key stretching")
    private static let noteArgument = Argument.one("NOTE", "its number or id, as 'onions list' prints them")

    private static let whose =
        "The notes belong to the profile's account, and its login and keys open them; with --old-account, to an account "
        + "of the old notes app."
    private static let nothingKept =
        "With --old-account it logs in and out again. Notes are never written to this machine's disk, and nor are the password "
        + "and the keys of an old account."

    static let onionsList = Command(
        "onions list", summary: "list your encrypted notes, the oldest first",
        details: """
            One line for each: number, beginning of the id, title. Notes of the first format are converted to the second
            on the way; one that does not open stays unchanged. \(whose) \(nothingKept)
            """,
        options: [jsonOption] + onionOptions,
        examples: [
            Example("thicket onions list", "of the account that 'thicket login' has kept"),
            Example(
                "thicket onions list --old-account --server https://sync.example.com --app onions --api-key 0123…",
                "of an account of the old notes app: asks for user name and password"),
            Example("thicket onions list --json | jq -r .title", "for a script; the rest is in THICKET_… variables"),
        ])

    static let onionsShow = Command(
        "onions show", summary: "print an encrypted note",
        details: nothingKept, arguments: [noteArgument], options: [jsonOption, slowOption] + onionOptions,
        examples: [Example("thicket onions show 3", "the third of the list")])

    static let onionsNew = Command(
        "onions new", summary: "make an encrypted note of what standard input has",
        details: """
            The first line is the title (at most 30 characters), the rest the text (at most 2,500), as UTF-16 counts
            them; more is refused. \(nothingKept)
            """,
        options: onionOptions,
        examples: [
            Example(#"printf 'Router\nadmin, blue sticker' | thicket onions new"#, "title and text"),
            Example("thicket onions new", "typed in, ended by Ctrl-D"),
        ])

    static let onionsEdit = Command(
        "onions edit", summary: "put what standard input has into an encrypted note",
        details: "Title and text as for 'onions new'. A note that does not open is never written over. \(nothingKept)",
        arguments: [noteArgument], options: [slowOption] + onionOptions,
        examples: [Example("thicket onions show 3 | sed 's/blue/red/' | thicket onions edit 3", "change a word")])

    static let onionsRemove = Command(
        "onions rm", summary: "remove encrypted notes",
        details: nothingKept,
        arguments: [.atLeastOne("NOTE", "their numbers or ids, as 'onions list' prints them")], options: onionOptions,
        examples: [Example("thicket onions rm 3 5", "two of them")])

    static let onionsView = Command(
        "onions view", summary: "read and write encrypted notes on the whole screen",
        details: """
            A list, a note, a note being written; the last row says which keys do what. Logs out, drops all notes and
            overwrites the screen after a while without a key, with Ctrl-L, and with Ctrl-Z, which also stops the
            program; a note that is being written is saved first. The terminal itself may remember what it has shown.
            """,
        options: [.value("lock-after", "TIME", "time without a key until it locks", defaultText: "5m")] + onionOptions,
        examples: [Example("thicket onions view --lock-after 1m", "asks for the password")])

    private static let attachments = """
        Attachments are files in the account's tree, in prefs/onions, sealed like all of it. The tree's copy on this
        machine is sealed too, and holds their names and what was sent last; notes are never on the disk.
        """

    static let onionsAttach = Command(
        "onions attach", summary: "attach files to an encrypted note, or list its attachments",
        details: """
            Pictures and any other files, of any size. A file of the same name becomes a new version. Ends when the
            server has confirmed.
            \(attachments)
            """,
        arguments: [noteArgument, .any("FILE", "files; without them, the attachments are listed", .file)],
        options: [jsonOption] + onionOptions,
        examples: [
            Example("thicket onions attach 3 passport.jpg", "a picture"), Example("thicket onions attach 3", "list"),
        ])

    static let onionsDetach = Command(
        "onions detach", summary: "remove attachments of an encrypted note",
        details: "'onions rm' removes a note with its attachments.\n\(attachments)",
        arguments: [
            .optional("NOTE", "its number or id, as 'onions list' prints them"), .any("NAME", "names of attachments"),
        ],
        options: [.flag("orphans", "the attachments of notes that other programs have removed")] + onionOptions,
        examples: [Example("thicket onions detach 3 passport.jpg", "one of them")])

    static let onionsSave = Command(
        "onions save", summary: "copy attachments of an encrypted note to files",
        details: "An existing file that differs is replaced only with --force.\n\(attachments)",
        arguments: [noteArgument, .any("NAME", "names of attachments; all without them")],
        options: [
            .value("to", "DIR", "the folder", defaultText: "this one", completion: .folder),
            .flag("force", short: "f", "replace files that differ"),
        ] + onionOptions,
        examples: [Example("thicket onions save 3 --to pictures", "all of them")])

    static let onionsExport = Command(
        "onions export", summary: "write all encrypted notes to a file, in clear or sealed",
        details: """
            One line of JSON per note, oldest first: {"title","info","createdAt"}. In clear: every reader of the file
            can read the notes. With --sealed as the old notes app has them, {"onionTitle","onionInfo","iterations",…},
            which open with the password. A note that does not open is named and left out of a clear file; sealed ones
            are written as they are. An existing file is kept unless --force is given.
            """,
        arguments: [.one("FILE", "where to, readable by you alone; '-' for standard output", .file)],
        options: [
            .flag("sealed", "under the password, not in clear"),
            .flag("force", short: "f", "replace an existing file"), slowOption,
        ] + onionOptions,
        examples: [Example("thicket onions export --sealed notes.jsonl", "a copy to keep")])

    static let onionsImport = Command(
        "onions import", summary: "read encrypted notes from a file that 'onions export' or the old app's server wrote",
        details: """
            Lines of JSON, a list, or {"results": […]}: notes in clear (title, info), or sealed under the password of
            this account (onionTitle, onionInfo). Each becomes a new note; one that exists already, made at the same
            time with the same texts, is left out. Notes that cannot be read are named, the others are read.
            """,
        arguments: [.one("FILE", "the file, '-' for standard input", .file)], options: [slowOption] + onionOptions,
        examples: [Example("thicket onions import notes.jsonl", "all of them")])

    static let onionsSignup = Command(
        "onions signup", summary: "make an account of the old notes app",
        details: """
            The kind that the first encrypted notes app makes: keys are derived from user name and password without a
            salt; neither is sent. An attacker with the server's data can try passwords cheaply, so take a long one. The
            password cannot be reset. The other commands about notes need --old-account for it; 'thicket signup' makes
            an account with keys, which is the better one.
            """,
        options: oldAccountOptions,
        examples: [
            Example("thicket onions signup --server https://sync.example.com --app onions --api-key 0123…", "begin")
        ])

    static let onionsUpgrade = Command(
        "onions upgrade", summary: "convert an account of the old notes app to one with keys",
        details: """
            The account stays, and so do its notes: each is sealed again under keys that are made here, and then the old
            login ends. It gets another user name, which the server sees, and another password, which it never does. It
            may stop at any point, and the same command with the same words continues; until its end the old login is
            valid, too. The server keeps earlier versions of the notes, sealed with the old password, as it keeps those
            of all objects; old apps can no longer open the account.
            """,
        options: [
            .value("new-user", "NAME", "the account's name from now on, which the server sees (THICKET_NEW_USER)"),
            .value(
                "new-password-file", "FILE",
                "the new password, from this file; else it is asked for, twice (THICKET_NEW_PASSWORD_FILE, "
                    + "THICKET_NEW_PASSWORD)", completion: .file),
            .flag("leave-unreadable", "end the old login though some notes do not open with its password"), slowOption,
        ] + oldAccountOptions,
        examples: [Example("thicket onions upgrade --new-user ada@example.com", "asks for the old login first")])

    static let onionsDelete = Command(
        "onions delete", summary: "delete all your encrypted notes, then your account",
        details: "If some notes remain, the account stays. This cannot be undone.", options: onionOptions,
        examples: [
            Example("thicket onions delete", "the profile's account: asks for its password"),
            Example("thicket onions delete --old-account", "asks for user name and password"),
        ])
}
