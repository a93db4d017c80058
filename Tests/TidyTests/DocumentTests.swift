import Testing
import ThicketNet
import ThicketPlatform
import ThicketProtocol

@testable import ThicketServer

/// Documents that must be complete.
@Suite("Documents")
struct DocumentTests {
    /// The table rows of a document, as cells without their marks.
    private static func rows(_ path: String) -> [[String]] {
        Repository.lines(path).filter { $0.hasPrefix("|") }.map { (line: Substring) in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast().map {
                (cell: Substring) in
                String(cell.drop { $0 == " " }).trimmedRight.filter { $0 != "`" }
            }
        }
    }

    @Test(
        "OPERATIONS.md lists every setting with its default and its bounds",
        arguments: ServerSettings.all.map(\.name))
    func settings(name: String) throws {
        let setting = try #require(ServerSettings.all.first { $0.name == name })
        let row = "| `\(name)` | \(setting.defaultText) | \(setting.boundsText) | \(setting.summary) |"
        #expect(
            Repository.lines("docs/OPERATIONS.md").contains { $0.elementsEqual(row) },
            "docs/OPERATIONS.md lacks this row:\n\(row)")
    }

    @Test("every row of settings in OPERATIONS.md is a setting")
    func noOldSettings() {
        let names = Set(ServerSettings.all.map(\.name))
        for row in DocumentTests.rows("docs/OPERATIONS.md") where row.count == 4 {
            guard let name = row.first, name != "setting", !name.hasPrefix("-") else { continue }
            #expect(names.contains(name), "docs/OPERATIONS.md describes '\(name)', which is no setting")
        }
    }

    @Test("settings that other documents and sources name exist")
    func settingNames() {
        let names = Set(ServerSettings.all.map(\.name))
        let endings = ["-max", "-timeout", "-burst", "-per-second", "-percent"]
        for file in Repository.files("docs", ending: ".md") + ["README.md"] {
            for word in (Repository.text(file) ?? "").split(separator: "`") {
                let isName = word.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x2D }
                guard isName, endings.contains(where: { word.hasSuffix($0) }), !word.hasPrefix("-") else { continue }
                #expect(names.contains(String(word)), "\(file) names the setting '\(word)', which there is not")
            }
        }
    }

    @Test("OPERATIONS.md lists every metric with its help text, and no other")
    func metrics() {
        let rows = DocumentTests.rows("docs/OPERATIONS.md").filter { $0.count == 3 }
        let documented = Set(rows.map { (row: [String]) in String(row[0].prefix { $0 != "{" }) })
        let instruments = Metrics().instruments
        let lines = Set(Repository.lines("docs/OPERATIONS.md"))
        for instrument in instruments {
            let label = instrument.labelName.map { "{\($0)}" } ?? ""
            let row = "| `\(instrument.name)\(label)` | \(instrument.kind) | \(instrument.help) |"
            #expect(lines.contains(row[...]), "docs/OPERATIONS.md lacks this row:\n\(row)")
        }
        for name in ProcessMetrics.names + ["thicket_build_info"] {
            #expect(documented.contains(name), "docs/OPERATIONS.md has no row for the metric \(name)")
        }
        let known = Set(instruments.map(\.name))
        for name in documented where name.hasPrefix("thicket_") && name != "thicket_build_info" {
            #expect(known.contains(name), "docs/OPERATIONS.md describes the metric \(name), which there is not")
        }
    }

    @Test("the server uses every metric, every label of a limit and every setting")
    func nothingDead() {
        let metrics = Metrics()
        let counted = [metrics as Any, metrics.net].flatMap { Mirror(reflecting: $0).children.compactMap(\.label) }
        let limits = Mirror(reflecting: ServerLimits()).children.compactMap(\.label)
        let config = Mirror(reflecting: ServerConfig()).children.compactMap(\.label)
        let labels = Metrics.LimitName.allCases.map { (label: Metrics.LimitName) in "\(label)" }
        let server = (SwiftText.paths("Sources/Server") + SwiftText.paths("Sources/Net")).filter { path in
            !path.hasPrefix("Sources/Server/Config/") && !path.contains("Ops/Metric") && !path.contains("NetMetrics")
        }
        for name in counted + limits + config + labels {
            let isUsed = server.contains { !Bytes.places(of: ".\(name)", in: SwiftText.code($0)).isEmpty }
            #expect(isUsed, "'\(name)' is declared and nothing in Sources/Server or Sources/Net uses it")
        }
    }

    @Test("OPERATIONS.md names every command of thicketd")
    func commands() throws {
        let text = try #require(Repository.text("docs/OPERATIONS.md"))
        for command in ThicketdProgram.program.commands {
            #expect(text.contains("thicketd \(command.name)"), "docs/OPERATIONS.md does not tell of \(command.name)")
        }
    }

    @Test(
        "PROTOCOL.md lists every error code, and a test over a socket expects it as the answer to a message",
        arguments: ErrorCode.allCases)
    func errorCodes(code: ErrorCode) throws {
        let text = try #require(Repository.text("docs/PROTOCOL.md"))
        #expect(text.contains("| \(code.rawValue) |"), "docs/PROTOCOL.md has no row for \(code.rawValue)")
        // `expect(…, refused: .code)` compares the whole answer of a real server with this code in it.
        let isProvoked = SwiftText.paths("Tests/IntegrationTests").contains { (path: String) in
            let words = String(decoding: SwiftText.code(path), as: UTF8.self)
            return words.ranges(of: "refused: .\(code)").contains { (range: Range<String.Index>) in
                words[range.upperBound...].first.map { !$0.isLetter } ?? true
            }
        }
        #expect(isProvoked, "no test in Tests/IntegrationTests expects 'refused: .\(code)'")
    }

    @Test("every row of PROTOCOL.md is provoked by a test that names it, and no test names another")
    func rows() throws {
        let text = try #require(Repository.text("docs/PROTOCOL.md"))
        let start = try #require(text.firstRange(of: "## What is answered to what\n"))
        let section: Substring = text[start.upperBound...]
        let end: String.Index = section.firstRange(of: "\n## ")?.lowerBound ?? section.endIndex
        let rows = section[..<end].split(separator: "\n").compactMap { (line: Substring) in
            line.hasPrefix("| `") ? String(line.dropFirst(3).prefix { $0 != "`" }) : nil
        }
        #expect(rows.count > 40 && Set(rows).count == rows.count, "rows are missing, or one is there twice")
        let provoked = SwiftText.paths("Tests/IntegrationTests").flatMap(Self.provokedRows)
        for row in rows {
            #expect(provoked.contains(row), "no @Test in Tests/IntegrationTests has .rows(\"\(row)\")")
        }
        for row in Set(provoked) {
            #expect(rows.contains(row), "docs/PROTOCOL.md has no row '\(row)', which a test provokes")
        }
    }

    /// The names in `.rows("…", "…")` of a file's `@Test`s.
    private static func provokedRows(_ path: String) -> [String] {
        let text = Repository.text(path) ?? ""
        return text.ranges(of: ".rows(\"").flatMap { (range: Range<String.Index>) -> [String] in
            // Behind an `@Test(`, with no other declaration between.
            let before = text[..<range.lowerBound]
            guard let mark = before.ranges(of: "@Test(").last,
                !before[mark.upperBound...].contains("func ")
            else { return [] }
            return text[range.upperBound...].prefix { $0 != ")" }.split(separator: "\"").map(String.init).filter {
                $0.allSatisfy { $0.isLetter || $0 == "-" }
            }
        }
    }

    @Test("OPERATIONS.md names exactly the settings that SIGHUP cannot change")
    func reload() throws {
        let text = try #require(Repository.text("docs/OPERATIONS.md"))
        let start = try #require(text.firstRange(of: "At SIGHUP the server"))
        let paragraph: Substring = text[start.lowerBound...]
        let end: String.Index = paragraph.firstRange(of: "\n\n")?.lowerBound ?? paragraph.endIndex
        let sentence = try #require(
            paragraph[..<end].firstRange(of: "wait for the next"))
        let names: [Substring] =
            paragraph[..<sentence.lowerBound].split(separator: ".").last?.split(separator: "`") ?? []
        let waiting = Set(names.map(String.init).filter { ServerSettings.all.map(\.name).contains($0) })
        #expect(waiting == ServerSettings.fixed)
    }

    @Test("the description of the data API that the server serves is docs/openapi.yaml, byte for byte")
    func openAPI() {
        let text = Repository.bytes("docs/openapi.yaml")
        #expect(text.count > 10_000)
        #expect(OpenAPIDocument.response.body == text)
    }

    @Test("docs/openapi.yaml and docs/PROTOCOL.md list every error code of the data API")
    func restCodes() throws {
        let description = Repository.lines("docs/openapi.yaml").map { String($0.drop { $0 == " " }) }
        let manual = try #require(Repository.text("docs/PROTOCOL.md"))
        var found = Set<String>()
        for path in SwiftText.paths("Sources/Server/REST") {
            let words: [Substring] = (Repository.text(path) ?? "").split { "(\"\n".contains($0) }
            for (call, code) in zip(words, words.dropFirst())
            where call.hasSuffix("invalid") || call.hasSuffix(", ") {
                guard code.contains("_") || code == "unauthorized" || code == "unavailable",
                    code.utf8.allSatisfy({ (0x61...0x7A).contains($0) || $0 == 0x5F })
                else { continue }
                found.insert(String(code))
            }
        }
        #expect(found.count > 15, "\(found.sorted())")
        for code in found where code != "server_error" && code != "invalid_request" {
            #expect(description.contains("- \(code)"), "docs/openapi.yaml lacks '\(code)'")
            #expect(manual.contains("`\(code)`"), "docs/PROTOCOL.md lacks '\(code)'")
        }
    }

    @Test("./dev bench help lists every variable that a benchmark reads")
    func benchVariables() throws {
        let main = try #require(Repository.text("Tools/Bench/Main.swift"))
        let start = try #require(main.firstRange(of: "static var help"))
        let help: Substring = main[start.upperBound...]
        var names = Set<String>()
        for path in SwiftText.paths("Tools/Bench") {
            let text = Repository.text(path) ?? ""
            for range in text.ranges(of: "getenv(\"") {
                names.insert(String(text[range.upperBound...].prefix { $0 != "\"" }))
            }
        }
        names.remove("PATH")
        #expect(names.count > 5, "\(names)")
        for name in names {
            #expect(help.contains("  \(name) "), "./dev bench help does not tell of \(name)")
        }
    }

    @Test("every folder of test vectors has a file about its origin")
    func vectors() {
        var folders = Set<String>()
        for path in Repository.files("Tests/Vectors") {
            let parts: [Substring] = path.split(separator: "/")
            if parts.count > 3 { folders.insert(parts[..<3].joined(separator: "/")) }
        }
        for folder in folders {
            #expect(Repository.exists(folder + "/ORIGIN.md"), "\(folder) has no ORIGIN.md")
        }
    }
}

extension String {
    fileprivate var trimmedRight: String {
        var text: Substring = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
