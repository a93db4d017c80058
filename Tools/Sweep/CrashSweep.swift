import Glibc
import Synchronization
import ThicketFaultDisk
import ThicketProcesses
import ThicketSQLite
import ThicketServer
import ThicketTestSupport

/// Stops a model of the server at every call that changes its disk, and checks the state after a restart.
///
/// The workload runs once over a disk that records every call. Then, for each call, the disk is reconstructed as a
/// crash in the middle of that call may leave it, for all kinds of loss: the server starts on it, must hold exactly the
/// acknowledged changes (and all or nothing of the group in flight), passes the check, knows every change that is sent
/// again, and accepts new ones.
public struct CrashSweep: Sendable {
    public struct Settings: Sendable {
        public var changes: Int = 1_000
        public var seed: UInt64 = 1
        /// Every `stride`-th point is tested, beginning at a point that the seed chooses.
        public var stride: Int = 1
        public var threads: Int = 1
        /// Breaks the image of a crash on purpose: a test of the sweep itself.
        public var sabotage: @Sendable (inout [String: [UInt8]]) -> Void = { _ in }
        public init() {}
    }

    public struct Result: Sendable {
        /// Calls at which the model was stopped.
        public var points: Int = 0
        /// Restarts: points times kinds of loss.
        public var restarts: Int = 0
        public var changes: Int = 0
        public var lost: Int = 0
        public var duplicated: Int = 0
        /// All violations, in words.
        public var faults: [String] = []
        /// The features that the workload has covered.
        public var covered = ""
        public var summary: String {
            "crash sweep: \(changes) changes (\(covered)), stopped at \(points) writes and syncs, \(restarts) restarts: "
                + "\(lost) acknowledged changes lost, \(duplicated) applied twice, \(faults.count) faults"
        }

        mutating func merge(_ other: Result) {
            points += other.points
            restarts += other.restarts
            lost += other.lost
            duplicated += other.duplicated
            faults += other.faults
        }
    }

    /// A run without a crash: its calls to the disk, and the times of its acknowledgements.
    struct Recording: Sendable {
        let steps: [DiskHistory.Step]
        /// Numbers of calls made when group n was submitted, and when it was acknowledged.
        let begun: [Int]
        let acknowledged: [Int]
        let covered: String
    }

    private let settings: Settings
    private let workload: SweepWorkload
    private static let database: String = SQLiteStore.fileName
    private static let serial = Atomic<Int>(0)

    public init(_ settings: Settings) {
        self.settings = settings
        workload = SweepWorkload(changes: settings.changes, groupMax: 20, keys: 40, seed: settings.seed)
    }

    /// Runs the whole sweep.
    public func run() throws -> Result {
        let recording = try record()
        let points: [Int] = recording.steps.indices.filter { recording.steps[$0].changesDisk }
        let chosen: [Int] = stride(
            from: Int(settings.seed % UInt64(settings.stride)), to: points.count, by: settings.stride
        ).map { points[$0] }
        let total = Mutex<Result>(Result())
        let next = Atomic<Int>(0)
        let workers = (0..<settings.threads).map { _ in
            Worker {
                let result = self.look(at: chosen, recording, next)
                total.withLock { $0.merge(result) }
            }
        }
        for worker in workers { worker.join() }
        var result = total.withLock { $0 }
        result.changes = settings.changes
        result.covered = recording.covered
        return result
    }

    // MARK: The recorded run

    private func record() throws -> Recording {
        let folder = TemporaryFolder("sweep")
        let history = DiskHistory()
        let disk = FaultVFS(name: Self.diskName(), history: history, syncsForReal: false)
        let path = folder.path + "/" + Self.database
        var server: SweepServer? = try SweepServer(path, disk: disk)
        var begun = [Int]()
        var acknowledged = [Int]()
        for (number, group) in workload.groups.enumerated() {
            let now: Int64 = 1_000_000 + Int64(number) * 1_000
            begun.append(history.count)
            let answer: SweepServer.Answer? = try server?.send(group, now: now)
            guard answer?.applied == Set(group.map(\.ccid)) else { throw SweepError("group \(number) was not applied") }
            acknowledged.append(history.count)
            try server?.keep(now: now, batches: 3)
            if number % 40 == 20 { try backUp(path, to: folder.path + "/copy-\(number)", disk, after: number) }
            if number % 50 == 37 {
                // A clean stop: the last connection moves the log into the file and removes it.
                server = nil
                server = try SweepServer(path, disk: disk)
            }
        }
        let found = try StoreCheck.run(path, settings: SweepWorkload.storeSettings(disk))
        guard found.isClean, settings.changes < 1_000 || (found.segments > 0 && found.keptBodies > 0) else {
            throw SweepError("the workload leaves a store that is not as wanted: \(found)")
        }
        let covered =
            "\(workload.groups.count) groups, \(workload.compactions) compactions of sealed objects, \(found.segments) segments, \(found.keptBodies) kept bodies, "
            + "\(settings.changes - found.changes) rows cut"
        return Recording(steps: history.steps, begun: begun, acknowledged: acknowledged, covered: covered)
    }

