import ThicketProtocol

/// One setting, which has the same name as flag, environment variable and file entry.
public struct Setting: Sendable {
    /// The form of its values; bounds are in the smallest unit (bytes, milliseconds, ones).
    public enum Kind: Sendable, Equatable {
        /// Any text.
        case text
        /// A path.
        case file
        /// `HOST:PORT`.
        case address
        /// Web origins separated by commas.
        case origins
        /// Addresses and networks separated by commas.
        case networks
        /// `on` or `off`.
        case flag
        /// One of these words.
        case choice([String])
        /// A whole number within bounds.
        case integer(ClosedRange<Int64>)
        /// A number of bytes, written with a unit.
        case bytes(ClosedRange<Int64>)
        /// A duration, written with a unit.
        case duration(ClosedRange<Int64>)
    }

    /// Lower-case letters and hyphens: `idle-timeout`.
    public let name: String
    /// The form of its values.
    public let kind: Kind
    /// One or two sentences for help and documentation.
    public let summary: String
    /// Never shown by `thicketd config` nor written to a log.
    public let isSecret: Bool
    let read: @Sendable (ServerConfig) -> String
    let write: @Sendable (String, inout ServerConfig) throws(ValueError) -> Void

    /// For example `THICKET_IDLE_TIMEOUT`.
    public var environmentName: String {
        "THICKET_" + String(name.uppercased().map { (letter: Character) in letter == "-" ? "_" : letter })
    }

    /// The default value.
    public var defaultText: String { read(ServerConfig()) }

    /// Placeholder for the value in help.
    public var valueName: String {
        switch kind {
        case .text: "TEXT"
        case .file: "FILE"
        case .address: "HOST:PORT"
        case .origins: "ORIGINS"
        case .networks: "NETWORKS"
        case .flag: "on|off"
        case .choice: "WORD"
        case .integer: "NUMBER"
        case .bytes: "SIZE"
        case .duration: "TIME"
        }
    }

    /// The accepted values: `1KiB…64MiB`, `debug, info`; empty when unbounded.
    public var boundsText: String {
        switch kind {
        case .text, .file, .address, .origins, .networks: ""
        case .flag: "on, off"
        case .choice(let words): words.joined(separator: ", ")
        case .integer(let range): "\(range.lowerBound)…\(range.upperBound)"
        case .bytes(let range):
            "\(SettingValue.text(bytes: range.lowerBound))…\(SettingValue.text(bytes: range.upperBound))"
        case .duration(let range):
            "\(SettingValue.text(milliseconds: range.lowerBound))…\(SettingValue.text(milliseconds: range.upperBound))"
        }
    }
}

extension Setting {
    typealias Path<Value> = WritableKeyPath<ServerConfig, Value> & Sendable

    static func file(_ name: String, _ path: Path<String>, _ summary: String) -> Setting {
        text(name, path, kind: .file, summary)
    }

    static func text(
        _ name: String, _ path: Path<String>, kind: Kind = .text, isSecret: Bool = false, _ summary: String
    ) -> Setting {
        Setting(name: name, kind: kind, summary: summary, isSecret: isSecret) {
            (config: ServerConfig) in
            config[keyPath: path]
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            guard !text.isEmpty else { throw ValueError("is empty") }
            guard !text.utf8.contains(0) else { throw ValueError("contains a zero byte") }
            config[keyPath: path] = text
        }
    }

    static func versions(_ name: String, _ path: Path<String>, _ summary: String) -> Setting {
        Setting(name: name, kind: .text, summary: summary, isSecret: false) {
            (config: ServerConfig) in
            config[keyPath: path]
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            guard AppVersions(text) != nil else {
                throw ValueError("is neither none nor a comma-separated list of PLATFORM=VERSION")
            }
            config[keyPath: path] = text
        }
    }

    static func networks(_ name: String, _ path: Path<String>, _ summary: String) -> Setting {
        Setting(name: name, kind: .networks, summary: summary, isSecret: false) {
            (config: ServerConfig) in
            config[keyPath: path]
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            if case .failure(let problem) = TrustedProxies.parse(text) { throw ValueError(problem.text) }
            config[keyPath: path] = text
        }
    }

    static func address(_ name: String, _ path: Path<ListenAddress>, _ summary: String) -> Setting {
        Setting(name: name, kind: .address, summary: summary, isSecret: false) {
            (config: ServerConfig) in
            config[keyPath: path].description
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            config[keyPath: path] = try ListenAddress(text)
        }
    }

    static func flag(_ name: String, _ path: Path<Bool>, _ summary: String) -> Setting {
        Setting(name: name, kind: .flag, summary: summary, isSecret: false) {
            (config: ServerConfig) in
            config[keyPath: path] ? "on" : "off"
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            config[keyPath: path] = try SettingValue.flag(text)
        }
    }

    static func level(_ name: String, _ path: Path<LogLevel>, _ summary: String) -> Setting {
        let words = LogLevel.allCases.map(\.word)
        return Setting(name: name, kind: .choice(words), summary: summary, isSecret: false) {
            (config: ServerConfig) in
            config[keyPath: path].word
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            guard let level = LogLevel.allCases.first(where: { $0.word == text }) else {
                throw ValueError("'\(SettingValue.shown(text))' is not one of \(words.joined(separator: ", "))")
            }
            config[keyPath: path] = level
        }
    }

    static func integer(
        _ name: String, _ path: Path<Int>, _ range: ClosedRange<Int64>, _ summary: String
    ) -> Setting {
        Setting(name: name, kind: .integer(range), summary: summary, isSecret: false) {
            (config: ServerConfig) in
            String(config[keyPath: path])
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            let value = try SettingValue.integer(text)
            try check(value, range) { (bound: Int64) in String(bound) }
            config[keyPath: path] = Int(value)
        }
    }

    static func bytes(_ name: String, _ path: Path<Int>, _ range: ClosedRange<Int64>, _ summary: String) -> Setting {
        Setting(name: name, kind: .bytes(range), summary: summary, isSecret: false) {
            (config: ServerConfig) in
            SettingValue.text(bytes: Int64(config[keyPath: path]))
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            let value = try SettingValue.bytes(text)
            try check(value, range) { (bound: Int64) in SettingValue.text(bytes: bound) }
            config[keyPath: path] = Int(value)
        }
    }

    /// - Parameter range: in milliseconds.
    static func duration(
        _ name: String, _ path: Path<Duration>, _ range: ClosedRange<Int64>, _ summary: String
    ) -> Setting {
        Setting(name: name, kind: .duration(range), summary: summary, isSecret: false) {
            (config: ServerConfig) in
            SettingValue.text(milliseconds: config[keyPath: path].wholeMilliseconds)
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            let value = try SettingValue.milliseconds(text)
            try check(value, range) { (bound: Int64) in SettingValue.text(milliseconds: bound) }
            config[keyPath: path] = .milliseconds(value)
        }
    }

    private static func check(
        _ value: Int64, _ range: ClosedRange<Int64>, _ text: (Int64) -> String
    ) throws(ValueError) {
        guard range.contains(value) else {
            throw ValueError("is \(text(value)), outside \(text(range.lowerBound))…\(text(range.upperBound))")
        }
    }
}

extension Duration {
    /// Rounded down.
    var wholeMilliseconds: Int64 { components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000 }
}
