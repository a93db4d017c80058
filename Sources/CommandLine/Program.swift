/// A command-line program, declared once: parsing, help texts, suggestions and shell completion all come from here.
///
/// ```swift
/// let program = Program(
///     name: "oak", summary: "plants trees", version: "1.0.0",
///     commands: [
///         Command(
///             "tree plant", summary: "plant a tree", arguments: [.one("NAME", "what to call it")],
///             options: [.value("depth", "CM", "how deep", defaultText: "30"), .flag("dry-run", "only say it")],
///             examples: [.init("oak tree plant Fangorn", "one tree")])
///     ])
/// switch program.parse(CommandLine.arguments.dropFirst()) {
/// case .run(let call): ...            // call.command.name, call.flag("dry-run"), call.value("depth"), call.argument("NAME")
/// case .print(let text): ...          // help, version or a completion script: standard output, exit code 0
/// case .refuse(let text): ...         // standard error, exit code 2
/// }
/// ```
///
/// `help`, `--help`/`-h`, `--version` and `completion bash|zsh|fish` are added to every program.
public struct Program: Sendable {
    public let name: String
    /// What the program is, in some words without a full stop.
    public let summary: String
    public let version: String
    public let commands: [Command]
    /// Options that every command takes.
    public let commonOptions: [Option]
    /// Shown at the end of the program's own help: environment, exit codes, where to read on.
    public let footer: String

    public init(
        name: String, summary: String, version: String, commands: [Command], commonOptions: [Option] = [],
        footer: String = ""
    ) {
        self.name = name
        self.summary = summary
        self.version = version
        self.commands = commands
        self.commonOptions = commonOptions
        self.footer = footer
    }

    /// Options of a command with those that every command takes.
    func options(of command: Command) -> [Option] { allOptions(of: command).filter { $0.refusal == nil } }
    /// The same, with those that are refused.
    func allOptions(of command: Command) -> [Option] { command.options + commonOptions }
}

/// One thing the program does.
public struct Command: Sendable {
    /// One word or several: `serve`, `app create`.
    public let name: String
    /// What it does, in some words without a full stop.
    public let summary: String
    /// Paragraphs for its help, below the usage line; may be empty.
    public let details: String
    public let arguments: [Argument]
    public let options: [Option]
    public let examples: [Example]

    public init(
        _ name: String, summary: String, details: String = "", arguments: [Argument] = [], options: [Option] = [],
        examples: [Example] = []
    ) {
        self.name = name
        self.summary = summary
        self.details = details
        self.arguments = arguments
        self.options = options
        self.examples = examples
    }

    var words: [String] { name.split(separator: " ").map(String.init) }
}

/// What the shell offers after a word.
public enum Completion: Sendable, Equatable {
    case nothing
    case file
    case folder
    case oneOf([String])
}

/// A word given by position.
public struct Argument: Sendable {
    public enum Count: Sendable, Equatable { case one, optional, any, atLeastOne }
    /// In capitals, as in the usage line: `FILE`.
    public let name: String
    public let summary: String
    public let count: Count
    public let completion: Completion

    public static func one(_ name: String, _ summary: String, _ completion: Completion = .nothing) -> Argument {
        Argument(name: name, summary: summary, count: .one, completion: completion)
    }
    public static func optional(_ name: String, _ summary: String, _ completion: Completion = .nothing) -> Argument {
        Argument(name: name, summary: summary, count: .optional, completion: completion)
    }
    /// None or more; only as the last.
    public static func any(_ name: String, _ summary: String, _ completion: Completion = .nothing) -> Argument {
        Argument(name: name, summary: summary, count: .any, completion: completion)
    }
    /// One or more; only as the last.
    public static func atLeastOne(_ name: String, _ summary: String, _ completion: Completion = .nothing) -> Argument {
        Argument(name: name, summary: summary, count: .atLeastOne, completion: completion)
    }

    var usage: String {
        switch count {
        case .one: name
        case .optional: "[\(name)]"
        case .any: "[\(name)…]"
        case .atLeastOne: "\(name)…"
        }
    }
}

