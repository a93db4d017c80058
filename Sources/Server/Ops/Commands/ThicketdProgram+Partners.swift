import ThicketCommandLine

extension ThicketdProgram {
    /// The commands about partners.
    static let partners = [
        partnerCreate, partnerAdd, partnerList, partnerRotate, partnerAPIKey, partnerDisable, partnerEnable,
        partnerPasswords,
    ]

    private static let keyOptions = ServerSettings.options(["key-file"]) + placeOptions
    private static let partnerArgument: [Argument] = [.one("ID", "the partner's number")]

    static let partnerCreate = Command(
        "partner create", summary: "add a partner and make its keys",
        details: """
            A partner's own server signs the tokens with which its users log in (docs/AUTH.md). Prints its number, the
            API key that its apps send, and the auth key that its server signs with. The auth key is shown only once;
            the database keeps it sealed under the key file. A running server knows the partner at once.
            """,
        options: [.value("id", "ID", "its number; the next free one by default")] + keyOptions,
        examples: [Example("thicketd partner create --data ./data", "a partner with new keys")])

    static let partnerAdd = Command(
        "partner add", summary: "add a partner whose keys exist",
        details: """
            For a partner of another server, with its number and API key there, or for a partner that has chosen its own
            auth key. The auth key is read from a file, '-' for standard input, so that it does not appear in a list of
            processes. The API key names the partner and is not secret.
            """,
        options: [
            .value("id", "ID", "its number", isRequired: true),
            .value("api-key", "KEY", "the API key its apps send", isRequired: true),
            .value("auth-key-file", "FILE", "file of its auth key, one line", completion: .file),
            .flag("no-auth-key", "its users cannot log in yet"),
        ] + keyOptions,
        examples: [
            Example(
                "thicketd partner add --id 7384 --api-key 72278fb2-34a0-7058-b26f-ad2782fc6bb5 --auth-key-file key.txt",
                "with its keys")
        ])

    static let partnerList = Command(
        "partner list", summary: "list the partners, their apps and how many users they have",
        details: "One line for each: number, state, API key, how many auth keys are good, users, apps. No secrets.",
        options: keyOptions, examples: [Example("thicketd partner list --data ./data", "all of them")])

    static let partnerRotate = Command(
        "partner rotate", summary: "give a partner a new auth key",
        details: """
            The newest auth key stays good beside the new one, an older one does not. When the partner's server signs
            with the new key, --finish drops the old one.
            """,
        arguments: partnerArgument,
        options: [
            .value(
                "auth-key-file", "FILE", "take the new key from a file, '-' for standard input", completion: .file),
            .flag("finish", "drop the old key instead of making a new one"),
        ] + keyOptions,
        examples: [
            Example("thicketd partner rotate 1000 --data ./data", "a second key beside the first"),
            Example("thicketd partner rotate 1000 --finish --data ./data", "only the second from now on"),
        ])

    static let partnerAPIKey = Command(
        "partner api-key", summary: "give a partner another API key",
        details: """
            Replaces its API key: a partner has one, as it proves nothing and only names the partner. Its apps must
            send the new one from now on, so this is for a partner whose key file was lost (see 'key abandon'), or whose
            API key must not name it any more. Users, tokens of the stream and auth keys do not change.
            """,
        arguments: partnerArgument,
        options: [
            .flag("new", "make one"),
            .value("file", "FILE", "take it from a file, '-' for standard input: one line", completion: .file),
        ] + keyOptions,
        examples: [
            Example("thicketd partner api-key 1000 --file api-key.txt --data ./data", "the key that its apps send"),
            Example("thicketd partner api-key 1000 --new --data ./data", "a new one"),
        ])

    static let partnerDisable = Command(
        "partner disable", summary: "refuse all tokens of a partner",
        details: """
            Its tokens are refused from the next request on, and a running server closes the connections of its users
            within a second. Their data stays.
            """,
        arguments: partnerArgument, options: keyOptions,
        examples: [Example("thicketd partner disable 1000 --data ./data", "until it is enabled again")])

    static let partnerPasswords = Command(
        "partner passwords", summary: "keep the passwords of a partner's users",
        details: """
            For partners without an authentication server: users register and log in under /v2/credentials, and
            this server signs their tokens with the partner's auth key (docs/AUTH.md). Clients with its API key, which
            its apps contain, may register then; registrations-per-minute bounds how many do.
            """,
        arguments: partnerArgument, options: [.flag("off", "refuse passwords again")] + keyOptions,
        examples: [Example("thicketd partner passwords 1000 --data ./data", "before its app is released")])

    static let partnerEnable = Command(
        "partner enable", summary: "accept tokens of a partner again",
        details: "Tokens signed while it was disabled are good if they have not ended.",
        arguments: partnerArgument, options: keyOptions,
        examples: [Example("thicketd partner enable 1000 --data ./data", "after 'partner disable'")])
}
