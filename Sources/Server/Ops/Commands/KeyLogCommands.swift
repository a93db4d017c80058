import Glibc
import ThicketCommandLine
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// `thicketd keylog …`: the logs of users' keys, and the secret that signs them.
enum KeyLogCommands {
    /// Entries that `show` lists.
    private static let shownMax = 10

    // MARK: For all commands

    /// The secret that signs the key logs, created at its first use. Refuses one that did not sign what is stored.
    static func load(_ config: ServerConfig, _ folder: DataFolder) throws(CommandFailure) -> LogKey {
        let path = folder.place(of: config.keyLogKeyFile)
        let advice = "Restore the original file (keylog-key-file names another place): devices trust its key"
        do throws(StoreError) {
            guard folder.hasDatabase else { return try made(path) }
            let admin = try KeyLogAdmin(path: folder.databasePath)
            guard let key = try kept(path) else {
                guard try !admin.isSigned() else { throw StoreError(.unavailable, "\(path) is missing. \(advice)") }
                return try made(path)
            }
            guard try !admin.isForeign(key) else {
                throw StoreError(.unavailable, "\(path) did not sign the key logs of this database. \(advice)")
            }
            return key
        } catch {
            throw CommandFailure(error.detail)
        }
    }

    private static func made(_ path: String) throws(StoreError) -> LogKey {
        do throws(ServerKeyError) { return try LogKey.load(path) } catch {
            throw StoreError(.unavailable, error.description)
        }
    }

    private static func kept(_ path: String) throws(StoreError) -> LogKey? {
        do throws(ServerKeyError) { return try LogKey.read(path) } catch {
            throw StoreError(.unavailable, error.description)
        }
    }

    /// Finishes or undoes an interrupted change of the key, under the folder's lock.
    static func finishInterrupted(_ config: ServerConfig, _ folder: DataFolder, _ log: Log) throws(CommandFailure) {
        do throws(KeyChangeError) {
            let path = folder.place(of: config.keyLogKeyFile)
            switch try LogKeyChange.finishInterrupted(path, database: folder.databasePath) {
            case true?: log.warning("log_key_rotation.finished")
            case false?: log.warning("log_key_rotation.undone")
            case nil: break
            }
        } catch {
            throw CommandFailure("\(folder.path): \(error)")
        }
    }

    /// Warns that the key logs of a restored database are signed by another file than the one at the path.
    static func warnIfForeign(_ config: ServerConfig, _ folder: DataFolder) {
        let path = folder.place(of: config.keyLogKeyFile)
        guard let admin = try? KeyLogAdmin(path: folder.databasePath), (try? admin.isSigned()) == true else { return }
        let key = (try? LogKey.read(path)) ?? nil
        guard let key, (try? admin.isForeign(key)) == false else {
            Terminal.writeError(
                "thicketd: the key logs of the restored database are signed by a file other than \(path): put that file "
                    + "there before the server starts; an earlier one is kept as \(path).replaced-N\n")
            return
        }
    }

    /// Findings of all key logs, for `thicketd check`.
    static func findings(_ config: ServerConfig, _ folder: DataFolder) throws(CommandFailure) -> [String] {
        var findings = [String]()
        let (admin, apps) = try opened(folder)
        for app in apps { findings += try self.findings(app, admin, config, folder) }
        return findings
    }

    // MARK: Commands

    static func show(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let export = try export(call, config)
        let entries = export.entries.compactMap { try? KeyLogEntry($0) }
        let users = Set(entries.map { Array($0.user.utf8) }).count
        Terminal.write(
            """
            app      \(export.app)
            entries  \(export.entries.count)
            users    \(users), handles of names included
            key      \(Hex.encode(export.key))
            changes  \(export.rotations.count) of the key
            \(describe(export.head))

            """)
        for entry in entries.suffix(shownMax) {
            Terminal.write(
                "\(KeyCommands.date(Int64(entry.validFrom)))\t\(entry.kind)\t\(entry.sequence)\t\(entry.keys.id)\t"
                    + "\(entry.user)\n")
        }
    }

