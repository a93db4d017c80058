import ThicketCommandLine

/// The declaration of `thicketd`: its commands, options, examples and exit codes.
public enum ThicketdProgram {
    /// Settings that every command needs to find the data.
    static let placeOptions: [Option] =
        ServerSettings.options(["data"]) + [
            .value(
                "config", "FILE", "settings file of 'name = value' lines (THICKET_CONFIG names it too)",
                completion: .file)
        ]

    private static let serveOptions: [Option] =
        ServerSettings.options() + placeOptions.filter { (option: Option) in option.name == "config" }

    private static let accountOptions: [Option] = [
        .value("app", "APP", "the app, made by 'app create'", isRequired: true),
        .value("user", "USER", "the user's name: an e-mail address or any name", isRequired: true),
    ]

    /// The whole program.
    public static let program = Program(
        name: "thicketd", summary: "sync server of the Simperium streaming protocol", version: ThicketServer.version,
        commands: [serve, appCreate] + keys + [bucketMode, tokenCreate, tokenImport] + tokens + accounts + partners
            + keyFiles + keyLogs
            + [check, backup, restore, ask, health, config, version],
        footer: footer)

    static let serve = Command(
        "serve", summary: "run the server",
        details: """
            Serves the data folder until SIGTERM or SIGINT, then closes connections, finishes what was begun and ends
            with exit code 0; a second signal ends it at once. Prints one line when it listens, and one log line for
            each event to standard error. One server serves a folder; the other commands may be used while it runs.

            Every setting may also be given in the environment (THICKET_IDLE_TIMEOUT=90s) or in a file (--config);
            flags win over the environment, that over the file. 'thicketd config' shows the result.
            """,
        options: serveOptions,
        examples: [
            Example("thicketd serve --data ./data", "on 127.0.0.1:8000"),
            Example("thicketd serve --data /srv/thicket --listen 0.0.0.0:8000", "for every address of this machine"),
            Example(
                "thicketd serve --listen 0.0.0.0:443 --tls-cert /etc/thicket/chain.pem --tls-key /etc/thicket/key.pem",
                "over TLS; SIGHUP reads both files again"),
            Example("THICKET_LOG_LEVEL=debug thicketd serve --config /etc/thicket.conf", "settings from all places"),
        ])

    static let appCreate = Command(
        "app create", summary: "add an app",
        details: """
            A running server knows the app at once. Prints an API key, for the app itself, and an admin key, for the
            operator's own programs; both are shown only once. An existing app is not changed, except with --partner,
            if it has none yet: the partner's users may then log in from now on. Such an app accepts no new accounts of
            its own if it has none; if it has some it continues as before, and the command reports that clients with its
            API key may still create accounts. --passwords sets it explicitly.
            """,
        arguments: [.one("NAME", "1 to 64 letters, digits, '.', '_' or '-'; kept in small letters")],
        options: [
            .value("partner", "ID", "the partner whose tokens let users in; an app cannot change its partner"),
            passwordsOption,
        ] + placeOptions,
        examples: [
            Example("thicketd app create notes --data ./data", "the app 'notes'"),
            Example("thicketd app create shop --partner 1000 --data ./data", "an app with a partner's users"),
        ])

    static let tokenCreate = Command(
        "token create", summary: "make a token for a user",
        details: """
            Prints the token, 32 hex digits, and nothing else. It is shown only once: the server keeps only its hash.
            A user may have many tokens. USER is the name used on this server; a token for an account is made for its
            id ('account list').
            """,
        options: accountOptions + [
            .flag("read-only", "changes by this token are refused with 401"),
            .value("lifetime", "TIME", "how long it is good, such as 90d; without end unless given"),
        ] + placeOptions,
        examples: [
            Example("thicketd token create --app notes --user ann@example.com --data ./data", "for Ann's devices"),
            Example("TOKEN=$(thicketd token create --app notes --user bot --read-only)", "into a variable"),
        ])

