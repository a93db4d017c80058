import ThicketFaultDisk
import ThicketProcesses
import ThicketServer
import ThicketTestSupport
import ThicketTreeShape

/// The random model of a tree with blobs, messages and shared branches: after each action, what the server gives its
/// owner, its members and the receivers is compared with what the actions before it make, over restarts.
public struct TreeModelRun: Sendable {
    /// What a run has done.
    public struct Result: Sendable {
        /// Batches of the owner and of members that were made.
        public var made = (owner: 0, members: 0)
        /// Batches of members that had to be refused.
        public var membersRefused = 0
        /// Batches after which a node is shared that was not before, and batches after which one is no longer.
        public var (shared, ended) = (0, 0)
        /// Times the server was started.
        public var starts = 1
    }

    private let seed: UInt64
    private let actions: Int

    public init(seed: UInt64, actions: Int) { (self.seed, self.actions) = (seed, actions) }

    /// - Throws: the first deviation.
    public func run() throws -> Result {
        let folder = TemporaryFolder("model")
        let settings = SweepWorkload.storeSettings(nil)
        var result = Result()
        var server: TreeSweepServer? = try TreeSweepServer(folder.path, settings, seed: 1)
        var author = TreeSweepAuthor(seed: seed)
        var (answers, bodies) = ([TreeSweepServer.Answer](), [Int: [UInt8]]())
        var now: Int64 = 1_000_000
        for number in 0..<actions {
            let (before, action) = (author.state, author.next(now: now))
            if case .collect = action { now += TreeSweepAuthor.dayPlus }
            if case .batch(_, let body, _) = action { bodies[number] = body }
            if case .restart = action {
                server = nil
                result.starts += 1
                server = try TreeSweepServer(folder.path, settings, seed: UInt64(result.starts))
            }
            guard let running = server else { break }
            let answer = try running.perform(action, before, bodies, now: now)
            try TreeSweepCheck.expect(answer, to: action, answers)
            author.done(action, id: answer.id, now: now)
            answers.append(answer)
            try running.keep(now: now, batches: 3)
            let check = TreeSweepCheck(server: running, folder: folder.path, disk: nil, now: now)
            do { _ = try check.expect(author.state, or: author.state) } catch {
                throw SweepError("seed \(seed), action \(number), \(action): \(error)")
            }
            try count(action, bodies[number] ?? [], before, author.state, &result)
            if number % 50 == 49 { try check.expectSound() }
            now += 1_000
        }
        return result
    }

    private func count(
        _ action: TreeSweepAuthor.Action, _ body: [UInt8], _ before: TreeSweepState, _ after: TreeSweepState,
        _ result: inout Result
    ) throws {
        guard case .batch(_, _, let made) = action else { return }
        let isMembers = try TreeBatch(parsing: body).operations.contains { operation in
            guard case .put(_, _, let record) = operation, let signature = record.signature else { return false }
            return try signature.author != TreeSweepServer.owner()
        }
        switch (isMembers, made != nil) {
        case (true, true): result.made.members += 1
        case (true, false): result.membersRefused += 1
        case (false, true): result.made.owner += 1
        case (false, false): break
        }
        let (old, new) = (Set(before.roots), Set(after.roots))
        result.shared += new.subtracting(old).count
        result.ended += old.subtracting(new).count
    }
}
