import Testing

@testable import ThicketServer

/// House rule: every bound has a name and a metric.
@Suite("Bounds")
struct BoundTests {
    /// Settings that do not bound the server.
    private static let apart = ["hsts": "says something to browsers"]

    /// Settings that have a number.
    private static let numbers = ServerSettings.all.compactMap { (setting: Setting) in
        switch setting.kind {
        case .integer, .bytes, .duration: setting.name
        default: nil
        }
    }

    /// Names of metrics, and labels of limits.
    private static let counted = {
        let metrics = Metrics().instruments.map(\.name) + ProcessMetrics.names
        return Set(metrics + Metrics.LimitName.allCases.map(\.labelText))
    }()

    /// The words in backticks of each row of the tables of OPERATIONS.md, except the table of settings itself.
    private static let rows: [[String]] = Repository.lines("docs/OPERATIONS.md").compactMap { (line: Substring) in
        guard line.hasPrefix("| ") else { return nil }
        let words = line.split(separator: "`", omittingEmptySubsequences: false).enumerated().compactMap {
            $0.offset % 2 == 1 ? String($0.element.prefix { $0 != "{" }) : nil
        }
        let isSetting = line.hasPrefix("| `") && numbers.contains(words.first ?? "")
        return isSetting ? nil : words
    }

    @Test(
        "OPERATIONS.md lists every setting with a number beside a metric that shows its bound", arguments: numbers)
    func bound(name: String) {
        if BoundTests.apart[name] != nil { return }
        let isCounted = BoundTests.rows.contains { row in
            row.contains(name) && row.contains { BoundTests.counted.contains($0) }
        }
        #expect(isCounted, "docs/OPERATIONS.md, \"Limits\": which metric shows that \(name) is met?")
    }

    @Test("OPERATIONS.md or AUTH.md explains every label of a limit", arguments: Metrics.LimitName.allCases)
    func label(limit: Metrics.LimitName) {
        let texts = ["docs/OPERATIONS.md", "docs/AUTH.md"].compactMap(Repository.text)
        #expect(texts.contains { $0.contains("`\(limit.labelText)`") }, "\(limit.labelText) is explained nowhere")
    }

    @Test("OPERATIONS.md names the settings that need a restart where it describes SIGHUP")
    func fixed() throws {
        let text = try #require(Repository.text("docs/OPERATIONS.md"))
        let start = try #require(text.firstRange(of: "At SIGHUP the server reads"))
        let part: Substring = text[start.lowerBound...].prefix(1_200)
        for name in ServerSettings.fixed {
            #expect(
                part.contains("`\(name)`"), "\(name) waits for the next start, and docs/OPERATIONS.md does not say so")
        }
    }

    @Test(
        "the auth servers of Examples have at most 30 lines of at most 124 columns",
        arguments: [
            "Examples/auth-server/auth_server.py", "Examples/auth-server/auth.sh",
        ])
    func shortExamples(path: String) {
        let lines = Repository.lines(path).filter { !$0.allSatisfy { $0 == " " } }
        #expect(lines.count > 10 && lines.count <= 30, "\(path) has \(lines.count) lines")
        for line in lines { #expect(line.utf8.count <= 124, "\(line)") }
    }
}
