import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// A real server whose stored rows and files were changed, and a whole client in front of it.
@Suite("Trees of a server whose stored bytes were changed", .timeLimit(.minutes(10)))
struct TamperedServerTests {
    // MARK: - Records

    /// A folder of nodes with records of one length, of which the first ones are flipped: each byte in another node.
    private struct Folder {
        let bench: TreeBench
        let genuine: [NodeID: [UInt8]]
        let folder: NodeID
        /// In the order of their names.
        let nodes: [NodeID]

        static let content = "a"
        private static let count = 750

        init() async throws {
            let bench = try TreeBench()
            let session = try await bench.session()
            let tree = try await session.tree()
            folder = try await tree.createNode(at: .home("folder")).id
            for start in stride(from: 0, to: Self.count, by: 150) {
                try await tree.batch { tree throws(TreeError) in
                    for number in start..<start + 150 {
                        guard let path = try? TreePath.home("folder", "n\(1_000 + number)") else { continue }
                        try tree.createNode(at: path, content: .text(Self.content))
                    }
                }
            }
            try await tree.waitUntilSynced(timeout: TreeBench.patience)
            nodes = try await tree.children(of: .node(folder), order: .name).map(\.id)
            await session.close()
            (self.bench, genuine) = (bench, try bench.storedRecords())
        }

        /// Bytes in front of the server's stamps, which nothing authenticates.
        func sealedBytes(_ id: NodeID) -> Int {
            let text = String(decoding: genuine[id] ?? [], as: UTF8.self)
            return text.components(before: ",\"_")
        }

        /// Node n with a flipped bit in byte n: in the first one of its bits that leaves a text that `isServed`.
        func flipped(_ isServed: ([UInt8]) -> Bool) -> [NodeID: [UInt8]] {
            var flipped = [NodeID: [UInt8]]()
            for (place, id) in nodes.enumerated() where place < sealedBytes(id) {
                for bit in 0..<8 {
                    var text = genuine[id] ?? []
                    text[place] ^= 1 << UInt8((bit + place) % 8)
                    if isServed(text) {
                        flipped[id] = text
                        break
                    }
                }
            }
            return flipped
        }

        /// What a device reads of the changed tree.
        func read(_ skeleton: SkeletonPolicy) async throws -> (shown: Set<NodeID>, quarantined: Set<NodeID>) {
            let session = try await bench.session()
            let tree = try await session.tree(skeleton: skeleton)
            try await tree.waitUntilSynced(timeout: TreeBench.patience)
            try await tree.load(.node(folder), timeout: TreeBench.patience)
            let shown = try await tree.children(of: .node(folder), limit: 1_000)
            for node in shown.prefix(20) {
                #expect(try await tree.data(of: node.id) == Array(Self.content.utf8))
            }
            let quarantined = try await tree.quarantined.map(\.node)
            await session.close()
            return (Set(shown.map(\.id)), Set(quarantined))
        }
    }

    @Test("A1: a flipped bit in each byte of stored records: a whole client shows none of them, and keeps them apart")
    func records() async throws {
        let folder = try await Folder()
        let flipped = folder.flipped { (try? JSONValue(parsing: $0))?.objectValue != nil }
        let record = folder.genuine[folder.nodes[0]] ?? []
        let punctuation = record.count { [0x22, 0x2C, 0x3A, 0x5B, 0x5D, 0x7B, 0x7D].contains($0) }
        #expect(flipped.count > 600 && folder.sealedBytes(folder.nodes[0]) - flipped.count <= punctuation)
        try folder.bench.editRecords(flipped)
        let (shown, quarantined) = try await folder.read(.full)
        #expect(shown == Set(folder.nodes).subtracting(flipped.keys))
        // A record with another parent, which does not exist, waits for that.
        let waiting = Set(flipped.keys).subtracting(quarantined)
        #expect(quarantined.isSubset(of: Set(flipped.keys)) && waiting.count <= NodeID.letterCount)
        for id in waiting {
            let moved = try NodeRecord(parsing: flipped[id] ?? [], from: .server)
            #expect(moved.parent != .node(folder.folder))
        }
        // In the lists of a lazy skeleton, where a text that is not a record makes the list unreadable as a whole.
        let records = folder.flipped { (try? NodeRecord(parsing: $0, from: .server)) != nil }
        #expect(records.count > 400)
        try folder.bench.editRecords(folder.genuine.merging(records) { $1 })
        let (listed, apart) = try await folder.read(.lazy(depth: 1))
        #expect(listed == Set(folder.nodes).subtracting(records.keys))
        #expect(apart.isSubset(of: Set(records.keys)) && apart.count + NodeID.letterCount >= records.count)
        // Unchanged, all of them open.
        try folder.bench.editRecords(folder.genuine)
        let (all, none) = try await folder.read(.full)
        #expect(all == Set(folder.nodes) && none.isEmpty)
    }

    // MARK: - Blobs

    /// A node whose content is a blob of several chunks, one with an older and a newer content of equal length, and a
    /// device that has none of them.
    private struct Contents {
        let bench: TreeBench
        let blobs = TamperedBlobs()
        let session: ClientSession
        let tree: Treesystem
        let (film, other, changed): (Node, Node, Node)
        /// Blobs of `film`, `other`, and of the two contents of `changed`.
        let (filmBlob, otherBlob, older, newer): (BlobID, BlobID, BlobID, BlobID)
        static let length = 260_000
        static let data = ContentSeed(5).bytes(length)

