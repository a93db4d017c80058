import Synchronization
import ThicketPlatform
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketServer

extension TreeBench {
    /// The texts of all records as the server stores them.
    func storedRecords() throws -> [NodeID: [UInt8]] {
        let state = store.shared.withLock(\.state)
        var texts = [NodeID: [UInt8]]()
        for (bucket, entities) in state.entities {
            for key in entities.keys {
                guard let id = NodeID(text: key.text), let body = try state.entityHead(key, bucket)?.body else {
                    continue
                }
                texts[id] = body
            }
        }
        return texts
    }

    /// Replaces the texts of records while the server is stopped, and starts it again: what it has read is forgotten.
    func editRecords(_ texts: [NodeID: [UInt8]]) throws {
        try restartServer {
            store.shared.withLock { shared in
                for (bucket, entities) in shared.state.entities {
                    for (key, record) in entities {
                        guard let id = NodeID(text: key.text), let text = texts[id],
                            let change = shared.state.changes[record.gid]
                        else { continue }
                        shared.state.changes[record.gid] = change.with(body: text)
                        shared.state.entities[bucket]?[key]?.keyframe = record.gid
                    }
                }
            }
        }
    }

    /// Sets the length that the server states of a blob.
    func setLength(_ length: Int, of id: BlobID) throws {
        store.shared.withLock { shared in
            guard let blob = shared.state.blobs.blobs[id] else { return }
            shared.state.blobs.blobs[id] = MemoryBlobs.Blob(
                app: blob.app, user: blob.user, length: Int64(length), orphaned: blob.orphaned)
        }
    }
}

extension ChangeRecord {
    fileprivate func with(body: [UInt8]) -> ChangeRecord {
        ChangeRecord(
            gid: gid, bucket: bucket, key: key, kind: kind, sourceVersion: sourceVersion, endVersion: endVersion,
            previousOfEntity: previousOfEntity, previousKeyframe: previousKeyframe, previousOfBucket: previousOfBucket,
            clientID: clientID, changeID: changeID, timestamp: timestamp, diff: diff, keyframe: body)
    }
}

/// Blobs of a real server, whose operator replaces what is read.
final class TamperedBlobs: BlobStore {
    private let genuine = MemoryBlobStore()
    private let edit = Mutex<(@Sendable (BlobID, [UInt8]) -> [UInt8])?>(nil)

    /// What replaces the bytes of a blob; nil: they are served as they were uploaded.
    func set(_ edit: (@Sendable (BlobID, [UInt8]) -> [UInt8])?) { self.edit.withLock { $0 = edit } }

    /// The bytes of all blobs, as they were uploaded.
    func all() throws(StoreError) -> [BlobID: [UInt8]] {
        var ids = [StoredBlob]()
        try genuine.list { ids.append($0) }
        var blobs = [BlobID: [UInt8]]()
        for blob in ids { blobs[blob.id] = try genuine.open(blob.id)?.read(at: 0, count: Int(blob.length)) }
        return blobs
    }

    func open(_ blob: BlobID) throws(StoreError) -> (any BlobReader)? {
        guard let reader = try genuine.open(blob) else { return nil }
        guard let edit = edit.withLock({ $0 }) else { return reader }
        return TamperedReader(edit(blob, try reader.read(at: 0, count: Int(reader.length))))
    }

    func begin(_ upload: BlobID, length: Int64) throws(StoreError) { try genuine.begin(upload, length: length) }
    func write(_ part: BlobPart, of upload: BlobID, at offset: Int64) throws(StoreError) -> any BlobPartWriter {
        try genuine.write(part, of: upload, at: offset)
    }
    func parts(of upload: BlobID) throws(StoreError) -> [BlobPart] { try genuine.parts(of: upload) }
    func complete(_ upload: BlobID, length: Int64) throws(StoreError) { try genuine.complete(upload, length: length) }
    func abort(_ upload: BlobID) throws(StoreError) { try genuine.abort(upload) }
    func delete(_ blob: BlobID) throws(StoreError) -> Bool { try genuine.delete(blob) }
    func list(_ visit: (StoredBlob) throws(StoreError) -> Void) throws(StoreError) { try genuine.list(visit) }
    func uploads() throws(StoreError) -> [BlobID] { try genuine.uploads() }
    var keepsUnknown: Bool { false }
}

private final class TamperedReader: BlobReader {
    private let bytes: [UInt8]
    var length: Int64 { Int64(bytes.count) }
    var file: OpenFile? { nil }

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func load(at offset: Int64, count: Int) throws(StoreError) {}
    func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
        Array(bytes.dropFirst(Int(offset)).prefix(count))
    }
}
