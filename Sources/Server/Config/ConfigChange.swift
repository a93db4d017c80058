/// What a settings file that is read again changes in a running server.
public struct ConfigChange: Sendable {
    /// One setting with its two values as they would stand in the file; a secret's are not shown.
    public struct Entry: Sendable, Equatable {
        public let name: String
        public let before: String
        public let after: String
    }

    /// Settings whose new value is in force from now on.
    public private(set) var applied: [Entry] = []
    /// Settings whose new value waits for the next start, because what they govern was made at this one.
    public private(set) var waiting: [Entry] = []
    /// What runs from now on: the new values, and the old ones of what waits.
    public private(set) var config: ServerConfig

    /// - Parameters:
    ///   - running: what is in force.
    ///   - fresh: what was read now, from all places.
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
                // It was read from there, so it can be written there.
                try? setting.write(before, &config)
            } else {
                applied.append(entry)
            }
        }
    }
}
