/// Completion scripts generated from the declaration, so that they cannot become outdated.
extension Program {
    private static let builtIns = [
        ("completion", "print a completion script"), ("help", "explain a command"),
    ]

    /// Each word sequence that leads to a command: `app`, `app create`, `serve` ...
    private var paths: [String] {
        var paths = [String]()
        for command in commands {
            for count in 1...command.words.count {
                let path = command.words.prefix(count).joined(separator: " ")
                if !paths.contains(path) { paths.append(path) }
            }
        }
        return paths + ["completion", "help"]
    }

    /// The words that may follow a path, with their meaning.
    private func nextWords(after path: String) -> [(String, String)] {
        let before = path.split(separator: " ").map(String.init)
        var rows = [(String, String)]()
        for command in commands
        where command.words.count > before.count && command.words.starts(with: before) {
            let word = command.words[before.count]
            guard !rows.contains(where: { $0.0 == word }) else { continue }
            rows.append((word, command.words.count == before.count + 1 ? command.summary : "more commands"))
        }
        return rows + (path.isEmpty ? Program.builtIns : [])
    }

    private func command(at path: String) -> Command? { commands.first { $0.name == path } }

    private var programWord: String { String(name.map { (letter: Character) in letter == "-" ? "_" : letter }) }

    // MARK: bash

    func bashCompletion() -> String {
        var text = """
            # bash completion for \(name), made by '\(name) completion bash'
            _\(programWord)() {
                local word="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
                local command="" candidate i
                COMPREPLY=()
                for ((i = 1; i < COMP_CWORD; i++)); do
                    candidate="${command:+$command }${COMP_WORDS[i]}"
                    case "$candidate" in
                        \(paths.map { "\"\($0)\"" }.joined(separator: "|"))) command="$candidate" ;;
                    esac
                done
                case "$command $previous" in

            """
        for command in commands {
            for option in options(of: command) where option.valueName != nil {
                let names = ["--" + option.name] + (option.short.map { ["-\($0)"] } ?? [])
                let patterns = names.map { "\"\(command.name) \($0)\"" }.joined(separator: "|")
                text += "        \(patterns)) \(bashReply(option.completion)); return ;;\n"
            }
        }
        text += "    esac\n    case \"$command\" in\n"
        for path in [""] + paths { text += bashCase(path) }
        text += "    esac\n}\ncomplete -o filenames -F _\(programWord) \(name)\n"
        return text
    }

    private func bashCase(_ path: String) -> String {
        var words = nextWords(after: path).map(\.0)
        var fallback = Completion.nothing
        if let command = command(at: path) {
            words += options(of: command).map { "--" + $0.name } + ["--help"]
            fallback = command.arguments.last?.completion ?? .nothing
        } else if path == "completion" {
            words = ["bash", "zsh", "fish"]
        } else if path == "help" {
            words = nextWords(after: "").map(\.0)
        } else if path.isEmpty {
            words += ["--help", "--version"]
        }
        if case .oneOf(let choices) = fallback { words += choices }
        var text =
            "        \"\(path)\") COMPREPLY=($(compgen -W '\(words.joined(separator: " "))' -- \"$word\"))"
        if fallback == .file || fallback == .folder {
            text += "\n            [[ \"$word\" == -* ]] || \(bashReply(fallback))"
        }
        return text + " ;;\n"
    }

    private func bashReply(_ completion: Completion) -> String {
        switch completion {
        case .nothing: "COMPREPLY=()"
        case .file: "COMPREPLY=($(compgen -f -- \"$word\"))"
        case .folder: "COMPREPLY=($(compgen -d -- \"$word\"))"
        case .oneOf(let words): "COMPREPLY=($(compgen -W '\(words.joined(separator: " "))' -- \"$word\"))"
        }
    }

    // MARK: zsh

