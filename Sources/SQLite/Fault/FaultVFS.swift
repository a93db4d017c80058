internal import CSQLite
import Synchronization

/// A disk that fails as a test says: a file system for SQLite that passes every call on to the usual one, fails those
/// that a rule names, and at a crash takes back what was written but never synced.
///
/// Open databases on it by `Database(path:vfs:)` with its `name`. It stays registered until the process ends.
public final class FaultVFS: Sendable {
    public let name: String
    /// Where everything that changes a file is noted; what is not synced is then not taken back by `crash`.
    public let history: DiskHistory?
    /// Whether a sync goes to the real disk: a model needs none.
    let syncsForReal: Bool
    private let state = Mutex<State>(State())

    private struct State {
        var rules = [Rule]()
        var calls = [FaultRule.Operation: Int]()
        /// Every call in order, when it is noted.
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
    ///   - name: differs from that of every other.
    ///   - history: gets all that changes a file.
    ///   - syncsForReal: false for a model of a disk, which loses nothing as long as the machine runs.
    public init(name: String, history: DiskHistory? = nil, syncsForReal: Bool = true) {
        self.name = name
        self.history = history
        self.syncsForReal = syncsForReal
        FaultCalls.register(self)
    }

    // MARK: What tests say and ask

    /// From now on the disk fails so, besides the rules there are.
    public func fail(_ rule: FaultRule) { state.withLock { $0.rules.append(Rule(rule: rule)) } }

    /// The disk is well again. After a crash that takes `restart()`.
    public func heal() { state.withLock { $0.rules.removeAll() } }

    /// Calls made so far.
    public func calls(of operation: FaultRule.Operation) -> Int { state.withLock { $0.calls[operation] ?? 0 } }

    /// From now on every call is noted, for `notedCalls`.
    public func noteCalls() { state.withLock { $0.log = [] } }

    /// The calls since `noteCalls`, in order.
    public var notedCalls: [FaultRule.Operation] { state.withLock { $0.log ?? [] } }

    public var isCrashed: Bool { state.withLock { $0.isCrashed } }

    /// The power goes now.
    /// - Parameter keeping: whether an unsynced change (counted from 0 in each file) nevertheless reached the disk.
    public func crash(keeping: (Int) -> Bool = { _ in false }) {
        state.withLock { state in
            guard !state.isCrashed else { return }
            state.isCrashed = true
            for file in state.files.values { file.loseUnsynced(keeping: keeping) }
        }
    }

    /// The machine is up again. Connections of before stay dead and should be gone by now.
    public func restart() {
        state.withLock {
            $0.isCrashed = false
            $0.rules.removeAll()
            $0.files.values.forEach { $0.isDead = true }
        }
    }

    // MARK: What the calls ask

    /// Counts the call and says what becomes of it.
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

    /// For calls that go past SQLite: counts one, and says whether it is to fail.
    public func isToFail(_ operation: FaultRule.Operation, _ file: String) -> Bool {
        verdict(operation, file, SQLITE_IOERR).code != nil
    }

    func opened(_ real: UnsafeMutablePointer<sqlite3_file>, _ name: String) -> Int {
        state.withLock { state in
            state.lastFile += 1
            state.files[state.lastFile] = OpenFile(real, name, self)
            return state.lastFile
        }
    }

    func closed(_ number: Int) { state.withLock { _ = $0.files.removeValue(forKey: number) } }

    /// Runs `body` on an open file's record; nil when the power has gone since it was opened.
    func withFile<Result>(_ number: Int, _ body: (OpenFile) -> Result) -> Result? {
        state.withLock { state in
            guard let file = state.files[number], !file.isDead, !state.isCrashed else { return nil }
            return body(file)
        }
    }

    /// nil: it was opened before a crash.
    func nameOfLiving(_ number: Int) -> String? {
        state.withLock { state in state.files[number].flatMap { $0.isDead && !state.isCrashed ? nil : $0.name } }
    }

    func fileName(_ number: Int) -> String { state.withLock { $0.files[number]?.name ?? "" } }
}

/// An open file and what was done to it since its last sync. Guarded by the lock of its `FaultVFS`.
final class OpenFile: @unchecked Sendable {
    private struct Change {
        let offset: sqlite3_int64
        /// nil: the file was cut at `offset`.
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
            history.noteWrite(UnsafeRawBufferPointer(start: data, count: Int(count)), at: Int(offset), name)
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
            history.note(.truncate(Int(newSize)), name)
            return methods.xTruncate(real, newSize)
        }
        let oldSize = size
        let old = bytes(newSize, Int(max(0, oldSize - newSize)))
        unsynced.append(Change(offset: newSize, new: nil, old: old, oldSize: oldSize))
        return methods.xTruncate(real, newSize)
    }

    func sync(_ flags: Int32) -> Int32 {
        history?.note(.sync, name)
        let result = syncsForReal ? methods.xSync(real, flags) : SQLITE_OK
        if result == SQLITE_OK { unsynced.removeAll() }
        return result
    }

    /// Takes back what was not synced, then redoes the changes that happened to reach the disk.
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
