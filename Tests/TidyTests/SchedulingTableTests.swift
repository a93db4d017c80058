import Testing

/// Decision 0019 lists each part of the scheduling with the benchmark that would show its loss. Both halves exist.
@Suite("Benchmarks of the scheduling's parts")
struct SchedulingTableTests {
    private struct Row {
        let parts: [Substring]
        let benchmarks: [Substring]
    }

    /// The rows of the table under "## Parts": `| part | what it does | benchmark |`.
    private static func rows() throws -> [Row] {
        let page = try #require(Repository.files("docs/decisions").first { $0.contains("/0019-") })
        let lines = Repository.lines(page)
        let start = try #require(lines.firstIndex(of: "## Parts"))
        let section = lines[(start + 1)...].prefix { !$0.hasPrefix("## ") }
        return section.filter { $0.hasPrefix("| `") }.map { line in
            let cells = line.split(separator: "|")
            let parts = cells[0].matches(of: /`(\w+)`/).map(\.1)
            let benchmarks = (cells.count == 3 ? cells[2] : "").split(separator: ";").map { cell in
                cell.replacing("`", with: "").drop { $0 == " " }.prefix { $0 != "(" }
            }
            return Row(parts: parts, benchmarks: benchmarks.map { $0.last == " " ? $0.dropLast() : $0 })
        }
    }

    /// Names that `./dev bench` prints: scenarios, and the attacks of `hostile`.
    private static func benchmarks() -> Set<String> {
        var names: Set<String> = ["all rows of hostile"]
        for line in SwiftText.paths("Tools/Bench").flatMap(Repository.lines) {
            if let match = line.firstMatch(of: /\bScenario\("(\w+)"/) { names.insert(String(match.1)) }
        }
        for line in Repository.lines("Tools/Bench/HostileAttacks.swift") {
            if let match = line.firstMatch(of: /\bcase \w+ = "([^"]+)"/) { names.insert(String(match.1)) }
        }
        return names
    }

    @Test("each file of Sources/Scheduling has a row in 0019")
    func parts() throws {
        let named = Set(try Self.rows().flatMap(\.parts))
        let files = SwiftText.paths("Sources/Scheduling")
        #expect(files.count > 10)
        for path in files {
            let name = path.split(separator: "/").last?.dropLast(".swift".count) ?? ""
            #expect(named.contains(name), "\(path): name the benchmark that would show its loss in decision 0019")
        }
    }

    @Test("each row of 0019 names a benchmark that ./dev bench runs")
    func benchmarks() throws {
        let known = Self.benchmarks()
        #expect(known.count > 20)
        for row in try Self.rows() {
            #expect(!row.benchmarks.isEmpty, "\(row.parts): no benchmark")
            for name in row.benchmarks {
                #expect(known.contains(String(name)), "\(row.parts): ./dev bench has no '\(name)'")
            }
        }
    }
}