        init() async throws {
            bench = try TreeBench(blobs: blobs)
            let writing = try await bench.session()
            let writer = try await writing.tree()
            func make(_ name: String, _ seed: UInt64) async throws -> (Node, BlobID) {
                let bytes = seed == 5 ? Self.data : ContentSeed(seed).bytes(Self.length)
                let node = try await writer.createNode(at: .home(name), content: NodeSections(data: .bytes(bytes)))
                try await writer.waitUntilSynced(timeout: TreeBench.patience)
                return (node, try #require(try await writer.node(node.id)?.content?.blob))
            }
            (film, filmBlob) = try await make("film", 5)
            (other, otherBlob) = try await make("other", 6)
            (changed, older) = try await make("changed", 7)
            let content = NodeSections(data: .bytes(ContentSeed(8).bytes(Contents.length)))
            try await writer.setContent(of: changed.id, content)
            try await writer.waitUntilSynced(timeout: TreeBench.patience)
            newer = try #require(try await writer.node(changed.id)?.content?.blob)
            await writing.close()
            session = try await bench.session()
            tree = try await session.tree()
            try await tree.waitUntilSynced(timeout: TreeBench.patience)
        }

        /// The error with which a device refuses the content of a node that is served in this form.
        func fault(_ id: NodeID, _ edit: @escaping @Sendable (BlobID, [UInt8]) -> [UInt8]) async throws -> TreeError
            .Code?
        {
            // Chunks that an earlier attempt has verified would not be asked for again.
            if let content = try await tree.node(id)?.content { try await tree.disk.removePartial(content.id) }
            blobs.set(edit)
            defer { blobs.set(nil) }
            do throws(TreeError) {
                _ = try await tree.data(of: id)
                return nil
            } catch { return error.code }
        }
    }

    private static let chunk = ContentLayout.sealedChunkBytes

    @Test("A1: each flipped byte of a blob's header, and 30 in its chunks, is refused by a whole client")
    func blobBytes() async throws {
        let contents = try await Contents()
        var random = SeededRandom(seed: 9)
        let total = try contents.blobs.all()[contents.filmBlob]?.count ?? 0
        let places = Array(0..<64) + (0..<30).map { _ in Int(random.next() % UInt64(total)) }
        for place in places {
            let code = try await contents.fault(contents.film.id) { _, bytes in
                var bytes = bytes
                bytes[place] ^= 1 << UInt8(place % 8)
                return bytes
            }
            #expect(code == .contentDamaged, "byte \(place)")
        }
        #expect(try await contents.tree.data(of: contents.film.id) == Contents.data)
        await contents.session.close()
    }

    @Test("A2: chunks swapped, repeated or replaced by another one are contentDamaged to a whole client")
    func blobStructure() async throws {
        let contents = try await Contents()
        let size = Self.chunk
        typealias Edit = @Sendable ([[UInt8]]) -> [[UInt8]]
        let edits: [(String, Edit)] = [
            ("swapped", { Array([$0[0], $0[2], $0[1]] + $0[3...]) }),
            ("repeated", { Array([$0[0], $0[1], $0[1]] + $0[3...]) }),
            ("first and second swapped", { Array([$0[1], $0[0]] + $0[2...]) }),
            ("the last one is a part of the first", { $0.dropLast() + [Array($0[0].prefix($0[$0.count - 1].count))] }),
            ("zeros", { Array($0[..<2]) + $0[2...].map { [UInt8](repeating: 0, count: $0.count) } }),
        ]
        for (name, edit) in edits {
            let code = try await contents.fault(contents.film.id) { _, bytes in
                let chunks = stride(from: 0, to: bytes.count, by: size).map {
                    Array(bytes[$0..<min(bytes.count, $0 + size)])
                }
                return edit(chunks).flatMap { $0 }
            }
            #expect(code == .contentDamaged, "\(name)")
        }
        #expect(try await contents.tree.data(of: contents.film.id) == Contents.data)
        await contents.session.close()
    }

    @Test("A2: a blob of another length than its record's is contentMismatch, cut at and between borders or lengthened")
    func blobLength() async throws {
        let contents = try await Contents()
        let total = try contents.blobs.all()[contents.filmBlob]?.count ?? 0
        for length in [0, 1, 64, Self.chunk, Self.chunk + 1, total - 1, total + 1, total + Self.chunk, 2 * total] {
            try contents.bench.setLength(length, of: contents.filmBlob)
            let code = try await contents.fault(contents.film.id) { _, bytes in
                Array((bytes + bytes).prefix(length))
            }
            #expect(code == .contentMismatch, "\(length) bytes")
        }
        try contents.bench.setLength(total, of: contents.filmBlob)
        #expect(try await contents.tree.data(of: contents.film.id) == Contents.data)
        await contents.session.close()
    }

    @Test("A3: another node's blob, an older blob of the node, and both for each other are contentMismatch")
    func foreignBlobs() async throws {
        let contents = try await Contents()
        let all = try contents.blobs.all()
        let foreign: [(NodeID, BlobID)] = [
            (contents.film.id, contents.otherBlob), (contents.other.id, contents.filmBlob),
            (contents.changed.id, contents.older), (contents.changed.id, contents.filmBlob),
            (contents.film.id, contents.newer),
        ]
        for (node, blob) in foreign {
            let bytes = try #require(all[blob])
            #expect(bytes.count == all[contents.filmBlob]?.count, "only the content differs")
            #expect(try await contents.fault(node) { _, _ in bytes } == .contentMismatch)
        }
        #expect(try await contents.tree.data(of: contents.changed.id) == ContentSeed(8).bytes(Contents.length))
        #expect(try await contents.tree.data(of: contents.other.id) == ContentSeed(6).bytes(Contents.length))
        await contents.session.close()
    }
}

extension String {
    /// Bytes in front of a text.
    fileprivate func components(before text: String) -> Int {
        let (bytes, mark) = (Array(utf8), Array(text.utf8))
        return (0...max(0, bytes.count - mark.count)).first { bytes[$0...].starts(with: mark) } ?? bytes.count
    }
}
