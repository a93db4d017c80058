import Synchronization
import ThicketPlatform
import ThicketTreeShape

/// Blobs in memory, for tests and for the simulation. Behaves like `FolderBlobStore` for its callers.
public final class MemoryBlobStore: BlobStore {
    /// A call that can fail.
    public enum Call: Sendable, Hashable {
        /// Of `begin`.
        case begin
        /// Of a part's bytes.
        case write
        /// Of `finish` of a part.
        case finish
        /// Of `complete`.
        case complete
        /// Of `delete`.
        case delete
    }

    private struct Upload {
        var parts = [Int: (hash: [UInt8], offset: Int64, bytes: [UInt8])]()
    }

    private struct State {
        var uploads = [BlobID: Upload]()
        var blobs = [BlobID: [UInt8]]()
        var isPinned = false
    }

    private let state = Mutex(State())
    private let fault: @Sendable (Call) -> StoreError?

    /// - Parameter fault: the error with which a call fails before it has an effect; nil lets it succeed.
    public init(fault: @escaping @Sendable (Call) -> StoreError? = { _ in nil }) { self.fault = fault }

    /// Whether blobs are being copied: none is deleted meanwhile.
    public var isPinned: Bool {
        get { state.withLock { $0.isPinned } }
        set { state.withLock { $0.isPinned = newValue } }
    }

    private func ask(_ call: Call) throws(StoreError) { if let error = fault(call) { throw error } }

    public func begin(_ upload: BlobID, length: Int64) throws(StoreError) {
        try ask(.begin)
        state.withLock { if $0.uploads[upload] == nil { $0.uploads[upload] = Upload() } }
    }

    public func write(
        _ part: BlobPart, of upload: BlobID, at offset: Int64
    ) throws(StoreError) -> any BlobPartWriter {
        Writer(self, part, of: upload, at: offset)
    }

    public func parts(of upload: BlobID) throws(StoreError) -> [BlobPart] {
        let parts = state.withLock { $0.uploads[upload]?.parts ?? [:] }
        return parts.sorted { $0.key < $1.key }.map { BlobPart(number: $0.key, sha256: $0.value.hash) }
    }

    public func complete(_ upload: BlobID, length: Int64) throws(StoreError) {
        try ask(.complete)
        let isWhole = state.withLock { state in
            if state.blobs[upload]?.count == Int(length) { return true }
            let parts = (state.uploads[upload]?.parts ?? [:]).values.sorted { $0.offset < $1.offset }
            let bytes = parts.flatMap(\.bytes)
            guard bytes.count == Int(length) else { return false }
            state.blobs[upload] = bytes
            return true
        }
        if !isWhole { throw StoreError(.corrupt, "an upload has another length than its parts") }
    }

    public func abort(_ upload: BlobID) throws(StoreError) { state.withLock { $0.uploads[upload] = nil } }

    public func open(_ blob: BlobID) throws(StoreError) -> (any BlobReader)? {
        state.withLock { $0.blobs[blob] }.map(Reader.init)
    }

    public func delete(_ blob: BlobID) throws(StoreError) -> Bool {
        try ask(.delete)
        return state.withLock { state in
            if !state.isPinned { state.blobs[blob] = nil }
            return !state.isPinned
        }
    }

    public func list(_ visit: (StoredBlob) throws(StoreError) -> Void) throws(StoreError) {
        for (id, bytes) in state.withLock({ $0.blobs }) { try visit(StoredBlob(id: id, length: Int64(bytes.count))) }
    }

    public func uploads() throws(StoreError) -> [BlobID] { state.withLock { Array($0.uploads.keys) } }

    /// Never: no store is ever replaced.
    public var keepsUnknown: Bool { false }

    private final class Writer: BlobPartWriter {
        private let store: MemoryBlobStore
        private let part: BlobPart
        private let upload: BlobID
        private let offset: Int64
        private var bytes = [UInt8]()

        init(_ store: MemoryBlobStore, _ part: BlobPart, of upload: BlobID, at offset: Int64) {
            (self.store, self.part, self.upload, self.offset) = (store, part, upload, offset)
        }

        func write(_ bytes: [UInt8]) throws(StoreError) {
            try store.ask(.write)
            self.bytes += bytes
        }

        func finish() throws(StoreError) {
            try store.ask(.finish)
            store.state.withLock {
                $0.uploads[upload, default: Upload()].parts[part.number] = (part.sha256, offset, bytes)
            }
        }
    }

    private final class Reader: BlobReader {
        private let bytes: [UInt8]
        var length: Int64 { Int64(bytes.count) }
        var file: OpenFile? { nil }

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        func load(at offset: Int64, count: Int) throws(StoreError) {}

        func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
            Array(bytes.dropFirst(Int(offset)).prefix(count))
        }
    }
}
