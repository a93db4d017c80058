import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Sealed files", .nonceWatch)
struct SealedFileTests {
    private static let chunk = ContentLayout.sealedChunkBytes

    private struct Case {
        let folder: ContentFolder
        let content: NodeContent
        let blob: SpooledBlob
        let files: FaultFiles

        init(_ seed: UInt64, data: Int = 300_000, thumbnail: Int = 70_000) async throws {
            folder = ContentFolder()
            files = FaultFiles()
            let source = ContentSeed(seed)
            content = NodeContent(
                metadata: source.bytes(1_000), thumbnail: source.bytes(thumbnail), data: source.bytes(data))
            let writer = try SpoolWriter.make(folder, files, seed: seed)
            blob = try #require(await writer.write(NodeSections(content)) { $0.text }.blob)
        }

        var file: SealedFile { blob.file }
        var sealed: [UInt8] { ContentFolder.bytes(file.path) }

        /// What reading all of it throws after the file was replaced.
        func fault(_ bytes: [UInt8]) -> ContentError? {
            ContentFolder.put(bytes, to: file.path)
            do throws(ContentError) {
                try file.verify()
                return nil
            } catch { return error }
        }
    }

    @Test("C9: random ranges of a section equal those of the clear bytes, and only their chunks are read")
    func ranges() async throws {
        let test = try await Case(1)
        let seed = ContentSeed(2)
        for _ in 0..<300 {
            let start = seed.below(test.content.data.count + 1)
            let end = start + seed.below(test.content.data.count + 1 - start)
            test.files.set { $0.bytesRead = 0 }
            let bytes = try test.file.read(UInt64(start)..<UInt64(end))
            #expect(bytes == Array(test.content.data[start..<end]))
            let place = test.file.map.sizes.range(of: .data).lowerBound
            let clear = place + UInt64(start)..<place + UInt64(end)
            let needed = test.file.map.layout.sealedRange(holding: clear)?.count ?? 0
            #expect(test.files.state.withLock(\.bytesRead) == (start == end ? 0 : needed))
        }
        #expect(throws: ContentError.outOfRange) { try test.file.read(0..<300_001) }
    }

    @Test("C9: a stream gives the section in order, in pieces of at most a chunk")
    func stream() async throws {
        let test = try await Case(3)
        for (section, expected) in [
            (ContentSection.metadata, test.content.metadata), (.thumbnail, test.content.thumbnail),
            (.data, test.content.data),
        ] {
            var bytes = [UInt8]()
            for try await part in test.file.stream(section) {
                #expect(!part.isEmpty && part.count <= ContentLayout.chunkBytes)
                bytes += part
            }
            #expect(bytes == expected)
        }
    }

    @Test("a section is copied to a file that appears whole; a damaged one leaves none")
    func copy() async throws {
        let test = try await Case(4)
        try test.file.copy(to: test.folder.file("clear"))
        #expect(ContentFolder.bytes(test.folder.file("clear")) == test.content.data)
        var changed = test.sealed
        changed[changed.count - 1] ^= 1
        ContentFolder.put(changed, to: test.file.path)
        try test.file.copy(.metadata, to: test.folder.file("metadata"))
        let before = test.folder.names
        changed[Self.chunk * 3] ^= 1
        ContentFolder.put(changed, to: test.file.path)
        #expect(throws: ContentError.contentDamaged) { try test.file.copy(to: test.folder.file("other")) }
        #expect(test.folder.names == before)
    }

