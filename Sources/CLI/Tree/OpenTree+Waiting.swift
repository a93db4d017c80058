import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketPlatform
import ThicketTreeShape
import ThicketTreesystem

extension OpenTree {
    /// How the answer of a command that waits becomes a sentence.
    enum Unconfirmed {
        /// The tree was not read.
        case unread(String)
        /// A change is kept here.
        case kept(String)
    }

    /// Waits until the copy has everything that the server has.
    ///
    /// - Parameters:
    ///   - consequence: what did not happen if the wait fails, for the message.
    ///   - offline: what `--offline` does, for that message; nil: the command has no such flag.
    package func ready(_ consequence: String = "the tree was not read", offline: String? = nil) async throws(Failure) {
        let tree = tree
        let hint = offline.map { ". With --offline \($0)" } ?? ""
        try await waiting(.unread(consequence + hint)) { () throws(TreeError) in
            let (events, isCaughtUp) = await tree.observe()
            if isCaughtUp { return }
            for await event in events { if case .caughtUp = event { return } }
            // The stream ends with the task, or with the tree.
            throw TreeError(Task.isCancelled ? .cancelled : .closed, "the tree is closed")
        }
        try await verifyMessages(consequence)
        try await verifyAuthors(consequence)
    }

    /// Messages whose authors are being looked up would be missing from what the command shows.
    private func verifyMessages(_ consequence: String) async throws(Failure) {
        let messages = tree.messages
        try await growing(consequence) { () throws(TreeError) in
            if try await messages.counts.awaitingKeys > 0 { try await messages.lookUpAuthors() }
        }
    }

    /// Names the members of shared branches whose keys cannot be used now, after another look-up.
    private func verifyAuthors(_ consequence: String) async throws(Failure) {
        let tree = tree
        let waiting = try await growing(consequence) { () throws(TreeError) in try await tree.sharing.lookUpAuthors() }
        try await reportFaults(consequence)
        guard !waiting.isEmpty else { return }
        let names = try await AuthorNames(self)
        for author in waiting {
            let name = Screen.safe(names.name(of: author.author))
            let next = HiddenMessages.next(author.reason, name)
            Terminal.writeError(
                "\(Counts.nodes(author.nodes)) of \(name) not shown as written last: \(author.detail). \(next)\n")
        }
    }

    /// Names what the server shows of shared branches and is not genuine.
    private func reportFaults(_ consequence: String) async throws(Failure) {
        let tree = tree
        let faults = try await growing(consequence) { () throws(TreeError) in
            try await tree.quarantined.filter { $0.kind == .sharing }
        }
        for fault in faults.prefix(Self.refusalsShownMax) {
            let path = try await growing(consequence) { () throws(TreeError) in try await tree.path(of: fault.node) }
            Terminal.writeError(
                "\(path.map(TreeText.named) ?? fault.node.text): what the server shows of it is not genuine, and not "
                    + "shown: \(fault.detail)\n")
        }
        if faults.count > Self.refusalsShownMax {
            Terminal.writeError("\(faults.count - Self.refusalsShownMax) more nodes are not genuine\n")
        }
    }

    /// The operations that wait now.
    package func queued() async throws(Failure) -> Set<OperationID> {
        let tree = tree
        return try await growing("cannot read the queue") { () throws(TreeError) in Set(try await tree.queue.map(\.id))
        }
    }

    /// Waits until the server has confirmed operations. One that it refuses for good is given up: the node is again as
    /// the server has it.
    ///
    /// - Parameters:
    ///   - what: "put home/plan", for the message.
    ///   - earlier: operations of earlier commands, which may have the only copy of a content: a refused one stays in
    ///     the queue.
    package func confirm(
        _ operations: [OperationID], _ what: String, earlier: Set<OperationID> = []
    ) async throws(Failure) {
        let tree = tree
        for id in operations {
            let refused: TreeError? = try await waiting(.kept(what)) { () throws(TreeError) in
                do throws(TreeError) {
                    try await tree.wait(for: id, timeout: .seconds(Self.longestWaitSeconds))
                    return nil
                } catch {
                    guard error.code == .refused, error.reason != nil else { throw error }
                    return error
                }
            }
            guard let refused else { continue }
            guard !earlier.contains(id) else { throw Failure("cannot \(what)", tree: refused) }
            try await giveUp(id, what, refused)
        }
    }

    /// A wait ends by `WaitBudget`, not by the tree's own bound.
    static let longestWaitSeconds = 86_400

    private func giveUp(_ id: OperationID, _ what: String, _ refused: TreeError) async throws(Failure) {
        let outcome: String
        do throws(TreeError) {
            try await tree.discard(id)
            outcome = "Nothing was changed."
        } catch { outcome = "The change is kept here: 'thicket tree queue discard \(id)' drops it." }
        throw Failure("the server refused to \(what) (\(refused.reason ?? "")). \(outcome)", .refused)
    }

    // MARK: - Waiting

