import Synchronization
import ThicketFaultDisk
import ThicketProcesses
import ThicketProtocol
import ThicketServer
import ThicketTestSupport
import ThicketTreeShape

/// The crash sweep over batches of a tree and its blobs: a model of the server is stopped at every call that changes
/// its disk, and what a restart finds is compared with what was acknowledged.
///
/// Calls are those of SQLite and those of the blob store to its files. After each crash acknowledged actions are whole,
/// the one in flight is whole or absent, the audit of `thicketd check` finds nothing, a batch that is sent again gets
/// the same bytes, and the sweep of blobs leaves exactly the referenced files.
public struct TreeCrashSweep: Sendable {
    public struct Settings: Sendable {
        public var actions: Int = 150
        public var seed: UInt64 = 1
        /// Every `stride`-th point is tested, beginning at a point that the seed chooses.
        public var stride: Int = 1
        public var threads: Int = 1
        /// Breaks the image of a crash on purpose: a test of the sweep itself. Names are relative to the data folder.
        public var sabotage: @Sendable (inout [String: [UInt8]]) -> Void = { _ in }
        public init() {}
    }

    public struct Result: Sendable {
        /// Calls at which the model was stopped.
        public var points: Int = 0
        /// Restarts: points times kinds of loss.
        public var restarts: Int = 0
        /// Restarts that found the action in flight whole.
        public var wholes: Int = 0
        /// All violations, in words.
        public var faults: [String] = []
        /// What the workload has done.
        public var covered = ""
        public var summary: String {
            "crash sweep of trees: \(covered), stopped at \(points) writes and syncs, \(restarts) restarts, "
                + "\(wholes) of them with the action in flight: \(faults.count) faults"
        }

        mutating func merge(_ other: Result) {
            points += other.points
            restarts += other.restarts
            wholes += other.wholes
            faults += other.faults
        }
    }

    /// A run without a crash.
    struct Recording: Sendable {
        let root: String
        let steps: [DiskHistory.Step]
        /// Numbers of calls made when action n began, and when it was answered.
        let begun: [Int]
        let answered: [Int]
        let actions: [TreeSweepAuthor.Action]
        let answers: [TreeSweepServer.Answer]
        /// `states[n]`: after n actions.
        let states: [TreeSweepState]
        let times: [Int64]
        /// Batches by the numbers of their actions.
        let bodies: [Int: [UInt8]]

        var covered: String {
            let made = actions.filter { if case .batch(_, _, .some) = $0 { true } else { false } }.count
            let refused = actions.filter { if case .batch(_, _, nil) = $0 { true } else { false } }.count
            let blobs = Set(states.flatMap(\.blobs.keys)).count
            let left = states.last.map { "\($0.nodes.count) nodes and \($0.blobs.count) blobs left" } ?? ""
            return "\(actions.count) actions, \(made) batches made and \(refused) refused, \(blobs) blobs, \(left)"
        }
    }

    private let settings: Settings

    public init(_ settings: Settings) { self.settings = settings }

