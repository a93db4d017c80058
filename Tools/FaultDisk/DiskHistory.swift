import Synchronization

/// Records all operations on the files of a disk, in order, from which a `DiskReplay` reconstructs the disk at any
/// moment. If only the current state matters, it keeps a model of it instead (`init(of:)`).
public final class DiskHistory: Sendable {
    /// One operation.
    public struct Step: Sendable {
        /// Kind of operation, with its data.
        public enum Action: Sendable {
            /// The file was opened, and created if it did not exist.
            case open
            /// Bytes were written at an offset.
            case write(offset: Int, bytes: [UInt8])
            /// The file was cut to this size in bytes.
            case truncate(Int)
            /// The file was synced.
            case sync
            /// The file was deleted.
            case delete
            /// The folder was synced.
            case syncNames
            /// The bytes of a file outside of SQLite were synced; its name is as durable as before.
            case syncContent
            /// The file was renamed; the rename is durable with a sync of the new folder.
            case move(to: String)
            /// The folder `file` was synced: the names in it are durable, and deleted ones are gone.
            case syncFolder
        }

        /// The operation.
        public let action: Action
        /// Path of the file.
        public let file: String

        /// FNV-1a over the operation and its position. Folders, and digits in a file name (a process id), are left out,
        /// because they differ between runs.
        fileprivate func mixed(into shape: UInt64?) -> UInt64 {
            let numbers =
                switch action {
                case .open: [0]
                case .write(let offset, let bytes): [1, offset, bytes.count]
                case .truncate(let size): [2, size]
                case .sync: [3]
                case .delete: [4]
                case .syncNames: [5]
                case .syncContent: [6]
                case .move: [7]
                case .syncFolder: [8]
                }
            var hash = shape ?? 0xCBF2_9CE4_8422_2325
            for byte in file.utf8.reversed().prefix(while: { $0 != UInt8(ascii: "/") })
            where !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { hash = mix(hash, UInt64(byte)) }
            for number in numbers { hash = mix(hash, UInt64(number)) }
            return hash
        }

        private func mix(_ hash: UInt64, _ number: UInt64) -> UInt64 { (hash ^ number) &* 0x100_0000_01B3 }
    }

    private enum Kept {
        case steps([Step])
        case model(DiskModel)
    }

    private let state: Mutex<Kept>
    /// Fault injection: every nth sync has no effect but reports success.
    private let lies = Mutex<(oneIn: Int?, count: Int)>((nil, 0))
    private let shape = Mutex<UInt64?>(nil)

    /// Keeps every step.
    public init() { state = .init(.steps([])) }

    /// Keeps only the resulting state, for histories of unlimited length.
    public init(of model: DiskModel) { state = .init(.model(model)) }

    /// Number of steps so far, which is the index of the next one. 0 if the steps are not kept.
    public var count: Int { steps.count }
    /// Empty if the steps are not kept.
    public var steps: [Step] {
        state.withLock { kept in
            guard case .steps(let steps) = kept else { return [] }
            return steps
        }
    }

    /// The resulting state; nil if the steps themselves are kept.
    public var model: DiskModel? {
        state.withLock { kept in
            guard case .model(let model) = kept else { return nil }
            return model
        }
    }

    /// Replaces the state by that of another disk.
    public func reset(to model: DiskModel) { state.withLock { $0 = .model(model) } }

    /// Removes the file from the model.
    public func forget(_ file: String) {
        state.withLock { kept in
            guard case .model(var model) = kept else { return }
            kept = .steps([])
            model.forget(file)
            kept = .model(model)
        }
    }

    /// A digest of the operations since the previous call: kind, file, position and number of bytes. The bytes are left
    /// out, because keys and nonces do not come from a seed. nil: no operation.
    public func takeShape() -> UInt64? {
        shape.withLock { shape in
            defer { shape = nil }
            return shape
        }
    }

    /// From now on every nth sync has no effect but reports success; nil: none.
    public func lie(oneIn count: Int?) { lies.withLock { $0 = (count, 0) } }

    /// Records an operation on a file, or on the folder `file`. SQLite's calls are recorded by the file system itself.
    public func record(_ action: Step.Action, _ file: String) {
        if case .sync = action, isLie() { return }
        let step = Step(action: action, file: file)
        state.withLock { kept in
            switch kept {
            case .steps(var steps):
                // Moved out before it is modified, because it would be copied otherwise.
                kept = .steps([])
                steps.append(step)
                kept = .steps(steps)
            case .model(var model):
                kept = .steps([])
                model.apply(step)
                kept = .model(model)
                shape.withLock { $0 = step.mixed(into: $0) }
            }
        }
    }

    /// Records a write with each of its parts as a separate step, because a crash may occur in the middle of each.
    func recordWrite(_ bytes: UnsafeRawBufferPointer, at offset: Int, _ file: String) {
        for part in Self.parts(of: bytes.count, at: offset) {
            record(.write(offset: offset + part.lowerBound, bytes: Array(bytes[part])), file)
        }
    }

    /// The parts in which a kernel handles a write of several pages: page by page, reaching the disk in any order. A
    /// write of at most one page is one part, wherever it begins, as SQLite's usual writes are.
    static func parts(of count: Int, at offset: Int) -> [Range<Int>] {
        guard count > pageBytes else { return [0..<count] }
        var parts = [Range<Int>]()
        var first = 0
        while first < count {
            let boundary = ((offset + first) / pageBytes + 1) * pageBytes
            parts.append(first..<min(count, boundary - offset))
            first = parts[parts.count - 1].upperBound
        }
        return parts
    }

    /// Bytes of a kernel page.
    private static let pageBytes = 4_096

    private func isLie() -> Bool {
        lies.withLock { lies in
            guard let oneIn = lies.oneIn else { return false }
            lies.count += 1
            return lies.count % oneIn == 0
        }
    }
}

/// Replays a history and shows the disk as a crash at that point may leave it.
public struct DiskReplay: Sendable {
    /// The history, in order.
    public let steps: [DiskHistory.Step]
    /// Index of the next step.
    public private(set) var place: Int = 0
    private var model: DiskModel

    /// - Parameter initial: files that existed, and were synced, when the history began.
    public init(_ steps: [DiskHistory.Step], initial: [String: [UInt8]] = [:]) {
        self.steps = steps
        model = DiskModel(initial)
    }

    /// Applies all steps before `end`.
    public mutating func advance(to end: Int) {
        while place < min(end, steps.count) {
            model.apply(steps[place])
            place += 1
        }
    }

    /// The files after a crash in the middle of the next step.
    public func crashed<Random: RandomNumberGenerator>(
        _ loss: DiskModel.Loss, _ random: inout Random
    ) -> [String: [UInt8]] {
        var copy = model
        // An unfinished sync does not make anything durable.
        if place < steps.count {
            switch steps[place].action {
            case .sync, .syncContent, .syncFolder: break
            case .open, .write, .truncate, .delete, .syncNames, .move: copy.apply(steps[place])
            }
        }
        return copy.crashed(loss, &random)
    }
}
