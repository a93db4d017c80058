import ThicketCommandLine

/// All problems of the settings, found in one pass.
public struct ConfigError: Error, Equatable, CustomStringConvertible {
    /// One line each: the source, the problem, and the nearest known name if one is close.
    public let problems: [String]
    /// All problems, one per line.
    public var description: String { problems.joined(separator: "\n") }
}

/// The settings in force and the source of each.
public struct LoadedConfig: Sendable {
    /// The source of a value, the strongest first.
    public enum Source: Sendable, Equatable, CustomStringConvertible {
        /// A command line flag.
        case flag
        /// An environment variable.
        case environment
        /// A line of the settings file, counted from 1.
        case file(path: String, line: Int)
        /// The default.
        case standard

        /// The flag, the variable, or the file and line.
        public var description: String {
            switch self {
            case .flag: "flag"
            case .environment: "environment"
            case .file(let path, let line): "\(path):\(line)"
            case .standard: "default"
            }
        }
    }

    /// The settings in force.
    public let config: ServerConfig
    /// In the order of the table.
    public let sources: [(setting: Setting, source: Source)]
    /// Variables that begin with `THICKET_` and are not settings.
    public let ignoredVariables: [String]

    /// Lines `name = value  # source` that a settings file accepts; secrets are hidden.
    public var text: String {
        let rows = sources.map { (entry: (setting: Setting, source: Source)) in
            let value = entry.setting.isSecret ? "(hidden)" : ConfigLoader.quoted(entry.setting.read(config))
            return ("\(entry.setting.name) = \(value)", entry.source)
        }
        let width = rows.map { (row: (String, Source)) in row.0.count }.max() ?? 0
        return rows.map { (row: (String, Source)) in
            row.0 + String(repeating: " ", count: width - row.0.count) + "  # \(row.1)\n"
        }.joined()
    }
}

/// Reads settings. Flags override the environment, then the file, then the defaults.
public struct ConfigLoader: Sendable {
    /// A settings file as text, with the path to show in errors.
    public struct File: Sendable {
        /// Path of the file, as shown in errors.
        public let path: String
        /// Content of the file.
        public let text: String
        /// A file that was read.
        public init(path: String, text: String) {
            self.path = path
            self.text = text
        }
    }

    /// Variables with our prefix that are not settings of the server.
    public static let otherVariables: Set<String> = [
        "THICKET_CONFIG", "THICKET_VECTORS", "THICKET_COMPOSE", "THICKET_SERVER", "THICKET_TOKEN", "THICKET_APP",
        "THICKET_HOME",
    ]

    private let table: [Setting]

    /// A loader for the settings of `table`.
    public init(table: [Setting] = ServerSettings.all) { self.table = table }

    /// - Parameters:
    ///   - flags: `--name value` pairs; names are known, because the command line was parsed with the same table.
    ///   - environment: all variables of the process; those that do not begin with `THICKET_` are ignored.
    /// - Throws: `ConfigError` with all problems; no setting is applied then.
    public func load(
        flags: [(name: String, value: String)] = [], environment: [String: String] = [:], file: File? = nil
    ) throws(ConfigError) -> LoadedConfig {
        var state = State()
        if let file { read(file, into: &state) }
        let ignored = read(environment, into: &state)
        for (name, value) in flags {
            guard let setting = setting(name) else {
                state.problems.append("--\(name): unknown setting\(hint(name) { "--" + $0 })")
                continue
            }
            set(setting, value, "--\(name)", .flag, &state)
        }
        guard state.problems.isEmpty else { throw ConfigError(problems: state.problems) }
        let sources: [(setting: Setting, source: LoadedConfig.Source)] = table.map { (setting: Setting) in
            (setting, state.sources[setting.name] ?? .standard)
        }
        return LoadedConfig(config: state.config, sources: sources, ignoredVariables: ignored)
    }

    private struct State {
        var config = ServerConfig()
        var sources = [String: LoadedConfig.Source]()
        var problems = [String]()
    }

