/// The outcome of one commit of a `MemoryStore` in a simulation.
public enum CommitFault: Sendable, Hashable {
    /// The commit succeeds.
    case none
    /// Nothing is written, the writer gets the error, and the next commit may succeed.
    case fail(StoreError)
    /// The process crashes before anything is durable: all handles fail until `restart()`.
    case crashBefore
    /// The process crashes after the commit is durable, but before its success is reported.
    case crashAfter
}

/// The commit for which a fault plan is asked.
public struct CommitPoint: Sendable, Hashable {
    /// Counts all commits of the store, across crashes, from 1.
    public let number: Int
    /// Number of changes in the group; 0 for background work.
    public let changes: Int
}

/// Decides the outcome of each commit.
public typealias FaultPlan = @Sendable (CommitPoint) -> CommitFault