    /// Runs the whole sweep.
    public func run() throws -> Result {
        let recording = try record()
        let points = recording.steps.indices.filter { recording.steps[$0].changesDisk }
        let chosen = stride(
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
        result.covered = recording.covered
        return result
    }

    // MARK: The recorded run

    private func record() throws -> Recording {
        let folder = TemporaryFolder("sweep")
        let history = DiskHistory()
        let disk = FaultVFS(name: CrashSweep.diskName(), history: history, syncsForReal: false)
        let recorder = FileRecorder(history, folder: folder.path)
        var store = SweepWorkload.storeSettings(disk)
        store.fileFault = { call, path in
            recorder.announce(call, path)
            return 0
        }
        var starts: UInt64 = 1
        var server: TreeSweepServer? = try TreeSweepServer(folder.path, store, seed: starts)
        var author = TreeSweepAuthor(seed: settings.seed)
        var (begun, answered, times) = ([Int](), [Int](), [Int64]())
        var (actions, answers) = ([TreeSweepAuthor.Action](), [TreeSweepServer.Answer]())
        var (states, bodies) = ([author.state], [Int: [UInt8]]())
        var now: Int64 = 1_000_000
        for number in 0..<settings.actions {
            let action = author.next(now: now)
            if case .collect = action { now += TreeSweepAuthor.dayPlus }
            if case .batch(_, let body, _) = action { bodies[number] = body }
            begun.append(history.count)
            if case .restart = action {
                server = nil
                starts += 1
                server = try TreeSweepServer(folder.path, store, seed: starts)
            }
            guard let running = server else { break }
            let answer = try running.perform(action, author.state, bodies, now: now)
            answered.append(history.count)
            try TreeSweepCheck.expect(answer, to: action, answers)
            author.done(action, id: answer.id, now: now)
            (actions, answers, times) = (actions + [action], answers + [answer], times + [now])
            states.append(author.state)
            try running.keep(now: now, batches: 3)
            now += 1_000
        }
        return Recording(
            root: folder.path, steps: history.steps, begun: begun, answered: answered, actions: actions,
            answers: answers, states: states, times: times, bodies: bodies)
    }

    // MARK: Crashes

    private func look(at points: [Int], _ recording: Recording, _ next: borrowing Atomic<Int>) -> Result {
        var result = Result()
        let disk = FaultVFS(name: CrashSweep.diskName(), syncsForReal: false)
        var replay = DiskReplay(recording.steps)
        while case let index = next.wrappingAdd(1, ordering: .relaxed).oldValue, index < points.count {
            let point = points[index]
            replay.advance(to: point)
            result.points += 1
            for loss in DiskModel.Loss.allCases {
                var random = SeededRandom(seed: settings.seed &+ UInt64(point) &* 4)
                result.restarts += 1
                do {
                    var image = [String: [UInt8]]()
                    for (name, bytes) in replay.crashed(loss, &random) {
                        image[String(name.dropFirst(recording.root.count + 1))] = bytes
                    }
                    settings.sabotage(&image)
                    try restart(on: image, point, recording, disk, &result)
                } catch {
                    result.faults.append("seed \(settings.seed), call \(point), \(loss): \(error)")
                }
            }
        }
        return result
    }

    private func restart(
        on image: [String: [UInt8]], _ point: Int, _ recording: Recording, _ disk: FaultVFS, _ result: inout Result
    ) throws {
        let folder = TemporaryFolder("sweep")
        for (name, bytes) in image {
            try SweepFile.write(bytes, to: "\(folder.path)/\(name)", below: folder.path)
        }
        let safe = recording.answered.firstIndex { $0 > point } ?? recording.answered.count
        let isUnderWay = safe < recording.begun.count && recording.begun[safe] <= point
        let after = recording.states[isUnderWay ? safe + 1 : safe]
        let now = safe < recording.times.count ? recording.times[safe] : (recording.times.last ?? 0) + 1_000
        let server = try TreeSweepServer(
            folder.path, SweepWorkload.storeSettings(disk), seed: 1_000 + UInt64(point))
        let check = TreeSweepCheck(server: server, folder: folder.path, disk: disk, now: now)
        // A deleted file whose folder was not synced is back: the server's start deletes it again.
        try check.expectSound(allowing: "a file without a row")
        try server.removeUnknown()
        try check.expectSound()
        if try check.expect(recording.states[safe], or: after) { result.wholes += 1 }
        try sendAgain(server, check, safe, isUnderWay, recording)
        try check.expectSound()
        try check.expectOnlyNeeded()
    }

    /// Sends an answered batch again, then the action in flight, twice if it is a batch.
    private func sendAgain(
        _ server: TreeSweepServer, _ check: TreeSweepCheck, _ safe: Int, _ isUnderWay: Bool, _ recording: Recording
    ) throws {
        let old = (0..<safe).last { number in
            if case .batch(_, _, .some) = recording.actions[number] { true } else { false }
        }
        if let old {
            let answer = try server.perform(.again(old), recording.states[safe], recording.bodies, now: check.now)
            guard answer == recording.answers[old] else { throw SweepError("a batch sent again: \(answer)") }
        }
        guard safe < recording.actions.count else { return }
        let (action, before) = (recording.actions[safe], recording.states[safe])
        for _ in 0..<2 {
            let answer = try server.perform(action, before, recording.bodies, now: check.now)
            switch action {
            case .batch(_, _, .some), .again, .complete:
                guard answer == recording.answers[safe] else {
                    throw SweepError("sent again after the crash: \(answer), before \(recording.answers[safe])")
                }
            // The blob or upload that it has made before the crash belongs to no record, and is collected.
            case .small, .begin: guard answer.code == 200 else { throw SweepError("\(answer)") }
            case .part, .batch, .collect, .restart:
                guard answer.code == recording.answers[safe].code else { throw SweepError("\(answer)") }
            // The upload that was given up is not found any more.
            case .abort: guard [204, 404].contains(answer.code) else { throw SweepError("\(answer)") }
            }
        }
        if case .batch(_, _, let after?) = action { _ = try check.expect(after, or: after) }
    }
}

extension DiskHistory.Step {
    /// Whether a crash in the middle of the call may leave another state than a crash before it.
    var changesDisk: Bool {
        if case .open = action { return false }
        return true
    }
}
