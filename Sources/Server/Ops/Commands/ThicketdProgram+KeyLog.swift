import ThicketCommandLine

/// The declarations of `thicketd keylog …`.
extension ThicketdProgram {
    static let keyLogs = [keyLogShow, keyLogVerify, keyLogExport, keyLogRotate]

    private static let keyLogPlace = ServerSettings.options(["keylog-key-file"]) + placeOptions
    private static let keyLogOptions: [Option] = [.value("app", "APP", "the app", isRequired: true)] + keyLogPlace

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
