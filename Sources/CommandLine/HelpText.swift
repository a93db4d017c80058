extension Program {
    /// Widest line of a help text, columns.
    static let helpColumns = 100

    /// The program's own help: summary, commands, footer.
    public func help() -> String {
        var table = commands.map { (command: Command) in (command.name, command.summary) }
        table.append(("completion", "print the completion script for bash, zsh or fish"))
        table.append(("help", "explain a command: \(name) help COMMAND"))
        var text = "\(name) \(version): \(summary)\n\nusage: \(name) COMMAND [OPTIONS]\n\nCommands:\n"
        text += HelpText.table(table)
        if !commonOptions.isEmpty { text += "\nOptions of every command:\n" + HelpText.table(rows(of: commonOptions)) }
        if !footer.isEmpty { text += "\n" + HelpText.trimmed(footer) }
        return text
    }

    /// The help of one command.
    public func help(for command: Command) -> String {
        var text = "\(name) \(command.name): \(command.summary)\n\nusage: \(usageLine(of: command))\n"
        if !command.details.isEmpty { text += "\n" + HelpText.trimmed(command.details) }
        if !command.arguments.isEmpty {
            let rows = command.arguments.map { (argument: Argument) in
                (argument.usage, argument.summary)
            }
            text += "\nArguments:\n" + HelpText.table(rows)
        }
        let options = options(of: command)
        text += "\nOptions:\n" + HelpText.table(rows(of: options) + [("    --help", "print this")])
        if !command.examples.isEmpty {
            text += "\nExamples:\n"
            for example in command.examples { text += "  # \(example.meaning)\n  \(example.line)\n" }
        }
        return text
    }

    /// The commands that begin with a word; nil when none does.
    func groupHelp(_ word: String) -> String? {
        let group = commands.filter { (command: Command) in
            command.words.count > 1 && command.words[0] == word
        }
        guard !group.isEmpty else { return nil }
        let rows = group.map { (command: Command) in (command.name, command.summary) }
        return "Commands that begin with '\(word)':\n" + HelpText.table(rows)
    }

    func usageLine(of command: Command) -> String {
        let required = options(of: command).filter(\.isRequired).map(\.usage)
        let arguments = command.arguments.map(\.usage)
        let optional = options(of: command).contains { !$0.isRequired } ? ["[OPTIONS]"] : []
        return ([name, command.name] + arguments + required + optional).joined(separator: " ")
    }

    var completionHelp: String {
        """
        usage: \(name) completion bash|zsh|fish
        Examples:
          # bash, for this shell
          source <(\(name) completion bash)
          # zsh, in a folder of your fpath
          \(name) completion zsh > ~/.zfunc/_\(name)
          # fish
          \(name) completion fish > ~/.config/fish/completions/\(name).fish

        """
    }

    private func rows(of options: [Option]) -> [(String, String)] {
        options.map { (option: Option) in
            let short = option.short.map { "-\($0), " } ?? "    "
            var summary = option.summary
            if case .oneOf(let words) = option.completion, option.valueName != nil {
                summary += ": " + words.joined(separator: ", ")
            }
            if option.isRequired { summary += " (required)" }
            if !option.defaultText.isEmpty { summary += " (default \(option.defaultText))" }
            return (short + option.usage, summary)
        }
    }
}

enum HelpText {
    /// Two columns; the second is wrapped.
    static func table(_ rows: [(String, String)]) -> String {
        let widest = rows.map { (row: (String, String)) in row.0.count }.max() ?? 0
        let left = min(widest, 34)
        var text = ""
        for (term, meaning) in rows {
            let lines = wrapped(meaning, columns: Program.helpColumns - left - 4)
            let padding = String(repeating: " ", count: max(0, left - term.count))
            if term.count > left {
                text += "  \(term)\n" + String(repeating: " ", count: left + 4) + (lines.first ?? "") + "\n"
            } else {
                text += "  \(term)\(padding)  \(lines.first ?? "")\n"
            }
            for line in lines.dropFirst() { text += String(repeating: " ", count: left + 4) + line + "\n" }
        }
        return text
    }

    static func wrapped(_ text: String, columns: Int) -> [String] {
        var lines = [String]()
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + 1 + word.count > columns {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        if !line.isEmpty { lines.append(line) }
        return lines
    }

    /// The text with exactly one line feed at its end.
    static func trimmed(_ text: String) -> String {
        var text: Substring = text[...]
        while text.last == "\n" { text.removeLast() }
        return text + "\n"
    }
}

/// Suggestions for mistyped words.
public enum Suggestion {
    /// The candidate nearest to `word`; nil when none is near: at most one slip for every three letters (one at
    /// least), where a slip is a letter omitted, added or changed, or two neighbours swapped; otherwise the only
    /// candidate that begins with the word (two letters or more).
    public static func nearest(to word: String, in candidates: [String]) -> String? {
        let typed: [UInt8] = Array(word.utf8)
        guard !typed.isEmpty, typed.count <= 64 else { return nil }
        var best: (distance: Int, candidate: String)?
        for candidate in candidates {
            let distance = distance(typed, Array(candidate.utf8))
            if distance <= max(1, min(typed.count, candidate.utf8.count) / 3), distance < best?.distance ?? .max {
                best = (distance, candidate)
            }
        }
        if let best { return best.candidate }
        let begun = candidates.filter { (candidate: String) in
            typed.count >= 2 && candidate.utf8.starts(with: typed)
        }
        return begun.count == 1 ? begun[0] : nil
    }

    /// Optimal string alignment distance.
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var before = [Int]()
        var last: [Int] = Array(0...right.count)
        for (row, letter) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var cost = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    cost = min(cost, before[column - 1] + 1)
                }
                current.append(cost)
            }
            (before, last) = (last, current)
        }
        return last[right.count]
    }
}