    /// Runs a wait until it returns, the server cannot be reached at the command's first attempt, or the time is over
    /// in which nothing moved (`WaitBudget`).
    func waiting<Value: Sendable>(
        _ consequence: Unconfirmed, _ body: @escaping @Sendable () async throws(TreeError) -> Value
    ) async throws(Failure) -> Value {
        let wait = account.wait
        let result = await wait.counting { left in
            await withTaskGroup(of: Result<Value, TreeError>?.self) { group in
                group.addTask {
                    do throws(TreeError) { return .success(try await body()) } catch { return .failure(error) }
                }
                let follower = TreeFollower(account.wait)
                group.addTask { await follower.follow(tree.status).map { .failure($0) } }
                group.addTask { await patience(follower, left).map { .failure($0) } }
                var outcome: Result<Value, TreeError>?
                for await result in group {
                    guard let result, outcome == nil else { continue }
                    outcome = result
                    group.cancelAll()
                }
                return outcome ?? .failure(TreeError(.cancelled, "the wait was cancelled"))
            }
        }
        do throws(TreeError) { return try result.get() } catch {
            let trouble = error.code == .deadline ? (try? await tree.queue)?.compactMap(\.trouble).first : nil
            throw unreachable(error, consequence, trouble)
        }
    }

    /// Returns when nothing has moved for the time of one wait, or with `--timeout` when that is over.
    private func patience(_ follower: TreeFollower, _ left: Duration) async -> TreeError? {
        var seen = await moves(follower)
        while true {
            // A sleep that was cancelled: the wait is over.
            guard (try? await Task.sleep(for: left)) != nil else { return nil }
            let now = await moves(follower)
            if account.wait.isWhole || now == seen { return TreeError(.deadline, "not in time") }
            seen = now
        }
    }

    /// Changes whenever something was read, uploaded or confirmed.
    private func moves(_ follower: TreeFollower) async -> [UInt64] {
        let queue = (try? await tree.queue) ?? []
        return [follower.steps, UInt64(queue.count), queue.reduce(0) { $0 &+ ($1.progress?.bytes ?? 0) }]
    }

    private func unreachable(_ error: TreeError, _ consequence: Unconfirmed, _ trouble: String?) -> Failure {
        if error.code == .cancelled { return .interrupted }
        let (server, sentence) = (account.profile.server, text(of: consequence))
        if ClientError.Code(rawValue: error.reason ?? "") == .unauthorized {
            return Failure(
                "the login has ended (\(error.detail)); \(sentence). \(account.profile.renewal)", .unauthorized)
        }
        return switch error.code {
        case .network:
            Failure(
                "\(server) cannot be reached (\(error.detail)); \(sentence). Is the server running, and the address right?",
                .offline)
        case .deadline: late(consequence, trouble)
        default: Failure(sentence, tree: error)
        }
    }

    /// A server that answers may be unable to store the change, for example because its disk is full.
    private func late(_ consequence: Unconfirmed, _ trouble: String?) -> Failure {
        let did = if case .kept = consequence { "confirm" } else { "answer" }
        return Failure(
            "\(account.profile.server) did not \(did) within \(account.wait.total.words)"
                + "\(trouble.map { " (\($0))" } ?? ""); \(text(of: consequence)). --timeout waits longer.", .offline)
    }

    private func text(of consequence: Unconfirmed) -> String {
        switch consequence {
        case .unread(let text): text
        case .kept(let what):
            "'\(what)' is not confirmed: the change is kept here and is sent with \(TreeText.nextCommand)"
        }
    }
}

/// Watches the status of a tree during a wait: draws how much was read, and reports when waiting is pointless.
final class TreeFollower: Sendable {
    private let count = Mutex<UInt64>(0)
    private let wait: WaitBudget

    init(_ wait: WaitBudget) { self.wait = wait }

    /// Grows while nodes are read or changes are confirmed.
    var steps: UInt64 { count.withLock { $0 } }

    /// - Returns: an error when the command's first attempt to connect fails; nil when the task is cancelled.
    func follow(_ statuses: AsyncStream<SyncStatus>) async -> TreeError? {
        var reading: ProgressBar?
        defer { reading?.clear() }
        for await status in statuses {
            switch status {
            case .indexing(let done, let total):
                wait.markReached()
                reading = reading ?? ProgressBar("reading the tree", total: total.map(Int.init))
                count.withLock { $0 += 1 }
                reading?.update(Int(done))
            case .syncing, .upToDate:
                wait.markReached()
                count.withLock { $0 += 1 }
            case .offline(.unreachable(let reason)):
                if !wait.hasReached { return TreeError(.network, reason) }
            case .offline(.untrusted(let reason)): return TreeError(.network, reason)
            case .offline(.storeFailed(let reason)): return TreeError(.store, reason)
            case .offline(.unauthorized(let reason)):
                return TreeError(.network, reason, reason: ClientError.Code.unauthorized.rawValue)
            case .offline(.wrongAccount(let user)):
                return TreeError(.store, "the token is \(user)'s", reason: ClientError.Code.storeMismatch.rawValue)
            case .connecting, .offline: break
            }
        }
        return nil
    }
}
