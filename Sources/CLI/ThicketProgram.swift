import ThicketClient
import ThicketCommandLine

/// The declaration of `thicket`: its commands, options, examples and exit codes.
public enum ThicketProgram {
    /// The whole program.
    public static let program = Program(
        name: "thicket", summary: "notes, lists and settings in sync, from the command line", version: Thicket.version,
        commands: [
            signup, login, recover, forgot, words, verify, pair, keys, audit, logout, lock, unlock, whoami, devices,
            tokenList,
            tokenRevoke, tokenPrint, passwd, password,
            accountDelete, status, list, get, put, remove,
            edit, watch, history, verifyHistory, revert, drop, repair, importing, exporting, mirror,
        ] + people + tree + MessageCommands.all + ShareCommands.all + LinkCommands.all + onions + [
            replay, jsondiff, crypto, verifyRelease, version,
        ],
        footer: footer)

    /// Why secrets must not be arguments.
    static let seen =
        "every user of this machine can see a command's arguments, and the shell keeps them; consider it disclosed."

    private static let proxySecret =
        "\(seen) A proxy with a name and a password is set with the variable THICKET_PROXY."

    /// Which account is used on which server.
    package static let accountOptions: [Option] = [
        .value("profile", "NAME", "the profile to use (THICKET_PROFILE)", defaultText: "default"),
        .value("server", "URL", "another server than the profile's (THICKET_SERVER)"),
        .value("app", "APP", "another app (THICKET_APP)"),
        .value(
            "token-file", "FILE", "a token from this file, '-' for standard input (THICKET_TOKEN_FILE, THICKET_TOKEN)",
            completion: .file),
        .refused("token", "\(seen) Use --token-file FILE ('-' for standard input), or the variable THICKET_TOKEN."),
        .value("ca", "FILE", "trust these certificates instead of the system's, PEM (THICKET_CA)", completion: .file),
        .value("pin", "PINS", "trust only servers with this public key: sha256//BASE64 (THICKET_PIN)"),
        .value("proxy", "URL", "go through this proxy: http://…, socks5://… (THICKET_PROXY)")
            .refusing { $0.utf8.contains(UInt8(ascii: "@")) ? proxySecret : nil },
        .value("timeout", "TIME", "longest wait for the server (THICKET_TIMEOUT)", defaultText: "30s"),
    ]
    package static let jsonOption = Option.flag("json", "print JSON, one object a line")
    private static let bucketArgument = Argument.one("BUCKET", "name of the bucket, such as notes")
    private static let keyArgument = Argument.one("KEY", "key of the object, such as plan")

    /// Options of commands that work on the objects of a bucket.
    static let bucketOptions: [Option] =
        [
            .flag(
                "sealed",
                "the bucket is one that the server cannot read, opened with the account's keys; needed the first time")
        ] + accountOptions

    private static func offline(_ text: String) -> Option { .flag("offline", text) }

    // MARK: - Accounts

    static let status = Command(
        "status", summary: "show who is logged in, whether the server answers, and what is not sent yet",
        options: [jsonOption] + accountOptions,
        examples: [Example("thicket status", "all of it"), Example("thicket status --json", "for a script")])

    // MARK: - Objects

    static let list = Command(
        "ls", summary: "list the objects of a bucket with their versions, or the buckets used here",
        arguments: [.optional("BUCKET", "name of the bucket; without it, the buckets used on this machine")],
        options: [
            .flag("long", short: "l", "also sizes and contents"), jsonOption,
            .flag("removed", "the removed objects in their place, with the version and the time of the removal"),
            offline("list the copy kept here, without the server"),
        ] + bucketOptions,
        examples: [
            Example("thicket ls", "buckets"), Example("thicket ls notes", "keys and versions"),
            Example("thicket ls notes --long --json | jq .object.title", "every title"),
            Example("thicket ls notes --removed", "what can be brought back with 'thicket revert'"),
        ])

    static let get = Command(
        "get", summary: "print an object, an old version of it, or one field",
        arguments: [bucketArgument, keyArgument],
        options: [
            .value("version", "N", "an old version that the server keeps"),
            .value("path", "A.B", "only this field; a text is printed as it is, ended by a line feed"),
            .flag("json", "print compact JSON on one line"), offline("read the copy kept here, without the server"),
        ] + bucketOptions,
        examples: [
            Example("thicket get notes plan", "the object"),
            Example("thicket get notes plan --path author.name", "one field"),
            Example("thicket get notes plan --version 3", "as it was"),
        ])

