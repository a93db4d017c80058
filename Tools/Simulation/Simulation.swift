/// The result of one seed.
public struct SimulationResult: Sendable {
    /// The seed.
    public let seed: UInt64
    /// What it played.
    public let kind: Kind
    /// The violations, in words; empty: none.
    public let problems: [String]
    /// A hash over every event of the run: equal for equal seeds.
    public let traceHash: UInt64
    /// Number of events.
    public let events: Int
    /// Virtual seconds of the run.
    public let virtualSeconds: Int64
    /// Virtual seconds of all clients together.
    public let clientSeconds: Int64
    let tally: Tally
    /// Contents of trees that were uploaded as blobs, and those that were downloaded.
    public var blobTransfers: (uploads: Int, downloads: Int) { (tally.blobsUploaded, tally.blobsDownloaded) }
    /// The bug that was built in.
    let mutant: Mutant?
    /// The run had sealed buckets.
    public let isSealed: Bool
    /// Sealed buckets were requested.
    let isSealedByWish: Bool
    /// The run had devices with trees.
    public let hasTrees: Bool
    /// Trees were requested.
    let hasTreesByWish: Bool

    /// The arguments of `./dev soak` that play it again.
    public var arguments: String {
        "--seed \(seed) --\(kind.rawValue)" + (isSealedByWish ? " --sealed" : "")
            + (hasTreesByWish ? " --trees" : "")
            + (mutant.map { " --mutant \($0.rawValue)" } ?? "")
    }
}

/// The whole system on a seeded clock, network, disk and people.
public enum Simulation {
    /// Plays one seed from beginning to end.
    /// - Parameters:
    ///   - changes: knobs with other values than the seed's, as `Shrinking` finds them; unknown names have no effect.
    ///   - kind: what is played; nil: the seed decides.
    ///   - isSealed: sealed buckets are required; false: the seed decides.
    ///   - hasTrees: trees are required; false: the seed decides.
    ///   - mutant: a bug to build in.
    ///   - sink: receives one line per event; nil: no lines are made.
    public static func run(
        seed: UInt64, with changes: [String: Int] = [:], kind: Kind? = nil, isSealed: Bool = false,
        hasTrees: Bool = false, mutant: Mutant? = nil, sink: (@Sendable (String) -> Void)? = nil
    ) -> SimulationResult {
        var scenario = Scenario(seed: seed, kind: kind, isSealed: isSealed, hasTrees: hasTrees)
        scenario.build(in: mutant)
        for (name, value) in changes.sorted(by: { $0.key < $1.key }) {
            _ = scenario.turn(name, to: value)
        }
        return run(scenario, sink: sink)
    }

    /// Names that `changes` may have.
    public static var knobNames: [String] { Scenario.knobs.map(\.name) }

    static func run(_ scenario: Scenario, sink: (@Sendable (String) -> Void)?) -> SimulationResult {
        do {
            let world = try World(scenario, sink: sink)
            try world.run()
            let seconds = world.now / 1_000_000
            return SimulationResult(
                seed: scenario.seed, kind: scenario.kind, problems: world.problems, traceHash: world.trace.hash,
                events: world.trace.events,
                virtualSeconds: seconds, clientSeconds: seconds * Int64(scenario.peers),
                tally: world.tally, mutant: scenario.mutant, isSealed: scenario.sealing != .none,
                isSealedByWish: scenario.isSealedByWish, hasTrees: scenario.trees > 0,
                hasTreesByWish: scenario.hasTreesByWish)
        } catch {
            return SimulationResult(
                seed: scenario.seed, kind: scenario.kind, problems: ["the world cannot be made: \(error)"],
                traceHash: 0, events: 0,
                virtualSeconds: 0, clientSeconds: 0, tally: Tally(), mutant: scenario.mutant,
                isSealed: scenario.sealing != .none,
                isSealedByWish: scenario.isSealedByWish, hasTrees: scenario.trees > 0,
                hasTreesByWish: scenario.hasTreesByWish)
        }
    }
}
