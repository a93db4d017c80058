import ThicketCommandLine

/// The commands about accounts and logins.
extension ThicketProgram {
    /// How a user proves their identity. A secret is never an argument.
    private static let proofOptions: [Option] = [
        .value("user", "NAME", "the account's name, such as ada@example.com (THICKET_USER)"),
        .value(
            "api-key", "KEY",
            "names the app; printed by 'thicketd app create', no secret (THICKET_API_KEY)"),
        .flag(
            "sent-password",
            "the account is of the older kind, whose password the server gets to see, as Simperium's apps have it"),
        .flag("partner", "the account is kept for a partner, whose API key is given; its password is sent"),
        .value(
            "password-file", "FILE",
            "the password, from this file or '-' for standard input; else it is asked for "
                + "(THICKET_PASSWORD_FILE, THICKET_PASSWORD)", completion: .file),
        .refused(
            "password",
            "\(seen) Leave it out and type the password when asked, or use --password-file FILE ('-' for standard "
                + "input), or the variable THICKET_PASSWORD."),
    ]

    private static let discardOption = Option.flag(
        "discard", "replace another account under this profile's name, with edits it never sent")

    package static let signup = Command(
        "signup", summary: "make an account at a server and log in",
        details: """
            Asks for the password twice, without showing it. The password stays on this machine: the server gets a key
            made from it, and the account's keys as bytes that it cannot open. Sealed content cannot be reset, so write
            down the recovery words ('thicket words') and confirm them ('thicket verify'). Login and keys go into a
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

    package static let login = Command(
        "login", summary: "log in to an account, or with a token, and keep the login on this machine",
        details: """
            With --user, or in a profile of an account, asks for the password, which stays on this machine, and opens
            the account's keys; else for a token as 'thicketd token create' prints it. What is typed is not shown. The
            login is tried at the server and kept in a profile, readable by you alone. The other commands use the
            profile 'default' unless --profile names another. A value that is left out stays as in the profile, so after
            a sign-out 'thicket login' alone is enough.
            """,
        options: proofOptions + [
            .value(
                "partner-id", "ID", "with --partner and --token-file, for a token that the partner's server has signed"),
            discardOption,
        ] + accountOptions,
        examples: [
            Example(
                "thicket login --server https://sync.example.com --app notes --api-key 0123… --user ada@example.com",
                "an account"),
            Example("thicket login --server http://127.0.0.1:8000 --app notes", "with a token, which is asked for"),
            Example("thicket login --server http://127.0.0.1:8000 --app notes --token-file - < token", "in a script"),
            Example("thicket login --profile work --server https://sync.example.org --app notes", "a second one"),
            Example("thicket login", "again, after the login has ended"),
        ])

    package static let logout = Command(
        "logout", summary: "end the login, forget the profile and its copies",
        details: """
            Ends the login at the server, which then does not accept it, and removes the profile and the local copies
            from this machine. The command refuses while some edits were never sent.
            """,
        options: [.flag("discard", "also when edits were never sent")] + accountOptions,
        examples: [Example("thicket logout --profile work", "forget one")])

    private static let passphraseOption = Option.value(
        "passphrase-file", "FILE",
        "the passphrase from this file or '-' for standard input; else it is asked for (THICKET_PASSPHRASE_FILE, "
            + "THICKET_PASSPHRASE)", completion: .file)
    private static let profileOption = Option.value(
        "profile", "NAME", "the profile to use (THICKET_PROFILE)", defaultText: "default")

    static let lock = Command(
        "lock", summary: "close the login and the local copies until a passphrase is given",
        details: """
            Login and copies are always sealed; the key is beside them, for you alone. This seals the key, too, with a
            passphrase that is asked for the first time, twice. Commands end with exit code 8 until 'thicket unlock'.
            If you forget the passphrase, 'thicket logout --discard' and a new login are the way out.
            """,
        options: [
            .flag(
                "new-passphrase",
                "set another passphrase; without this, the one from --passphrase-file must be the present one"),
            passphraseOption, profileOption,
        ],
        examples: [
            Example("thicket lock", "before the lid is closed"),
            Example("thicket lock --new-passphrase", "another one, from the unlocked state"),
        ])

    static let unlock = Command(
        "unlock", summary: "open the login and the local copies of a locked profile",
        details: """
            Takes about a second, by design. The key is then in memory (XDG_RUNTIME_DIR) until you log out of the
            machine; on machines without that, beside the copies until 'thicket lock'.
            """,
        options: [passphraseOption, profileOption],
        examples: [
            Example("thicket unlock", "asks for the passphrase"),
            Example("pass show notes | thicket unlock --passphrase-file -", "from another program"),
        ])

    static let whoami = Command(
        "whoami", summary: "print the name of the user who is logged in",
        details: "As it was at the login; 'thicket status' asks the server whether the login is still good.",
        options: [jsonOption] + accountOptions,
        examples: [Example("thicket whoami", "the name"), Example("thicket whoami --json", "with server and app")])

    static let devices = Command(
        "devices", summary: "list where you are logged in",
        details: """
            For an account: the valid logins, by the ids for 'thicket token revoke'. For a partner's user: the
            devices that the server has admitted. '*' is this one.
            """,
        options: [jsonOption] + accountOptions, examples: [Example("thicket devices", "all of them")])

    private static let nowOption = Option.value(
        "password-file", "FILE",
        "the password there is, from this file or '-' for standard input; else it is asked for "
            + "(THICKET_PASSWORD_FILE, THICKET_PASSWORD)", completion: .file)

    private static let newPasswordOption = Option.value(
        "new-password-file", "FILE", "the new one, likewise (THICKET_NEW_PASSWORD_FILE, THICKET_NEW_PASSWORD)",
        completion: .file)

    private static let passwordDetails = """
        Other machines are signed out; this machine's login and sealed content stay unchanged. For a partner's user this
        is the content passphrase, which seals the keys at the server.
        """

    static let passwd = Command(
        "passwd", summary: "set another password for your account", details: passwordDetails,
        options: [nowOption, newPasswordOption] + accountOptions,
        examples: [Example("thicket passwd", "asks for the old one, then twice for the new one")])

    static let password = Command(
        "password", summary: "the same as passwd", details: passwordDetails,
        options: [nowOption, newPasswordOption] + accountOptions,
        examples: [Example("thicket password", "asks for the old one, then twice for the new one")])

    // MARK: - Keys

    /// A backup of the access key that the user keeps outside of machines. It is never an argument.
    private static let backupOptions = [
        .value(
            "words-file", "FILE", "the 24 words, from this file or '-' for standard input; else they are asked for",
            completion: .file),
        .value("code-file", "FILE", "a code of 'thicket words --code', in place of the words", completion: .file),
        .value(
            "pieces-file", "FILE", "pieces of 'thicket words --pieces', with an empty line between them",
            completion: .file),
        passcodeOption,
        .refused("words", "\(seen) Leave it out and type them when asked, or use --words-file FILE."),
    ]

    private static let passcodeOption = Option.value(
        "passcode-file", "FILE", "the passcode of a code (THICKET_PASSCODE_FILE, THICKET_PASSCODE)", completion: .file)

    package static let recover = Command(
        "recover", summary: "set another password with the recovery words, and get everything back",
        details: """
            For a forgotten password, or after the loss of every machine. The words are typed in one line; case does not
            matter, and the first four letters of a word are enough. Only a proof derived from them leaves this machine.
            """,
        options: proofOptions.filter { ["user", "api-key", "password"].contains($0.name) } + backupOptions
            + [newPasswordOption, discardOption] + accountOptions,
        examples: [
            Example(
                "thicket recover --server https://sync.example.com --app notes --api-key 0123… --user ada@example.com",
                "asks for the words, then twice for a new password"),
            Example("thicket recover --code-file code.txt", "with a code and its passcode"),
        ])

    static let forgot = Command(
        "forgot", summary: "set another password with a code that the server mails",
        details: """
            For an account whose name is a mail address, at a server that sends mail. The code resets the login, but no
            sealed content: a machine that has the keys opens the account at once, any other with the recovery words
            ('thicket recover').
            """,
        options: proofOptions.filter { ["user", "api-key"].contains($0.name) } + [
            .value(
                "mail-code-file", "FILE",
                "a code that has arrived already, from this file or '-' for standard input; the server then sends none",
                completion: .file), newPasswordOption, discardOption,
        ] + accountOptions,
        examples: [
            Example("thicket forgot", "in a profile of the account: asks for the code, then twice for a new password")
        ])

    static let words = Command(
        "words", summary: "show the recovery words of your account, or the same key as a code or in pieces",
        details: """
            The key that is shown opens everything in the account, without any password. A code is the key under a
            passcode chosen for it; pieces are for several people or places, some of which together make the key. It is
            never sent; the server is asked whether it is still the newest.

            --renew makes another key first, in case another person has seen the words: it asks for the password. The
            old words, codes and pieces then open nothing any more that the server returns. An earlier copy of the
            sealed keys, in a backup or with the server's operator, still opens with them, and shows what was and what
            will be written: the keys to your content stay the same. Other machines continue.
            """,
        options: [
            .flag("renew", "make another key, and so other words, and show those"), nowOption, contentPassphraseOption,
            .flag("code", "a code under a passcode, in four lines"), passcodeOption,
            .value("pieces", "N", "so many pieces, 2 to 16", defaultText: "3"),
            .value("needed", "K", "so many of them make the key", defaultText: "2"),
        ] + accountOptions,
        examples: [
            Example("thicket words", "24 words"), Example("thicket words --code", "for a drawer that others may open"),
            Example("thicket words --pieces 5 --needed 3", "for five friends"),
            Example("thicket words --renew", "another person saw the paper: asks for the password, shows new words"),
        ])

    package static let verify = Command(
        "verify", summary: "check that the words you kept are the key of your account, or compare keys with a person",
        details: """
            Without USER: your own words. Until this was done once, commands remind you of it. With USER: the safety
            number, 60 digits that both of you see if each has the other's true keys.
            """,
        arguments: [.optional("USER", "a person: login name or id; without it, your own words are checked")],
        options: [
            .value("matches", "DIGITS", "the digits that the other person sees; equal ones confirm the person's keys")
        ] + backupOptions + accountOptions,
        examples: [
            Example("thicket verify", "asks for the words"),
            Example("thicket verify ben@example.com", "digits to read out on the phone"),
            Example("thicket verify --pieces-file pieces.txt", "tries some of the pieces"),
        ])

    package static let pair = Command(
        "pair", summary: "get your account's keys from another machine that has them",
        details: """
            On the new machine, without CODE: prints a code of 26 letters and waits for two minutes. On a machine that
            has the keys, with that code: sends them, sealed for the new machine alone. Both then print four words; they
            are equal, or the connection is intercepted. The new machine gets a login, too, unless a partner makes
            yours. A machine that has the keys and is logged in does not wait: it says so, and --discard pairs it all
            the same.
            """,
        arguments: [.optional("CODE", "as the new machine shows it; capitals and hyphens do not count")],
        options: [
            .flag("yes", "do not ask whether the words are equal: if you have compared them in another way"),
            .value("api-key", "KEY", "names the app, on a new machine; no secret (THICKET_API_KEY)"), discardOption,
        ] + accountOptions,
        examples: [
            Example(
                "thicket pair --server https://sync.example.com --app notes --api-key 0123…", "on the new machine"),
            Example("thicket pair abcd-efgh-ijkl-mnop-qrst-uvwx-yz", "on the old one"),
        ])

    package static let audit = Command(
        "audit", summary: "show what the server stores about you, next to what you see",
        details: "Without BUCKET: the account. With it: the bucket's objects, 100 at most.",
        arguments: [.optional("BUCKET", "name of a bucket, such as notes")], options: accountOptions,
        examples: [Example("thicket audit", "the account"), Example("thicket audit notes", "objects")])

    private static let contentPassphraseOption = Option.value(
        "content-passphrase-file", "FILE",
        "the content passphrase (THICKET_CONTENT_PASSPHRASE_FILE, THICKET_CONTENT_PASSPHRASE)", completion: .file)

    static let keys = Command(
        "keys",
        summary: "open the keys of a partner's user on this machine, or make them; replace keys, or put them back",
        details: keysDetails,
        options: [
            .flag("make", "make the keys, on the first machine"),
            .flag("no-passphrase", "keep the keys on machines and in the words alone"), contentPassphraseOption,
            .flag("rotate", "replace the keys under which others know the account; the old ones sign the new ones"),
            .flag("exchange-only", "with --rotate: only the key to which others seal; compared numbers stay"),
            .flag("restored", "the server was restored from a backup: put this machine's newer keys back there"),
            nowOption,
        ] + backupOptions + accountOptions,
        examples: [
            Example("thicket keys --make", "on the first machine"), Example("thicket keys", "on the next one"),
            Example("thicket keys --rotate", "after a machine was lost"),
            Example("thicket keys --restored", "the server's operator says that it was restored from a backup"),
        ])

    static let accountDelete = Command(
        "account delete", summary: "delete your account and everything the server keeps for it",
        details: """
            Asks for the password. The data is erased at the server; backups that its operator made before still have
            it. The copies on this machine stay until 'thicket logout'. This cannot be undone.
            """,
        options: [nowOption] + accountOptions,
        examples: [Example("thicket account delete", "asks for the password first")])

    static let tokenList = Command(
        "token list", summary: "list the tokens of your account: one for each login",
        options: [jsonOption] + accountOptions,
        examples: [Example("thicket token list", "ids, ages and ends; '*' is the one used here")])

    static let tokenRevoke = Command(
        "token revoke", summary: "end a token: every machine that uses it is signed out",
        arguments: [.one("ID", "as listed by 'thicket token list'; its first digits are enough")],
        options: accountOptions, examples: [Example("thicket token revoke 3f09a1", "a machine that was lost")])

    static let tokenPrint = Command(
        "token print", summary: "print the token itself, renewed if need be, for another program",
        details: "A program with the token acts as you until the token ends. It is printed only to standard output.",
        options: accountOptions,
        examples: [
            Example(
                "thicket token print | ssh other thicket login --server https://sync.example.com --app notes "
                    + "--token-file -", "the same login on another machine")
        ])
}

private let keysDetails = """
    A partner's token logs you in and opens no content: the keys of your content are made on your first machine,
    and are stored at the server under a content passphrase that the partner never sees, or on your machines and
    in the words alone.

    --rotate is for every user with keys: it replaces the key that signs your messages and the one to which others
    seal them, for example after a machine was lost. The old key signs the new one in the server's key log, so
    that your contacts need not do anything. What was sealed to the old key still opens, also for a thief. With
    --exchange-only the signing key stays, and so do the numbers that you have compared with contacts.

    --restored is for every user with keys, also with an account of the server, and for one case: the server's
    operator has told you that a backup was restored there, and commands say that it shows an older version of
    the account's keys. The keys that this machine has are then written there again. What the server has must
    open with them and is merged with them; else nothing is written. If the login is lost, too, the password is
    asked for: the one from the time of the backup. Begin with the machine that changed the keys last; machines
    that still say so do it, too, and each that changed them after the backup does it before anything else.
    """
