import Testing
import ThicketCommandLine

@testable import ThicketCLI

/// Programs and tables that documents quote.
@Suite("Quoted in documents")
struct SnippetTests {
    /// Every `<!-- snippet:NAME -->` of a document with the block of code behind it.
    private static func quotes(_ path: String) -> [(name: String, code: String)] {
        let lines: [Substring] = Repository.lines(path)
        var quotes: [(name: String, code: String)] = []
        for (number, line): (Int, Substring) in lines.enumerated() {
            guard line.hasPrefix("<!-- snippet:"), line.hasSuffix(" -->") else { continue }
            let name: Substring = line.dropFirst("<!-- snippet:".count).dropLast(" -->".count)
            let block: ArraySlice<Substring> = lines[(number + 1)...]
            let code: ArraySlice<Substring> =
                block.first == "```swift" ? block.dropFirst().prefix { !$0.hasPrefix("```") } : []
            quotes.append((String(name), code.map { $0 + "\n" }.joined()))
        }
        return quotes
    }

    @Test("every program in Snippets is quoted as it is, and nothing else is quoted")
    func snippets() {
        var quoted: Set<String> = []
        for path: String in Repository.files("docs", ending: ".md") + ["README.md"] {
            for quote: (name: String, code: String) in SnippetTests.quotes(path) {
                quoted.insert(quote.name)
                let source: String? = Repository.text("Snippets/\(quote.name).swift")
                #expect(source != nil, "\(path) quotes Snippets/\(quote.name).swift, which is not there")
                #expect(source == quote.code, "\(path): the code is not that of Snippets/\(quote.name).swift")
            }
        }
        let programs: [String] = Repository.files("Snippets", ending: ".swift")
        #expect(!programs.isEmpty)
        for program: String in programs {
            let name: String = String(program.dropFirst("Snippets/".count).dropLast(".swift".count))
            #expect(quoted.contains(name), "no document quotes \(program)")
        }
    }

    @Test("every command, exit code and variable of thicket stands in CLI.md or README.md")
    func commandLine() throws {
        let text: String = try #require(Repository.text("docs/CLI.md"))
        let readme: String = try #require(Repository.text("README.md"))
        for (code, meaning) in ExitCode.meanings {
            #expect(
                text.contains("| \(code.number) | \(meaning) |"), "docs/CLI.md has no row for exit code \(code.number)")
        }
        let account: Set<String> = ["profile", "server", "app", "token-file", "ca", "proxy", "timeout"]
        for name: String in account {
            #expect(text.contains("`--\(name) ") && text.contains("`\(Call.variable(name))`"), "--\(name)")
        }
        let unsaid: Set<String> = ["status", "logout", "replay", "jsondiff", "version"]
        for command: Command in ThicketProgram.program.commands where !unsaid.contains(command.name) {
            let isTold: Bool = text.contains("`\(command.name)`") || text.contains("`thicket \(command.name)")
            #expect(isTold || readme.contains("thicket \(command.name)"), "nothing is said about '\(command.name)'")
        }
    }
}