    /// A completed backup holds all changes that were acknowledged before it.
    private func backUp(_ path: String, to copy: String, _ disk: FaultVFS, after number: Int) throws {
        _ = try StoreBackup.run(from: path, to: copy, settings: SweepWorkload.storeSettings(disk))
        guard try StoreCheck.run(copy).isClean else { throw SweepError("the backup after group \(number) is broken") }
        let wanted = workload.states[number + 1]
        guard try SweepServer(copy, disk: nil).state(like: wanted) == wanted else {
            throw SweepError("the backup after group \(number) holds something else")
        }
    }

    // MARK: Crashes

    private func look(at points: [Int], _ recording: Recording, _ next: borrowing Atomic<Int>) -> Result {
        var result = Result()
        let disk = FaultVFS(name: Self.diskName(), syncsForReal: false)
        var replay = DiskReplay(recording.steps)
        while case let index = next.wrappingAdd(1, ordering: .relaxed).oldValue, index < points.count {
            let point = points[index]
            replay.advance(to: point)
            result.points += 1
            for loss in DiskModel.Loss.allCases {
                var random = SeededRandom(seed: settings.seed &+ UInt64(point) &* 4)
                result.restarts += 1
                do {
                    var image = replay.crashed(loss, &random)
                    settings.sabotage(&image)
                    try restart(on: image, point, recording, disk, &result, &random)
                } catch {
                    result.faults.append("seed \(settings.seed), call \(point), \(loss): \(error)")
                }
            }
        }
        return result
    }

    private func restart(
        on image: [String: [UInt8]], _ point: Int, _ recording: Recording, _ disk: FaultVFS, _ result: inout Result,
        _ random: inout SeededRandom
    ) throws {
        let folder = TemporaryFolder("sweep")
        for (name, bytes) in image { try write(bytes, to: folder.path + "/" + (name.split(separator: "/").last ?? "")) }
        let path = folder.path + "/" + Self.database
        let safe: Int = recording.acknowledged.firstIndex { $0 > point } ?? recording.acknowledged.count
        // The group in flight, if any, is present completely or not at all.
        let isUnderWay = safe < recording.begun.count && recording.begun[safe] <= point
        let server = try SweepServer(path, disk: disk)
        try expectClean(path, disk)
        let after = workload.states[min(safe + 1, workload.groups.count)]
        let found = try server.state(like: after)
        let hasGroup = isUnderWay && found == after
        guard hasGroup || found == workload.states[safe] else {
            let (lost, _) = workload.states[safe].difference(to: found)
            let (_, surplus) = after.difference(to: found)
            result.lost += lost
            result.duplicated += surplus
            throw SweepError("after \(safe) groups: \(lost) lost, \(surplus) too many")
        }
        try sendAgain(server, safe: safe, isUnderWay, hasGroup: hasGroup, &result, &random)
        try expectClean(path, disk)
    }

    /// Sends unanswered changes again, and some answered ones; then new changes.
    private func sendAgain(
        _ server: SweepServer, safe: Int, _ isUnderWay: Bool, hasGroup: Bool, _ result: inout Result,
        _ random: inout SeededRandom
    ) throws {
        let now: Int64 = 1_000_000 + Int64(safe) * 1_000
        for _ in 0..<3 where safe > 0 {
            let old = workload.groups[Int.random(in: 0..<safe, using: &random)]
            let answer = try server.send(old, now: now)
            result.duplicated += answer.applied.count
            guard answer.known.count == old.count else { throw SweepError("sent again after its answer: \(answer)") }
        }
        guard safe < workload.groups.count else { return }
        let group = workload.groups[safe]
        let answer = try server.send(group, now: now)
        guard (hasGroup ? answer.known : answer.applied).count == group.count else {
            throw SweepError("sent again without answer, \(hasGroup ? "there" : "not there"): \(answer)")
        }
        let wanted = workload.states[safe + 1]
        let found = try server.state(like: wanted)
        guard found == wanted else {
            let (lost, surplus) = wanted.difference(to: found)
            result.lost += lost
            result.duplicated += surplus
            throw SweepError("after sending again: \(lost) lost, \(surplus) too many")
        }
        try server.keep(now: now + 100_000, batches: 2)
    }

    private func expectClean(_ path: String, _ disk: FaultVFS) throws {
        let found = try StoreCheck.run(path, settings: SweepWorkload.storeSettings(disk))
        guard found.isClean else { throw SweepError("check: \(found.findings.prefix(3))") }
    }

    private func write(_ bytes: [UInt8], to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0 else { throw SweepError("\(path) cannot be made") }
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw SweepError("\(path) cannot be written")
        }
    }

    /// File systems stay registered, so each needs its own name.
    static func diskName() -> String { "sweep-\(serial.wrappingAdd(1, ordering: .relaxed).newValue)" }
}

/// A thread with enough stack for a server.
final class Worker {
    private let thread: pthread_t

    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    init(_ body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, 8 << 20)
        defer { pthread_attr_destroy(&attributes) }
        var made = pthread_t()
        let context = Unmanaged.passRetained(Body(body)).toOpaque()
        let code = pthread_create(
            &made, &attributes,
            { context in
                if let context { Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, context)
        precondition(code == 0, "a thread cannot be made")
        thread = made
    }

    func join() { pthread_join(thread, nil) }
}
