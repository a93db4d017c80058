/// One way in which a disk fails in a test.
public struct FaultRule: Sendable, Hashable {
    public enum Operation: Sendable, Hashable {
        case open
        case read
        case write
        case sync
        case truncate
        case delete
        /// A lock of the file or of the log's shared memory is taken.
        case lock
        /// A file gets another name. SQLite never does that; see `FaultVFS.isToFail`.
        case move
        /// The log's shared memory is mapped.
        case map
        /// A look at a file's size, or whether it is there.
        case look
        /// Any of those that change a file: write, sync, truncate, delete.
        case change
        /// Any of them all.
        case any
    }

    /// What becomes of one call.
    enum Verdict {
        case done
        case fails(Int32)
        /// Half of it is done, and it fails.
        case isCutShort(Int32)
        /// The power goes while it is done.
        case dies(Int32)

        /// The code with which it fails; nil when it is to be done.
        var code: Int32? {
            switch self {
            case .done: nil
            case .fails(let code), .isCutShort(let code), .dies(let code): code
            }
        }
    }

    public enum Failure: Sendable, Hashable {
        /// Nothing is done and the call reports an I/O error.
        case io
        /// Nothing is done and the call reports a full disk.
        case full
        /// Half of a write or read is done before it reports an I/O error. Other calls fail as by `io`.
        case short
        /// The power goes: what was not synced is lost, this and every later call fails. Where the disk has a history,
        /// it says what is lost, and a write during which it happens is the last that it notes.
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
        guard operation == call || operation == .any || (operation == .change && call.isChange) else { return false }
        return suffix.map { name.hasSuffix($0) } ?? true
    }
}

extension FaultRule.Operation {
    /// Whether the call changes a file.
    public var isChange: Bool { self == .write || self == .sync || self == .truncate || self == .delete }
}