    static let put = Command(
        "put", summary: "make an object equal to the given one",
        details: """
            Replaces the whole object and waits until the server has confirmed it. Only the difference from before is
            sent. A refused object stays unchanged; if it had edits before that the server does not have, all of them
            stay here, and each command on the bucket says so until 'thicket drop' or another edit.
            """,
        arguments: [
            bucketArgument, keyArgument, .one("JSON", "a JSON object, '-' for standard input, or @FILE", .file),
        ],
        options: [offline("keep the edit here; the next command on the bucket sends it")] + bucketOptions,
        examples: [
            Example(#"thicket put notes plan '{"title": "Oak", "text": "Plant it."}'"#, "write"),
            Example("thicket put notes plan @plan.json", "from a file"),
            Example("thicket put --sealed diary today @today.json", "into a bucket that the server cannot read"),
            Example(
                "thicket get notes plan | jq '.done = true' | thicket put notes plan -", "change with another program"),
        ])

    static let remove = Command(
        "rm", summary: "remove objects",
        arguments: [bucketArgument, .atLeastOne("KEY", "keys of the objects")],
        options: [
            .flag("force", short: "f", "end with code 0 when an object does not exist"),
            offline("remove it here; the next command on the bucket sends the removal"),
        ] + bucketOptions,
        examples: [Example("thicket rm notes plan draft", "two objects")])

    static let edit = Command(
        "edit", summary: "edit an object in your editor and merge what you save",
        details: """
            Opens $VISUAL, else $EDITOR, else vi. What others change while you edit is not lost when you save: both
            edits are merged, texts character by character, and the command reports it. A missing object is created.
            """,
        arguments: [bucketArgument, keyArgument],
        options: [.value("text", "FIELD", "edit this text alone instead of the object's JSON")] + bucketOptions,
        examples: [
            Example("thicket edit notes plan", "as JSON"), Example("thicket edit notes plan --text text", "its text"),
            Example("EDITOR='code --wait' thicket edit notes plan", "with another editor"),
        ])

    static let watch = Command(
        "watch", summary: "print changes as they happen, until Ctrl-C",
        details: """
            Prints '+' for a new object, '~' for a changed one with what changed in it, '-' for a removed one. The
            connection's status is printed on standard error. Other commands may be used meanwhile.

            With --json a line is {"event":"changed","key":…,"new":…,"object":…,"diff":…}, {"event":"removed","key":…},
            {"event":"present","key":…,"object":…} (--all), or {"event":"missed","count":…} for a reader that is too
            slow. In sealed buckets '!' marks a value that lost a conflict of two edits, and alarms; with --json that is
            {"event":"conflict","key":…,"path":[…],"losing":…,"winning":…} and
            {"event":"integrity","key":…,"kind":…,"detail":…}.
            """,
        arguments: [bucketArgument, .any("KEY", "only these objects")],
        options: [jsonOption, .flag("all", "begin with the existing objects")] + bucketOptions,
        examples: [
            Example("thicket watch notes", "everything"),
            Example("thicket watch notes --json plan | jq .object.title", "one object, for a script"),
        ])

    static let history = Command(
        "history", summary: "list the versions of an object that the server keeps, newest first",
        arguments: [bucketArgument, keyArgument],
        options: [
            .value("limit", "N", "how many versions back to look, 1 to 1000", defaultText: "20"),
            .flag("diff", "show what each version changed"),
            .flag("export", "print what the server of a sealed bucket has stored, for 'thicket verify-history'"),
            jsonOption,
        ] + bucketOptions,
        examples: [
            Example("thicket history notes plan --diff", "who changed what, less the who"),
            Example("thicket history diary today --limit 1000 --export > today.history", "to be checked"),
        ])

    static let verifyHistory = Command(
        "verify-history", summary: "check that the exported versions of a sealed object are one history",
        details: """
            Opens every version with the account's keys that this machine has, and holds each against the one before:
            none may leave out, swap, repeat or replace an operation. No server is asked. Ends with 1 and names the
            versions where something does not fit.
            """,
        arguments: [.one("FILE", "as 'thicket history --export' has printed it", .file)],
        options: [
            .value("profile", "NAME", "the profile whose keys open it (THICKET_PROFILE)", defaultText: "default")
        ],
        examples: [
            Example("thicket verify-history today.history", "a file from 'thicket history diary today --export'")
        ])

    static let revert = Command(
        "revert", summary: "make an object what it was in an old version",
        details: """
            The old state becomes a new version; nothing of the history is lost. Without VERSION the object becomes what
            the server has: edits kept here that the server refused or never got are given up, as with 'thicket drop'.
            """,
        arguments: [bucketArgument, keyArgument, .optional("VERSION", "as listed by 'thicket history'")],
        options: bucketOptions,
        examples: [
            Example("thicket revert notes plan 3", "back to version 3"),
            Example("thicket revert notes plan", "back to what the server has"),
        ])

    static let drop = Command(
        "drop", summary: "drop edits kept here that the server refused or never received",
        details: """
            The object is again as the server has it. The object with the edits is printed first, as one line of JSON on
            standard output for each object, since no other copy exists. Edits that may have reached the server are not
            dropped. 'thicket status' lists refused edits. Another way out is 'thicket put' with a smaller object.
            """,
        arguments: [bucketArgument, .atLeastOne("KEY", "keys of the objects")],
        options: bucketOptions,
        examples: [Example("thicket drop notes plan > plan.json", "store the dropped edit in a file")])

    static let repair = Command(
        "repair", summary: "choose between this machine's object and the server's, where a sealed bucket does not fit",
        details: """
            The server of a sealed bucket cannot read it, and is not trusted: if it shows another state than this
            machine has seen before, also after it was restored from a backup, the object is read-only here until you
            choose. Without a choice both are shown. --mine creates the object again from this machine's copy; other
            machines are asked the same question or get yours. --servers takes the server's object, and prints this
            machine's, of which no other copy remains.

            A mirror has a separate copy: --mirror DIR is for objects that 'thicket mirror' has named. The mirror then
            writes or sends it.

            With --json a line is {"key":…,"problem":…,"mine":…,"readable":…,"server":…}: null for what is deleted, and
            no "server" where that cannot be read.
            """,
        arguments: [bucketArgument, .any("KEY", "the objects; without any, all that wait for a choice")],
        options: [
            .flag("mine", "keep this machine's object"), .flag("servers", "take the server's object"),
            .value("mirror", "DIR", "choose in the copy of this mirrored folder"), jsonOption,
        ] + bucketOptions,
        examples: [
            Example("thicket repair diary", "what waits, and what both have"),
            Example("thicket repair diary today --mine", "keep this machine's"),
        ])

    // MARK: - Folders

    private static let fileRules = """
        A file KEY.json is the object KEY; any other text file is an object {"text": …} whose key is the file's name.
        Characters that keys do not admit are written as in URLs: 'my notes.md' is the object my%20notes.md. Hidden
        files, subfolders and files that are not UTF-8 are left out.
        """

    static let importing = Command(
        "import", summary: "read the files of a folder into a bucket",
        details: fileRules
            + "\n\nFiles that cannot be taken are named, the others are taken. Objects without a file stay.",
        arguments: [bucketArgument, .one("DIR", "the folder", .folder)], options: bucketOptions,
        examples: [Example("thicket import notes ./my-notes", "all files")])

    static let exporting = Command(
        "export", summary: "write the objects of a bucket into a folder",
        details: fileRules + "\n\nAn existing file with other content is kept unless --force is given.",
        arguments: [bucketArgument, .one("DIR", "the folder; made when it is missing", .folder)],
        options: [
            .flag("force", short: "f", "replace files that differ"),
            offline("from the copy kept here, without the server"),
        ] + bucketOptions,
        examples: [Example("thicket export notes ./backup", "all objects")])

    static let mirror = Command(
        "mirror", summary: "keep a folder and a bucket the same, both ways",
        details: fileRules + """


            Changes go both ways until Ctrl-C. When a file and its object both changed, texts are merged character by
            character; a file is never overwritten with something it was not merged with. Deletions go both ways, but
            what was changed on the other side stays. A file that has nothing in common with the object of its name is
            renamed. Changes made while no mirror runs, or no server answers, are found and taken later; DIR/.thicket is
            the mirror's memory. "sent" and "removed" are said when the server has confirmed. A file that the server
            refuses is named in each run, and --once ends with 4 then (6: the token permits reading only).

            What is absent from another bucket of that name (a server without its data, or restored from a backup) is
            not deleted: it is sent again, and a file that differs there is kept beside it. When more than 20 files or
            objects, and more than half of all, would be removed at once, or the folder is empty, the mirror removes
            nothing and ends with 1.
            """,
        arguments: [.one("DIR", "the folder; made when it is missing", .folder), bucketArgument],
        options: [
            .flag("once", "bring both to the same state and end"),
            .value("allow-removals", "N", "remove up to N at once, or 'all', on either side"),
        ] + bucketOptions,
        examples: [
            Example("thicket mirror ./my-notes notes", "until Ctrl-C"),
            Example("thicket mirror ./my-notes notes --once", "from a timer"),
        ])

    // MARK: - Tools

    static let replay = Command(
        "replay", summary: "type recorded sessions through real clients and compare every final text",
        details: """
            TRACE is a recording in the JSON format of the public editing traces, packed with gzip or not. In a
            recording of several people at once each person is a client and --clients has no effect; else the clients
            take turns. Prints edits per second, bytes sent and the final length. The last line is MATCH, or the first
            difference, and then the exit code is 1. With --sealed they type into a sealed bucket, whose secret is
            random and lost at the end: the server orders changes that it cannot read.
            """,
        arguments: [.atLeastOne("TRACE", "recordings", .file)],
        options: [
            .value("clients", "N", "clients that take turns, 1 to 64", defaultText: "2"),
            .value(
                "bucket", "NAME", "the bucket to type in; each replay makes an object of its own",
                defaultText: "replay; with --sealed a new one, sealed-replay-…"
            ),
            .flag("sealed", "type into a sealed bucket"),
        ] + accountOptions,
        examples: [
            Example("thicket replay --clients 4 session.json.gz", "four clients take turns"),
            Example("thicket replay --sealed two.json.gz", "in a bucket that the server cannot read"),
        ])

    static let jsondiff = Command(
        "jsondiff", summary: "compare, patch and transform JSON objects for other programs",
        details: """
            Reads a JSON object a line and answers each with a line:
            diff       {"source","target"}          {"diff"}
            apply      {"source","diff"}            {"applied"}
            transform  {"base","a_diff","b_diff"}   {"transformed","result"}
            What cannot be done is answered by {"error"}. A diff maps keys to operations, as in a change's 'v'.
            """,
        arguments: [.one("VERB", "what to do", .oneOf(["diff", "apply", "transform"]))],
        options: [.flag("lines", "one JSON object a line, in and out")],
        examples: [
            Example(#"echo '{"source":{"a":1},"target":{"a":2}}' | thicket jsondiff diff --lines"#, "one difference")
        ])

    static let crypto = Command(
        "crypto", summary: "seal, open, derive and prove for other programs, to compare them with this one",
        details: """
            Reads a JSON object a line and answers each with a line. Bytes are hex.
            stretch         {"username","password"}                         {"stretched_username","stretched_password"}
            rncryptor-open  {"password","iterations","prf","message_hex"}   {"plaintext"}
            hpke-open       {"mode","aead_id","skRm","pkSm","info","enc","messages":[{"aad","ct"},…]}
                                                                            {"plaintexts":[…]}
            content-seal    {"suite","content_key","data_id","plaintext_hex"}
                                                                            {"sealed_hex"}
            content-open    {"suite","content_key","data_id","length","sealed_hex"}
                                                                            {"plaintext_hex"}
            name-tag        {"salt","name"}                                 {"tag"}
            words           {"words"}                                       {"entropy"}
            merkle          {"leaves":[…]}                                  {"root"}
                            also with "index"                               {"inclusion":[…]}, verified
                            also with "size1"                               {"consistency":[…]}, verified
            Whatever does not open is answered by one {"error"}, the same for every reason. A text that is not UTF-8 comes
            as {"plaintext_hex"}. For test data: the lines stay in memory, and shells store what is typed.
            """,
        arguments: [.one("OP", "what to do", .oneOf(CryptoLines.Operation.allCases.map(\.rawValue)))],
        options: [.flag("lines", "one JSON object a line, in and out")],
        examples: [
            Example(#"echo '{"leaves":["00","10"],"index":1}' | thicket crypto merkle --lines"#, "a root and a proof"),
            Example(
                #"echo '{"username":"hello","password":"World"}' | thicket crypto stretch --lines"#,
                "what an old notes account sends"),
        ])

    static let verifyRelease = Command(
        "verify-release", summary: "check that programs belong to a release that the release log contains",
        details: """
            Compares each file with the manifest in the release's proof, and the proof with the log's head, its
            signature, and the newest head that was seen on this machine before. Ends with 1 and says why when anything
            is not as it should be. What it proves and what not: docs/SECURITY-MODEL.md. Use a 'thicket' that you had
            before: a manipulated one would approve itself.
            """,
        arguments: [.atLeastOne("FILE", "downloaded programs, such as thicketd")],
        options: [
            .value(
                "proof", "FILE", "the release's proof", defaultText: "release.json beside the first", completion: .file),
            .value(
                "release-key", "HEX",
                "the key that signs the log, needed the first time and kept (THICKET_RELEASE_KEY)"),
        ],
        examples: [
            Example(
                "thicket verify-release thicketd thicket "
                    + "--release-key 3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "the first time"
            ),
            Example("thicket verify-release Downloads/thicketd --proof Downloads/release.json", "later"),
        ])

    static let version = Command("version", summary: "print the version")

    private static let footer = """
        Exit codes: \(exitCodes)
        Login: flags win over environment (THICKET_SERVER, THICKET_APP, THICKET_TOKEN, THICKET_PROFILE, THICKET_CA,
        THICKET_PROXY, THICKET_TIMEOUT) over the profile that 'thicket login' keeps in THICKET_HOME (~/.thicket).
        Begin: thicket signup --server https://HOST --app APP --api-key KEY --user YOU
        or, with a token that you were given: thicket login --server https://HOST --app APP
        """

    private static var exitCodes: String {
        ExitCode.meanings.map { "\($0.code.number) \($0.meaning)" }.joined(separator: ";\n  ") + "."
    }
}
