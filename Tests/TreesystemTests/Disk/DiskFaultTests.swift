import Testing
import ThicketClient
import ThicketCrypto
import ThicketFaultDisk
import ThicketNonces
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Disk store under faults", .nonceWatch)
struct DiskFaultTests {
    /// What a model knows of a file.
    private struct Known {
        let bytes: UInt64
        var used: Int
        var isPersistent: Bool
        var tokens = [RetainToken]()
    }

    @Test("D8: under 1,500 random operations each pool is within its limit but for retained files, as in a model")
    func model() async throws {
        var test = DiskCase(20)
        test.limits.data.bytes = 300_000
        let store = try test.open()
        let seed = test.seed
        let contents = try (0..<12).map { _ in try test.sealed(test.content(data: 9_000 + seed.below(90_000))) }
        var known = [DataID: Known]()
        for step in 0..<1_500 {
            let (reference, bytes) = contents[seed.below(contents.count)]
            switch seed.below(6) {
            case 0, 1:
                if known[reference.id] == nil {
                    let file = try await store.fill(reference, bytes)
                    known[reference.id] = Known(bytes: UInt64(bytes.count), used: step, isPersistent: false)
                    known[reference.id]?.tokens.append(file.token)
                }
            case 2:
                if case .file(let file) = try await store.find(reference, .data) {
                    known[reference.id]?.used = step
                    if seed.below(3) == 0 {
                        known[reference.id]?.tokens.append(file.token)
                    } else {
                        try await store.release(file.token)
                    }
                }
            case 3:
                let isPersistent = seed.below(3) == 0
                if let entry = known[reference.id], entry.isPersistent != isPersistent {
                    try await store.setPersistent(isPersistent, reference.id)
                    known[reference.id]?.isPersistent = isPersistent
                    known[reference.id]?.used = step
                }
            default:
                for token in known[reference.id]?.tokens ?? [] { try await store.release(token) }
                known[reference.id]?.tokens = []
            }
            Self.evict(&known, test.limits.data.bytes)
            let pooled = known.values.filter { !$0.isPersistent }
            let retained = pooled.filter { !$0.tokens.isEmpty }.reduce(0) { $0 + $1.bytes }
            let usage = await store.usage
            #expect(usage.pools[.data] == pooled.reduce(0) { $0 + $1.bytes }, "step \(step)")
            #expect((usage.pools[.data] ?? 0) <= max(test.limits.data.bytes, retained))
            let names = Set(test.folder.names.filter { !$0.hasPrefix(DiskStore.indexName) })
            #expect(names == Set(known.keys.map { DiskKey($0, .all).fileName }), "step \(step)")
        }
    }

    private static func evict(_ known: inout [DataID: Known], _ limit: UInt64) {
        while known.values.reduce(0, { $0 + ($1.isPersistent ? 0 : $1.bytes) }) > limit {
            let free = known.filter { !$0.value.isPersistent && $0.value.tokens.isEmpty }
            guard let oldest = free.min(by: { $0.value.used < $1.value.used }) else { return }
            known[oldest.key] = nil
        }
    }

    @Test("files without rows, rows without files, drafts and files of another length are removed at opening")
    func cleaning() async throws {
        let test = DiskCase(21)
        var store: DiskStore? = try test.open()
        var references = [BlobReference]()
        for _ in 0..<3 {
            let (reference, bytes) = try test.sealed(test.content(data: 20_000))
            _ = try await store?.fill(reference, bytes)
            references.append(reference)
        }
        store = nil
        let path = { DiskKey(references[$0].id, .all).fileName }
        ContentFolder.put([1, 2, 3], to: test.folder.file(path(0)))
        try SystemFiles().remove(test.folder.file(path(1)))
        ContentFolder.put([1], to: test.folder.file("\(DataID(9).text)-7"))
        ContentFolder.put([1], to: test.folder.file("\(DataID(8).text)-7\(SpoolWriter.draftEnding)"))
        let again = try test.open()
        #expect(test.folder.names.filter { !$0.hasPrefix(DiskStore.indexName) } == [path(2)])
        #expect(try await again.has(references) == [false, false, true])
        #expect(await again.usage.entries == 1)
    }

    @Test("150 kills between any two steps: what is found afterwards is whole, and a spooled content is there or not")
    func kills() async throws {
        var (kept, lost) = (0, 0)
        for round in 0..<150 {
            let test = DiskCase(1_000 + UInt64(round))
            let content = test.content(data: 100_000 + test.seed.below(200_000))
            let (reference, bytes) = try test.sealed(content)
            test.files.set { $0.killAt = 1 + test.seed.below(22) }
            var (store, blob): (DiskStore?, SpooledBlob?) = (try test.open(), nil)
            do {
                blob = try await store?.spool(NodeSections(content), node: NodeID(1)).blob
                _ = try await store?.fill(reference, bytes)
            } catch {}
            store = nil
            let again = try test.open(FaultFiles())
            if let blob {
                let file = await again.spooled(blob.plan.id, key: blob.plan.key, map: blob.plan.map)?.file
                try #require(file).verify()
                kept += 1
            } else {
                #expect(await again.waitingUploads.isEmpty)
                lost += 1
            }
            if case .file(let file) = try await again.find(reference, .all) { try file.file.verify() }
            let resumed = try await again.fill(reference, bytes).file
            #expect(try resumed.read(.data) == content.data)
            let names = test.folder.names.filter { !$0.hasPrefix(DiskStore.indexName) }
            #expect(names.count == (blob == nil ? 1 : 2))
        }
        #expect(kept > 20 && lost > 20, "\(kept) \(lost)")
    }

