/// Makes a failing scenario smaller until nothing can be left out: what remains is easier to read.
public enum Shrinking {
    /// A scenario that fails, and what was changed of what its seed makes.
    public struct Outcome: Sendable {
        public let changes: [String: Int]
        public let result: SimulationResult
        /// Runs it took.
        public let runs: Int

        /// The one command that plays it again.
        public var command: String {
            let words: String = changes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(
                separator: ",")
            return "./dev soak \(result.arguments)" + (words.isEmpty ? "" : " --with \(words)") + " --verbose"
        }
    }

    /// - Parameters:
    ///   - days: whether people live through days; nil: the seed decides.
    ///   - mutant: a bug to build in.
    ///   - runsMax: scenarios to try at most.
    ///   - tell: called with each step that still fails.
    /// - Returns: nil when the seed does not fail.
    public static func run(
        seed: UInt64, days: Bool? = nil, mutant: Mutant? = nil, runsMax: Int = 300, tell: (String) -> Void
    ) -> Outcome? {
        var scenario: Scenario = Scenario(seed: seed, days: days)
        scenario.mutant = mutant
        var best: SimulationResult = Simulation.run(scenario, sink: nil)
        guard !best.problems.isEmpty else { return nil }
        var (changes, runs): ([String: Int], Int) = ([:], 1)
        var isSmaller: Bool = true
        while isSmaller, runs < runsMax {
            isSmaller = false
            for knob: Scenario.Knob in Scenario.knobs {
                let value: Int = knob.get(scenario)
                guard value > knob.least else { continue }
                for smaller: Int in Set([knob.least, knob.least + (value - knob.least) / 2]).sorted() {
                    guard smaller < value, runs < runsMax else { continue }
                    var candidate: Scenario = scenario
                    knob.set(&candidate, smaller)
                    runs += 1
                    let result: SimulationResult = Simulation.run(candidate, sink: nil)
                    guard !result.problems.isEmpty else { continue }
                    (scenario, best, isSmaller) = (candidate, result, true)
                    changes[knob.name] = smaller
                    tell("\(knob.name) \(value) -> \(smaller): \(result.events) events")
                    break
                }
            }
        }
        return Outcome(changes: changes, result: best, runs: runs)
    }
}
