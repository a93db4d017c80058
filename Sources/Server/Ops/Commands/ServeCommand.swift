import Glibc
import ThicketCommandLine
import ThicketCrypto
import ThicketNet
import ThicketPlatform

/// `thicketd serve`: assembles the server and runs it on the calling thread, which must be the main one.
enum ServeCommand {
    /// - Parameter read: reads the settings again, from the sources of `loaded`.
    static func run(
        _ loaded: LoadedConfig, read: @escaping @Sendable () throws(CommandFailure) -> LoadedConfig
    ) throws(CommandFailure) {
        // Before the first thread: signals must reach the loop as events and no other thread.
        EventLoop.blockSignals()
        EventLoop.tuneHeap()
        let config = loaded.config
        let folder = try AdminCommands.folder(config, creating: true)
        let lock = try lock(folder)
        defer { withExtendedLifetime(lock) {} }
        let metrics = Metrics()
        let log = Log(
            level: config.logLevel, sink: DescriptorSink(dropped: metrics.logLinesDropped), idKey: try logKey(folder))
        for name in loaded.ignoredVariables {
            log.warning("config.variable_ignored", ["name": .text(name)])
        }
        let mail = try mail(config, folder, metrics, log)
        defer { mail?.finish() }
        let server = try make(
            config, folder, metrics, log, ConfigReload(running: config, log: log, read: read)
        ) { mail?.wake() }
        let handle = server.handle
        let control = try open(folder, log, handle)
        control.start()
        defer { control.stop() }
        let address = server.listener.address
        server.run { Terminal.write("thicketd \(ThicketServer.version) listening on \(address)\n") }
    }

    private static func lock(_ folder: DataFolder) throws(CommandFailure) -> FolderLock {
        do throws(DataFolderError) {
            return try folder.lock()
        } catch {
            throw CommandFailure(error)
        }
    }

    private static func make(
        _ config: ServerConfig, _ folder: DataFolder, _ metrics: Metrics, _ log: Log, _ reload: ConfigReload,
        mailed: @escaping @Sendable () -> Void
    ) throws(CommandFailure) -> Server {
        try finishInterrupted(config, folder, log)
        let loaded = try KeyFileCommands.load(config, folder)
        let own: ServerKey?
        let store: SQLiteStore
        do throws(StoreError) {
            store = try SQLiteStore(path: folder.databasePath, settings: .init(config.limits))
            own = try ServerKeyMark.claim(loaded, path: folder.databasePath)
        } catch {
            throw AdminCommands.failure(folder.databasePath, error)
        }
        // An account made under another key could not be checked once the right file is back.
        guard let key = own else { throw KeyFileCommands.foreign(folder.place(of: config.keyFile)) }
        guard let witnesses = KeyLogWitnesses.keys(config.keyLogWitnesses) else {
            throw CommandFailure(
                "keylog-witnesses: up to \(KeyLogWitnesses.keysMax) public keys of 64 hexadecimal digits, separated by "
                    + "commas, or none", .usage)
        }
        let keyLog = KeyLogAccess(
            path: folder.databasePath, key: try KeyLogCommands.load(config, folder),
            logs: KeyLogs(path: folder.databasePath, settings: .init(config.limits)), settings: .init(config.limits),
            witnesses: witnesses)
        do throws(NetError) {
            let server = try Server(
                config: config, store: store, retention: config.retention, metrics: metrics, log: log,
                reload: { reload.reload() },
                directory: { [path = folder.databasePath] in
                    try PartnerStore(path: path, key: key, settings: .init(config.limits), keyLogs: keyLog.logs)
                },
                accounts: AccountAccess(secrets: key.accountSecrets) { [path = folder.databasePath] in
                    try AccountStore(path: path, settings: .init(config.limits), keyLogs: keyLog.logs)
                },
                keyLog: keyLog,
                blobs: FolderBlobStore(folder: folder.path),
                outbox: { [spool = folder.place(of: config.mailFolder), from = config.mailFrom] in
                    MailSpool(folder: spool, from: from, onAdded: mailed)
                })
            try server.watchSignals()
            return server
        } catch {
            if case .tls(let problem) = error { throw CommandFailure(problem.description) }
            throw CommandFailure("\(error). Another program may have the port; --listen chooses another")
        }
    }

    /// Finishes or undoes an interrupted restore and an interrupted change of the key file.
    private static func finishInterrupted(
        _ config: ServerConfig, _ folder: DataFolder, _ log: Log
    ) throws(CommandFailure) {
        do throws(StoreError) {
            switch try StoreRestore.finishInterrupted(folder.databasePath) {
            case .finished(let replaced):
                log.warning("restore.finished", ["replaced": .text(replaced ?? "nothing")])
            case .undone: log.warning("restore.undone")
            case nil: break
            }
        } catch {
            throw AdminCommands.failure(folder.databasePath, error)
        }
        guard folder.hasDatabase else { return }
        do throws(KeyChangeError) {
            switch try KeyRotation.finishInterrupted(folder.place(of: config.keyFile), database: folder.databasePath) {
            case .finished(let replaced):
                log.warning("key_rotation.finished", ["replaced": .text(replaced ?? "nothing")])
            case .undone: log.warning("key_rotation.undone")
            case nil: break
            }
        } catch {
            throw CommandFailure("\(folder.path): \(error)")
        }
        try KeyLogCommands.finishInterrupted(config, folder, log)
    }

    /// Starts the delivery of messages; nil when no mail server is configured and they stay in their folder.
    private static func mail(
        _ config: ServerConfig, _ folder: DataFolder, _ metrics: Metrics, _ log: Log
    ) throws(CommandFailure) -> ServerMail? {
        do throws(SMTPSettings.Problem) {
            guard let settings = try SMTPSettings(config) else { return nil }
            let spool = MailSpool(folder: folder.place(of: config.mailFolder), from: config.mailFrom)
            return ServerMail(
                settings, spool: spool, metrics: metrics, log: log, now: { SystemClock.unixMilliseconds() })
        } catch {
            throw CommandFailure(error.description, .usage)
        }
    }

    private static func open(
        _ folder: DataFolder, _ log: Log, _ handle: ServerHandle
    ) throws(CommandFailure) -> ControlSocket {
        do throws(ControlError) {
            return try ControlSocket(
                folder: folder, log: log, signOut: { handle.signOut($0, $1) },
                changeMode: { handle.changeMode($0, $1, $2) }
            ) { question, report in
                handle.ask(question, report: report)
            }
        } catch {
            throw CommandFailure(error.description)
        }
    }

    /// The key of the hashes in the log, created at the first start.
    private static func logKey(_ folder: DataFolder) throws(CommandFailure) -> [UInt8] {
        if let kept = FileText.readBytes(folder.logKeyPath, bytesMax: 64), kept.count == 32 { return kept }
        let made = RandomBytes.make(32)
        let file = Glibc.open(folder.logKeyPath, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw CommandFailure("\(folder.logKeyPath) cannot be written: \(DataFolder.reason(errno))")
        }
        defer { close(file) }
        guard write(file, made, made.count) == made.count else {
            throw CommandFailure("\(folder.logKeyPath) cannot be written: \(DataFolder.reason(errno))")
        }
        return made
    }
}
