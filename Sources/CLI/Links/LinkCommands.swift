import ThicketCommandLine

/// The commands about links to branches, for people without an account.
enum LinkCommands {
    static let all = [link, links, unlink, list, get, put]

    private static let accountOptions = ThicketProgram.accountOptions
    private static let passphraseFile = Option.value(
        "link-passphrase-file", "FILE",
        "the passphrase from this file or '-' for standard input; else it is asked for (THICKET_LINK_PASSPHRASE_FILE, "
            + "THICKET_LINK_PASSPHRASE)", completion: .file)
    /// A holder has neither profile nor login.
    private static let holderOptions: [Option] =
        [passphraseFile]
        + accountOptions.filter { option in ["ca", "pin", "proxy", "timeout"].contains(option.name) }
    private static let linkArgument = Argument.one("LINK", "the link, or '-' for standard input")

    // MARK: - The owner

    private static let link = Command(
        "tree link", summary: "make a link to a branch for a person without an account",
        details: """
            Prints the link, once. Its holder needs neither an account nor a login: 'thicket link' opens it. Who has the
            link may use it, so send it as you would send a key; with --passphrase it opens only with a passphrase that
            you send by another way. What is put in by a link is encrypted for you alone and shown as 'guest (link …),
            not verified', because nothing proves which person has the link. The server keeps the bounds.
            """,
        arguments: [.one("PATH", "the node; everything below it comes along")],
        options: [
            .flag("read", "the holder reads the branch, also what changes later"),
            .flag("deposit", "the holder puts files into the branch, and neither lists nor reads it"),
            .flag("passphrase", "the link opens with a passphrase only; it is asked for twice"), passphraseFile,
            .value("days", "N", "the link ends after so many days, at most 90", defaultText: "7"),
            .value("files", "N", "with --deposit: how many files may be put in", defaultText: "1"),
            .value("size", "BYTES", "with --deposit: how large all of them together may be", defaultText: "100M"),
        ] + accountOptions,
        examples: [
            Example("thicket tree link applications --deposit --files 3", "three files, within a week"),
            Example("thicket tree link trips/oslo --read --days 30 --passphrase", "to read, with a passphrase"),
        ])

    private static let links = Command(
        "tree links", summary: "list the links to branches, with what they have left",
        arguments: [.optional("PATH", "only those to this branch")],
        options: [ThicketProgram.jsonOption] + accountOptions,
        examples: [Example("thicket tree links", "all of them")])

    private static let unlink = Command(
        "tree unlink", summary: "end a link: its holder gets nothing that is written from now on",
        details: """
            The holder is removed from the branch first, then its access at the server. A command that was interrupted
            can be repeated. What a reader could read before, it may have kept.
            """,
        arguments: [
            .one("PATH", "the branch"), .one("GUEST", "as 'thicket tree links' shows it, or the beginning of it"),
        ], options: accountOptions,
        examples: [Example("thicket tree unlink applications 3f9a12bc", "one link")])

    // MARK: - The holder

    private static let list = Command(
        "link list", summary: "list what a link to read has",
        details: "Needs neither an account nor a login, and keeps nothing on this machine.",
        arguments: [linkArgument],
        options: [.flag("long", short: "l", "also sizes and times"), ThicketProgram.jsonOption] + holderOptions,
        examples: [Example("thicket link list thicket-link-1.AB…", "names")])

    private static let get = Command(
        "link get", summary: "copy what a link to read has to a folder",
        details: "The folder is made if it does not exist. Files that are the same already stay.",
        arguments: [linkArgument, .optional("FOLDER", "the folder; by default the name of the branch")],
        options: [
            .flag("force", short: "f", "replace files that differ"), .flag("verbose", short: "v", "name each file"),
            ThicketProgram.jsonOption,
        ] + holderOptions,
        examples: [Example("thicket link get thicket-link-1.AB… oslo", "all of it")])

    private static let put = Command(
        "link put", summary: "put files in by a link to deposit",
        details: """
            Each file is encrypted for the owner of the link alone. It is there when the command ends with code 0; after
            an interruption it may be there already, and a repeated call puts it in once more.
            """,
        arguments: [linkArgument, .atLeastOne("FILE", "files")], options: holderOptions,
        examples: [Example("thicket link put thicket-link-1.AB… form.pdf photo.jpg", "two files")])
}
