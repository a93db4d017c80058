import Glibc
import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// A store with keys from a seed, a stepped clock and faults.
struct DiskCase {
    let folder = ContentFolder()
    let files: FaultFiles
    let seed: ContentSeed
    let clock = SteppedClock()
    var limits = DiskLimits()

    init(_ seed: UInt64) {
        let source = ContentSeed(seed)
        self.seed = source
        files = FaultFiles(cut: { source.below($0) })
    }

    func open(key: StoreKey? = nil, _ files: FaultFiles? = nil, vfs: String? = nil) throws -> DiskStore {
        let clock = clock
        return try DiskStore(
            folder: folder.path, indexKey: key, limits: limits, files: files ?? self.files, random: seed.random,
            now: { clock.value }, vfs: vfs)
    }

    func reference(_ plan: ContentSpool, node: UInt128 = 1, blob: UInt128 = 2) throws -> BlobReference {
        BlobReference(
            owner: try UserID("ann"), node: NodeID(node), blob: BlobID(blob), key: plan.key, map: plan.map, version: 1)
    }

    func content(data: Int, metadata: Int = 100, thumbnail: Int = 300) -> NodeContent {
        NodeContent(metadata: seed.bytes(metadata), thumbnail: seed.bytes(thumbnail), data: seed.bytes(data))
    }

    /// The sealed bytes of a content as a server has them, and what opens them.
    func sealed(_ content: NodeContent, node: UInt128 = 1) throws -> (BlobReference, [UInt8]) {
        let plan = try ContentSpool(content, random: seed.random)
        return (try reference(plan, node: node, blob: UInt128(seed.next())), try plan.seal(content))
    }
}

/// A clock that a test steps.
final class SteppedClock: Sendable {
    private let time = Atomic<Int64>(1_000_000)
    var value: Int64 { time.load(ordering: .relaxed) }
    func step(_ milliseconds: Int64) { time.add(milliseconds, ordering: .relaxed) }
}

extension DiskStore {
    /// Downloads sealed bytes at once, and drops the token.
    func fill(
        _ reference: BlobReference, _ sealed: [UInt8], _ components: ContentComponents = .all,
        options: DiskOptions = .cache
    ) throws(ContentError) -> RetainedFile {
        let download = try begin(reference, components, options: options)
        var place = download.verified
        while let run = download.span.run(from: place, atMost: 4) {
            let range = download.span.sealedRange(run)
            try append(
                sealed[Int(range.lowerBound)..<Int(range.upperBound)], at: place, count: UInt64(run.count), download)
            place += UInt64(run.count)
        }
        return try finish(download, options: options)
    }

    func has(_ references: [BlobReference]) throws(ContentError) -> [Bool] {
        var found = [Bool]()
        for reference in references { found.append(try has(reference)) }
        return found
    }

    func has(_ reference: BlobReference, _ components: ContentComponents = .all) throws(ContentError) -> Bool {
        if case .file = try find(reference, components) { true } else { false }
    }
}

@Suite("Disk store", .nonceWatch)
struct DiskStoreTests {
    @Test("a content that was spooled is found after a restart, is evictable after its upload, and is then evicted")
    func spool() async throws {
        var test = DiskCase(1)
        test.limits.data.bytes = 400_000
        let content = test.content(data: 300_000)
        var store: DiskStore? = try test.open()
        let blob = try #require(await store?.spool(NodeSections(content), node: NodeID(1)).blob)
        #expect(await store?.usage.persistent == blob.plan.map.layout.sealedLength)
        store = nil
        let again = try test.open()
        #expect(await again.waitingUploads == [blob.plan.id] && again.waitedAtOpening == [blob.plan.id])
        let file = try #require(await again.spooled(blob.plan.id, key: blob.plan.key, map: blob.plan.map)).file
        #expect(try file.read(.data) == content.data)
        let (other, bytes) = try test.sealed(test.content(data: 200_000))
        _ = try await again.fill(other, bytes)
        let reference = try test.reference(blob.plan)
        #expect(try await again.has(reference))
        try await again.uploaded(blob.plan.id)
        #expect(await again.waitingUploads.isEmpty && again.waitedAtOpening == [blob.plan.id])
        let used = await again.usage
        #expect(used.persistent == 0 && used.pools[.data] == blob.plan.map.layout.sealedLength)
        #expect(try await again.has([reference, other]) == [true, false], "the older file of the cache was evicted")
    }

