extension Program {
    /// Parses the words after the program's name. Never ends the process and never prints.
    public func parse<Words: Sequence>(_ words: Words) -> Parsed where Words.Element == String {
        let words = Array(words)
        if let text = answerOfItsOwn(words) { return .print(text) }
        guard let (command, used) = findCommand(in: words) else { return refuseCommand(words) }
        let rest = words[used...]
        if asksForHelp(rest, options(of: command)) { return .print(help(for: command)) }
        var sorter = WordSorter(command: command, options: allOptions(of: command))
        do throws(UsageError) {
            return .run(try sorter.sort(rest))
        } catch {
            return .refuse(
                "\(name): \(error.text)\nusage: \(usageLine(of: command))\n"
                    + "Try '\(name) \(command.name) --help' for more.\n")
        }
    }

    /// The answer to help, version and completion, which every program has; nil for other words.
    private func answerOfItsOwn(_ words: [String]) -> String? {
        guard let first = words.first else { return nil }
        switch first {
        case "--help", "-h": return help()
        case "--version": return "\(name) \(version)\n"
        case "help":
            let rest = Array(words.dropFirst())
            if rest.isEmpty { return help() }
            if let (command, _) = findCommand(in: rest) { return help(for: command) }
            return groupHelp(rest[0])
        case "completion":
            guard words.count == 2 else {
                return words.dropFirst().contains(where: isHelp) ? completionHelp : nil
            }
            switch words[1] {
            case "bash": return bashCompletion()
            case "zsh": return zshCompletion()
            case "fish": return fishCompletion()
            default: return isHelp(words[1]) ? completionHelp : nil
            }
        default:
            guard words.count == 2, isHelp(words[1]) else { return nil }
            return groupHelp(first)
        }
    }

    /// The command whose name `words` begin with; the longest if several match.
    private func findCommand(in words: [String]) -> (Command, Int)? {
        var best: (Command, Int)?
        for command in commands where words.starts(with: command.words) {
            if command.words.count > best?.1 ?? 0 { best = (command, command.words.count) }
        }
        return best
    }

    private func refuseCommand(_ words: [String]) -> Parsed {
        guard let first = words.first else { return .refuse(help()) }
        if first == "completion" {
            return .refuse("\(name): completion needs the shell: bash, zsh or fish\n" + completionHelp)
        }
        if first.hasPrefix("-") {
            return .refuse("\(name): the command comes first, then its options\nTry '\(name) --help'.\n")
        }
        if let help = groupHelp(first) {
            let next = words.dropFirst().first ?? ""
            let problem = next.isEmpty ? "\(first) needs one more word" : "\(first) has no command '\(next)'"
            return .refuse("\(name): \(problem)\n\(help)")
        }
        let typed = words.prefix { (word: String) in !word.hasPrefix("-") }.prefix(2).joined(separator: " ")
        let names = commands.map(\.name) + ["help", "completion"]
        let nearest = Suggestion.nearest(to: first, in: names) ?? Suggestion.nearest(to: typed, in: names)
        let hint = nearest.map { "; did you mean '\($0)'?" } ?? ""
        return .refuse("\(name): there is no command '\(first)'\(hint)\nTry '\(name) --help' for the list.\n")
    }

    private func isHelp(_ word: String) -> Bool { word == "--help" || word == "-h" }

    /// True for `--help` before a `--`, and for `-h` unless the command has its own `-h`.
    private func asksForHelp(_ words: ArraySlice<String>, _ options: [Option]) -> Bool {
        let taken = options.contains { (option: Option) in option.short == "h" }
        for word in words {
            if word == "--" { return false }
            if word == "--help" || (word == "-h" && !taken) { return true }
        }
        return false
    }
}

/// Why the words cannot be used.
struct UsageError: Error, Equatable {
    let text: String
}

/// Parses the words of one command.
private struct WordSorter {
    let command: Command
    let options: [Option]
    var call: Invocation
    var positional = [String]()

    init(command: Command, options: [Option]) {
        self.command = command
        self.options = options
        self.call = Invocation(command: command)
    }

    mutating func sort(_ words: ArraySlice<String>) throws(UsageError) -> Invocation {
        var rest = words
        while let word = rest.popFirst() {
            if word == "--" {
                positional += rest
                break
            } else if word.hasPrefix("--") {
                try parseLong(word.dropFirst(2), &rest)
            } else if word.hasPrefix("-"), word.utf8.count > 1, !isNumber(word) {
                try parseShort(word.dropFirst(), &rest)
            } else {
                positional.append(word)
            }
        }
        try placeArguments()
        for option in options where option.isRequired && call.optionValues[option.name] == nil {
            throw UsageError(text: "\(option.usage) is missing: \(option.summary)")
        }
        return call
    }

    private func isNumber(_ word: String) -> Bool { Double(word) != nil }

