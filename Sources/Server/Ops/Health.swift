import Synchronization

/// Whether the server can take a change now: the answer of `/health/ready`.
///
/// `/health/live` needs no state: a running loop can answer it. Any thread may report and ask.
public final class Health: Sendable {
    /// Whether a commit is possible, or what prevents it.
    public enum Condition: String, Sendable, Equatable {
        /// The store is being opened.
        case starting
        /// Commits succeed.
        case ready
        /// The last commit failed (full disk, I/O error, locked file); the server tries again by itself.
        case cannotCommit = "cannot_commit"
        /// The server is draining before it ends.
        case stopping
    }

    private let state = Mutex<(condition: Condition, reason: String)>((.starting, "the store is being opened"))
    private let readyFlag = Atomic<Bool>(false)

    /// Begins as `starting`.
    public init() {}

    /// Whether a change would be taken; one atomic load.
    public var isReady: Bool { readyFlag.load(ordering: .relaxed) }

    /// The condition, and its reason in words (safe to show: no user content).
    public var report: (condition: Condition, reason: String) { state.withLock { $0 } }

    /// A commit reached the disk, or the store was opened and probed.
    public func canCommit() {
        guard !isReady else { return }
        set(.ready, "commits succeed")
    }

    /// A commit failed.
    public func cannotCommit(_ reason: String) { set(.cannotCommit, reason) }

    /// The server is shutting down; this condition is final.
    public func stop() { set(.stopping, "the server is shutting down") }

    /// The body of `/health/ready`: one line, with 200 when ready and 503 when not.
    public var statusLine: String {
        let report = report
        return "\(report.condition.rawValue): \(report.reason)\n"
    }

    private func set(_ condition: Condition, _ reason: String) {
        state.withLock { (state: inout (condition: Condition, reason: String)) in
            guard state.condition != .stopping else { return }
            state = (condition, reason)
            readyFlag.store(condition == .ready, ordering: .relaxed)
        }
    }
}
