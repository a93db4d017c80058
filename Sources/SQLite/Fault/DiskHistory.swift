import Synchronization

/// All that was done to the files of a disk, in order: from it a `DiskReplay` makes the disk as it may have stood at
/// any moment. Or, where only the present counts, what it has come to (`init(of:)`).
public final class DiskHistory: Sendable {
    /// One call.
    public struct Step: Sendable {
        public enum Action: Sendable {
            /// The file was opened, and made if it was not there.
            case open
            case write(offset: Int, bytes: [UInt8])
            case truncate(Int)
            case sync
            case delete
            /// The folder was synced.
            case syncNames
        }

        public let action: Action
        /// Its path.
        public let file: String

        /// FNV-1a of what it does where; folders, and the number of a process in a name, are others in each run.
        fileprivate func mixed(into shape: UInt64?) -> UInt64 {
            let numbers =
                switch action {
                case .open: [0]
                case .write(let offset, let bytes): [1, offset, bytes.count]
                case .truncate(let size): [2, size]
                case .sync: [3]
                case .delete: [4]
                case .syncNames: [5]
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
    /// Syncs of a disk that lies: every one of so many changes nothing and is answered like the others.
    private let lies = Mutex<(oneIn: Int?, count: Int)>((nil, 0))
    private let shape = Mutex<UInt64?>(nil)

    /// Keeps every step.
    public init() { state = .init(.steps([])) }

    /// Keeps what the steps lead to, and not the steps: for histories without end.
    public init(of model: DiskModel) { state = .init(.model(model)) }

    /// Calls so far: the number that the next one gets. 0 where the steps are not kept.
    public var count: Int { steps.count }
    /// Empty where they are not kept.
    public var steps: [Step] {
        state.withLock { kept in
            guard case .steps(let steps) = kept else { return [] }
            return steps
        }
    }

    /// What the steps have led to; nil where the steps themselves are kept.
    public var model: DiskModel? {
        state.withLock { kept in
            guard case .model(let model) = kept else { return nil }
            return model
        }
    }

    /// Begins anew with another disk.
    public func reset(to model: DiskModel) { state.withLock { $0 = .model(model) } }

    /// The file is gone from the model for good.
    public func forget(_ file: String) {
        state.withLock { kept in
            guard case .model(var model) = kept else { return }
            kept = .steps([])
            model.forget(file)
            kept = .model(model)
        }
    }

    /// A digest of the calls since it was taken last: what was done to which file, where, and with how many bytes. Not
    /// the bytes: keys and nonces come from no seed. nil: nothing was done.
    public func takeShape() -> UInt64? {
        shape.withLock { shape in
            defer { shape = nil }
            return shape
        }
    }

    /// From now on every one of so many syncs is a lie; nil: none.
    public func lie(oneIn count: Int?) { lies.withLock { $0 = (count, 0) } }

    func note(_ action: Step.Action, _ file: String) {
        if case .sync = action, isLie() { return }
        let step = Step(action: action, file: file)
        state.withLock { kept in
            switch kept {
            case .steps(var steps):
                // Moved out while it grows, or it would be copied.
                kept = .steps([])
                steps.append(step)
                kept = .steps(steps)
            case .model(var model):
                kept = .steps([])
                model.take(step)
                kept = .model(model)
                shape.withLock { $0 = step.mixed(into: $0) }
            }
        }
    }

    /// Notes a write, each of its parts as a step: a crash may come in the middle of each.
    func noteWrite(_ bytes: UnsafeRawBufferPointer, at offset: Int, _ file: String) {
        for part in Self.parts(of: bytes.count, at: offset) {
            note(.write(offset: offset + part.lowerBound, bytes: Array(bytes[part])), file)
        }
    }

    /// How a kernel takes a write of several pages: one by one, and brings them to the disk in any order. One that is
    /// no longer than a page is one part wherever it lies, as SQLite's usual writes are.
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

    /// Bytes that a kernel takes at once.
    private static let pageBytes = 4_096

    private func isLie() -> Bool {
        lies.withLock { lies in
            guard let oneIn = lies.oneIn else { return false }
            lies.count += 1
            return lies.count % oneIn == 0
        }
    }
}

/// Goes through a history and shows the disk as a crash at that point may leave it.
public struct DiskReplay: Sendable {
    public let steps: [DiskHistory.Step]
    /// The next step.
    public private(set) var place: Int = 0
    private var model: DiskModel

    /// - Parameter initial: files that were there, and synced, when the history began.
    public init(_ steps: [DiskHistory.Step], initial: [String: [UInt8]] = [:]) {
        self.steps = steps
        model = DiskModel(initial)
    }

    /// Does all steps before `end`.
    public mutating func advance(to end: Int) {
        while place < min(end, steps.count) {
            model.take(steps[place])
            place += 1
        }
    }

    /// The files as a crash in the middle of the next step leaves them.
    public func crashed<Random: RandomNumberGenerator>(
        _ loss: DiskModel.Loss, _ random: inout Random
    ) -> [String: [UInt8]] {
        var copy = model
        // A sync that did not end has made nothing sure.
        if place < steps.count {
            if case .sync = steps[place].action {} else { copy.take(steps[place]) }
        }
        return copy.crashed(loss, &random)
    }
}