    @Test("a whole cached file that is to be sent again is not evicted until it is uploaded; a part is no such file")
    func keptUntilUploaded() async throws {
        var test = DiskCase(12)
        test.limits.data.bytes = 150_000
        let store = try test.open()
        let (first, firstBytes) = try test.sealed(test.content(data: 100_000, metadata: 0, thumbnail: 0))
        let (second, secondBytes) = try test.sealed(test.content(data: 100_000))
        // A file with the data only has all chunks of a content without padding beyond the last of them.
        _ = try await store.fill(first, firstBytes, .data)
        #expect(await store.spooled(first.id, key: first.key, map: first.map) != nil)
        try await store.keepUntilUploaded(first.id, of: first.map)
        #expect(await store.waitingUploads == [first.id])
        _ = try await store.fill(second, secondBytes)
        #expect(try await [store.has(first, .data), store.has(second)] == [true, true])
        let kept = try #require(await store.spooled(first.id, key: first.key, map: first.map))
        #expect(try kept.file.sealedBytes(0..<first.sealedLength) == firstBytes)
        try await store.release(kept.token)
        try await store.uploaded(first.id)
        #expect(await store.waitingUploads.isEmpty)
        #expect(await store.usage.entries == 1, "one file of the cache was evicted")
        let (third, thirdBytes) = try test.sealed(test.content(data: 200_000, thumbnail: 70_000))
        _ = try await store.fill(third, thirdBytes, .thumbnail)
        #expect(await store.spooled(third.id, key: third.key, map: third.map) == nil)
        try await store.keepUntilUploaded(third.id, of: third.map)
        #expect(await store.waitingUploads.isEmpty)
        #expect(await store.usage.persistent == 0)
    }

