import ThicketCommandLine

/// The declarations of `thicketd keylog …`.
extension ThicketdProgram {
    static let keyLogs = [keyLogShow, keyLogVerify, keyLogExport, keyLogRotate, keyLogWitness]

    private static let keyLogPlace = ServerSettings.options(["keylog-key-file"]) + placeOptions
    private static let keyLogOptions: [Option] = [.value("app", "APP", "the app", isRequired: true)] + keyLogPlace

    static let keyLogWitness = Command(
        "keylog witness", summary: "confirm the newest head of another server's key log, as a witness",
        details: """
            Needs no data folder. Fetches the head, demands that the log goes on from the newest one that this witness has
            seen, keeps it in the state file, and gives the server a confirmation, which devices require by 'thicket
            keylog --require-witness'. Confirmations count for an hour: run it every ten minutes. The server accepts the
            keys in its setting keylog-witnesses. Ends with 1 when nothing was confirmed; a log that contradicts what was
            seen is not confirmed, and evidence is written beside the state.
            """,
        options: [
            .value("of", "URL", "the server", isRequired: true), .value("app", "APP", "the app", isRequired: true),
            .value(
                "key", "FILE", "the witness's secret; made if it does not exist", isRequired: true, completion: .file),
            .value(
                "state", "FILE", "what was confirmed last; kept by the command", isRequired: true, completion: .file),
            .value("token-file", "FILE", "a token of a user of the app", isRequired: true, completion: .file),
            .value("log-key", "HEX", "the log's key from another source; else the server's, at the first run"),
            .value("ca", "FILE", "trust these certificates instead of the system's, PEM", completion: .file),
        ],
        examples: [
            Example(
                "thicketd keylog witness --of https://example.com --app notes --key w.key --state w.state "
                    + "--token-file w.token", "one confirmation")
        ])

    static let keyLogShow = Command(
        "keylog show", summary: "show the state of an app's key log",
        details: """
            Prints the number of entries and users, the public key that signs the log, the newest signed head, and the
            newest entries: time, kind, number, id of the keys, user or handle. Works beside a running server.
            """,
        options: keyLogOptions, examples: [Example("thicketd keylog show --app notes --data ./data", "its state")])

    static let keyLogVerify = Command(
        "keylog verify", summary: "verify an app's key log, or an exported one",
        details: """
            Rebuilds the log from its entries and verifies every signature, the newest head and the statements of
            replaced log keys. Ends with 0 for a sound log, with 1 otherwise. --file needs no data folder: compare the
            key in its output with the one that devices trust.
            """,
        options: [
            .value("app", "APP", "the app"),
            .value("file", "FILE", "verify what 'keylog export' wrote instead; - is standard input", completion: .file),
        ] + keyLogPlace,
        examples: [
            Example("thicketd keylog verify --app notes --data ./data", "the log of the data folder"),
            Example("thicketd keylog verify --file notes.keylog", "an exported one, anywhere"),
        ])

    static let keyLogExport = Command(
        "keylog export", summary: "write all entries of an app's key log",
        details: """
            Writes JSON lines to standard output: first the app, the log's key, the newest head and the statements of
            replaced keys, then one line for each entry. Nothing in it is secret: names are hashed, keys are public.
            """,
        options: keyLogOptions,
        examples: [Example("thicketd keylog export --app notes --data ./data > notes.keylog", "for an auditor")])

    static let keyLogRotate = Command(
        "keylog rotate", summary: "replace the secret that signs the key logs",
        details: """
            Makes a new secret and, for each app, a statement signed with the old and the new key, which devices get
            with the next head: they trust the new key without asking. The old file is kept as FILE.replaced-N for the
            backups that were made before. Refuses while a server runs. An interrupted change is finished or undone by
            the next start.
            """,
        options: keyLogPlace,
        examples: [Example("thicketd keylog rotate --data ./data", "when the file may have been read")])
}
