internal import CSQLite
import Glibc
import Synchronization

/// A file system for SQLite that fails on demand, for tests: it forwards every call to the default one, fails the calls
/// that a rule matches, and at a crash reverts unsynced writes.
///
/// Databases use it through `Database(path:vfs:)` with its `name`. It stays registered until the process ends.
public final class FaultVFS: Sendable {
    /// The name under which it is registered with SQLite.
    public let name: String
    /// Records every operation that changes a file; `crash` then does not revert unsynced writes.
    public let history: DiskHistory?
    /// Whether a sync is forwarded to the real disk; a model does not need it.
    let syncsForReal: Bool
    private let state = Mutex<State>(State())

    private struct State {
        var rules = [Rule]()
        var calls = [FaultRule.Operation: Int]()
        /// Every call in order, while recording is on.
        var log: [FaultRule.Operation]?
        var isCrashed = false
        var files = [Int: OpenFile]()
        var lastFile = 0
    }

    private struct Rule {
        var rule: FaultRule
        var seen = 0
    }

    /// Registers the file system.
    /// - Parameters:
    ///   - name: must be unique in the process.
    ///   - history: receives every operation that changes a file.
    ///   - syncsForReal: false for a model of a disk, which loses data only if the machine stops.
    public init(name: String, history: DiskHistory? = nil, syncsForReal: Bool = true) {
        self.name = name
        self.history = history
        self.syncsForReal = syncsForReal
        FaultCalls.register(self)
    }

    // MARK: What tests say and ask

    /// Adds a rule.
    public func fail(_ rule: FaultRule) { state.withLock { $0.rules.append(Rule(rule: rule)) } }

    /// Removes all rules. After a crash, `restart()` is needed instead.
    public func heal() { state.withLock { $0.rules.removeAll() } }

    /// Number of calls so far.
    public func calls(of operation: FaultRule.Operation) -> Int { state.withLock { $0.calls[operation] ?? 0 } }

    /// Starts recording every call, for `recordedCalls`.
    public func recordCalls() { state.withLock { $0.log = [] } }

    /// The calls since `recordCalls`, in order.
    public var recordedCalls: [FaultRule.Operation] { state.withLock { $0.log ?? [] } }

    /// Whether the disk has crashed and was not restarted.
    public var isCrashed: Bool { state.withLock { $0.isCrashed } }

    /// Crashes the disk.
    /// - Parameter keeping: whether an unsynced change (counted from 0 in each file) nevertheless reached the disk.
    public func crash(keeping: (Int) -> Bool = { _ in false }) {
        state.withLock { state in
            guard !state.isCrashed else { return }
            state.isCrashed = true
            for file in state.files.values { file.loseUnsynced(keeping: keeping) }
        }
    }

    /// Restarts the disk after a crash. Connections opened before keep failing and must be closed.
    public func restart() {
        state.withLock {
            $0.isCrashed = false
            $0.rules.removeAll()
            $0.files.values.forEach { $0.isDead = true }
        }
    }

    // MARK: What the calls ask

    /// Counts the call and decides its outcome.
    func verdict(_ operation: FaultRule.Operation, _ file: String, _ failureCode: Int32) -> FaultRule.Verdict {
        state.withLock { state in
            if state.isCrashed { return .fails(failureCode) }
            state.calls[operation, default: 0] += 1
            state.calls[.any, default: 0] += 1
            if operation.isChange { state.calls[.change, default: 0] += 1 }
            state.log?.append(operation)
            for place in state.rules.indices where state.rules[place].rule.applies(to: operation, file) {
                state.rules[place].seen += 1
                let rule = state.rules[place].rule
                let failed = state.rules[place].seen - rule.skipping
                guard failed > 0, failed <= rule.times else { continue }
                switch rule.failure {
                case .io: return .fails(failureCode)
                case .full: return .fails(SQLITE_FULL)
                case .short: return .isCutShort(failureCode)
                case .crash:
                    state.isCrashed = true
                    for file in state.files.values { file.loseUnsynced { _ in false } }
                    return .dies(failureCode)
                }
            }
            return .done
        }
    }

    /// For calls that do not go through SQLite: counts one and returns whether it must fail.
    public func isToFail(_ operation: FaultRule.Operation, _ file: String) -> Bool {
        verdict(operation, file, SQLITE_IOERR).code != nil
    }

    /// The same with the error: returns the errno with which the call must fail, or 0.
    public func failure(of operation: FaultRule.Operation, _ file: String) -> Int32 {
        guard let code = verdict(operation, file, SQLITE_IOERR).code else { return 0 }
        return code == SQLITE_FULL ? ENOSPC : EIO
    }