    private func setting(_ name: String) -> Setting? { table.first { $0.name == name } }

    private func hint(_ name: String, _ form: (String) -> String) -> String {
        Suggestion.nearest(to: name, in: table.map(\.name)).map { "; did you mean \(form($0))?" } ?? ""
    }

    private func set(
        _ setting: Setting, _ text: String, _ place: String, _ source: LoadedConfig.Source, _ state: inout State
    ) {
        do throws(ValueError) {
            try setting.write(text, &state.config)
            state.sources[setting.name] = source
        } catch {
            // A secret is not shown, not even an invalid one.
            state.problems.append("\(place): " + (setting.isSecret ? "the value is not valid" : error.problem))
        }
    }

    /// Returns the variables that are neither settings nor misspelled ones: a service manager may set such variables
    /// (Kubernetes sets `THICKET_PORT_8000_TCP` for a service named "thicket").
    private func read(_ environment: [String: String], into state: inout State) -> [String] {
        var ignored = [String]()
        for (variable, value) in environment.sorted(by: { $0.key < $1.key })
        where variable.hasPrefix("THICKET_") && !ConfigLoader.otherVariables.contains(variable) {
            if let setting = table.first(where: { $0.environmentName == variable }) {
                set(setting, value, variable, .environment, &state)
            } else if let near = Suggestion.nearest(
                to: String(variable.dropFirst(8)), in: table.map { String($0.environmentName.dropFirst(8)) })
            {
                state.problems.append("\(variable): unknown setting; did you mean THICKET_\(near)?")
            } else {
                ignored.append(variable)
            }
        }
        return ignored
    }

    /// Reads `name = value` lines; `#` begins a comment at the start of a line or after a space; a value may be quoted.
    private func read(_ file: File, into state: inout State) {
        var seen = [String: Int]()
        let lines: [Substring] = file.text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, raw) in lines.enumerated() {
            let place = "\(file.path):\(index + 1)"
            guard let (name, value): (String, String) = ConfigLoader.entry(raw) else {
                if !ConfigLoader.isBlank(raw) { state.problems.append("\(place): this is not 'name = value'") }
                continue
            }
            guard let setting = setting(name) else {
                let shown = SettingValue.shown(name)
                state.problems.append("\(place): unknown setting '\(shown)'\(hint(name) { "'\($0)'" })")
                continue
            }
            if let first = seen.updateValue(index + 1, forKey: name) {
                state.problems.append("\(place): \(name) was already set on line \(first)")
                continue
            }
            set(setting, value, "\(place): \(name)", .file(path: file.path, line: index + 1), &state)
        }
    }

    private static func isBlank(_ line: Substring) -> Bool {
        let text = trimmed(line)
        return text.isEmpty || text.hasPrefix("#")
    }

    private static func entry(_ line: Substring) -> (name: String, value: String)? {
        guard !isBlank(line), let equals = line.firstIndex(of: "=") else { return nil }
        let name: Substring = trimmed(line[..<equals])
        var value: Substring = trimmed(line[line.index(after: equals)...])
        if value.hasPrefix("\"") {
            guard let end = value.dropFirst().firstIndex(of: "\""),
                isBlank(value[value.index(after: end)...])
            else { return nil }
            value = value[value.index(after: value.startIndex)..<end]
        } else if let comment = commentStart(value) {
            value = trimmed(value[..<comment])
        }
        return name.isEmpty ? nil : (String(name), String(value))
    }

    /// Adds quotes where the value would be read differently without them.
    static func quoted(_ value: String) -> String {
        trimmed(value[...]) != value || value.contains("#") ? "\"\(value)\"" : value
    }

    private static func commentStart(_ value: Substring) -> Substring.Index? {
        var previous: Character = " "
        for index in value.indices {
            if value[index] == "#", previous == " " || previous == "\t" { return index }
            previous = value[index]
        }
        return nil
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" || last == "\r" { text.removeLast() }
        return text
    }
}
