/// One way in which a disk fails in a test.
public struct FaultRule: Sendable, Hashable {
    public enum Operation: Sendable, Hashable {
        case open
        case read
        case write
        case sync
        case truncate
        case delete
        /// Any of those that change a file: write, sync, truncate, delete.
        case change
    }

    public enum Failure: Sendable, Hashable {
        /// Nothing is done and the call reports an I/O error.
        case io
        /// Nothing is done and the call reports a full disk.
        case full
        /// The power goes: what was not synced is lost, this and every later call fails.
        case crash
    }

    public var operation: Operation
    public var failure: Failure
    /// Calls that still succeed before the rule begins.
    public var skipping: Int
    /// Calls that fail then; a crash lasts.
    public var times: Int
    /// Only files whose name ends so ("-wal"); nil for all.
    public var suffix: String?

    public init(
        _ operation: Operation, _ failure: Failure, skipping: Int = 0, times: Int = .max, suffix: String? = nil
    ) {
        self.operation = operation
        self.failure = failure
        self.skipping = skipping
        self.times = times
        self.suffix = suffix
    }

    func applies(to call: Operation, _ name: String) -> Bool {
        let isChange: Bool = call == .write || call == .sync || call == .truncate || call == .delete
        guard operation == call || (operation == .change && isChange) else { return false }
        return suffix.map { name.hasSuffix($0) } ?? true
    }
}
