import Glibc
import Synchronization

@testable import ThicketTreesystem

/// The real file system, of which any call can fail, kill the program, or change a file behind the reader's back.
///
/// A killed program makes no further call, and what it had not flushed is cut at a random length.
final class FaultFiles: ContentFiles {
    struct State {
        /// Calls so far that change the disk.
        var steps = 0
        /// The step at which the program is killed.
        var killAt: Int?
        /// The step from which on the disk is full.
        var fullAt: Int?
        var isKilled = false
        /// Paths with bytes that are not flushed, and the flushed length.
        var dirty = [String: UInt64]()
        /// Largest number of bytes of one read or write.
        var largest = 0
        var bytesRead = 0
        /// Open files now, and at most.
        var open = 0
        var openMost = 0
        /// Ranges that the system need not keep in memory, and how often one was named that was not on disk.
        var released = [Range<UInt64>]()
        var releasedDirty = 0
        /// Called before a read with the path and the offset.
        var beforeRead: (@Sendable (String, UInt64) -> Void)?
    }

    let state: Mutex<State>
    private let inner = SystemFiles()
    private let cut: @Sendable (Int) -> Int

    /// - Parameter cut: a random number below the given one.
    init(cut: @escaping @Sendable (Int) -> Int = { $0 - 1 }) {
        self.cut = cut
        state = Mutex(State())
    }

    func set(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
    var steps: Int { state.withLock(\.steps) }

    /// Counts a step.
    func step() throws(ContentError) {
        enum Outcome { case goOn, kill, full }
        let outcome: Outcome = state.withLock { state in
            if state.isKilled { return .kill }
            state.steps += 1
            if let full = state.fullAt, state.steps >= full { return .full }
            return state.steps == state.killAt ? .kill : .goOn
        }
        switch outcome {
        case .goOn: return
        case .full: throw .diskFull
        case .kill:
            kill()
            throw .disk(EIO)
        }
    }

    private func kill() {
        let dirty = state.withLock { state in
            state.isKilled = true
            defer { state.dirty = [:] }
            return state.dirty
        }
        for (path, flushed) in dirty {
            let size = UInt64(ContentFolder.bytes(path).count)
            guard size > flushed else { continue }
            truncate(path, off_t(flushed + UInt64(cut(Int(size - flushed) + 1))))
        }
    }

    func create(_ path: String) throws(ContentError) -> any ContentFile {
        try step()
        return FaultFile(path, try inner.create(path), self)
    }

    func open(_ path: String, writable: Bool) throws(ContentError) -> (any ContentFile)? {
        if state.withLock(\.isKilled) { throw .disk(EIO) }
        guard let file = try inner.open(path, writable: writable) else { return nil }
        return FaultFile(path, file, self)
    }

    func rename(_ path: String, to target: String) throws(ContentError) {
        try step()
        try inner.rename(path, to: target)
        set { state in state.dirty[target] = state.dirty.removeValue(forKey: path) }
    }

    func remove(_ path: String) throws(ContentError) {
        if state.withLock(\.isKilled) { throw .disk(EIO) }
        try inner.remove(path)
        set { $0.dirty[path] = nil }
    }

    func makeFolder(_ path: String) throws(ContentError) { try inner.makeFolder(path) }
    func names(in folder: String) throws(ContentError) -> [String] { try inner.names(in: folder) }
}

private final class FaultFile: ContentFile {
    private let path: String
    private let inner: any ContentFile
    private let owner: FaultFiles

    init(_ path: String, _ inner: any ContentFile, _ owner: FaultFiles) {
        (self.path, self.inner, self.owner) = (path, inner, owner)
        owner.set { state in
            state.open += 1
            state.openMost = max(state.openMost, state.open)
        }
    }

    deinit { owner.set { $0.open -= 1 } }

    func identity() throws(ContentError) -> FileIdentity { try inner.identity() }

    func read(at offset: UInt64, into room: UnsafeMutableRawBufferPointer) throws(ContentError) -> Int {
        owner.state.withLock(\.beforeRead)?(path, offset)
        let count = try inner.read(at: offset, into: room)
        owner.set { state in
            state.largest = max(state.largest, room.count)
            state.bytesRead += count
        }
        return count
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ContentError) {
        let flushed = try inner.identity().size
        owner.set { state in
            state.largest = max(state.largest, bytes.count)
            if state.dirty[path] == nil { state.dirty[path] = flushed }
        }
        try owner.step()
        try inner.write(bytes, at: offset)
    }

    func truncate(to size: UInt64) throws(ContentError) {
        try owner.step()
        try inner.truncate(to: size)
    }

    func sync() throws(ContentError) {
        try owner.step()
        try inner.sync()
        owner.set { $0.dirty[path] = nil }
    }

    func release(_ range: Range<UInt64>) {
        // Bytes that are not on disk yet must not be released.
        owner.set { state in
            if state.dirty[path] == nil { state.released.append(range) } else { state.releasedDirty += 1 }
        }
        inner.release(range)
    }
}
