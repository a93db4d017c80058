import Synchronization
import ThicketPlatform
import ThicketServer
import ThicketTreeShape

/// Where a simulated server keeps the bytes of blobs: as `FolderBlobStore`, in memory, with the losses of a disk. A
/// finished part and a complete blob are synced. Everything else may be lost, or may be there again, after a crash.
final class SimulatedBlobStore: BlobStore {
    private struct Part {
        let part: BlobPart
        let offset: Int64
        let bytes: [UInt8]
    }

    private struct Files {
        var uploads = [BlobID: [Int: Part]]()
        var blobs = [BlobID: [UInt8]]()
    }

    private struct State {
        var random: SimulationRandom
        /// What the present process sees, and what a crash leaves for certain.
        var now = Files()
        var durable = Files()
        /// Steps until the machine loses power in the middle of a call, or until a call fails; nil: it does not.
        var crashIn: Int?
        var failureIn: Int?
        var isDown = false
    }

    private let state: Mutex<State>
    /// The bug `unsyncedBlob`.
    private let syncsNothing: Bool

    init(_ random: SimulationRandom, syncsNothing: Bool) {
        state = Mutex(State(random: random))
        self.syncsNothing = syncsNothing
    }

    // MARK: - Faults

    /// The range of steps in which a fault is placed: a request makes one to six.
    private static let stepsMax = 6

    /// Plans a fault in the next request.
    func beginRequest(dies: Bool, fails: Bool) {
        state.withLock { state in
            if dies { state.crashIn = state.random.below(Self.stepsMax) }
            if fails { state.failureIn = state.random.below(Self.stepsMax) }
        }
    }

    /// Cancels a planned fault that has not happened.
    func endRequest() { state.withLock { ($0.crashIn, $0.failureIn) = (nil, nil) } }

    /// Lost power inside of a call: each call fails until `restart`.
    var isDown: Bool { state.withLock(\.isDown) }

    /// The machine loses power, or the process is killed.
    func crash() {
        state.withLock { state in
            state.isDown = true
            (state.crashIn, state.failureIn) = (nil, nil)
            var left = state.durable
            // By id: the order of a dictionary is not determined by the seed.
            for id in Set(state.now.uploads.keys).union(left.uploads.keys).sorted() where state.random.chance(500) {
                left.uploads[id] = state.now.uploads[id]
            }
            for id in Set(state.now.blobs.keys).union(left.blobs.keys).sorted() where state.random.chance(500) {
                left.blobs[id] = state.now.blobs[id]
            }
            (state.now, state.durable) = (left, left)
        }
    }

    func restart() { state.withLock { $0.isDown = false } }

    // MARK: - Backups

    /// All blobs, as a backup copies them.
    func copy() -> [BlobID: [UInt8]] { state.withLock { $0.now.blobs } }

    /// A restore adds the files of a backup, and removes none.
    func add(_ blobs: [BlobID: [UInt8]]) {
        state.withLock { state in
            for (id, bytes) in blobs { (state.now.blobs[id], state.durable.blobs[id]) = (bytes, bytes) }
        }
    }

    /// Whether the present process sees all bytes of a blob.
    func has(_ blob: BlobID) -> Bool { state.withLock { $0.isDown || $0.now.blobs[blob] != nil } }

    // MARK: - Calls

    /// One change of the disk: power may fail before it and after it.
    private func change(
        syncs: Bool, _ body: (inout Files) throws(StoreError) -> Void
    ) throws(StoreError) {
        let failure: StoreError? = state.withLock { state in
            if let failure = Self.step(&state) { return failure }
            do throws(StoreError) { try body(&state.now) } catch { return error }
            if let failure = Self.step(&state) { return failure }
            guard syncs, !syncsNothing else { return nil }
            do throws(StoreError) { try body(&state.durable) } catch { return error }
            return Self.step(&state)
        }
        if let failure { throw failure }
    }

