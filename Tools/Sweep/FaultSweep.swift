import Glibc
import Synchronization
import ThicketFaultDisk
import ThicketProcesses
import ThicketSQLite
import ThicketServer

/// Lets each call to the disk fail once, and checks the server's reaction: no wrong answer, changes refused only with
/// 503, and service resumes by itself.
///
/// Calls are those of SQLite's file system interface. A short read appears there as a failed read of which a part was
/// done: SQLite's own file system would continue to read.
public struct FaultSweep: Sendable {
    public struct Settings: Sendable {
        public var changes: Int = 240
        public var seed: UInt64 = 1
        public var stride: Int = 1
        public var threads: Int = 1
        /// The call that fails, as a fault names it; nil: each of them.
        public var call: Int?
        public init() {}
    }

    public struct Result: Sendable {
        /// Runs in each of which one call failed.
        public var faultsInjected: Int = 0
        /// Calls by kind, each of which failed in at least one run.
        public var calls: [FaultRule.Operation: Int] = [:]
        /// Groups refused with 503, then sent again and accepted.
        public var refused: Int = 0
        public var lost: Int = 0
        public var duplicated: Int = 0
        public var faults: [String] = []
        public var summary: String {
            let kinds = calls.sorted { $0.value > $1.value }.map { "\($0.value) \($0.key)" }
                .joined(separator: ", ")
            return
                "fault sweep: \(faultsInjected) runs with one failing call (\(kinds)): \(refused) groups refused with "
                + "503 and taken later, \(lost) changes lost, \(duplicated) applied twice, \(faults.count) faults"
        }

        mutating func merge(_ other: Result) {
            faultsInjected += other.faultsInjected
            calls.merge(other.calls) { $0 + $1 }
            refused += other.refused
            lost += other.lost
            duplicated += other.duplicated
            faults += other.faults
        }
    }

    private let settings: Settings
    private let workload: SweepWorkload

    public init(_ settings: Settings) {
        self.settings = settings
        workload = SweepWorkload(changes: settings.changes, groupMax: 10, keys: 12, seed: settings.seed)
    }

    public func run() throws -> Result {
        let calls = try rehearse()
        var runs = [(call: Int, failure: FaultRule.Failure)]()
        for (call, operation) in calls.enumerated() where settings.call ?? call == call {
            runs.append((call, .io))
            if operation == .write || operation == .sync || operation == .truncate { runs.append((call, .full)) }
            if operation == .write || operation == .read { runs.append((call, .short)) }
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
        let calls = disk.recordedCalls
        guard result.refused == 0, result.faults.isEmpty else { throw SweepError("\(result.faults)") }
        return calls
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
            result.calls[calls[run.call], default: 0] += 1
            disk.heal()
            disk.fail(FaultRule(.any, run.failure, skipping: run.call, times: 1))
            do {
                let before = result.faults.count
                try play(disk, &result)
                for place in before..<result.faults.count { result.faults[place] += " (\(name(run, calls)))" }
            } catch {
                result.faults.append("\(name(run, calls)): \(error)")
            }
        }
        return result
    }

    private func name(_ run: (call: Int, failure: FaultRule.Failure), _ calls: [FaultRule.Operation]) -> String {
        "seed \(settings.seed), call \(run.call), a \(calls[run.call]) failing by \(run.failure)"
    }

    // MARK: One run

