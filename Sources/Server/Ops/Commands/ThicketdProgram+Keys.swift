import ThicketAuth
import ThicketCommandLine

/// The declarations of `thicketd app key …`, `token list` and `token revoke`.
extension ThicketdProgram {
    static let keys = [appPasswords, appNotes, appKeyAdd, appKeyList, appKeyRevoke]
    static let tokens = [tokenList, tokenRevoke]

    private static let appArgument = Argument.one("APP", "the app, made by 'app create'")

    private static let words = AppPasswords.allCases.map(\.word)

    /// Also an option of `app create`.
    static let passwordsOption = Option.value(
        "passwords", "WORD", "which passwords it accepts (see 'app passwords')",
        defaultText: "sent; closed with --partner", completion: .oneOf(words))

    static let appPasswords = Command(
        "app passwords", summary: "choose which passwords an app accepts, or show it",
        details: """
            sent: passwords of its users, as Simperium's clients send them (create/, authorize/, update/). notes: also
            the names and passwords that the old notes app hashes without a salt; only for the app that those clients
            use. none: passwords are refused, users log in with keys of their clients (auth/), or with tokens. closed:
            also, accounts cannot be created; users log in with a partner's tokens, or yours. Existing accounts and
            tokens stay; a password cannot be used while passwords are refused.
            """,
        arguments: [appArgument, .optional("WORD", "sent, notes, none or closed", .oneOf(words))],
        options: placeOptions,
        examples: [
            Example("thicketd app passwords shop none --data ./data", "its clients never send a password"),
            Example("thicketd app passwords shop --data ./data", "show the setting"),
        ])

    static let appNotes = Command(
        "app notes", summary: "turn encrypted notes of an app on or off, or show the setting",
        details: """
            on: each user's bucket 'onions' holds encrypted notes: at most 10, or any number for users that
            'thicketd account pro' made Pro. pro: all users are Pro. off: a bucket of that name is like any other. The
            server checks the number and the length of notes and refuses more with 413; it cannot read them. Existing
            notes stay. For the old clients' logins see 'app passwords notes'.
            """,
        arguments: [appArgument, .optional("WORD", "off, on or pro", .oneOf(AppNotes.allCases.map(\.word)))],
        options: placeOptions,
        examples: [
            Example("thicketd app notes onions on --data ./data", "10 notes for each user that is not Pro"),
            Example("thicketd app notes onions --data ./data", "show the setting"),
        ])

    static let appKeyAdd = Command(
        "app key add", summary: "make another key of an app",
        details: """
            Prints the key, 32 hex digits, and nothing else. It is shown only once: the server keeps only its hash. An
            API key is part of the app itself and permits creating accounts and logging in; an admin key also sets
            passwords and deletes accounts, so it must stay in the operator's own programs.
            """,
        arguments: [appArgument],
        options: [.flag("admin", "make an admin key")] + placeOptions,
        examples: [
            Example("thicketd app key add notes --data ./data", "for the next version of the app"),
            Example("ADMIN=$(thicketd app key add notes --admin --data ./data)", "into a variable"),
        ])

    static let appKeyList = Command(
        "app key list", summary: "list the keys of an app",
        details: "One line for each: the first 8 digits of its hash, what it is, when it was made. The oldest first.",
        arguments: [appArgument], options: placeOptions,
        examples: [Example("thicketd app key list notes --data ./data", "all of them")])

    static let appKeyRevoke = Command(
        "app key revoke", summary: "end a key of an app",
        details: "Requests with it are refused from the next one on. Users that are logged in stay logged in.",
        arguments: [appArgument, .one("KEY", "as 'app key list' names it")], options: placeOptions,
        examples: [Example("thicketd app key revoke notes 1f0c62ab --data ./data", "by the digits of its hash")])

    static let tokenList = Command(
        "token list", summary: "list the tokens of an app or of one user",
        details: """
            One line for each: the first 16 digits of its hash, the user, what it may do, when it was made, when it
            ends, and the device it was made for. 10,000 lines at most. Tokens of an account are listed with its id;
            --user accepts its name as well.
            """,
        options: [
            .value("app", "APP", "the app", isRequired: true),
            .value("user", "USER", "only those of this user: a name, or an account's name or id"),
        ] + placeOptions,
        examples: [Example("thicketd token list --app notes --user ann@example.com --data ./data", "Ann's")])

    static let tokenRevoke = Command(
        "token revoke", summary: "end tokens of a user",
        details: """
            Name one, or all of them with --all. A running server closes the user's connections at once; another
            good token connects again.
            """,
        arguments: [.optional("TOKEN", "as 'token list' names it")],
        options: [
            .value("app", "APP", "the app", isRequired: true),
            .value("user", "USER", "the user: a name, or an account's name or id", isRequired: true),
            .flag("all", "every token of the user"),
        ] + placeOptions,
        examples: [
            Example("thicketd token revoke 90ab34cd56ef7812 --app notes --user ann@example.com", "one"),
            Example("thicketd token revoke --all --app notes --user ann@example.com", "a lost device"),
        ])
}