    @Test("A1: each flipped bit of 400 random places is refused, and no byte of its chunk is handed out")
    func flips() async throws {
        let test = try await Case(5)
        let (sealed, seed) = (test.sealed, ContentSeed(6))
        for _ in 0..<400 {
            var changed = sealed
            let place = seed.below(sealed.count)
            changed[place] ^= 1 << UInt8(seed.below(8))
            #expect(test.fault(changed) == .contentDamaged)
            let damaged = UInt64(place / Self.chunk)
            let range = test.file.map.sizes.range(of: .data)
            let clear = test.file.map.layout.clearRange(of: damaged).clamped(to: range)
            guard !clear.isEmpty else { continue }
            #expect(throws: ContentError.contentDamaged) {
                try test.file.read(clear.lowerBound - range.lowerBound..<clear.upperBound - range.lowerBound)
            }
        }
    }

    @Test("A2: truncated, lengthened, swapped and repeated chunks, and another last chunk, are contentDamaged")
    func structure() async throws {
        let test = try await Case(7)
        let sealed = test.sealed
        let chunks = stride(from: 0, to: sealed.count, by: Self.chunk).map {
            Array(sealed[$0..<min(sealed.count, $0 + Self.chunk)])
        }
        let (count, end) = (chunks.count, chunks.count - 1)
        var cases = [[UInt8]]()
        for keep in 0..<count { cases.append(Array(chunks[..<keep].joined())) }
        for cut in [1, 16, 17, Self.chunk, Self.chunk + 1] { cases.append(Array(sealed.dropLast(cut))) }
        cases.append(sealed + [0])
        cases.append(sealed + chunks[0])
        cases.append(sealed + chunks[end])
        for first in 0..<end {
            var swapped = chunks
            swapped.swapAt(first, (first + 1) % end)
            cases.append(Array(swapped.joined()))
            var repeated = chunks
            repeated[(first + 1) % end] = chunks[first]
            cases.append(Array(repeated.joined()))
            // As the last chunk, an inner one has the wrong flag.
            var last = chunks
            last[end] = Array(chunks[first].prefix(chunks[end].count))
            cases.append(Array(last.joined()))
        }
        for changed in cases { #expect(test.fault(changed) == .contentDamaged) }
        #expect(test.fault(sealed) == nil)
    }

    @Test("A3: another node's blob and an older blob of the node, of equal length or not, are contentMismatch")
    func foreign() async throws {
        let test = try await Case(8)
        let writer = try SpoolWriter.make(test.folder, seed: 9)
        let content = test.content
        let older = try #require(await writer.write(NodeSections(content)) { $0.text }.blob)
        let equal = ContentFolder.bytes(older.file.path)
        #expect(equal.count == test.sealed.count && test.fault(equal) == .contentMismatch)
        let longer = try await Case(10, data: 400_000)
        #expect(test.fault(longer.sealed) == .contentMismatch)
        #expect(throws: ContentError.contentMismatch) { try test.file.read(.metadata) }
        #expect(throws: ContentError.contentMismatch) { try test.file.read(0..<10) }
    }

    @Test("a map with other sections than the header's is contentMismatch")
    func otherSizes() async throws {
        let test = try await Case(11)
        let sizes = try SectionSizes(metadata: 1_000, thumbnail: 69_999, data: 300_001)
        let map = try SectionMap(sizes, plainLength: test.file.map.layout.length)
        let file = SealedFile(path: test.file.path, key: test.blob.plan.key, map: map)
        for section in ContentSection.allCases {
            #expect(throws: ContentError.contentMismatch) { try file.read(section) }
        }
    }

    @Test("a file with some sections has those and no others, and a file that is gone is missing")
    func partial() async throws {
        let test = try await Case(12)
        let span = ChunkSpan(.thumbnail, of: test.file.map)
        #expect(span.ranges == [0..<2] && span.count == 2)
        let path = test.folder.file("front")
        ContentFolder.put(Array(test.sealed[..<Int(span.bytes)]), to: path)
        let front = SealedFile(path: path, key: test.blob.plan.key, map: test.file.map, span: span)
        try front.verify()
        #expect(try front.read(.thumbnail) == test.content.thumbnail && front.read(.metadata) == test.content.metadata)
        #expect(front.has(.thumbnail) && !front.has(.data))
        #expect(throws: ContentError.missing) { try front.read(.data) }
        #expect(throws: ContentError.missing) { try front.sealedBytes(0..<1) }
        try SystemFiles().remove(path)
        #expect(throws: ContentError.missing) { try front.read(.thumbnail) }
    }

    @Test("the last chunks of a content are read from a file that has only them and the first")
    func tail() async throws {
        let test = try await Case(13, data: 100, thumbnail: 250_000)
        let span = ChunkSpan(.data, of: test.file.map)
        #expect(span.ranges == [0..<1, 3..<4])
        let path = test.folder.file("tail")
        ContentFolder.put(Array(test.sealed[..<Self.chunk] + test.sealed[(3 * Self.chunk)...]), to: path)
        let tail = SealedFile(path: path, key: test.blob.plan.key, map: test.file.map, span: span)
        #expect(try tail.read(.data) == test.content.data)
        #expect(throws: ContentError.missing) { try tail.read(.thumbnail) }
        let runs = (0..<span.count).map { span.run(from: $0, atMost: 9) }
        #expect(runs == [0..<1, 3..<4] && span.run(from: 2, atMost: 9) == nil)
    }

    @Test("neither key nor content is in the description of a sealed file")
    func description() async throws {
        let test = try await Case(14)
        #expect("\(test.file)" == test.file.path && Mirror(reflecting: test.file).children.isEmpty)
    }
}
