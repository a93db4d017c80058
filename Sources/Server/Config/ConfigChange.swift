/// What a reloaded settings file changes in a running server.
public struct ConfigChange: Sendable {
    /// One setting with its two values as written in a settings file; secret values are not shown.
    public struct Entry: Sendable, Equatable {
        /// The setting's name.
        public let name: String
        /// The value in force before.
        public let before: String
        /// The new value.
        public let after: String
    }

    /// Settings whose new value is in force from now on.
    public private(set) var applied: [Entry] = []
    /// Settings whose new value takes effect at the next start, because their objects are created at the start.
    public private(set) var waiting: [Entry] = []
    /// The settings in force from now on: the new values, and the old ones of `waiting`.
    public private(set) var config: ServerConfig

    /// - Parameters:
    ///   - running: the settings in force.
    ///   - fresh: the settings read now, from all sources.
    public init(
        from running: ServerConfig, to fresh: ServerConfig, table: [Setting] = ServerSettings.all,
        fixed: Set<String> = ServerSettings.fixed
    ) {
        config = fresh
        for setting in table {
            let (before, after) = (setting.read(running), setting.read(fresh))
            guard !before.utf8.elementsEqual(after.utf8) else { continue }
            let entry =
                setting.isSecret
                ? Entry(name: setting.name, before: "(hidden)", after: "(hidden)")
                : Entry(name: setting.name, before: before, after: after)
            if fixed.contains(setting.name) {
                waiting.append(entry)
                // The value was read from there, so it can be written there.
                try? setting.write(before, &config)
            } else {
                applied.append(entry)
            }
        }
    }
}
