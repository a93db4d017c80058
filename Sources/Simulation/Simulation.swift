/// What came of one seed.
public struct SimulationResult: Sendable {
    public let seed: UInt64
    /// What went wrong, in words; empty: nothing.
    public let problems: [String]
    /// Over every event of the run: equal for equal seeds.
    public let traceHash: UInt64
    public let events: Int
    /// Virtual time the run took.
    public let virtualSeconds: Int64
    let tally: Tally
}

/// The whole system on a seeded clock, network, disk and people.
public enum Simulation {
    /// Plays one seed from beginning to end.
    /// - Parameter sink: takes one line per event; nil: nobody reads.
    public static func run(seed: UInt64, sink: (@Sendable (String) -> Void)? = nil) -> SimulationResult {
        do {
            let world: World = try World(Scenario(seed: seed), sink: sink)
            try world.run()
            return SimulationResult(
                seed: seed, problems: world.problems, traceHash: world.trace.hash, events: world.trace.events,
                virtualSeconds: world.now / 1_000_000, tally: world.tally)
        } catch {
            return SimulationResult(
                seed: seed, problems: ["the world cannot be made: \(error)"], traceHash: 0, events: 0,
                virtualSeconds: 0, tally: Tally())
        }
    }
}
