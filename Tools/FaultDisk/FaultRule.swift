/// One way in which a disk fails in a test.
public struct FaultRule: Sendable, Hashable {
    /// The kinds of file system calls that a rule can match.
    public enum Operation: Sendable, Hashable {
        /// Opening a file.
        case open
        /// Reading from a file.
        case read
        /// Writing to a file.
        case write
        /// Syncing a file.
        case sync
        /// Truncating a file.
        case truncate
        /// Deleting a file.
        case delete
        /// Acquiring a lock on the file or on the log's shared memory.
        case lock
        /// Renaming a file. SQLite never does that; see `FaultVFS.isToFail`.
        case move
        /// Mapping the log's shared memory.
        case map
        /// Reading a file's size, or checking whether it exists.
        case look
        /// Any call that changes a file: write, sync, truncate, delete.
        case change
        /// Any call.
        case any
    }

    /// The outcome of one call.
    enum Verdict {
        case done
        case fails(Int32)
        /// Half of it is done, then it fails.
        case isCutShort(Int32)
        /// A crash during the call.
        case dies(Int32)

        /// The error code; nil when the call is to be executed.
        var code: Int32? {
            switch self {
            case .done: nil
            case .fails(let code), .isCutShort(let code), .dies(let code): code
            }
        }
    }

    /// The way in which a call fails.
    public enum Failure: Sendable, Hashable {
        /// Has no effect and reports an I/O error.
        case io
        /// Has no effect and reports a full disk.
        case full
        /// Half of a write or read is done before it reports an I/O error. Other calls fail as with `io`.
        case short
        /// A crash: unsynced data is lost, and this and every later call fails. If the disk has a history, the history
        /// determines what is lost, and the write during which the crash occurs is the last recorded one.
        case crash
    }

    /// The calls that the rule matches.
    public var operation: Operation
    /// The way in which they fail.
    public var failure: Failure
    /// Number of matching calls that succeed before the rule takes effect.
    public var skipping: Int
    /// Number of calls that fail after that; a crash is permanent.
    public var times: Int
    /// Matches only files whose name ends with this ("-wal"); nil for all files.
    public var suffix: String?

    /// Creates a rule; by default every matching call fails from the first one on.
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
        guard operation == call || operation == .any || (operation == .change && call.isChange) else { return false }
        return suffix.map { name.hasSuffix($0) } ?? true
    }
}

extension FaultRule.Operation {
    /// Whether the call changes a file.
    public var isChange: Bool { self == .write || self == .sync || self == .truncate || self == .delete }
}
