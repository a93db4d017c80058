import ThicketCommandLine

/// The commands about who one is.
extension ThicketProgram {
    /// How a person proves who it is. Never by an argument.
    private static let proofOptions: [Option] = [
        .value("user", "NAME", "the account's name, such as ada@example.com (THICKET_USER)"),
        .value(
            "api-key", "KEY",
            "names the app; printed by 'thicketd app create', no secret (THICKET_API_KEY)"),
        .flag("partner", "the account is kept for a partner, whose API key is given"),
        .value(
            "password-file", "FILE",
            "the password, from this file or '-' for standard input; else it is asked for "
                + "(THICKET_PASSWORD_FILE, THICKET_PASSWORD)", completion: .file),
        .refused(
            "password",
            "\(seen) Leave it out and type the password when asked, or use --password-file FILE ('-' for standard "
                + "input), or the variable THICKET_PASSWORD."),
    ]

    private static let discardOption: Option = .flag(
        "discard", "replace another account under this profile's name, with edits it never sent")

    static let signup: Command = .init(
        "signup", summary: "make an account at a server and log in",
        details: """
            Asks for the password twice, without showing it. The account is kept by the server; the login goes into a
            profile, readable by you alone, that the other commands use.
            """,
        options: proofOptions + [discardOption] + accountOptions,
        examples: [
            Example(
                "thicket signup --server https://sync.example.com --app notes --api-key 0123… --user ada@example.com",
                "begin"),
            Example(
                "pass show notes | thicket signup --server https://sync.example.com --app notes --api-key 0123… "
                    + "--user ada@example.com --password-file -", "the password from another program"),
        ])

    static let login: Command = .init(
        "login", summary: "log in to an account, or with a token, and keep the login on this machine",
        details: """
            With --user, or in a profile of an account, asks for the password; else for a token as 'thicketd token
            create' prints it. What is typed is not shown. The login is tried at the server and kept in a profile,
            readable by you alone. The other commands use the profile 'default' unless --profile names another. What is
            left out stays as the profile has it, so after a sign-out 'thicket login' alone is enough.
            """,
        options: proofOptions + [discardOption] + accountOptions,
        examples: [
            Example(
                "thicket login --server https://sync.example.com --app notes --api-key 0123… --user ada@example.com",
                "an account"),
            Example("thicket login --server http://127.0.0.1:8000 --app notes", "with a token, which is asked for"),
            Example("thicket login --server http://127.0.0.1:8000 --app notes --token-file - < token", "in a script"),
            Example("thicket login --profile work --server https://sync.example.org --app notes", "a second one"),
            Example("thicket login", "again, after the login has ended"),
        ])

    static let logout: Command = .init(
        "logout", summary: "end the login, forget the profile and its copies",
        details: """
            Tells the server, which lets nobody in by this login any more, and removes the profile and the local copies
            from this machine. Edits that were never sent hold it up.
            """,
        options: [.flag("discard", "also when edits were never sent")] + accountOptions,
        examples: [Example("thicket logout --profile work", "forget one")])

    static let whoami: Command = .init(
        "whoami", summary: "print the name of the user who is logged in",
        details: "As it was at the login; 'thicket status' asks the server whether the login is still good.",
        options: [jsonOption] + accountOptions,
        examples: [Example("thicket whoami", "the name"), Example("thicket whoami --json", "with server and app")])

    static let devices: Command = .init(
        "devices", summary: "list where you are logged in",
        details: """
            Of an account: the logins that are good, by the ids that 'thicket token revoke' takes. Of a partner's user: the
            devices that the server has let in. '*' is this one.
            """,
        options: [jsonOption] + accountOptions, examples: [Example("thicket devices", "all of them")])

    private static let nowOption: Option = .value(
        "password-file", "FILE",
        "the password there is, from this file or '-' for standard input; else it is asked for "
            + "(THICKET_PASSWORD_FILE, THICKET_PASSWORD)", completion: .file)

    static let password: Command = .init(
        "password", summary: "set another password for your account",
        details: "Other machines are signed out by it; the login here goes on.",
        options: [
            nowOption,
            .value(
                "new-password-file", "FILE", "the new one, likewise (THICKET_NEW_PASSWORD_FILE, THICKET_NEW_PASSWORD)",
                completion: .file),
        ] + accountOptions,
        examples: [Example("thicket password", "asks for the old one, then twice for the new one")])

    static let accountDelete: Command = .init(
        "account delete", summary: "delete your account and everything the server keeps for it",
        details: """
            Asks for the password. The data is erased at the server; backups that its operator made before still have it.
            The copies on this machine stay until 'thicket logout'. There is no way back.
            """,
        options: [nowOption] + accountOptions,
        examples: [Example("thicket account delete", "asks for the password first")])

    static let tokenList: Command = .init(
        "token list", summary: "list the tokens of your account: one for each login",
        options: [jsonOption] + accountOptions,
        examples: [Example("thicket token list", "ids, ages and ends; '*' is the one used here")])

    static let tokenRevoke: Command = .init(
        "token revoke", summary: "end a token: whoever has it is signed out",
        arguments: [.one("ID", "as listed by 'thicket token list'; its first digits are enough")],
        options: accountOptions, examples: [Example("thicket token revoke 3f09a1", "a machine that was lost")])

    static let tokenPrint: Command = .init(
        "token print", summary: "print the token itself, renewed if need be, for another program",
        details: "Whoever has the token is you, until it ends. It is printed to standard output and nowhere else.",
        options: accountOptions,
        examples: [
            Example(
                "thicket token print | ssh other thicket login --server https://sync.example.com --app notes "
                    + "--token-file -", "the same login on another machine")
        ])
}
