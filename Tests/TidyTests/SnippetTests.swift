import Testing
import ThicketCommandLine

@testable import ThicketCLI

/// Programs and tables that documents quote.
@Suite("Code quoted in documents")
struct SnippetTests {
    /// Every `<!-- snippet:NAME -->` of a document with the block of code behind it.
    private static func quotes(_ path: String) -> [(name: String, code: String)] {
        let lines = Repository.lines(path)
        var quotes = [(name: String, code: String)]()
        for (number, line) in lines.enumerated() {
            guard line.hasPrefix("<!-- snippet:"), line.hasSuffix(" -->") else { continue }
            let name: Substring = line.dropFirst("<!-- snippet:".count).dropLast(" -->".count)
            let block = lines[(number + 1)...]
            let code: ArraySlice<Substring> =
                block.first == "```swift" ? block.dropFirst().prefix { !$0.hasPrefix("```") } : []
            quotes.append((String(name), code.map { $0 + "\n" }.joined()))
        }
        return quotes
    }

    @Test("every program in Snippets is quoted unchanged, and no other code is")
    func snippets() {
        var quoted = Set<String>()
        for path in Repository.files("docs", ending: ".md") + ["README.md"] {
            for quote in SnippetTests.quotes(path) {
                quoted.insert(quote.name)
                let source = Repository.text("Snippets/\(quote.name).swift")
                #expect(source != nil, "\(path) quotes Snippets/\(quote.name).swift, which is not there")
                #expect(source == quote.code, "\(path): the code is not that of Snippets/\(quote.name).swift")
            }
        }
        let programs = Repository.files("Snippets", ending: ".swift")
        #expect(!programs.isEmpty)
        for program in programs {
            let name = String(program.dropFirst("Snippets/".count).dropLast(".swift".count))
            #expect(quoted.contains(name), "no document quotes \(program)")
        }
    }

    @Test("CLI.md or README.md lists every command, exit code and variable of thicket")
    func commandLine() throws {
        let text = try #require(Repository.text("docs/CLI.md"))
        let readme = try #require(Repository.text("README.md"))
        for (code, meaning) in ExitCode.meanings {
            #expect(
                text.contains("| \(code.number) | \(meaning) |"), "docs/CLI.md has no row for exit code \(code.number)")
        }
        let account: Set<String> = ["profile", "server", "app", "token-file", "ca", "proxy", "timeout"]
        for name in account {
            #expect(text.contains("`--\(name) ") && text.contains("`\(Call.variable(name))`"), "--\(name)")
        }
        let unsaid: Set<String> = ["status", "logout", "replay", "jsondiff", "version"]
        for command in ThicketProgram.program.commands where !unsaid.contains(command.name) {
            let isReported = text.contains("`\(command.name)`") || text.contains("`thicket \(command.name)")
            #expect(isReported || readme.contains("thicket \(command.name)"), "nothing is said about '\(command.name)'")
        }
    }
}
