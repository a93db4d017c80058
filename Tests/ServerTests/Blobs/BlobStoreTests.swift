import Glibc
import Testing
import ThicketCrypto
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Blob stores")
struct BlobStoreTests {
    private let folder = BlobFolder()
    private let parts: [[UInt8]] = (0..<3).map { number in
        (0..<1_000).map { UInt8(truncatingIfNeeded: $0 * (number + 3)) }
    }
    private var whole: [UInt8] { parts.flatMap { $0 } }

    private func upload(to store: any BlobStore, _ id: BlobID, order: [Int] = [1, 2, 3]) throws {
        try store.begin(id, length: 3_000)
        for number in order { try store.add(number, parts[number - 1], to: id, at: Int64(number - 1) * 1_000) }
    }

    @Test("parts in any order become a blob with their bytes in order", arguments: BlobStoreKind.allCases)
    func complete(kind: BlobStoreKind) throws {
        let store: any BlobStore = kind.make(folder)
        try upload(to: store, blobID(1), order: [3, 1, 2])
        let listed: [BlobPart] = try store.parts(of: blobID(1))
        #expect(listed.map(\.number) == [1, 2, 3] && listed.map(\.sha256) == parts.map { Hash.sha256($0) })
        #expect(try store.open(blobID(1)) == nil, "an upload is not a blob")
        try store.complete(blobID(1), length: 3_000)
        let reader: any BlobReader = try #require(try store.open(blobID(1)))
        #expect(try reader.length == 3_000 && reader.read(at: 0, count: 3_000) == whole)
        #expect(try reader.read(at: 2_990, count: 100) == Array(whole.suffix(10)))
        #expect(try reader.read(at: 999, count: 2) == Array(whole[999..<1_001]))
    }

    @Test("completing may be repeated, also after the rest of the upload is gone", arguments: BlobStoreKind.allCases)
    func again(kind: BlobStoreKind) throws {
        let store: any BlobStore = kind.make(folder)
        try upload(to: store, blobID(1))
        try store.complete(blobID(1), length: 3_000)
        try store.complete(blobID(1), length: 3_000)
        try store.abort(blobID(1))
        try store.complete(blobID(1), length: 3_000)
        #expect(try store.bytes(of: blobID(1)) == whole)
        #expect(try store.uploads() == [])
    }

    @Test("an upload with another length than its parts does not become a blob", arguments: BlobStoreKind.allCases)
    func wrongLength(kind: BlobStoreKind) throws {
        let store: any BlobStore = kind.make(folder)
        try store.begin(blobID(1), length: 3_000)
        try store.add(1, parts[0], to: blobID(1), at: 0)
        #expect(throws: StoreError.self) { try store.complete(blobID(1), length: 3_000) }
        #expect(try store.open(blobID(1)) == nil)
    }

    @Test(
        "a part is listed only when it is finished, and an aborted upload has none", arguments: BlobStoreKind.allCases)
    func unfinished(kind: BlobStoreKind) throws {
        let store: any BlobStore = kind.make(folder)
        try store.begin(blobID(1), length: 3_000)
        let part = BlobPart(number: 2, sha256: Hash.sha256(parts[1]))
        try store.write(part, of: blobID(1), at: 1_000).write(parts[1])
        #expect(try store.parts(of: blobID(1)) == [])
        try store.add(1, parts[0], to: blobID(1), at: 0)
        #expect(try store.parts(of: blobID(1)).map(\.number) == [1])
        #expect(try store.uploads() == [blobID(1)])
        try store.abort(blobID(1))
        try store.abort(blobID(1))
        #expect(try store.parts(of: blobID(1)) == [] && store.uploads() == [])
    }

    @Test("blobs are listed with their lengths until they are deleted", arguments: BlobStoreKind.allCases)
    func listing(kind: BlobStoreKind) throws {
        let store: any BlobStore = kind.make(folder)
        for number in 1...3 {
            try store.begin(blobID(number), length: Int64(number))
            try store.add(1, [UInt8](repeating: 7, count: number), to: blobID(number), at: 0)
            try store.complete(blobID(number), length: Int64(number))
        }
        #expect(try store.delete(blobID(2)) && store.delete(blobID(2)), "deleting may be repeated")
        var found: [BlobID: Int64] = [:]
        try store.list { found[$0.id] = $0.length }
        #expect(found == [blobID(1): 1, blobID(3): 3])
    }

    @Test("an open blob is read although it was deleted", arguments: BlobStoreKind.allCases)
    func deletedWhileOpen(kind: BlobStoreKind) throws {
        let store: any BlobStore = kind.make(folder)
        try upload(to: store, blobID(1))
        try store.complete(blobID(1), length: 3_000)
        let reader: any BlobReader = try #require(try store.open(blobID(1)))
        #expect(try store.delete(blobID(1)))
        #expect(try reader.read(at: 0, count: 3_000) == whole)
        #expect(try store.open(blobID(1)) == nil)
    }

    @Test("files: parts and blobs are there for the next process, and only their owner may read them")
    func reopened() throws {
        try upload(to: folder.blobs(), blobID(1), order: [2, 1])
        #expect(try folder.blobs().parts(of: blobID(1)).map(\.number) == [1, 2])
        try folder.blobs().add(3, parts[2], to: blobID(1), at: 2_000)
        try folder.blobs().complete(blobID(1), length: 3_000)
        #expect(try folder.blobs().bytes(of: blobID(1)) == whole)
        var info = stat()
        #expect(stat(folder.file(of: blobID(1)), &info) == 0 && info.st_mode & 0o077 == 0)
        #expect(stat(folder.path + "/blobs", &info) == 0 && info.st_mode & 0o077 == 0)
    }

    @Test("files: a blob is not deleted while blobs are being copied")
    func pinned() throws {
        let store: FolderBlobStore = folder.blobs()
        try upload(to: store, blobID(1))
        try store.complete(blobID(1), length: 3_000)
        do {
            let pin = try FolderBlobStore.pin(folder.path, Files(.testing))
            #expect(try pin != nil && !store.delete(blobID(1)))
        }
        #expect(try store.bytes(of: blobID(1)) == whole)
        #expect(try store.delete(blobID(1)) && store.open(blobID(1)) == nil)
    }

    @Test(
        "files: a full disk fails each call with its reason, leaves nothing half visible, and the call works later",
        arguments: [FileCall.create, .write, .sync, .move])
    func full(call: FileCall) throws {
        let faults = Faults<FileCall>()
        var settings: StoreSettings = .testing
        settings.fileFault = { call, _ in faults.isFailing(call) ? ENOSPC : 0 }
        let store: FolderBlobStore = folder.blobs(settings)
        faults.fail(call)
        var kinds: Set<StoreError.Kind> = []
        do throws(StoreError) {
            try store.begin(blobID(1), length: 3_000)
            let writer: any BlobPartWriter = try store.write(
                BlobPart(number: 1, sha256: Hash.sha256(whole)), of: blobID(1), at: 0)
            try writer.write(whole)
            try writer.finish()
            try store.complete(blobID(1), length: 3_000)
        } catch { kinds.insert(error.kind) }
        #expect(kinds == [.full])
        #expect(try store.open(blobID(1)) == nil)
        if call != .move { #expect(try store.parts(of: blobID(1)) == []) }
        faults.fail()
        try store.begin(blobID(1), length: 3_000)
        try store.add(1, whole, to: blobID(1), at: 0)
        try store.complete(blobID(1), length: 3_000)
        #expect(try store.bytes(of: blobID(1)) == whole)
    }
}