    @Test("a content that is not wanted after its upload is deleted then, or when it is released")
    func deleteAfterUpload() async throws {
        let test = DiskCase(2)
        let store = try test.open()
        for isRetained in [false, true] {
            let content = test.content(data: 50_000)
            let blob = try #require(
                await store.spool(NodeSections(content), node: NodeID(1), options: .deleteAfterUpload).blob)
            let token = try #require(await store.spooled(blob.plan.id, key: blob.plan.key, map: blob.plan.map)).token
            if !isRetained { try await store.release(token) }
            try await store.uploaded(blob.plan.id)
            #expect(test.folder.names.contains { $0.hasPrefix(blob.plan.id.text) } == isRetained)
            try await store.release(token)
            #expect(!test.folder.names.contains { $0.hasPrefix(blob.plan.id.text) })
        }
        #expect(await store.usage.entries == 0)
    }

    @Test("a file with sections answers for those sections only, and a file with all of them for each")
    func components() async throws {
        let test = DiskCase(3)
        let store = try test.open()
        let content = test.content(data: 200_000, metadata: 1_000, thumbnail: 100_000)
        let (reference, bytes) = try test.sealed(content)
        let front = try await store.fill(reference, bytes, .thumbnail).file
        #expect(try front.read(.thumbnail) == content.thumbnail)
        for (components, isThere): (ContentComponents, Bool) in [
            (.thumbnail, true), (.metadata, true), (.data, false), (.all, false),
        ] { #expect(try await store.has(reference, components) == isThere) }
        _ = try await store.fill(reference, bytes)
        for components: ContentComponents in [.all, .data, [.metadata, .data]] {
            #expect(try await store.has(reference, components))
        }
        let usage = await store.usage
        #expect(usage.pools[.data] == UInt64(bytes.count) && usage.pools[.thumbnail] == front.span.bytes)
    }

    @Test("D9: empty sections are absent without an entry, and a placeholder is remembered until it expires")
    func absent() async throws {
        let test = DiskCase(4)
        var store: DiskStore? = try test.open()
        let (reference, _) = try test.sealed(test.content(data: 10_000, thumbnail: 0))
        guard case .absent? = try await store?.find(reference, .thumbnail) else {
            return #expect(Bool(false), "the thumbnail is empty")
        }
        #expect(await store?.usage.entries == 0)
        let options = DiskOptions(expires: test.clock.value + 1_000)
        try await store?.storeAbsent(reference.id, .metadata, node: reference.node, options: options)
        store = nil
        let again = try test.open()
        guard case .absent = try await again.find(reference, .metadata) else {
            return #expect(Bool(false), "the placeholder was forgotten")
        }
        guard case .none = try await again.find(reference, .data) else {
            return #expect(Bool(false), "a placeholder of the metadata says nothing of the data")
        }
        test.clock.step(1_000)
        guard case .none = try await again.find(reference, .metadata) else {
            return #expect(Bool(false), "the placeholder is valid longer than it should")
        }
        #expect(test.folder.names.allSatisfy { $0.hasPrefix(DiskStore.indexName) })
    }

    @Test("files expire by their own time or by their pool's age; persistent and retained files do not by the latter")
    func expiry() async throws {
        var test = DiskCase(5)
        test.limits.data.age = 5_000
        let store = try test.open()
        var references = [BlobReference]()
        var kept: RetainedFile?
        for options in [DiskOptions.cache, DiskOptions(expires: test.clock.value + 9_000), .persistent, .cache] {
            let (reference, bytes) = try test.sealed(test.content(data: 9_000))
            kept = try await store.fill(reference, bytes, options: options)
            references.append(reference)
        }
        test.clock.step(4_999)
        for reference in references { #expect(try await store.has(reference)) }
        test.clock.step(1)
        try await store.trim()
        #expect(try await store.has(references[0]) == false)
        for reference in references[1...] { #expect(try await store.has(reference)) }
        test.clock.step(4_000)
        if let kept { try await store.release(kept.token) }
        for (reference, isThere) in zip(references, [false, false, true, false]) {
            #expect(try await store.has(reference) == isThere)
        }
    }

    @Test("D8: the least recently used file is evicted, and a file that is retained is not")
    func leastRecentlyUsed() async throws {
        var test = DiskCase(6)
        test.limits.data.bytes = 70_000
        let store = try test.open()
        var references = [BlobReference]()
        for _ in 0..<3 {
            let (reference, bytes) = try test.sealed(test.content(data: 20_000))
            _ = try await store.fill(reference, bytes)
            references.append(reference)
        }
        #expect(try await store.has(references[0]))
        guard case .file(let kept) = try await store.find(references[1], .data) else { return #expect(Bool(false)) }
        let (last, bytes) = try test.sealed(test.content(data: 40_000))
        _ = try await store.fill(last, bytes)
        #expect(try await store.has(references + [last]) == [false, true, false, true])
        try kept.file.verify()
    }

    @Test("nothing readable of content, key or node is in any file of the folder, while open and afterwards (D11)")
    func canaries() async throws {
        let test = DiskCase(7)
        let key = StoreKey.random()
        var store: DiskStore? = try test.open(key: key)
        let canary = Array("CANARY-of-the-content".utf8)
        var content = test.content(data: 100_000)
        content.data = Array((0..<5_000).map { _ in canary }.joined())
        (content.metadata, content.thumbnail) = (canary + canary, canary)
        ContentFolder.put(content.data, to: test.folder.path + ".source")
        defer { unlink(test.folder.path + ".source") }
        let sections = NodeSections(
            metadata: .bytes(content.metadata), thumbnail: .bytes(canary), data: .file(test.folder.path + ".source"))
        let node = NodeID(UInt128(test.seed.next()) << 64 | UInt128(test.seed.next()))
        let blob = try #require(await store?.spool(sections, node: node).blob)
        let (reference, bytes) = try test.sealed(content)
        _ = try await store?.fill(reference, bytes, .thumbnail)
        let secrets = [canary, node.octets, Array(node.text.utf8), blob.plan.access.key.withUnsafeBytes { Array($0) }]
        for isOpen in [true, false] {
            if !isOpen { store = nil }
            #expect(test.folder.names.count >= 3)
            for name in test.folder.names {
                let text = ContentFolder.bytes(test.folder.file(name))
                for secret in secrets { #expect(text.firstRange(of: secret) == nil, "\(name), open: \(isOpen)") }
            }
        }
        #expect(throws: ContentError.self) { try test.open(key: .random()) }
        #expect(try await test.open(key: key).waitingUploads == [blob.plan.id])
    }

    @Test("a folder that is open cannot be opened again before it is closed, and a closed store refuses operations")
    func oneProgram() async throws {
        let test = DiskCase(8)
        let store = try test.open()
        #expect(throws: ContentError.self) { try test.open() }
        await store.close()
        let again = try test.open()
        await #expect(throws: ContentError.self) { try await store.storeAbsent(DataID(1), .data, node: NodeID(1)) }
        #expect(await again.usage.entries == 0)
    }
}
