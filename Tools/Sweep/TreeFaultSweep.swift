import Synchronization
import ThicketFaultDisk
import ThicketProcesses
import ThicketProtocol
import ThicketServer

/// The fault sweep over batches of a tree and its blobs: each call to the disk fails once, those of the blob store
/// included, and the server must answer with 503 or 507 at most, leave nothing half, and go on.
public struct TreeFaultSweep: Sendable {
    public struct Settings: Sendable {
        public var actions: Int = 60
        public var seed: UInt64 = 1
        public var stride: Int = 1
        public var threads: Int = 1
        public init() {}
    }

    public struct Result: Sendable {
        /// Runs in each of which one call failed.
        public var faultsInjected: Int = 0
        /// Actions that were refused with 503 or 507, or not done, and done when they were repeated.
        public var refused: Int = 0
        public var faults: [String] = []
        public var summary: String {
            "fault sweep of trees: \(faultsInjected) runs with one failing call: \(refused) actions refused with 503 "
                + "or 507 and made later, \(faults.count) faults"
        }

        mutating func merge(_ other: Result) {
            faultsInjected += other.faultsInjected
            refused += other.refused
            faults += other.faults
        }
    }

    private let settings: Settings
    /// Most repetitions of an action: one call fails, and a client repeats until it is done.
    private static let attemptsMax = 4

    public init(_ settings: Settings) { self.settings = settings }

    public func run() throws -> Result {
        let calls = try rehearse()
        var runs = [(call: Int, failure: FaultRule.Failure)]()
        for (call, operation) in calls.enumerated() {
            runs.append((call, .io))
            if operation.isChange { runs.append((call, .full)) }
        }
        let chosen = stride(
            from: Int(settings.seed % UInt64(settings.stride)), to: runs.count, by: settings.stride
        ).map { runs[$0] }
        let total = Mutex<Result>(Result())
        let next = Atomic<Int>(0)
        let workers = (0..<settings.threads).map { _ in
            Worker {
                let result = self.work(chosen, calls, next)
                total.withLock { $0.merge(result) }
            }
        }
        for worker in workers { worker.join() }
        return total.withLock { $0 }
    }

    /// All calls of a run without a failure.
    private func rehearse() throws -> [FaultRule.Operation] {
        let disk = FaultVFS(name: CrashSweep.diskName(), syncsForReal: false)
        disk.recordCalls()
        var result = Result()
        try play(disk, &result)
        guard result.refused == 0 else { throw SweepError("\(result.refused) actions refused without a fault") }
        return disk.recordedCalls
    }

    private func work(
        _ runs: [(call: Int, failure: FaultRule.Failure)], _ calls: [FaultRule.Operation],
        _ next: borrowing Atomic<Int>
    ) -> Result {
        var result = Result()
        let disk = FaultVFS(name: CrashSweep.diskName(), syncsForReal: false)
        while case let index = next.wrappingAdd(1, ordering: .relaxed).oldValue, index < runs.count {
            let run = runs[index]
            result.faultsInjected += 1
            disk.heal()
            disk.fail(FaultRule(.any, run.failure, skipping: run.call, times: 1))
            do { try play(disk, &result) } catch {
                let name = "seed \(settings.seed), call \(run.call), a \(calls[run.call]) failing by \(run.failure)"
                result.faults.append("\(name): \(error)")
            }
        }
        return result
    }

    // MARK: One run

    private func play(_ disk: FaultVFS, _ result: inout Result) throws {
        let folder = TemporaryFolder("fault")
        var store = SweepWorkload.storeSettings(disk)
        store.fileFault = { call, path in disk.failure(of: FaultRule.Operation(call), path) }
        var author = TreeSweepAuthor(seed: settings.seed)
        var (answers, bodies) = ([TreeSweepServer.Answer](), [Int: [UInt8]]())
        var (starts, now): (UInt64, Int64) = (0, 1_000_000)
        var server: TreeSweepServer?
        for number in 0..<settings.actions {
            let action = author.next(now: now)
            if case .collect = action { now += TreeSweepAuthor.dayPlus }
            if case .batch(_, let body, _) = action { bodies[number] = body }
            if case .restart = action { server = nil }
            starts += 1
            let running = try server ?? again { try TreeSweepServer(folder.path, store, seed: starts) }
            server = running
            let answer = try perform(action, running, author.state, bodies, answers, now, &result)
            author.done(action, id: answer.id, now: now)
            answers.append(answer)
            // Background work may fail, since no client waits for it; it is repeated.
            try? running.keep(now: now, batches: 3)
            guard try again({ try running.nodes() }) == author.state.nodes else {
                throw SweepError("after action \(number) the tree is another one")
            }
            now += 1_000
        }
        guard let server else { return }
        let check = TreeSweepCheck(server: server, folder: folder.path, disk: disk, now: now)
        _ = try again { try check.expect(author.state, or: author.state) }
        try? server.removeUnknown()
        // The failing call may be one of the check's own.
        disk.heal()
        try server.removeUnknown()
        try check.expectSound()
        try check.expectOnlyNeeded()
    }

    /// Repeats an action until it is done.
    private func perform(
        _ action: TreeSweepAuthor.Action, _ server: TreeSweepServer, _ state: TreeSweepState,
        _ bodies: [Int: [UInt8]], _ answers: [TreeSweepServer.Answer], _ now: Int64, _ result: inout Result
    ) throws -> TreeSweepServer.Answer {
        for attempt in 0..<Self.attemptsMax {
            var answer: TreeSweepServer.Answer?
            do { answer = try server.perform(action, state, bodies, now: now) } catch let error as StoreError {
                // Work that no client waits for.
                guard Self.isOfDisk(error) else { throw error }
            }
            if let answer, ![503, 507].contains(answer.code) {
                if attempt > 0, case .abort = action, answer.code == 404 { return answer }
                try TreeSweepCheck.expect(answer, to: action, answers)
                return answer
            }
            result.refused += 1
        }
        throw SweepError("\(action) is refused again and again")
    }

    private static func isOfDisk(_ error: StoreError) -> Bool {
        [.io, .full, .unavailable, .busy].contains(error.kind)
    }

    /// Tries twice: only one call fails, and only once.
    private func again<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let error as StoreError {
            guard Self.isOfDisk(error) else { throw error }
            return try body()
        }
    }
}
