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
/// case .run(let call): ...            // call.command.name, call.flag("dry-run"), call.value("depth")
/// case .print(let text): ...          // help, version or a completion script: standard output, exit code 0
/// case .refuse(let text): ...         // standard error, exit code 2
/// }
/// ```
///
/// `help`, `--help`/`-h`, `--version` and `completion bash|zsh|fish` are added to every program.
public struct Program: Sendable {
    /// The command's word in the shell.
    public let name: String
    /// What the program is, in a few words without a full stop.
    public let summary: String
    /// The version, as printed.
    public let version: String
    /// In the order of the help.
    public let commands: [Command]
    /// Options that every command takes.
    public let commonOptions: [Option]
    /// Shown at the end of the program's own help: environment, exit codes, further documentation.
    public let footer: String

    /// A program with its commands.
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

    /// Options of a command, including those of every command, without refused ones.
    func options(of command: Command) -> [Option] { allOptions(of: command).filter { $0.refusal == nil } }
    /// The same, with refused ones.
    func allOptions(of command: Command) -> [Option] { command.options + commonOptions }
}

/// One command of the program.
public struct Command: Sendable {
    /// One word or several: `serve`, `app create`.
    public let name: String
    /// What it does, in a few words without a full stop.
    public let summary: String
    /// Paragraphs of its help, below the usage line; may be empty.
    public let details: String
    /// In the order on the command line.
    public let arguments: [Argument]
    /// Besides the program's common options.
    public let options: [Option]
    /// Shown at the end of its help.
    public let examples: [Example]

    /// A command.
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

/// What the shell offers to complete a word.
public enum Completion: Sendable, Equatable {
    /// No completion.
    case nothing
    /// Names of files.
    case file
    /// Names of folders.
    case folder
    /// These words.
    case oneOf([String])
}

/// A word given by position.
public struct Argument: Sendable {
    /// How many words the argument takes.
    public enum Count: Sendable, Equatable { case one, optional, any, atLeastOne }
    /// In capitals, as in the usage line: `FILE`.
    public let name: String
    /// One line for the help.
    public let summary: String
    /// How many words it takes.
    public let count: Count
    /// What the shell offers.
    public let completion: Completion

    /// Exactly one word.
    public static func one(_ name: String, _ summary: String, _ completion: Completion = .nothing) -> Argument {
        Argument(name: name, summary: summary, count: .one, completion: completion)
    }
    /// One word or none.
    public static func optional(_ name: String, _ summary: String, _ completion: Completion = .nothing) -> Argument {
        Argument(name: name, summary: summary, count: .optional, completion: completion)
    }
    /// None or more; only as the last argument.
    public static func any(_ name: String, _ summary: String, _ completion: Completion = .nothing) -> Argument {
        Argument(name: name, summary: summary, count: .any, completion: completion)
    }
    /// One or more; only as the last argument.
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
    /// One letter, without the dash; nil: none.
    public let short: Character?
    /// The placeholder of the value in help: `DIR`. nil: a flag.
    public let valueName: String?
    /// One line for the help.
    public let summary: String
    /// The default, shown in help; empty: none.
    public let defaultText: String
    /// Omitting it is an error.
    public let isRequired: Bool
    /// May be given more than once; otherwise the second is an error.
    public let isRepeatable: Bool
    /// What the shell offers for its value.
    public let completion: Completion
    /// Why the option is refused; nil: it is accepted. Help and completion omit refused options.
    public var refusal: String?
    /// Why a value is refused; returns nil for an accepted one. The message does not repeat the value.
    public var valueRefusal: (@Sendable (String) -> String?)?

    /// An option that users try but that must not exist: giving it prints the reason, and the command does nothing.
    public static func refused(_ name: String, _ reason: String) -> Option {
        var option = Option.value(name, "", "")
        option.refusal = reason
        return option
    }

    /// The same option with some values refused.
    public func refusing(_ reason: @escaping @Sendable (String) -> String?) -> Option {
        var option = self
        option.valueRefusal = reason
        return option
    }

    /// An option without a value.
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

/// A line that a new user can copy, and its purpose.
public struct Example: Sendable {
    /// The command line.
    public let line: String
    /// Its purpose, a few words.
    public let meaning: String
    /// An example.
    public init(_ line: String, _ meaning: String) {
        self.line = line
        self.meaning = meaning
    }
}

/// The result of parsing.
public enum Parsed: Sendable {
    /// Run this command.
    case run(Invocation)
    /// Print to standard output and end with exit code 0.
    case print(String)
    /// Print to standard error and end with exit code 2.
    case refuse(String)
}

/// A command with its parsed words. Required ones are present, unknown ones are not.
public struct Invocation: Sendable {
    /// The command.
    public let command: Command
    var optionValues = [String: [String]]()
    var flags = Set<String>()
    var positional = [String: [String]]()

    /// Whether the flag was given.
    public func flag(_ name: String) -> Bool { flags.contains(name) }
    /// The option's value (the last one if it was given several times).
    public func value(_ name: String) -> String? { optionValues[name]?.last }
    /// All values of an option, in the order given.
    public func values(_ name: String) -> [String] { optionValues[name] ?? [] }
    /// Every given option with its values, and given flags with "true"; by name.
    public var given: [(name: String, values: [String])] {
        (optionValues.map { ($0.key, $0.value) } + flags.map { ($0, ["true"]) }).sorted { $0.0 < $1.0 }
    }
    /// The argument with this name; the first word if it has several.
    public func argument(_ name: String) -> String? { positional[name]?.first }
    /// All words of the argument with this name.
    public func arguments(_ name: String) -> [String] { positional[name] ?? [] }
}

/// Exit code of a program. Programs define their own from 3 on.
public struct ExitCode: Sendable, Hashable {
    /// The number.
    public let number: Int32
    /// An exit code.
    public init(_ number: Int32) { self.number = number }
    /// Done.
    public static let success = ExitCode(0)
    /// The work failed, or the answer is no.
    public static let failure = ExitCode(1)
    /// The given words or settings cannot be used; nothing was done.
    public static let usage = ExitCode(2)
}
