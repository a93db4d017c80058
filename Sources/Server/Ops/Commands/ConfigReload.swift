import Synchronization

/// The reaction of `thicketd serve` to SIGHUP: reads the settings again from the same sources and logs the
/// differences.
final class ConfigReload: Sendable {
    private let running: Mutex<ServerConfig>
    private let read: @Sendable () throws(CommandFailure) -> LoadedConfig
    private let log: Log

    /// - Parameter read: the settings from flags, environment and file, as at the start.
    init(
        running: ServerConfig, log: Log, read: @escaping @Sendable () throws(CommandFailure) -> LoadedConfig
    ) {
        self.running = Mutex(running)
        self.read = read
        self.log = log
    }

    /// Returns the settings to be in force; nil when they cannot be used: then everything stays as it is.
    ///
    /// The log's level is changed here, in an order that writes the lines about the change under both levels.
    func reload() -> ServerConfig? {
        let fresh: ServerConfig
        do throws(CommandFailure) {
            fresh = try read().config
        } catch {
            log.error("config.reload_failed", ["error": .text(error.text), "note": "the settings stay as they were"])
            return nil
        }
        let change = running.withLock { (running: inout ServerConfig) in
            let change = ConfigChange(from: running, to: fresh)
            running = change.config
            return change
        }
        log.setLevel(min(log.level, change.config.logLevel))
        for entry in change.applied {
            log.info(
                "config.changed", ["setting": .text(entry.name), "from": .text(entry.before), "to": .text(entry.after)])
        }
        for entry in change.waiting {
            log.warning(
                "config.needs_restart",
                ["setting": .text(entry.name), "from": .text(entry.before), "to": .text(entry.after)])
        }
        log.info(
            "server.reload", ["changed": .int(change.applied.count), "needing_restart": .int(change.waiting.count)])
        log.setLevel(change.config.logLevel)
        return change.config
    }
}
