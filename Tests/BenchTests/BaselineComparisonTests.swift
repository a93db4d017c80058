import Glibc
import Testing
import ThicketBenchComparison

@Suite("Comparison of benchmarks")
struct BaselineComparisonTests {
    /// A figure as `./dev bench` prints it. `goal` is "≤ 3" or "≥ 3", or empty; `met` says whether the median meets it.
    private func figure(
        _ name: String, _ median: Double?, _ lowest: Double? = nil, _ highest: Double? = nil, goal: String = "",
        met: Bool? = nil
    ) -> String {
        func text(_ value: Double?) -> String { value.map { "\($0)" } ?? "null" }
        let goalText = goal.isEmpty ? "null" : "\"\(goal)\""
        return "{\"name\":\"\(name)\",\"unit\":\"ms\",\"median\":\(text(median)),\"lowest\":\(text(lowest ?? median)),"
            + "\"highest\":\(text(highest ?? median)),\"rounds\":5,\"goal\":\(goalText),"
            + "\"met\":\(met.map { "\($0)" } ?? "null")}"
    }

    private func line(_ scenario: String, _ figures: [String]) -> String {
        "{\"scenario\":\"\(scenario)\",\"seconds\":1.5,\"figures\":[\(figures.joined(separator: ","))]}"
    }

    private func run(_ lines: [String]) throws -> RecordedRun {
        try RecordedRun(parsing: Array(lines.joined(separator: "\n").utf8))
    }

    private func compared(_ old: String, _ new: String) throws -> BaselineComparison.Row {
        let comparison = BaselineComparison(
            baseline: try run([line("ping", [old])]), now: try run([line("ping", [new])]))
        return try #require(comparison.rows.first)
    }

    @Test(
        "a figure is within, better or worse by the lowest and highest round of the baseline",
        arguments: [
            (2.0, "≤ 3", true, BaselineComparison.Standing.within), (0.5, "≤ 3", true, .better),
            (2.5, "≤ 3", true, .worse), (2.5, "≥ 1", true, .better), (0.5, "≥ 0.4", true, .worse),
            (2.5, "", true, .outside), (1.0, "", true, .within),
        ])
    func standing(now: Double, goal: String, met: Bool, expected: BaselineComparison.Standing) throws {
        let row = try compared(figure("p50", 1.5, 1, 2, goal: goal, met: met), figure("p50", now, goal: goal, met: met))
        #expect(row.standing == expected)
        #expect(!row.isFailure)
        #expect(row.ratio == now / 1.5)
    }

    @Test("only a figure that is worse than the spread and misses its goal fails")
    func failure() throws {
        let old = figure("p50", 2, 1.5, 2.5, goal: "≤ 3", met: true)
        #expect(try compared(old, figure("p50", 3.5, goal: "≤ 3", met: false)).isFailure)
        #expect(try !compared(old, figure("p50", 2.9, goal: "≤ 3", met: true)).isFailure)
        // The baseline missed the goal as well, in some rounds by more.
        let missed = figure("p50", 3.2, 2.9, 4, goal: "≤ 3", met: false)
        #expect(try !compared(missed, figure("p50", 3.5, goal: "≤ 3", met: false)).isFailure)
        #expect(try compared(missed, figure("p50", 4.5, goal: "≤ 3", met: false)).isFailure)
        let atLeast = figure("rate", 2, 1.5, 2.5, goal: "≥ 1", met: true)
        #expect(try compared(atLeast, figure("rate", 0.5, goal: "≥ 1", met: false)).isFailure)
    }

    @Test("figures that only one run has are listed and do not fail")
    func missing() throws {
        let baseline = try run([
            line("ping", [figure("old", 1, goal: "≤ 3", met: true), figure("gone", 1, goal: "≤ 3", met: true)]),
            line("json", [figure("read", 1)]),
        ])
        let now = try run([
            line("ping", [figure("old", 1, goal: "≤ 3", met: true), figure("new", 9, goal: "≤ 3", met: false)]),
            line("disk", [figure("log", nil, goal: "≤ 3")]),
        ])
        let comparison = BaselineComparison(baseline: baseline, now: now)
        #expect(comparison.rows.map(\.name) == ["ping: old", "ping: new", "ping: gone", "disk: log"])
        #expect(comparison.rows.map(\.standing) == [.within, .notInBaseline, .notMeasuredNow, .notMeasuredNow])
        #expect(comparison.notRun == ["json"])
        #expect(comparison.failures.isEmpty)
    }

