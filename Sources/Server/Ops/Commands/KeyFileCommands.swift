import Glibc
import ThicketCommandLine

/// `thicketd key …`: the file that seals the secrets in the database.
enum KeyFileCommands {
    // MARK: For all commands

    /// The key of the secrets in the database, created at its first use.
    static func load(_ config: ServerConfig, _ folder: DataFolder) throws(CommandFailure) -> ServerKey {
        let path = folder.place(of: config.keyFile)
        if isLost(path, folder) {
            throw CommandFailure(
                """
                \(path) is missing, and keys in the database are sealed by it: restore the original file (key-file \
                names another place).
                \(advice)
                """)
        }
        do throws(ServerKeyError) {
            return try ServerKey.load(path)
        } catch {
            throw CommandFailure(error.description)
        }
    }

    /// Refuses while the key file is being replaced: data sealed now could be sealed under the wrong key.
    static func expectNoKeyRotation(_ config: ServerConfig, _ folder: DataFolder) throws(CommandFailure) {
        let path = folder.place(of: config.keyFile)
        guard !KeyRotation.isUnderWay(path) else {
            throw CommandFailure(
                "\(KeyRotation.fresh(path)) exists: the key file is being replaced, or that was interrupted. "
                    + "'thicketd serve' or 'thicketd key rotate' finishes it")
        }
    }

    /// The error for a key file that does not seal the database.
    static func foreign(_ path: String) -> CommandFailure {
        CommandFailure(
            """
            \(path) is not the key file by which this database is sealed; nothing was changed. Restore the original \
            file (key-file names another place; 'thicketd key check --key-file FILE' tells whether it is the one).
            \(advice)
            """)
    }

    private static let advice =
        "If it is lost for good, 'thicketd key abandon' continues without it, and lists the next steps."

    /// The error when the key file does not exist.
    private static func missing(_ path: String, _ database: String) -> CommandFailure {
        CommandFailure(
            ServerKeyMark.isSet(path: database)
                ? "\(path) is missing: restore the original file (key-file names another place).\n\(advice)"
                : "\(path) does not exist: the server's first start creates it, or the first command about partners")
    }

    private static func isLost(_ path: String, _ folder: DataFolder) -> Bool {
        access(path, F_OK) != 0 && errno == ENOENT && folder.hasDatabase
            && ServerKeyMark.isSet(path: folder.databasePath)
    }

    // MARK: Commands

    static func check(_ config: ServerConfig) throws(CommandFailure) {
        let folder = try AdminCommands.folderWithData(config)
        try expectNoKeyRotation(config, folder)
        let path = folder.place(of: config.keyFile)
        guard access(path, F_OK) == 0 || errno != ENOENT else { throw missing(path, folder.databasePath) }
        let admin = try PartnerCommands.open(folder, try load(config, folder))
        if admin.isKeyForeign { throw foreign(path) }
        let all = try PartnerCommands.list(admin, folder)
        let lost = all.filter { $0.apiKey == nil }
        Terminal.write(
            "\(path) is the key file of this database and opens the keys of \(all.count - lost.count) of "
                + "\(count(all.count, "partner"))\n")
        reportLost(of: lost, path)
    }

    static func rotate(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        try changing(config) { (path, database) throws(KeyChangeError) in
            if let other = call.value("to") {
                let resealed = try KeyRotation.to(other, from: path, database: database)
                Terminal.write(resealed.map { describe($0, other) } ?? "\(other) is the key file of this database\n")
                Terminal.writeError(
                    "Set key-file = \(other) before the server starts. Backups made before now need \(path): keep it as "
                        + "long as them, and keep a copy of the new one apart from the data.\n")
                return
            }
            let report = try KeyRotation.inPlace(path, database: database)
            Terminal.write(describe(report.resealed, path))
            Terminal.writeError(
                "The key file before it is \(report.replaced): backups made before now need it. Keep it as long as them, "
                    + "and keep a copy of the new one apart from the data.\n")
        }
    }

    static func abandon(_ config: ServerConfig) throws(CommandFailure) {
        try changing(config) { (path, database) throws(KeyChangeError) in
            guard try KeyRotation.abandonOld(path, database: database) else {
                Terminal.write("\(path) is the key file of this database: nothing is lost, and nothing was changed\n")
                return
            }
            Terminal.write("\(path) is the key file of this database from now on\n")
        }
        let folder = try AdminCommands.folderWithData(config)
        let path = folder.place(of: config.keyFile)
        let admin = try PartnerCommands.open(folder, try load(config, folder))
        reportLost(of: try PartnerCommands.list(admin, folder).filter { $0.apiKey == nil }, path)
    }

    /// Warns that a restored database is sealed by a key file other than the one at the path.
    static func warnIfForeign(_ config: ServerConfig, _ folder: DataFolder) {
        let path = folder.place(of: config.keyFile)
        guard ServerKeyMark.isSet(path: folder.databasePath) else { return }
        let key = (try? ServerKey.read(path)) ?? nil
        guard let key, ServerKeyMark.isOwn(key, path: folder.databasePath) else {
            Terminal.writeError(
                "thicketd: the restored database is sealed by a key file other than \(path): put that file there "
                    + "before "
                    + "the server starts; an earlier one is kept as \(path).replaced-N\n")
            return
        }
    }

    // MARK: Parts

    /// Runs `body` under the folder's lock, because a running server holds the key in memory.
    private static func changing(
        _ config: ServerConfig, _ body: (_ path: String, _ database: String) throws(KeyChangeError) -> Void
    ) throws(CommandFailure) {
        let folder = try AdminCommands.folderWithData(config)
        let lock: FolderLock
        do throws(DataFolderError) {
            lock = try folder.lock()
        } catch {
            throw CommandFailure(error)
        }
        defer { withExtendedLifetime(lock) {} }
        let path = folder.place(of: config.keyFile)
        do throws(KeyChangeError) {
            try body(path, folder.databasePath)
        } catch {
            switch error {
            case .foreign(let path): throw foreign(path)
            case .store(let problem): throw AdminCommands.failure(folder.databasePath, problem)
            case .missing(let path): throw missing(path, folder.databasePath)
            case .file(let problem):
                throw CommandFailure(
                    "\(problem)\nNothing was changed. Where the file may not be replaced, 'thicketd key rotate --to FILE' "
                        + "makes another one.")
            case .tooMany: throw CommandFailure("\(error)")
            }
        }
    }

    private static func describe(_ report: KeyReseal.Report, _ path: String) -> String {
        let left =
            report.unopened == 0 ? "" : "; \(report.unopened) that an abandoned key file sealed stay as they are"
        return
            "\(path) is the key file of this database from now on: sealed again \(count(report.apiKeys, "API key")) and "
            + "\(count(report.authKeys, "auth key")) of partners and \(count(report.accounts, "account"))\(left)\n"
    }

    private static func reportLost(of lost: [PartnerAdmin.Listed], _ path: String) {
        guard !lost.isEmpty else { return }
        var text = "These partners admit no user, because their keys are sealed by a lost key file:\n"
        for partner in lost {
            text +=
                "  thicketd partner api-key \(partner.id) --file FILE   (with the API key that its apps send; or --new)\n"
            text += "  thicketd partner rotate \(partner.id)                (a new auth key for its server)\n"
        }
        text +=
            "Accounts with keys log in again by mailed code; those with passwords, and all tokens, are unaffected.\n"
        Terminal.writeError(text)
    }

    private static func count(_ number: Int, _ thing: String) -> String {
        "\(number) \(thing)\(number == 1 ? "" : "s")"
    }
}
