/// What befalls one commit of a `MemoryStore` in a simulation.
public enum CommitFault: Sendable, Hashable {
    /// It is written.
    case none
    /// Nothing is written, the writer learns why, and the next commit may work.
    case fail(StoreError)
    /// The process dies before anything is durable: this handle and all others are dead until `restart()`.
    case crashBefore
    /// The process dies after the commit is durable but before anybody hears of it.
    case crashAfter
}

/// Where a fault plan is asked.
public struct CommitPoint: Sendable, Hashable {
    /// Counts commits over the whole life of the store, from 1.
    public let number: Int
    /// Changes in the group; 0 for background work.
    public let changes: Int
}

/// Decides each commit's fate.
public typealias FaultPlan = @Sendable (CommitPoint) -> CommitFault