    static func verify(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        var (findings, export): ([String], KeyLogExport)
        if let file = call.value("file") {
            guard let bytes = FileText.readBytes(file, bytesMax: KeyLogExport.bytesMax) else {
                throw CommandFailure("\(file) cannot be read: \(DataFolder.reason(errno))")
            }
            guard let read = KeyLogExport(bytes) else {
                throw CommandFailure("\(file) is not what 'thicketd keylog export' writes, or is cut short")
            }
            (findings, export) = (read.findings, read)
        } else {
            export = try self.export(call, config)
            let folder = try AdminCommands.folderWithData(config)
            findings = try self.findings(export.app, try opened(folder).admin, config, folder)
        }
        for finding in findings { Terminal.write(finding + "\n") }
        guard findings.isEmpty else { throw CommandFailure("the key log of \(export.app) breaks its rules") }
        Terminal.write(
            "clean: \(export.entries.count) entries of \(export.app), signed with \(Hex.encode(export.key))\n")
    }

    static func export(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) -> KeyLogExport {
        guard let name = call.value("app") else { throw CommandFailure("--app names the app", .usage) }
        let app: AppID = try AdminCommands.identifier(name)
        let folder = try AdminCommands.folderWithData(config)
        let admin = try opened(folder).admin
        let isThere: Bool
        do throws(StoreError) { isThere = try admin.hasApp(app.text) } catch {
            throw AdminCommands.failure(folder.databasePath, error)
        }
        guard isThere else { throw CommandFailure("there is no app \(app)") }
        let key = try load(config, folder).key(of: app.text).verifyingKey
        do throws(StoreError) {
            return try admin.export(app.text, key: key)
        } catch {
            throw AdminCommands.failure(folder.databasePath, error)
        }
    }

    static func writeExport(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        for line in try export(call, config).lines { Terminal.write(line + "\n") }
    }

    static func rotate(_ config: ServerConfig) throws(CommandFailure) {
        let folder = try AdminCommands.folderWithData(config)
        let lock: FolderLock
        do throws(DataFolderError) { lock = try folder.lock() } catch { throw CommandFailure(error) }
        defer { withExtendedLifetime(lock) {} }
        let path = folder.place(of: config.keyLogKeyFile)
        do throws(KeyChangeError) {
            let report = try LogKeyChange.run(
                path, database: folder.databasePath, now: UnixTime.now().milliseconds)
            Terminal.write("\(path) signs the key logs from now on: stated for \(report.apps) apps\n")
            Terminal.writeError(
                "The file before it is \(report.replaced): backups made before now need it. Keep a copy of the new one "
                    + "apart from the data.\n")
        } catch {
            throw CommandFailure("\(error); nothing was changed")
        }
    }

    // MARK: Parts

    private static func opened(_ folder: DataFolder) throws(CommandFailure) -> (admin: KeyLogAdmin, apps: [String]) {
        do throws(StoreError) {
            let admin = try KeyLogAdmin(path: folder.databasePath)
            return (admin, try admin.apps())
        } catch {
            throw AdminCommands.failure(folder.databasePath, error)
        }
    }

    private static func findings(
        _ app: String, _ admin: KeyLogAdmin, _ config: ServerConfig, _ folder: DataFolder
    ) throws(CommandFailure) -> [String] {
        do throws(StoreError) {
            guard let key = try kept(folder.place(of: config.keyLogKeyFile)) else {
                return ["key log of \(app): \(folder.place(of: config.keyLogKeyFile)) is missing"]
            }
            let export = try admin.export(app, key: key.key(of: app).verifyingKey)
            return try admin.rowFindings(app) + export.findings
        } catch {
            throw AdminCommands.failure(folder.databasePath, error)
        }
    }

    private static func describe(_ head: [UInt8]?) -> String {
        guard let head = head.flatMap({ try? KeyLogHead($0) }) else { return "head     none was asked for yet" }
        return "head     \(head.size) leaves, root \(Hex.encode(head.root.bytes)), signed "
            + KeyCommands.date(Int64(head.time))
    }
}