    func opened(_ real: UnsafeMutablePointer<sqlite3_file>, _ name: String) -> Int {
        state.withLock { state in
            state.lastFile += 1
            state.files[state.lastFile] = OpenFile(real, name, self)
            return state.lastFile
        }
    }

    func closed(_ number: Int) { state.withLock { _ = $0.files.removeValue(forKey: number) } }

    /// Runs `body` on an open file's record; nil if the disk has crashed since it was opened.
    func withFile<Result>(_ number: Int, _ body: (OpenFile) -> Result) -> Result? {
        state.withLock { state in
            guard let file = state.files[number], !file.isDead, !state.isCrashed else { return nil }
            return body(file)
        }
    }

    /// nil: the file was opened before a crash.
    func nameOfLiving(_ number: Int) -> String? {
        state.withLock { state in state.files[number].flatMap { $0.isDead && !state.isCrashed ? nil : $0.name } }
    }

    func fileName(_ number: Int) -> String { state.withLock { $0.files[number]?.name ?? "" } }
}

/// An open file and its changes since the last sync. Protected by the lock of its `FaultVFS`.
final class OpenFile: @unchecked Sendable {
    private struct Change {
        let offset: sqlite3_int64
        /// nil: the file was truncated at `offset`.
        let new: [UInt8]?
        let old: [UInt8]
        let oldSize: sqlite3_int64
    }

    let name: String
    var isDead = false
    private let real: UnsafeMutablePointer<sqlite3_file>
    private let history: DiskHistory?
    private let syncsForReal: Bool
    private var unsynced = [Change]()

    init(_ real: UnsafeMutablePointer<sqlite3_file>, _ name: String, _ owner: FaultVFS) {
        self.real = real
        self.name = name
        history = name.isEmpty ? nil : owner.history
        syncsForReal = owner.syncsForReal
    }

    private var methods: sqlite3_io_methods { real.pointee.pMethods.pointee }

    private var size: sqlite3_int64 {
        var size: sqlite3_int64 = 0
        _ = methods.xFileSize(real, &size)
        return size
    }

    private func bytes(_ offset: sqlite3_int64, _ count: Int) -> [UInt8] {
        guard count > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        _ = methods.xRead(real, &bytes, Int32(count), offset)
        return bytes
    }

    func write(_ data: UnsafeRawPointer, _ count: Int32, _ offset: sqlite3_int64) -> Int32 {
        if let history {
            history.recordWrite(UnsafeRawBufferPointer(start: data, count: Int(count)), at: Int(offset), name)
            return methods.xWrite(real, data, count, offset)
        }
        for part in DiskHistory.parts(of: Int(count), at: Int(offset)) {
            let result = writePart(
                UnsafeRawBufferPointer(start: data + part.lowerBound, count: part.count),
                offset + sqlite3_int64(part.lowerBound))
            guard result == SQLITE_OK else { return result }
        }
        return SQLITE_OK
    }

    private func writePart(_ part: UnsafeRawBufferPointer, _ offset: sqlite3_int64) -> Int32 {
        let oldSize = size
        let old = bytes(offset, Int(max(0, min(sqlite3_int64(part.count), oldSize - offset))))
        unsynced.append(Change(offset: offset, new: Array(part), old: old, oldSize: oldSize))
        return methods.xWrite(real, part.baseAddress, Int32(part.count), offset)
    }

    func truncate(_ newSize: sqlite3_int64) -> Int32 {
        if let history {
            history.record(.truncate(Int(newSize)), name)
            return methods.xTruncate(real, newSize)
        }
        let oldSize = size
        let old = bytes(newSize, Int(max(0, oldSize - newSize)))
        unsynced.append(Change(offset: newSize, new: nil, old: old, oldSize: oldSize))
        return methods.xTruncate(real, newSize)
    }

    func sync(_ flags: Int32) -> Int32 {
        history?.record(.sync, name)
        let result = syncsForReal ? methods.xSync(real, flags) : SQLITE_OK
        if result == SQLITE_OK { unsynced.removeAll() }
        return result
    }

    /// Reverts unsynced changes, then reapplies those that reached the disk.
    func loseUnsynced(keeping: (Int) -> Bool) {
        guard !isDead else { return }
        for change in unsynced.reversed() {
            if !change.old.isEmpty { _ = methods.xWrite(real, change.old, Int32(change.old.count), change.offset) }
            if size != change.oldSize { _ = methods.xTruncate(real, change.oldSize) }
        }
        for (place, change) in unsynced.enumerated() where keeping(place) {
            if let new = change.new {
                _ = methods.xWrite(real, new, Int32(new.count), change.offset)
            } else if size > change.offset {
                _ = methods.xTruncate(real, change.offset)
            }
        }
        unsynced.removeAll()
        isDead = true
    }
}
