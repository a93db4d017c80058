import ThicketCommandLine

/// The declarations of `thicketd key …`.
extension ThicketdProgram {
    static let keyFiles = [keyCheck, keyRotate, keyAbandon]

    private static let keyOptions = ServerSettings.options(["key-file"]) + placeOptions

    static let keyCheck = Command(
        "key check", summary: "check whether a key file is the database's",
        details: """
            Ends with 0 when the file that key-file names is the one by which the secrets in the database are sealed,
            with 1 otherwise. Lists partners whose keys it does not open. Changes nothing; may run beside the server.
            """,
        options: keyOptions,
        examples: [
            Example("thicketd key check --data /srv/thicket", "the file that the server uses"),
            Example("thicketd key check --key-file /safe/place/thicket-server.key --data /srv/thicket", "the copy"),
        ])

    static let keyRotate = Command(
        "key rotate", summary: "replace the server's key file",
        details: """
            Makes a new key file and seals all that the old one sealed under it, in one transaction: the keys of
            partners and the verifiers of accounts with keys. Keys of partners and users do not change. The old file is
            kept beside the new one, as FILE.replaced-N, for the backups that were made before. Refuses while a server
            runs.

            It may be interrupted at any moment: until all is sealed again the old file is the right one and stays in
            its place; after that the next 'thicketd serve' or 'key rotate' renames the new one, and reports it.
            """,
        options: [
            .value(
                "to", "FILE", "seal under the key in FILE, created if missing, and leave the old file as it is",
                completion: .file)
        ] + keyOptions,
        examples: [
            Example("thicketd key rotate --data /srv/thicket", "once a year, or when it may have been read"),
            Example(
                "thicketd key rotate --to /etc/thicket/key-2 --data /srv/thicket",
                "where the old file cannot be replaced, such as a secret of a container"),
        ])

    static let keyAbandon = Command(
        "key abandon", summary: "continue without a key file that is lost for good",
        details: """
            Adopts the file that key-file names, or a new one if it does not exist, although another one sealed the
            database. Data sealed by that one stays, and opens again if it is found and adopted in the same way. Until
            then partners need new keys; the command lists the steps. Refuses while a server runs; changes nothing when
            no key file is lost.
            """,
        options: keyOptions,
        examples: [Example("thicketd key abandon --data /srv/thicket", "no copy of server.key was kept")])
}
