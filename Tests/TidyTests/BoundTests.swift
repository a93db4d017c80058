import Testing

@testable import ThicketServer

/// House rule: every bound has a name and a metric.
@Suite("Bounds")
struct BoundTests {
    /// Settings that bound nothing of the server's.
    private static let apart: [String: String] = ["hsts": "says something to browsers"]

    /// Settings that have a number.
    private static let numbers: [String] = ServerSettings.all.compactMap { (setting: Setting) in
        switch setting.kind {
        case .integer, .bytes, .duration: setting.name
        default: nil
        }
    }

    /// Names of metrics, and labels of limits.
    private static let counted: Set<String> = {
        let metrics: [String] = Metrics().instruments.map(\.name) + ProcessMetrics.names
        return Set(metrics + Metrics.LimitName.allCases.map(\.labelText))
    }()

    /// What stands between backticks in each row of a table of OPERATIONS.md, but the table of settings itself.
    private static let rows: [[String]] = Repository.lines("docs/OPERATIONS.md").compactMap { (line: Substring) in
        guard line.hasPrefix("| ") else { return nil }
        let words: [String] = line.split(separator: "`", omittingEmptySubsequences: false).enumerated().compactMap {
            $0.offset % 2 == 1 ? String($0.element.prefix { $0 != "{" }) : nil
        }
        let isSetting: Bool = line.hasPrefix("| `") && numbers.contains(words.first ?? "")
        return isSetting ? nil : words
    }

    @Test(
        "every setting with a number stands in OPERATIONS.md beside a metric that shows its bound", arguments: numbers)
    func bound(name: String) {
        if BoundTests.apart[name] != nil { return }
        let isCounted: Bool = BoundTests.rows.contains { row in
            row.contains(name) && row.contains { BoundTests.counted.contains($0) }
        }
        #expect(isCounted, "docs/OPERATIONS.md, \"Limits\": which metric shows that \(name) is met?")
    }

    @Test("every label of a limit stands in OPERATIONS.md or AUTH.md", arguments: Metrics.LimitName.allCases)
    func label(limit: Metrics.LimitName) {
        let texts: [String] = ["docs/OPERATIONS.md", "docs/AUTH.md"].compactMap(Repository.text)
        #expect(texts.contains { $0.contains("`\(limit.labelText)`") }, "\(limit.labelText) is explained nowhere")
    }

    @Test("settings that only a start can change are named where OPERATIONS.md tells of SIGHUP")
    func fixed() throws {
        let text: String = try #require(Repository.text("docs/OPERATIONS.md"))
        let start: Range<String.Index> = try #require(text.firstRange(of: "At SIGHUP the server reads"))
        let part: Substring = text[start.lowerBound...].prefix(1_200)
        for name: String in ServerSettings.fixed {
            #expect(
                part.contains("`\(name)`"), "\(name) waits for the next start, and docs/OPERATIONS.md does not say so")
        }
    }

    @Test(
        "the auth servers of Examples are 30 lines at most, and none is too wide to be read",
        arguments: [
            "Examples/auth-server/auth_server.py", "Examples/auth-server/auth.sh",
        ])
    func shortExamples(path: String) {
        let lines: [Substring] = Repository.lines(path).filter { !$0.allSatisfy { $0 == " " } }
        #expect(lines.count > 10 && lines.count <= 30, "\(path) has \(lines.count) lines")
        for line: Substring in lines { #expect(line.utf8.count <= 124, "\(line)") }
    }
}
