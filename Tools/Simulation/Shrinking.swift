import Synchronization

/// Makes a failing scenario smaller until nothing can be left out: the rest is easier to read.
public enum Shrinking {
    /// A scenario that fails, and how it differs from the scenario of its seed.
    public struct Outcome: Sendable {
        /// The changed knobs and their values.
        public let changes: [String: Int]
        /// The result of the smallest failing run.
        public let result: SimulationResult
        /// Number of runs that the search took.
        public let runs: Int
        /// Events of the original run.
        public let eventsBefore: Int
        /// The participants: the knobs above their least value.
        let cast: String
        /// The events up to the failure, newest last.
        let lines: [String]

        /// The command that plays it again.
        public var command: String {
            let words = changes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(
                separator: ",")
            return "./dev soak \(result.arguments)" + (words.isEmpty ? "" : " --with \(words)") + " --verbose"
        }

        /// A report for a person: the participants, the last events, the failure, and how to play it again.
        public var story: String {
            let left = result.events - lines.count
            var text = [
                "shrunk from \(eventsBefore) to \(result.events) events in \(runs) runs; \(result.virtualSeconds) s of virtual time",
                "takes part: \(cast)", "", "the end of it:",
            ]
            if left > 0 { text.append("  … \(left) events before") }
            text += lines.map { "  " + $0 }
            text += ["", "what is wrong:"] + result.problems.prefix(5).map { "  " + Shrinking.short($0, 400) }
            text += ["", "trace \(String(result.traceHash, radix: 16)); play it again with:", "  " + command]
            return text.joined(separator: "\n")
        }
    }

    /// How many other seeds are tried with the rest, because one of them may need fewer events.
    private static let neighbours: UInt64 = 40
    /// Most events in a report.
    private static let linesMax = 40

    /// - Parameters:
    ///   - kind: what is played; nil: the seed decides.
    ///   - isSealed: sealed buckets are required; false: the seed decides.
    ///   - hasTrees: trees are required; false: the seed decides.
    ///   - mutant: a bug to build in.
    ///   - runsMax: most scenarios to try.
    ///   - report: called with each step that still fails.
    /// - Returns: nil when the seed does not fail.
    public static func run(
        seed: UInt64, kind: Kind? = nil, isSealed: Bool = false, hasTrees: Bool = false, mutant: Mutant? = nil,
        runsMax: Int = 300, report: (String) -> Void
    ) -> Outcome? {
        var scenario = Scenario(seed: seed, kind: kind, isSealed: isSealed, hasTrees: hasTrees)
        scenario.build(in: mutant)
        let found = Simulation.run(scenario, sink: nil)
        guard let problem = found.problems.first else { return nil }
        report("seed \(seed), \(scenario.kind.rawValue): \(found.events) events: \(short(problem, 120))")
        var search = Search(scenario: scenario, best: found, shape: shape(problem), runs: 1, runsMax: runsMax)
        search.turnKnobs(report)
        if search.visitNeighbours(Self.neighbours, report) { search.turnKnobs(report) }
        return search.outcome(eventsBefore: found.events, linesMax: linesMax)
    }

    /// The subject of a problem, without names and numbers: a smaller scenario must fail in the same way.
    static func shape(_ problem: String) -> [Substring] {
        let text: Substring = problem.firstRange(of: " ms: ").map { problem[$0.upperBound...] } ?? problem[...]
        let words: [Substring] = text.split { " :,'".contains($0) }
        return Array(
            words.filter { word in word.utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A } }.prefix(4))
    }

    fileprivate static func short(_ text: String, _ most: Int) -> String {
        text.unicodeScalars.count > most ? String(text.unicodeScalars.prefix(most)) + "…" : text
    }

    /// Keeps the last lines.
    private final class Tail: Sendable {
        private let kept = Mutex<[String]>([])
        private let most: Int
        init(_ most: Int) { self.most = most }

        func add(_ line: String) {
            kept.withLock { lines in
                lines.append(Shrinking.short(line, 180))
                if lines.count > 2 * most { lines.removeFirst(lines.count - most) }
            }
        }

        var lines: [String] { kept.withLock { Array($0.suffix(most)) } }
    }

    /// The smallest scenario so far that fails in the same way.
    private struct Search {
        var scenario: Scenario
        var best: SimulationResult
        let shape: [Substring]
        var runs: Int
        let runsMax: Int

        /// Plays the scenario, and adopts it as the best when it fails in the same way.
        mutating func adopts(_ candidate: Scenario, onlyIfSmaller: Bool = false) -> Bool {
            guard runs < runsMax else { return false }
            runs += 1
            let result = Simulation.run(candidate, sink: nil)
            guard let problem = result.problems.first, Shrinking.shape(problem) == shape,
                !onlyIfSmaller || result.events < best.events
            else { return false }
            (scenario, best) = (candidate, result)
            return true
        }

        /// Lowers every knob towards its least value, while that makes progress.
        mutating func turnKnobs(_ report: (String) -> Void) {
            var isSmaller = true
            while isSmaller, runs < runsMax {
                isSmaller = false
                for knob in Scenario.knobs {
                    let value = knob.get(scenario)
                    guard value > knob.least else { continue }
                    let range = value - knob.least
                    for less in Set([range, range / 2, range / 4]).sorted(by: >) where less > 0 {
                        var candidate = scenario
                        knob.set(&candidate, value - less)
                        guard adopts(candidate) else { continue }
                        isSmaller = true
                        report("\(knob.name) \(value) -> \(value - less): \(best.events) events")
                        break
                    }
                }
            }
        }

        /// Tries other seeds with the same knobs: the same bug may show in fewer events.
        /// - Returns: whether one did.
        mutating func visitNeighbours(_ count: UInt64, _ report: (String) -> Void) -> Bool {
            let (start, least) = (scenario, best.events)
            for distance in 1...count {
                var candidate = Scenario(
                    seed: start.seed &+ distance, kind: start.kind, isSealed: start.isSealedByWish,
                    hasTrees: start.hasTreesByWish)
                candidate.build(in: start.mutant)
                for knob in Scenario.knobs { knob.set(&candidate, knob.get(start)) }
                if adopts(candidate, onlyIfSmaller: true) {
                    report("seed \(candidate.seed): \(best.events) events")
                }
            }
            return best.events < least
        }

        func outcome(eventsBefore: Int, linesMax: Int) -> Outcome {
            var whole = Scenario(
                seed: scenario.seed, kind: scenario.kind, isSealed: scenario.isSealedByWish,
                hasTrees: scenario.hasTreesByWish)
            whole.build(in: scenario.mutant)
            var (changes, cast): ([String: Int], [String]) = ([:], [])
            for knob in Scenario.knobs {
                let value = knob.get(scenario)
                if value != knob.get(whole) { changes[knob.name] = value }
                if value > knob.least || knob.least > 0 { cast.append("\(knob.name) \(value)") }
            }
            let tail = Tail(linesMax)
            let again: SimulationResult = Simulation.run(scenario, sink: { tail.add($0) })
            return Outcome(
                changes: changes, result: again, runs: runs, eventsBefore: eventsBefore,
                cast: cast.joined(separator: ", "), lines: tail.lines)
        }
    }
}
