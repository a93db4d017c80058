import ThicketCommandLine

/// The declarations of `thicketd account …`.
extension ThicketdProgram {
    static let accounts = [accountList, accountPro, accountDelete]

    private static let appOption = Option.value("app", "APP", "the app", isRequired: true)

    static let accountList = Command(
        "account list", summary: "list the accounts of an app, or find one by its name",
        details: """
            One line for each: the user's id, to which buckets and tokens belong, the name, whether the account has a
            password or a key, and when it was made. In the order of names; 10,000 lines at most.
            """,
        arguments: [.optional("NAME", "only the account of this name")], options: [appOption] + placeOptions,
        examples: [
            Example("thicketd account list --app notes --data ./data", "all of them"),
            Example("thicketd account list ann@example.com --app notes --data ./data", "find an account by name"),
        ])

    static let accountPro = Command(
        "account pro", summary: "allow a user an unlimited number of encrypted notes, or end that",
        details: """
            For apps with encrypted notes ('app notes'). Names of old notes accounts are sealed: their users find their
            id with 'thicket onions list --old-account'. With --partner, NAME is a user of the partner that the app is
            tied to: the partner's own id of the user, or the one that 'thicket onions list' shows. --receipt is kept
            and reported to users of accounts as the old client's ProReceipt. Ending Pro removes no note, but a user
            with 10 or more cannot add any.
            """,
        arguments: [.one("NAME", "the account's name, or the user's id")],
        options: [
            appOption, .flag("partner", "NAME is a user of the app's partner"),
            .value("receipt", "TEXT", "the proof of payment"), .flag("end", "no longer Pro"),
        ] + placeOptions,
        examples: [
            Example("thicketd account pro 0f3c… --app onions --receipt 1000000123 --data ./data", "by the user's id"),
            Example(
                "thicketd account pro customer-7 --partner --app onions --data ./data", "by the partner's id"),
        ])

    static let accountDelete = Command(
        "account delete", summary: "end an account and erase its data",
        details: """
            The account's tokens end at once, and a running server closes its connections. The data is erased by the
            running server, or by the next one. Backups that were made before keep it.
            """,
        arguments: [.one("NAME", "the account's name")], options: [appOption] + placeOptions,
        examples: [Example("thicketd account delete ann@example.com --app notes --data ./data", "as Ann requested")])
}