    @Test("figures with one name are told apart by the figure above them")
    func repeatedNames() throws {
        let old = line("crypto", ["SHA-256", "ratio", "SHA-512", "ratio", "ratio"].map { figure($0, 1) })
        let new = line("crypto", ["SHA-512", "ratio"].map { figure($0, 2) })
        let comparison = BaselineComparison(baseline: try run([old]), now: try run([new]))
        #expect(
            comparison.rows.map(\.name) == [
                "crypto: SHA-512", "crypto: SHA-512: ratio", "crypto: SHA-256", "crypto: SHA-256: ratio",
                "crypto: SHA-512: ratio (2)",
            ])
        #expect(comparison.rows[1].ratio == 2)
    }

    @Test("the table has a line for each figure, marks failures, and names what was not run")
    func table() throws {
        let baseline = try run([
            line("ping", [figure("p50", 2, 1.5, 2.5, goal: "≤ 3", met: true), figure("floor", 0.016)]),
            line("json", [figure("read", 1)]),
        ])
        let now = try run([line("ping", [figure("p50", 4, goal: "≤ 3", met: false), figure("floor", 0.016)])])
        let lines = BaselineComparison(baseline: baseline, now: now).table.split(separator: "\n")
        #expect(
            lines == [
                "  figure             baseline         now       ratio  within spread?",
                "  ping: p50 ms          2.000       4.000       2.000  worse, GOAL NOT MET",
                "  ping: floor ms      0.01600     0.01600       1.000  yes",
                "  not run: json",
                "  worse than the baseline, and a goal not met: 1",
            ])
    }

    @Test("a saved file and the output of a run are read alike, and other text is refused")
    func files() throws {
        let lines = [line("ping", [figure("p50", 2, 1, 3)]), line("json", [figure("read", 1)])]
        let saved = RecordedRun.text(machine: "2 \"cores\"", build: "1cac0f2", date: "2026-11-26", lines: lines)
        let file = try RecordedRun(parsing: Array(saved.utf8))
        #expect(file.machine == "2 \"cores\"" && file.build == "1cac0f2" && file.date == "2026-11-26")
        let output = try RecordedRun(parsing: Array("ping, 2 s\n  p50  2\n\(lines[0])\n\(lines[1])\n".utf8))
        for run in [file, output] {
            #expect(run.scenarios.map(\.name) == ["ping", "json"])
            #expect(run.scenarios[0].figures[0].spread == 1...3)
        }
        for text in ["", "{}", "ping, 2 s", "{\"scenario\":\"ping\",\"figures\":[]}"] {
            #expect(throws: RecordedRun.Unreadable.self) { try RecordedRun(parsing: Array(text.utf8)) }
        }
    }

    @Test("every baseline of the repository can be read, names its machine, build and date, and equals itself")
    func baselines() throws {
        let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let paths = files(in: root + "/Tools/Bench/Baselines")
        #expect(!paths.isEmpty)
        for path in paths {
            let run = try RecordedRun(parsing: bytes(of: path))
            #expect(![run.machine, run.build, run.date].contains("unknown"), "\(path)")
            let comparison = BaselineComparison(baseline: run, now: run)
            #expect(comparison.failures.isEmpty)
            #expect(comparison.rows.allSatisfy { $0.standing == .within }, "\(path)")
            // A median and a goal that were rounded may be apart by one in their last place.
            for figure in run.scenarios.flatMap(\.figures) {
                guard let goal = figure.goal, let median = figure.median, let bound = Double(goal.dropFirst(2))
                else { continue }
                let isMet = goal.first == "≤" ? median <= bound * 1.001 : median >= bound * 0.999
                #expect(figure.isMet == isMet, "\(figure.name)")
            }
        }
    }

    private func files(in folder: String) -> [String] {
        guard let open = opendir(folder) else { return [] }
        defer { closedir(open) }
        var names = [String]()
        while let entry = readdir(open) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(".json") { names.append(folder + "/" + name) }
        }
        return names
    }

    private func bytes(of path: String) throws -> [UInt8] {
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
        return bytes
    }
}