    static let tokenImport = Command(
        "token import", summary: "import tokens of another server",
        details: """
            FILE has one JSON object on each line: {"app":"notes","user":"ann@example.com","token":"…"}, and
            "read_only":true if so. '-' is standard input. Either all lines are taken or none: every line that cannot
            be taken is named. A line that is known already changes nothing, so the same file may be given again.
            """,
        arguments: [.one("FILE", "JSON lines, '-' for standard input", .file)], options: placeOptions,
        examples: [Example("thicketd token import tokens.jsonl --data ./data", "from a file")])

    static let check = Command(
        "check", summary: "audit the stored data",
        details: """
            Reads the whole database and proves what must hold: heads, chains, keyframes and positions. Changes
            nothing, and may run beside the server. Ends with 0 when all is well, with 1 and one line for each finding
            when not.
            """,
        options: placeOptions, examples: [Example("thicketd check --data ./data", "audit a folder")])

    static let backup = Command(
        "backup", summary: "write a consistent copy while the server runs",
        details: """
            Writes one file that holds everything up to a moment during the command, checked after it was written. FILE
            must not exist yet. The copy holds user data and token hashes: keep it as safe as the folder itself. It does
            not hold the key file: keep a copy of that apart from both.
            """,
        arguments: [.one("FILE", "where to write it", .file)], options: placeOptions,
        examples: [Example("thicketd backup /backup/thicket-$(date +%F).db --data /srv/thicket", "every night")])

    static let restore = Command(
        "restore", summary: "replace the data with a backup",
        details: """
            Refuses while a server runs. The copy is checked first; the previous database is kept beside the
            new one and its name is printed. Positions and versions are advanced, so that clients that saw newer data
            start again from the index and send again what only they have. The server needs the key file by which the
            backup was sealed; the command warns when the current one is another.
            """,
        arguments: [.one("FILE", "made by 'thicketd backup'", .file)], options: placeOptions,
        examples: [Example("thicketd restore /backup/thicket-2026-01-31.db --data /srv/thicket", "go back")])

    static let ask = Command(
        "ask", summary: "ask the clients of a bucket for their state or their logs",
        details: """
            Sends the question to every client that has the bucket open now and prints what comes back, one line of
            JSON for each answer, until the time is over. Clients may choose not to answer.
            """,
        arguments: [
            .one("APP", "the app"), .one("USER", "the user; of an account, its id"), .one("BUCKET", "the bucket"),
            .one(
                "WHAT", "index: what they hold; log:1, log:2: send log messages; log:0: stop",
                .oneOf(["index", "log:0", "log:1", "log:2"])),
        ],
        options: [.value("wait", "TIME", "how long to wait for answers", defaultText: "5s")] + placeOptions,
        examples: [
            Example("thicketd ask notes ann@example.com note index --data ./data", "what Ann's clients hold"),
            Example("thicketd ask notes ann@example.com note log:2 --wait 60s", "a minute of their logs"),
        ])

    static let health = Command(
        "health", summary: "ask a running server whether it can commit",
        details: """
            Asks over HTTP where 'listen' says, over TLS where 'tls-cert' is set, and prints the state. Exits with 0
            when a change would be accepted, 1 when not, 4 without a server. For container health checks and scripts
            that wait for the start.
            """,
        options: ServerSettings.options(["listen", "tls-cert", "tls-key", "trust-proxy", "proxy-protocol"])
            + placeOptions,
        examples: [Example("thicketd health --listen 127.0.0.1:8000", "is it up?")])

    static let config = Command(
        "config", summary: "show every setting in force and where it comes from",
        details: "The output is a settings file that gives the same settings again. Secrets are hidden.",
        options: serveOptions,
        examples: [Example("thicketd config --listen 0.0.0.0:8000", "what 'serve' would use with this flag")])

    static let version = Command("version", summary: "print the version")

    private static let footer = """
        Exit codes: 0 done; 1 it did not work, or 'check' found something; 2 the words or settings given cannot be
        used; 3 the data folder is in use by a server; 4 no server runs on the folder.
        Settings: flags over environment (THICKET_…) over file (--config) over defaults; see docs/OPERATIONS.md.
        """
}

extension ExitCode {
    /// The data folder is in use by a server (or a restore).
    static let folderInUse = ExitCode(3)
    /// The command needs a server on the folder, and none runs.
    static let noServer = ExitCode(4)
}
