import ThicketCommandLine

/// Commands about other people's keys.
extension ThicketProgram {
    package static let people: [Command] = [contacts, contactsAdd, contactsRemove, keylog, verifyEvidence]

    private static let userArgument = Argument.one("USER", "a login name, or the id of an account")

    private static let contacts = Command(
        "contacts", summary: "list the people whose keys this machine knows, and whether they are verified",
        details: """
            States: verified (the server's key log vouches for the keys), compared (you have compared the safety number),
            rotated (you have compared an earlier number, and the old keys have signed the new ones),
            needs-confirmation (the keys were replaced without a signature of the old ones: 'thicket verify USER'),
            alarm (the log has broken its rules about this user: 'thicket keylog').
            """,
        options: [jsonOption] + accountOptions, examples: [Example("thicket contacts", "all of them")])

    private static let contactsAdd = Command(
        "contacts add", summary: "look a person up and keep the keys", arguments: [userArgument],
        options: accountOptions, examples: [Example("thicket contacts add ben@example.com", "by login name")])

    private static let contactsRemove = Command(
        "contacts remove", summary: "forget a person's keys: the next ones are accepted like first ones",
        arguments: [userArgument], options: accountOptions,
        examples: [Example("thicket contacts remove ben@example.com", "after an alarm that was explained to you")])

    private static let keylog = Command(
        "keylog", summary: "check your own keys in the server's key log, and show what this machine knows of the log",
        details: """
            Appends your entries if they are missing. A witness is a program of another operator that confirms the
            log; once you require one, nothing is sealed to others and no message is shown while its confirmation is
            missing or older than an hour. An alarm is something that the server's log has signed and must
            not have: evidence of it is kept, and --evidence writes it to a file which everyone can verify with
            'thicket verify-evidence'. Ends with code 9 while an alarm is not resolved.
            """,
        options: [
            jsonOption,
            .flag("reset", "the server's operator says that the log was begun again or restored: forget its heads"),
            .value("evidence", "FILE", "write the newest alarm's evidence to this file", completion: .file),
            .value("require-witness", "KEY", "believe the log only if this witness has confirmed it in the last hour"),
            .flag("no-witness", "require no witness any more"),
        ] + accountOptions,
        examples: [
            Example("thicket keylog", "your own entries, and the log's key"),
            Example("thicket keylog --evidence alarm.json", "for others to verify"),
        ])

    private static let verifyEvidence = Command(
        "verify-evidence", summary: "verify the evidence of an alarm, without a server",
        details: "Ends with 0 when it is proven that the log's key has signed a contradiction, with 1 otherwise.",
        arguments: [.one("FILE", "written by 'thicket keylog --evidence'", .file)],
        options: [.value("log-key", "HEX", "the log's key from another source; else the one in the file")],
        examples: [Example("thicket verify-evidence alarm.json", "says what is proven, and against which key")])
}