    @Test("a partial download is resumed behind its last verified chunk, whatever its end or middle was changed to")
    func resume() async throws {
        let test = DiskCase(22)
        let content = test.content(data: 400_000)
        let (reference, bytes) = try test.sealed(content)
        let chunk = ContentLayout.sealedChunkBytes
        for (change, expected): (Int, UInt64) in [(0, 4), (1, 3), (2, 1), (3, 0)] {
            var store: DiskStore? = try test.open()
            var download: PartialDownload? = try await store?.begin(reference, .all)
            if let download { try await store?.append(bytes[..<(4 * chunk)], at: 0, count: 4, download) }
            (store, download) = (nil, nil)
            let path = test.folder.file(DiskKey(reference.id, .all).fileName)
            var stored = ContentFolder.bytes(path)
            #expect(stored.count == 4 * chunk)
            switch change {
            case 1: stored.removeLast()
            case 2: stored[chunk + 5] ^= 1
            case 3: stored[0] ^= 1
            default: break
            }
            ContentFolder.put(stored, to: path)
            let again = try test.open()
            #expect(try await again.has(reference) == false, "a partial file is not a file")
            #expect(try await again.begin(reference, .all).verified == expected)
            #expect(ContentFolder.bytes(path).count == Int(expected) * chunk)
            #expect(try await again.fill(reference, bytes).file.read(.data) == content.data)
            try await again.remove(reference.id)
            try await again.trim()
            #expect(try await again.has(reference) == false)
        }
    }

    @Test("a full disk is diskFull at every step, what was there stays, and nothing new is visible")
    func full() async throws {
        for step in 1...8 {
            let test = DiskCase(23 + UInt64(step))
            let store = try test.open()
            let content = test.content(data: 120_000)
            let (first, firstBytes) = try test.sealed(content)
            _ = try await store.fill(first, firstBytes)
            let (second, bytes) = try test.sealed(content)
            let before = test.files.steps
            test.files.set { $0.fullAt = before + step }
            var faults = [ContentError]()
            do { _ = try await store.fill(second, bytes) } catch { faults.append(error) }
            do { _ = try await store.spool(NodeSections(content), node: NodeID(1)) } catch { faults.append(error) }
            #expect(!faults.isEmpty && faults.allSatisfy { $0 == .diskFull })
            #expect(try await store.has(first))
            #expect(try await store.has(second) == (faults.count == 1))
            #expect(await store.waitingUploads.isEmpty)
            #expect(!test.folder.names.contains { $0.hasSuffix(SpoolWriter.draftEnding) })
            test.files.set { $0.fullAt = nil }
            #expect(try await store.fill(second, bytes).file.read(.data) == content.data)
        }
    }

    @Test("80 failures and crashes of the sealed index: a typed error, no content lost that was reported as stored")
    func indexFaults() async throws {
        var failed = 0
        for round in 0..<80 {
            let test = DiskCase(3_000 + UInt64(round))
            let vfs = FaultVFS(name: "content-index-\(round)", syncsForReal: false)
            let key = StoreKey.random()
            var store: DiskStore? = try test.open(key: key, vfs: vfs.name)
            let content = test.content(data: 20_000)
            let kind: FaultRule.Failure = [.io, .full, .short, .crash][round % 4]
            vfs.fail(FaultRule(.change, kind, skipping: test.seed.below(10)))
            var (stored, error) = ([SpooledBlob](), ContentError?.none)
            while error == nil, stored.count < 4 {
                do {
                    let blob = try await store?.spool(NodeSections(content), node: NodeID(1)).blob
                    stored.append(try #require(blob))
                } catch let fault as ContentError { error = fault }
            }
            if let error {
                failed += 1
                switch error {
                case .index, .diskFull: break
                default: Issue.record("\(error)")
                }
            }
            await store?.close()
            store = nil
            vfs.heal()
            let again = try test.open(key: key)
            for blob in stored {
                let file = await again.spooled(blob.plan.id, key: blob.plan.key, map: blob.plan.map)?.file
                #expect(try file?.read(.data) == content.data, "round \(round)")
            }
            let names = test.folder.names.filter { !$0.hasPrefix(DiskStore.indexName) }
            #expect(await again.usage.entries == names.count)
            #expect(names.count - stored.count <= (error == nil ? 0 : 1))
        }
        #expect(failed > 40, "\(failed)")
    }

    @Test("the number of entries is bounded: the least recently used makes space, and none does when all are kept")
    func entries() throws {
        var index = DiskIndex(DiskLimits())
        for number in 0..<4 {
            let entry = DiskEntry(
                node: NodeID(1), state: .absent, isPersistent: number == 0, afterUpload: .keep, bytes: 0,
                used: index.nextUse(), expires: nil)
            index.set(DiskKey(DataID(UInt128(number)), .all), entry)
        }
        #expect(try index.victim(isRetained: { _ in false }, most: 5) == nil)
        let retained = DiskKey(DataID(1), .all)
        #expect(try index.victim(isRetained: { $0 == retained }, most: 4) == DiskKey(DataID(2), .all))
        #expect(throws: ContentError.tooManyFiles) { try index.victim(isRetained: { _ in true }, most: 4) }
    }
}
