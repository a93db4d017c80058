import Glibc
import ThicketAuth
import ThicketCommandLine
import ThicketPlatform
import ThicketProtocol

/// The commands that work on a data folder, with or without a server running on it.
enum AdminCommands {
    /// Niceness of commands that read the whole database, beside a server that may be busy.
    private static let niceness: Int32 = 10

    /// The data folder of the settings.
    static func folder(_ config: ServerConfig, creating: Bool) throws(CommandFailure) -> DataFolder {
        do throws(DataFolderError) {
            return try DataFolder(config.data, creating: creating)
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Refuses a folder with an interrupted restore: data read or written now is about to be replaced.
    static func expectWhole(_ folder: DataFolder) throws(CommandFailure) {
        guard !StoreRestore.isToBeFinished(folder.databasePath) else {
            throw CommandFailure(
                "\(folder.path): a restore was interrupted here; 'thicketd serve' finishes it, or 'thicketd restore' "
                    + "another one")
        }
    }

    /// As `folder`, and requires a database in it.
    static func folderWithData(_ config: ServerConfig) throws(CommandFailure) -> DataFolder {
        let folder = try folder(config, creating: false)
        try expectWhole(folder)
        guard folder.hasDatabase else {
            throw CommandFailure(
                "\(folder.path) has no database; 'thicketd app create' creates one, or name another folder "
                    + "with --data")
        }
        return folder
    }

    static func admin(_ folder: DataFolder) throws(CommandFailure) -> StoreAdmin {
        try bringingUpToDate(folder) { () throws(StoreError) in try StoreAdmin(path: folder.databasePath) }
    }

    /// Opens a store, which migrates an older one. A migration requires the folder's lock, because a server that
    /// holds it can only use the older schema.
    static func bringingUpToDate<Opened>(
        _ folder: DataFolder, _ open: () throws(StoreError) -> Opened
    ) throws(CommandFailure) -> Opened {
        let opened: Opened
        let older: Int64?
        let lock: FolderLock?
        do throws(StoreError) {
            older = try Schema.olderVersion(path: folder.databasePath)
        } catch {
            throw failure(folder.databasePath, error)
        }
        if let older { lock = try lockToMigrate(folder, older) } else { lock = nil }
        defer { withExtendedLifetime(lock) {} }
        do throws(StoreError) {
            opened = try open()
        } catch {
            throw failure(folder.databasePath, error)
        }
        if let older {
            Terminal.writeError(
                "thicketd: brought \(folder.databasePath) from schema version \(older) to \(Schema.version); older "
                    + "programs cannot use it any more\n")
        }
        return opened
    }

    private static func lockToMigrate(_ folder: DataFolder, _ older: Int64) throws(CommandFailure) -> FolderLock {
        do throws(DataFolderError) {
            return try folder.lock()
        } catch {
            guard error.kind == .folderInUse else { throw CommandFailure(error) }
            let holder = folder.processID.map { " (process \($0))" } ?? ""
            throw CommandFailure(
                """
                \(folder.path): the database has schema version \(older), this program works with \(Schema.version), and a server \
                holds the folder\(holder). Nothing was changed.
                Stop that server, take a backup ('thicketd backup'), start the server of this version, then try again; until \
                then use the version of 'thicketd' that the server runs.
                """, .folderInUse)
        }
    }

    /// A store's error, with advice on what to do next.
    static func failure(_ path: String, _ error: StoreError) -> CommandFailure {
        let advice =
            switch error.kind {
            case .full: "Free space on the disk and try again."
            case .io: "The disk reports errors: save a copy of the folder and check the system log."
            case .busy, .stale: "Another program holds the file; try again when it has released it."
            case .corrupt: "Keep a copy of the folder, then 'thicketd restore' the last good backup."
            case .schema: "It is not a Thicket database: check whether --data names the right folder."
            case .older:
                "It was written by an older thicketd. Take a backup ('thicketd backup' copies it as it is), then start "
                    + "'thicketd serve' of this version, which brings it up to date; until then use the older program."
            case .newer:
                "It was written by a newer thicketd: use that version. The way back is a backup from before it."
            case .unavailable: "Check the path and its permissions."
            case .closed, .constraint: "This is a bug: please report it."
            }
        return CommandFailure("\(path): \(error.detail)\n\(advice)")
    }

    static func createToken(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let grant = TokenGrant(
            app: try identifier(call.value("app")), user: try identifier(call.value("user")),
            isReadOnly: call.flag("read-only"), expires: try end(call.value("lifetime")))
        let folder = try folderWithData(config)
        let admin = try admin(folder)
        try expectSeen(grant, admin, folder)
        do throws(StoreAdminError) {
            Terminal.write(try admin.createToken(grant, now: UnixTime.now().milliseconds) + "\n")
            if let account = try admin.account(named: grant.user, of: grant.app) {
                Terminal.writeError(
                    "The app has an account of that name; the token is not for it but for a user named \(grant.user). For "
                        + "the account: --user \(account)\n")
            }
        } catch {
            throw CommandFailure("\(folder.path): \(explained(error, admin))")
        }
    }

    /// Refuses a name that can be mistaken for another, unless a user with that name exists.
    private static func expectSeen(
        _ grant: TokenGrant, _ admin: StoreAdmin, _ folder: DataFolder
    ) throws(CommandFailure) {
        guard let problem = UserID.problem(asNew: grant.user.text) else { return }
        let isThere: Bool
        do throws(StoreAdminError) { isThere = try admin.hasUser(grant.user, of: grant.app) } catch {
            throw CommandFailure("\(folder.path): \(explained(error, admin))")
        }
        guard isThere else { throw CommandFailure("user name: \(problem)", .usage) }
    }

    /// When a token made now ends, milliseconds since 1970.
    private static func end(_ lifetime: String?) throws(CommandFailure) -> Int64? {
        guard let lifetime else { return nil }
        do throws(ValueError) {
            let milliseconds = try SettingValue.milliseconds(lifetime)
            guard (1_000...Self.lifetimeMax).contains(milliseconds) else {
                throw ValueError("is outside 1s…3650d")
            }
            return UnixTime.now().milliseconds + milliseconds
        } catch {
            throw CommandFailure("--lifetime: \(error.problem)", .usage)
        }
    }

    /// Ten years, in milliseconds.
    private static let lifetimeMax: Int64 = 3_650 * 86_400_000

    static func check(_ config: ServerConfig) throws(CommandFailure) {
        let folder = try folderWithData(config)
        var findings: StoreFindings
        OwnThread.yieldToOthers(by: niceness)
        do throws(StoreError) {
            findings = try StoreCheck.run(folder.databasePath, blobs: folder.path)
        } catch {
            throw failure(folder.databasePath, error)
        }
        for finding in try KeyLogCommands.findings(config, folder) { findings.report(finding) }
        for finding in findings.findings { Terminal.write(finding + "\n") }
        if findings.findingsLeftOut > 0 { Terminal.write("and \(findings.findingsLeftOut) more\n") }
        let seen =
            "\(findings.buckets) buckets, \(findings.objects) objects, \(findings.changes) changes, "
            + "\(findings.keyframes) keyframes, \(findings.segments) segments, \(findings.blobs) blobs"
        guard findings.isClean else {
            throw CommandFailure(
                "\(folder.path): \(findings.findings.count + findings.findingsLeftOut) findings in \(seen). Keep a "
                    + "copy of the folder, then restore the last good backup; see docs/OPERATIONS.md")
        }
        Terminal.write("clean: \(seen)\n")
    }

    static func backup(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let folder = try folderWithData(config)
        let file = call.argument("FILE") ?? ""
        // A copy may take longer so that the server's clients do not wait for their acknowledgements.
        OwnThread.yieldToOthers(by: niceness)
        do throws(StoreError) {
            let report = try StoreBackup.run(from: folder.databasePath, to: file)
            Terminal.write(
                "wrote \(file): \(report.bytes) bytes, \(report.buckets) buckets, \(report.changes) changes, checked\n")
            if report.blobs > 0 { Terminal.write("\(report.blobs) blobs are in \(file).blobs\n") }
            warn(ofMissing: report.missingBlobs)
        } catch {
            throw failure("no backup was written to \(file)", error)
        }
    }

    static func restore(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let folder = try folder(config, creating: true)
        let file = call.argument("FILE") ?? ""
        let lock: FolderLock
        do throws(DataFolderError) {
            lock = try folder.lock()
        } catch {
            throw CommandFailure(error)
        }
        defer { withExtendedLifetime(lock) {} }
        do throws(StoreError) {
            let report = try StoreRestore.run(from: file, to: folder.databasePath)
            Terminal.write(
                "restored \(file) into \(folder.path); versions rose by \(report.versionsAdded), and every client "
                    + "will read its index again\n")
            if let kept = report.replaced { Terminal.write("the previous database is \(kept)\n") }
            warn(ofMissing: report.missingBlobs)
            KeyFileCommands.warnIfForeign(config, folder)
            KeyLogCommands.warnIfForeign(config, folder)
        } catch {
            throw failure("\(file) was not restored, \(folder.path) is unchanged", error)
        }
    }

    private static func warn(ofMissing blobs: Int) {
        guard blobs > 0 else { return }
        Terminal.writeError("thicketd: the bytes of \(blobs) blobs are missing; 'thicketd check' names them\n")
    }

    /// A name from the command line, checked.
    static func identifier<Name: Identifier>(_ text: String?) throws(CommandFailure) -> Name {
        do throws(IdentifierError) {
            return try Name(text ?? "")
        } catch {
            throw CommandFailure(error.description, .usage)
        }
    }

    /// The error, with advice on what to do next.
    static func explained(_ error: StoreAdminError, _ admin: StoreAdmin) -> String {
        guard case .unknownApp(let app) = error else { return error.description }
        let apps = ((try? admin.apps()) ?? []).map(\.text)
        let nearest = Suggestion.nearest(to: app.text, in: apps)
        return "\(error)" + (nearest.map { "; did you mean \($0)?" } ?? "; 'thicketd app create \(app)' makes it")
    }
}
