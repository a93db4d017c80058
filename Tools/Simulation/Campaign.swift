import Synchronization
import ThicketPlatform
import ThicketServer

/// Plays one seed after the other, on all cores, for a given time.
public enum Campaign {
    /// The outcome of a campaign.
    public struct Report: Sendable {
        /// Seeds played.
        public private(set) var runs: Int = 0
        /// The results of failed seeds, in order of completion.
        public private(set) var failures: [SimulationResult] = []
        /// Events of all runs.
        public private(set) var events: Int = 0
        /// Virtual seconds of all runs.
        public private(set) var virtualSeconds: Int64 = 0
        /// Virtual seconds of all clients of all runs.
        public private(set) var clientSeconds: Int64 = 0
        /// Wall time in seconds.
        public fileprivate(set) var seconds: Double = 0
        /// Seeds with sealed buckets.
        public private(set) var sealedRuns: Int = 0
        /// Seeds with trees.
        public private(set) var treeRuns: Int = 0
        private var tally = Tally()

        mutating func add(_ result: SimulationResult) {
            runs += 1
            if result.isSealed { sealedRuns += 1 }
            if result.hasTrees { treeRuns += 1 }
            events += result.events
            virtualSeconds += result.virtualSeconds
            clientSeconds += result.clientSeconds
            tally.add(result.tally)
            if !result.problems.isEmpty { failures.append(result) }
        }

        /// The required number of client-days per minute for `days`, on 2 cores.
        public static let clientDaysMin = 1_000

        /// Virtual days of all clients per minute of wall time.
        public var clientDaysPerMinute: Int { seconds > 0 ? Int(Double(clientSeconds) / 1_440 / seconds) : 0 }

        /// A report for a person, in lines that begin with `SimulationResult.prefix`.
        public var summary: String {
            let refusals = tally.refusals.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
                .joined(separator: ", ")
            let lines = [
                "\(runs) seeds, \(events) events, \(virtualSeconds / 3_600) h of virtual time, \(failures.count) failed.",
                "\(tally.edits) edits, \(tally.applied) changes applied, refusals \(refusals).",
                "\(tally.scans) index scans, \(tally.logCuts) cuts of logs, \(tally.decidedElsewhere) deferred "
                    + "changes; faults: \(tally.faults.text).",
                "\(sealedRuns) seeds with sealed buckets: \(tally.operations) operations, \(tally.compactions) compactions, \(tally.alarms) alarms after restores and cuts of logs, no other.",
                "\(treeRuns) seeds with trees: \(tally.treeChanges) changes by users, \(tally.batches) batches made, \(tally.batchesRepeated) of them answered again, \(tally.batchesRefused) refused, \(tally.treePushes) nodes confirmed, \(tally.treeConflicts) conflicts.",
                "Contents in blobs: \(tally.blobsUploaded) uploads in \(tally.blobParts) parts, \(tally.blobsResumed) resumed, \(tally.blobsDownloaded) downloads, \(tally.blobsCollected) orphans collected.",
                "\(clientSeconds / 86_400) client-days in \(Int(seconds)) s: \(clientDaysPerMinute) a minute.",
            ]
            return lines.map { SimulationResult.prefix + $0 }.joined(separator: "\n")
        }
    }

    /// How many of 1,000 seeds have trees, unless all must. Drawn here and not by the scenario, so that one seed alone
    /// plays what it did before trees existed.
    private static let treesPerMille = 100
    /// After so many failures the campaign ends.
    private static let failuresMax = 10
    /// The nice value of the threads, so that the machine's other work takes precedence.
    private static let niceness: Int32 = 10

    /// - Parameters:
    ///   - seconds: wall time after which no further seed is begun.
    ///   - tasks: seeds played at the same time.
    ///   - kind: what is played; nil: each seed decides.
    ///   - isSealed: all seeds must have sealed buckets; false: each seed decides.
    ///   - hasTrees: all seeds must have trees; false: a tenth has.
    ///   - runsMax: most seeds to play.
    ///   - mutant: a bug to build in; the first failure then ends the campaign.
    ///   - report: called with each seed's result as it arrives.
    public static func run(
        firstSeed: UInt64, seconds: Double, tasks: Int, kind: Kind? = nil, isSealed: Bool = false,
        hasTrees: Bool = false, runsMax: Int = .max, mutant: Mutant? = nil,
        report: @escaping @Sendable (SimulationResult) -> Void
    ) async -> Report {
        let start = ContinuousClock.Instant.now
        let end = start + .milliseconds(Int64(seconds * 1_000))
        let progress = Progress(
            firstSeed, failuresMax: mutant == nil ? failuresMax : 1, runsMax: runsMax)
        // Dedicated threads with low priority: a seed never suspends, and would block a thread of the shared pool.
        let (played, ends): (AsyncStream<Void>, AsyncStream<Void>.Continuation) = AsyncStream.makeStream()
        let threads = (0..<max(1, tasks)).map { (number: Int) in
            OwnThread("seeds-\(number)", stackBytes: 16 << 20) {
                OwnThread.yieldToOthers(by: niceness)
                while ContinuousClock.now < end, let seed = progress.next() {
                    let result = Simulation.run(
                        seed: seed, kind: kind, isSealed: isSealed, hasTrees: hasTrees || drawsTrees(seed, mutant),
                        mutant: mutant)
                    progress.add(result)
                    report(result)
                }
                ends.yield()
            }
        }
        var running = threads.count
        for await _ in played {
            running -= 1
            if running == 0 { break }
        }
        for thread in threads { thread.join() }
        var report = progress.report
        report.seconds = (ContinuousClock.now - start) / .seconds(1)
        return report
    }

    /// Built-in bugs have their own conditions.
    private static func drawsTrees(_ seed: UInt64, _ mutant: Mutant?) -> Bool {
        var dice = SimulationRandom(seed: seed ^ 0x7ee5_ca3a)
        return mutant == nil && dice.chance(treesPerMille)
    }

    /// The state that the threads share.
    private final class Progress: Sendable {
        private let state: Mutex<(next: UInt64, report: Report)>

        private let failuresMax: Int
        /// The seed after the last one; nil: no bound.
        private let end: UInt64?

        init(_ first: UInt64, failuresMax: Int, runsMax: Int) {
            state = Mutex((first, Report()))
            self.failuresMax = failuresMax
            end = runsMax == .max ? nil : first &+ UInt64(max(0, runsMax))
        }

        var report: Report { state.withLock { $0.report } }

        /// nil: the bound of failures or seeds is reached.
        func next() -> UInt64? {
            state.withLock { state in
                guard state.report.failures.count < failuresMax, state.next != end else { return nil }
                defer { state.next &+= 1 }
                return state.next
            }
        }

        func add(_ result: SimulationResult) { state.withLock { $0.report.add(result) } }
    }
}

extension SimulationResult {
    /// The beginning of each line about a run, so that a filter of a log can select these lines.
    public static let prefix = "simulation: "
    /// Most problems in a failure text, and most characters of one of them.
    private static let (linesMax, charactersMax) = (6, 300)

    /// The failure, and the command that plays it again; one fact per line.
    public var failureText: String {
        let facts = problems.prefix(Self.linesMax).map { fact in
            "  " + String(fact.prefix(Self.charactersMax)) + (fact.count > Self.charactersMax ? "…" : "")
        }
        let head = "seed \(seed) failed; replay it with: ./dev soak \(arguments) --verbose"
        return ([head] + facts).map { Self.prefix + $0 }.joined(separator: "\n")
    }
}
