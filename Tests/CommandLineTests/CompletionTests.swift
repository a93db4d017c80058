import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

@testable import ThicketCommandLine

@Suite("Shell completion", .blocking)
struct CompletionTests {
    /// Runs a shell with a script as its argument; returns what it printed.
    private func run(_ shell: String, _ script: String) throws -> String? {
        let outcome = try ChildProcess.run(["/usr/bin/env", shell, "-c", script])
        return outcome.code == 0 ? outcome.output : nil
    }

    @Test(
        "bash offers commands, options, choices and files in their places",
        arguments: [
            (["oak", ""], "tree count serve completion help --help --version"),
            (["oak", "tr"], "tree"),
            (["oak", "tree", ""], "plant fell"),
            (["oak", "tree", "plant", "--d"], "--depth --dry-run"),
            (["oak", "tree", "plant", "--kind", "e"], "elm"),
            (["oak", "tree", "plant", "--depth", "x"], ""),
            (["oak", "count", "--from", "/et"], "/etc"),
            (["oak", "count", "/etc/passw"], "/etc/passwd"),
            (["oak", "completion", "z"], "zsh"),
        ])
    func bash(words: [String], offered: String) throws {
        let script =
            oak.bashCompletion() + """

                COMP_WORDS=(\(words.map { "'\($0)'" }.joined(separator: " "))); COMP_CWORD=\(words.count - 1)
                _oak; echo "${COMPREPLY[*]}"
                """
        let printed = try #require(try run("bash", script))
        let first: [Substring] = printed.split(separator: "\n").first?.split(separator: " ") ?? []
        #expect(offered.split(separator: " ").allSatisfy { (word: Substring) in first.contains(word) }, "\(printed)")
        if !offered.contains("/") { #expect(printed == offered + "\n") }
    }

    @Test("zsh can read the zsh script", .enabled(if: CompletionTests.has("zsh")))
    func zsh() throws {
        #expect(try run("zsh", "emulate zsh; compdef() { true }; \(oak.zshCompletion())") != nil)
    }

    @Test("fish can read the fish script", .enabled(if: CompletionTests.has("fish")))
    func fish() throws {
        #expect(try run("fish", oak.fishCompletion()) != nil)
    }

    @Test("every command and option is in each script", arguments: ["bash", "zsh", "fish"])
    func complete(shell: String) throws {
        guard case .print(let script) = oak.parse(["completion", shell]) else {
            Issue.record("no script")
            return
        }
        for command in oak.commands {
            for word in command.words { #expect(script.contains(word)) }
            for option in command.options { #expect(script.contains(option.name)) }
        }
    }

    private static func has(_ shell: String) -> Bool {
        ["/bin/", "/usr/bin/", "/usr/local/bin/"].contains { (folder: String) in access(folder + shell, X_OK) == 0 }
    }
}