    private static func step(_ state: inout State) -> StoreError? {
        if state.isDown { return StoreError(.closed, "the machine has no power") }
        if let steps = state.crashIn {
            state.crashIn = steps - 1
            if steps == 0 {
                state.isDown = true
                return StoreError(.closed, "the machine has no power")
            }
        }
        guard let steps = state.failureIn else { return nil }
        state.failureIn = steps > 0 ? steps - 1 : nil
        if steps > 0 { return nil }
        return StoreError(state.random.chance(500) ? .io : .full, "a simulated disk")
    }

    private func look<Value: Sendable>(_ body: (Files) -> Value) throws(StoreError) -> Value {
        // A nil of the body is not a machine without power.
        let found = state.withLock { $0.isDown ? [] : [body($0.now)] }
        guard let value = found.first else { throw StoreError(.closed, "the machine has no power") }
        return value
    }

    func begin(_ upload: BlobID, length: Int64) throws(StoreError) {
        try change(syncs: false) { files in if files.uploads[upload] == nil { files.uploads[upload] = [:] } }
    }

    func write(_ part: BlobPart, of upload: BlobID, at offset: Int64) throws(StoreError) -> any BlobPartWriter {
        Writer { [self] bytes throws(StoreError) in
            try change(syncs: true) { files in
                files.uploads[upload, default: [:]][part.number] = Part(part: part, offset: offset, bytes: bytes)
            }
        }
    }

    func parts(of upload: BlobID) throws(StoreError) -> [BlobPart] {
        try look { $0.uploads[upload] ?? [:] }.values.map(\.part).sorted { $0.number < $1.number }
    }

    func complete(_ upload: BlobID, length: Int64) throws(StoreError) {
        let files = try look { $0 }
        var bytes = files.blobs[upload] ?? []
        if bytes.count != Int(length) {
            bytes = (files.uploads[upload] ?? [:]).values.sorted { $0.offset < $1.offset }.flatMap(\.bytes)
        }
        guard bytes.count == Int(length) else {
            throw StoreError(.corrupt, "an upload has another length than its parts")
        }
        let whole = bytes
        try change(syncs: true) { files in files.blobs[upload] = whole }
    }

    func abort(_ upload: BlobID) throws(StoreError) {
        try change(syncs: false) { files in files.uploads[upload] = nil }
    }

    func open(_ blob: BlobID) throws(StoreError) -> (any BlobReader)? {
        try look { $0.blobs[blob] }.map(Reader.init)
    }

    func delete(_ blob: BlobID) throws(StoreError) -> Bool {
        try change(syncs: false) { files in files.blobs[blob] = nil }
        return true
    }

    func list(_ visit: (StoredBlob) throws(StoreError) -> Void) throws(StoreError) {
        for (id, bytes) in try look(\.blobs).sorted(by: { $0.key < $1.key }) {
            try visit(StoredBlob(id: id, length: Int64(bytes.count)))
        }
    }

    func uploads() throws(StoreError) -> [BlobID] { try look(\.uploads).keys.sorted() }

    var keepsUnknown: Bool { false }

    private final class Writer: BlobPartWriter {
        private var bytes = [UInt8]()
        private let end: ([UInt8]) throws(StoreError) -> Void

        init(end: @escaping ([UInt8]) throws(StoreError) -> Void) { self.end = end }
        func write(_ bytes: [UInt8]) { self.bytes += bytes }
        func finish() throws(StoreError) { try end(bytes) }
    }

    private final class Reader: BlobReader {
        private let bytes: [UInt8]
        var length: Int64 { Int64(bytes.count) }
        var file: OpenFile? { nil }

        init(_ bytes: [UInt8]) { self.bytes = bytes }
        func load(at offset: Int64, count: Int) {}
        func read(at offset: Int64, count: Int) -> [UInt8] { Array(bytes.dropFirst(Int(offset)).prefix(count)) }
    }
}
