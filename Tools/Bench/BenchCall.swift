import Foundation
import ThicketBenchComparison

/// The arguments of a call: scenarios, the run to compare with, and the file for this run's figures.
struct BenchCall {
    static let baselines = "Tools/Bench/Baselines"
    /// Names the file to which the process of a scenario adds its line of JSON.
    private static let variable = "THICKET_BENCH_RESULTS"

    private(set) var scenarios: [String] = []
    private(set) var baseline: RecordedRun?
    private(set) var saved: String?

    /// Reads the baseline at once, so that a wrong name ends the program before it measures for an hour.
    init(_ words: [String], scenarios known: [String]) throws {
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--compare":
                let isFile = rest.first.map { !$0.hasPrefix("-") && !known.contains($0) } ?? false
                let file = try isFile ? rest.removeFirst() : Self.newestBaseline()
                baseline = try Self.read(file)
            case "--save":
                guard let file = rest.popFirst(), !known.contains(file) else { throw BenchError("--save wants a file") }
                saved = file
            default:
                guard known.contains(word) else { throw BenchError("there is no scenario '\(word)'") }
                scenarios.append(word)
            }
        }
    }

    /// Runs the scenarios, then writes and compares what they have measured.
    ///
    /// - Returns: the program's status; 1 also when the comparison failed.
    func run(_ scenarios: () -> Int32) throws -> Int32 {
        guard baseline != nil || saved != nil else { return scenarios() }
        let folder = try TemporaryFolder()
        let results = folder.path + "/results"
        setenv(Self.variable, results, 1)
        let status = scenarios()
        unsetenv(Self.variable)
        let text = String(decoding: FileManager.default.contents(atPath: results) ?? Data(), as: UTF8.self)
        let lines = text.split(separator: "\n").map(String.init)
        guard let now = try? RecordedRun(parsing: Array(text.utf8)) else {
            Bench.fputsError("bench: no scenario has measured anything: nothing to save or compare")
            return status
        }
        if let saved { try Self.save(lines, to: saved) }
        guard let baseline else { return status }
        let comparison = BaselineComparison(baseline: baseline, now: now)
        Bench.printLine("\nbeside \(baseline.build) of \(baseline.date), \(baseline.machine)")
        Bench.printLine(comparison.table)
        return status == 0 && !comparison.failures.isEmpty ? 1 : status
    }

    /// Adds a scenario's line to the results of the run, when the run saves or compares them.
    static func record(_ line: String) {
        guard let path = getenv(variable) else { return }
        let file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { return Bench.fputsError("bench: \(path) cannot be opened: errno \(errno)") }
        defer { close(file) }
        let bytes = Array((line + "\n").utf8)
        if write(file, bytes, bytes.count) != bytes.count {
            Bench.fputsError("bench: a scenario's figures were not kept in \(path): errno \(errno)")
        }
    }

    /// The last file of the folder by name: names begin with the date.
    private static func newestBaseline() throws -> String {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: baselines)) ?? []
        guard let newest = names.filter({ $0.hasSuffix(".json") }).max() else {
            throw BenchError("\(baselines) holds no baseline")
        }
        return baselines + "/" + newest
    }

    private static func read(_ path: String) throws -> RecordedRun {
        guard let text = FileManager.default.contents(atPath: path) else {
            throw BenchError("there is neither a scenario nor a file '\(path)'")
        }
        do {
            return try RecordedRun(parsing: Array(text))
        } catch {
            throw BenchError("\(path): \(error)")
        }
    }

    private static func save(_ lines: [String], to path: String) throws {
        let model = try shell("sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1").trimmingLine
        let system = try shell("sed -n 's/^PRETTY_NAME=\"\\(.*\\)\"/\\1/p' /etc/os-release").trimmingLine
        let build = try shell("git describe --always --dirty 2>/dev/null || echo unknown").trimmingLine
        let date = try shell("date -u +%Y-%m-%d").trimmingLine
        let cores = Cores.allowed().count
        let text = RecordedRun.text(
            machine: "\(cores) cores, \(model), \(system)", build: build, date: date, lines: lines)
        do {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        } catch {
            throw BenchError("cannot write \(path): \(error.localizedDescription)")
        }
    }
}

extension String {
    /// Without the end of the line that a command prints.
    fileprivate var trimmingLine: String { String(prefix { $0 != "\n" }) }
}