    private mutating func parseLong(_ word: Substring, _ rest: inout ArraySlice<String>) throws(UsageError) {
        let parts: [Substring] = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        guard let option = options.first(where: { $0.name == name }) else {
            let hint =
                Suggestion.nearest(to: name, in: options.filter { $0.refusal == nil }.map(\.name)).map {
                    "; did you mean --\($0)?"
                } ?? ""
            throw UsageError(text: "there is no option --\(name)\(hint)")
        }
        try parse(option, shown: "--\(name)", attached: parts.count == 2 ? String(parts[1]) : nil, &rest)
    }

    private mutating func parseShort(_ word: Substring, _ rest: inout ArraySlice<String>) throws(UsageError) {
        var letters = word
        while let letter = letters.popFirst() {
            guard let option = options.first(where: { $0.short == letter }) else {
                throw UsageError(text: "there is no option -\(letter)")
            }
            if option.valueName == nil {
                try parse(option, shown: "-\(letter)", attached: nil, &rest)
            } else {
                try parse(option, shown: "-\(letter)", attached: letters.isEmpty ? nil : String(letters), &rest)
                return
            }
        }
    }

    private mutating func add(_ value: String, to option: Option, _ shown: String) throws(UsageError) {
        if let reason = option.valueRefusal?(value) {
            throw UsageError(text: "this \(shown) is refused: \(reason)")
        }
        call.optionValues[option.name, default: []].append(value)
    }

    private mutating func parse(
        _ option: Option, shown: String, attached: String?, _ rest: inout ArraySlice<String>
    ) throws(UsageError) {
        if let reason = option.refusal { throw UsageError(text: "\(shown) is refused: \(reason)") }
        guard let valueName = option.valueName else {
            if attached != nil { throw UsageError(text: "\(shown) takes no value") }
            call.flags.insert(option.name)
            return
        }
        if !option.isRepeatable, call.optionValues[option.name] != nil {
            throw UsageError(text: "\(shown) is given twice")
        }
        if let value = attached {
            try add(value, to: option, shown)
        } else if let value = rest.first, !isOption(value) {
            rest.removeFirst()
            try add(value, to: option, shown)
        } else {
            throw UsageError(text: "\(shown) needs a value: \(shown) \(valueName)")
        }
    }

    /// Whether the word is one of the command's options (a value that looks like one must be given as `--name=value`).
    private func isOption(_ word: String) -> Bool {
        guard word.hasPrefix("--") else { return false }
        let name: Substring = word.dropFirst(2).prefix { $0 != "=" }
        return name.isEmpty || options.contains { (option: Option) in option.name == name }
    }

    private mutating func placeArguments() throws(UsageError) {
        var rest = positional[...]
        for argument in command.arguments {
            switch argument.count {
            case .one, .optional:
                if let word = rest.popFirst() {
                    call.positional[argument.name] = [word]
                } else if argument.count == .one {
                    throw UsageError(text: "\(argument.name) is missing: \(argument.summary)")
                }
            case .any, .atLeastOne:
                if rest.isEmpty, argument.count == .atLeastOne {
                    throw UsageError(text: "\(argument.name) is missing: \(argument.summary)")
                }
                call.positional[argument.name] = Array(rest)
                rest = []
            }
        }
        if let word = rest.first { throw UsageError(text: "'\(word)' is one word too many") }
    }
}

/// Why a given value cannot be used; printed to standard error, exit code 2.
public struct BadValue: Error, Sendable, Equatable {
    /// The reason, one line.
    public let text: String
    /// An error with this reason.
    public init(_ text: String) { self.text = text }
}

extension Invocation {
    /// The number given for an option.
    /// - Parameters:
    ///   - usual: the number when the option is omitted.
    ///   - bounds: the accepted range.
    /// - Throws: when anything else was given; the usual number does not replace it.
    public func number<Number: LosslessStringConvertible & Comparable>(
        _ option: String, else usual: Number, in bounds: ClosedRange<Number>
    ) throws(BadValue) -> Number {
        guard let text = value(option) else { return usual }
        guard let number = Number(text), bounds.contains(number) else {
            throw BadValue(
                "--\(option) needs a number from \(bounds.lowerBound) to \(bounds.upperBound), not '\(text)'")
        }
        return number
    }
}

extension Program {
    /// Parses the words and runs `body`, for programs used only by their developers.
    /// - Returns: the exit code: that of `body`, 0 for help, 2 for words or values that cannot be used.
    public func main<Words: Sequence>(
        _ words: Words, _ body: (Invocation) async throws(BadValue) -> Int32
    ) async -> Int32 where Words.Element == String {
        switch parse(words) {
        case .print(let text):
            Terminal.write(text)
            return 0
        case .refuse(let text):
            Terminal.writeError(text)
            return 2
        case .run(let call):
            do throws(BadValue) {
                return try await body(call)
            } catch {
                Terminal.writeError("\(name): \(error.text)\nTry '\(name) \(call.command.name) --help' for more.\n")
                return 2
            }
        }
    }
}