/// A word given by name: `--data DIR`, `--data=DIR`, `-d DIR`, or a flag `--quiet`.
public struct Option: Sendable {
    /// Without the dashes.
    public let name: String
    public let short: Character?
    /// What to write for the value in help: `DIR`. nil: a flag.
    public let valueName: String?
    public let summary: String
    /// Shown in help when the option is left out.
    public let defaultText: String
    public let isRequired: Bool
    /// May be given more than once; else the second is an error.
    public let isRepeatable: Bool
    public let completion: Completion
    /// Why it is not taken; nil: it is. Neither help nor completion tells of one that is not.
    public var refusal: String?
    /// Why a value is not taken; nil for one that is. The message does not repeat the value.
    public var valueRefusal: (@Sendable (String) -> String?)?

    /// An option that people try and that must not be: whoever gives it is told why, and nothing is done.
    public static func refused(_ name: String, _ reason: String) -> Option {
        var option = Option.value(name, "", "")
        option.refusal = reason
        return option
    }

    /// The same option, some of whose values are not taken.
    public func refusing(_ reason: @escaping @Sendable (String) -> String?) -> Option {
        var option = self
        option.valueRefusal = reason
        return option
    }

    /// An option that is there or not.
    public static func flag(_ name: String, short: Character? = nil, _ summary: String) -> Option {
        Option(
            name: name, short: short, valueName: nil, summary: summary, defaultText: "", isRequired: false,
            isRepeatable: false, completion: .nothing)
    }

    /// An option with a value.
    public static func value(
        _ name: String, short: Character? = nil, _ valueName: String, _ summary: String, defaultText: String = "",
        isRequired: Bool = false, isRepeatable: Bool = false, completion: Completion = .nothing
    ) -> Option {
        Option(
            name: name, short: short, valueName: valueName, summary: summary, defaultText: defaultText,
            isRequired: isRequired, isRepeatable: isRepeatable, completion: completion)
    }

    var usage: String { "--" + name + (valueName.map { " " + $0 } ?? "") }
}

/// One line that a newcomer can copy, and what it is for.
public struct Example: Sendable {
    public let line: String
    public let meaning: String
    public init(_ line: String, _ meaning: String) {
        self.line = line
        self.meaning = meaning
    }
}

/// What to do with the words given.
public enum Parsed: Sendable {
    /// Run this.
    case run(Invocation)
    /// Print to standard output and end well.
    case print(String)
    /// Print to standard error and end with exit code 2.
    case refuse(String)
}

/// A command with its words sorted out. Required ones are there, unknown ones are not.
public struct Invocation: Sendable {
    public let command: Command
    var optionValues = [String: [String]]()
    var flags = Set<String>()
    var positional = [String: [String]]()

    /// Whether the flag was given.
    public func flag(_ name: String) -> Bool { flags.contains(name) }
    /// The option's value (the last, if it may be given several times).
    public func value(_ name: String) -> String? { optionValues[name]?.last }
    /// All values of an option, in the order given.
    public func values(_ name: String) -> [String] { optionValues[name] ?? [] }
    /// Every option given with its values, and flags with "true".
    public var given: [(name: String, values: [String])] {
        (optionValues.map { ($0.key, $0.value) } + flags.map { ($0, ["true"]) }).sorted { $0.0 < $1.0 }
    }
    /// The argument of that name.
    public func argument(_ name: String) -> String? { positional[name]?.first }
    /// All arguments of that name.
    public func arguments(_ name: String) -> [String] { positional[name] ?? [] }
}

/// How a program ends. Programs add their own from 3 on.
public struct ExitCode: Sendable, Hashable {
    public let number: Int32
    public init(_ number: Int32) { self.number = number }
    /// Done.
    public static let success = ExitCode(0)
    /// It did not work, or the answer is no.
    public static let failure = ExitCode(1)
    /// The words or settings given cannot be used; nothing was done.
    public static let usage = ExitCode(2)
}