    private func play(_ disk: FaultVFS, _ result: inout Result) throws {
        let folder = TemporaryFolder("fault")
        let path = folder.path + "/" + SQLiteStore.fileName
        var running: SweepServer?
        var state = workload.states[0]
        for (number, group) in workload.groups.enumerated() {
            let server = try running ?? again { try SweepServer(path, disk: disk) }
            running = server
            let now: Int64 = 1_000_000 + Int64(number) * 4_000
            try send(group, number, server, now: now, &state, &result)
            // Background work may fail, since no client waits for it; it is repeated.
            try? server.keep(now: now, batches: 3)
            try compare(server, state, &result)
            if number == workload.groups.count / 2 {
                try backUp(path, to: folder.path + "/copy", disk)
                for _ in 0..<2 { try restore(folder.path + "/copy", to: folder.path + "/restored", disk, state) }
                // A clean stop and a new start: the last connection moves the log into the file and removes it.
                running = nil
            }
        }
        let found = try again {
            try StoreCheck.run(path, settings: SweepWorkload.storeSettings(disk))
        }
        // The failing call may have been one of the check's own.
        if found.isClean { return }
        // The failing call may have been one of the check's own.
        let second = try StoreCheck.run(path, settings: SweepWorkload.storeSettings(nil))
        guard second.isClean else { throw SweepError("check: \(second.findings.prefix(3))") }
    }

    /// Sends the group until all of it is accepted.
    ///
    /// If a change of an object is refused and the next one accepted, as with two authors, the refused one is applied
    /// behind it; `state` therefore follows the order of the acknowledgements.
    private func send(
        _ group: [SweepChange], _ number: Int, _ server: SweepServer, now: Int64, _ state: inout SweepState,
        _ result: inout Result
    ) throws {
        var rest = group
        for attempt in 0..<4 {
            let answer = try server.send(rest, now: now)
            for (ccid, code) in answer.refused where code != 503 {
                result.faults.append("group \(number): \(ccid) was refused with \(code)")
            }
            if attempt == 0, !answer.known.isEmpty {
                result.faults.append("group \(number): new changes were taken for known ones")
            }
            if !answer.refused.isEmpty { result.refused += 1 }
            for change in rest where answer.refused[change.ccid] == nil { state.apply(change) }
            rest = rest.filter { answer.refused[$0.ccid] != nil }
            if rest.isEmpty { return }
        }
        throw SweepError("group \(number) is refused again and again")
    }

    private func compare(_ server: SweepServer, _ wanted: SweepState, _ result: inout Result) throws {
        let found = try again { try server.state(like: wanted) }
        guard found != wanted else { return }
        let (lost, surplus) = wanted.difference(to: found)
        result.lost += lost
        result.duplicated += surplus
        throw SweepError("a read shows something else: \(lost) lost, \(surplus) too many")
    }

    private func backUp(_ path: String, to copy: String, _ disk: FaultVFS) throws {
        _ = try again { try StoreBackup.run(from: path, to: copy, settings: SweepWorkload.storeSettings(disk)) }
        guard try StoreCheck.run(copy).isClean else { throw SweepError("a backup that was reported is broken") }
    }

    /// The first time there is no store yet, the second time it replaces one. A failure leaves a sound store, old or
    /// new, or a state from which the next start makes one.
    private func restore(_ copy: String, to path: String, _ disk: FaultVFS, _ state: SweepState) throws {
        let settings = SweepWorkload.storeSettings(disk)
        let wasThere = access(path, F_OK) == 0
        do {
            _ = try StoreRestore.run(from: copy, to: path, settings: settings)
        } catch {
            // The failing call has already happened.
            let next = try StoreRestore.finishInterrupted(path, settings: settings)
            if case .finished? = next { try expect(state, in: path) }
            if wasThere { try expect(state, in: path) }
            _ = try StoreRestore.run(from: copy, to: path, settings: settings)
        }
        try expect(state, in: path)
    }

    /// Expects the same objects; versions are higher after a restore.
    private func expect(_ wanted: SweepState, in path: String) throws {
        guard try StoreCheck.run(path).isClean else { throw SweepError("a restored store is broken") }
        let found = try SweepServer(path, disk: nil).state(like: wanted)
        for (mine, other) in zip(wanted.buckets, found.buckets) {
            guard mine.mapValues(\.members) == other.mapValues(\.members) else {
                throw SweepError("a restored store holds something else")
            }
        }
    }

    /// Tries twice: only one call fails, and only once.
    private func again<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as StoreError {
            guard error.kind == .io || error.kind == .full || error.kind == .unavailable || error.kind == .busy else {
                throw error
            }
            return try body()
        }
    }
}
