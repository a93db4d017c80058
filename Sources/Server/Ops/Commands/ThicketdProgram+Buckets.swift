import ThicketCommandLine

/// The declaration of `thicketd bucket mode`.
extension ThicketdProgram {
    static let bucketMode = Command(
        "bucket mode", summary: "make buckets sealed or open, or show their mode",
        details: """
            open: the server reads the objects and merges edits. sealed: the server only orders what clients have sealed
            with keys that it never gets, and refuses everything else with 400; clients merge. The mode is that of the
            buckets of this name of all users of the app, existing and future ones. It never changes
            while one of them has objects in the other mode: then nothing is changed, and the exit code is 1. Without a
            MODE the command shows the modes.

            A client may also make a new bucket of its user sealed by its first 'init'; a running server follows at
            once.
            """,
        arguments: [
            .one("APP", "the app, made by 'app create'"), .one("BUCKET", "the buckets' name"),
            .optional("MODE", "open or sealed", .oneOf(["open", "sealed"])),
        ],
        options: placeOptions,
        examples: [
            Example("thicketd bucket mode notes note sealed --data ./data", "no server reads notes any more"),
            Example("thicketd bucket mode notes note --data ./data", "show the modes"),
        ])
}