    func zshCompletion() -> String {
        var text = """
            #compdef \(name)
            # zsh completion for \(name), made by '\(name) completion zsh'
            _\(programWord)() {
                local command="" candidate previous="${words[CURRENT-1]}"
                local -a rows
                for candidate in "${(@)words[2,CURRENT-1]}"; do
                    candidate="${command:+$command }$candidate"
                    case "$candidate" in
                        \(paths.map { "(\($0.quotedForShell))" }.joined(separator: " command=\"$candidate\" ;; \n            "))\
             command="$candidate" ;;
                    esac
                done
                case "$command $previous" in

            """
        for command in commands {
            for option in options(of: command) where option.valueName != nil {
                let names = ["--" + option.name] + (option.short.map { ["-\($0)"] } ?? [])
                for name in names {
                    text +=
                        "        (\("\(command.name) \(name)".quotedForShell)) "
                        + "\(zshReply(option.completion)); return ;;\n"
                }
            }
        }
        text += "    esac\n    case \"$command\" in\n"
        for path in [""] + paths { text += zshCase(path) }
        text += "    esac\n}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then _\(programWord) \"$@\"; "
        text += "else compdef _\(programWord) \(name); fi\n"
        return text
    }

    private func zshCase(_ path: String) -> String {
        var rows = nextWords(after: path)
        var reply = ""
        if let command = command(at: path) {
            rows += options(of: command).map { (option: Option) in ("--" + option.name, option.summary) }
            reply = "; " + zshReply(command.arguments.last?.completion ?? .nothing)
        } else if path == "completion" {
            rows = [("bash", ""), ("zsh", ""), ("fish", "")]
        } else if path == "help" {
            rows = nextWords(after: "")
        }
        let list = rows.map { (row: (String, String)) in
            let meaning = row.1.split(separator: ":", omittingEmptySubsequences: false).joined(separator: "\\:")
            return "\(row.0):\(meaning)".quotedForShell
        }.joined(separator: " ")
        return "        (\(path.quotedForShell)) rows=(\(list)); _describe word rows\(reply) ;;\n"
    }

    private func zshReply(_ completion: Completion) -> String {
        switch completion {
        case .nothing: "true"
        case .file: "_files"
        case .folder: "_files -/"
        case .oneOf(let words): "compadd -- \(words.joined(separator: " "))"
        }
    }

    // MARK: fish

    func fishCompletion() -> String {
        var text = """
            # fish completion for \(name), made by '\(name) completion fish'
            function __\(programWord)_command
                set -l command ''
                for word in (commandline -opc)[2..-1]
                    set -l candidate (string trim -- "$command $word")
                    switch $candidate
                        case \(paths.map(\.quotedForShell).joined(separator: " "))
                            set command $candidate
                    end
                end
                echo "/$command"
            end
            complete -c \(name) -f

            """
        for path in [""] + paths {
            let condition = "test (__\(programWord)_command) = \("/\(path)".quotedForFishCondition)"
            var rows = nextWords(after: path)
            if path == "completion" { rows = [("bash", ""), ("zsh", ""), ("fish", "")] }
            for (word, meaning) in rows {
                text += "complete -c \(name) -n '\(condition)' -a \(word) -d \(meaning.quotedForShell)\n"
            }
            guard let command = command(at: path) else { continue }
            for option in options(of: command) {
                let short = option.short.map { " -s \($0)" } ?? ""
                text += "complete -c \(name) -n '\(condition)' -l \(option.name)\(short)"
                text +=
                    "\(option.valueName == nil ? "" : fishReply(option.completion)) -d \(option.summary.quotedForShell)\n"
            }
            switch command.arguments.last?.completion ?? .nothing {
            case .nothing: break
            case .file, .folder: text += "complete -c \(name) -n '\(condition)' -F\n"
            case .oneOf(let words):
                text += "complete -c \(name) -n '\(condition)' -a '\(words.joined(separator: " "))'\n"
            }
        }
        return text
    }

    private func fishReply(_ completion: Completion) -> String {
        switch completion {
        case .nothing: " -x"
        case .file: " -r -F"
        case .folder: " -x -a '(__fish_complete_directories)'"
        case .oneOf(let words): " -x -a '\(words.joined(separator: " "))'"
        }
    }
}

extension String {
    /// In single quotes, as bash, zsh and fish read them (fish also accepts `'\''`).
    fileprivate var quotedForShell: String {
        "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }

    /// In double quotes, inside a condition that is in single quotes.
    fileprivate var quotedForFishCondition: String { "\"\(self)\"" }
}
