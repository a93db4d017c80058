import Glibc
import Synchronization
import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Sealing content into files", .nonceWatch)
struct SpoolWriterTests {
    private static func name(_ id: DataID) -> String { id.text }

    private static func content(_ seed: ContentSeed, _ most: Int) -> NodeContent {
        NodeContent(
            metadata: seed.bytes(seed.below(most)), thumbnail: seed.bytes(seed.below(most)),
            data: seed.bytes(9_000 + seed.below(most)))
    }

    @Test("C1: bytes, a file, a sealed file, a promise and nothing are sealed, and read back as they were")
    func sources() async throws {
        let folder = ContentFolder()
        let seed = ContentSeed(1)
        let writer = try SpoolWriter.make(folder, seed: 1)
        let (small, large) = (seed.bytes(700), seed.bytes(200_000))
        ContentFolder.put(large, to: folder.file("clear"))
        let first = try #require(
            await writer.write(
                NodeSections(metadata: .bytes(small), data: .file(folder.file("clear"))), name: Self.name
            ).blob)
        #expect(try first.file.read(.metadata) == small)
        #expect(try first.file.read(.thumbnail) == [])
        #expect(try first.file.read(.data) == large)
        let sections = NodeSections(
            thumbnail: .promise { .promise { .bytes(small) } }, data: .sealedFile(first.file))
        let second = try #require(await writer.write(sections, name: Self.name).blob)
        #expect(try second.file.read(.thumbnail) == small && second.file.read(.data) == large)
        #expect(second.plan.id != first.plan.id && second.plan.access.key != first.plan.access.key)
        #expect(folder.names == ["clear", first.plan.id.text, second.plan.id.text].sorted())
    }

    @Test("content that fits into the record is returned as bytes, up to the last byte that fits, and no file is made")
    func inline() async throws {
        let folder = ContentFolder()
        let writer = try SpoolWriter.make(folder, seed: 2)
        let last = 8_192 - 64 - 64
        for count in [0, 1, last, last + 1] {
            let bytes = ContentSeed(3).bytes(count)
            let result = try await writer.write(NodeSections(data: .bytes(bytes)), name: Self.name)
            switch result {
            case .inline(let content): #expect(count <= last && content == NodeContent(data: bytes))
            case .blob(let blob): #expect(try count == last + 1 && blob.file.read(.data) == bytes)
            case .none: Issue.record("an empty section is a content")
            }
        }
        #expect(folder.names.count == 1)
        for sections in [NodeSections(), NodeSections(data: NodeData.none)] {
            guard case .none = try await writer.write(sections, name: Self.name) else {
                return #expect(Bool(false), "no section is no content")
            }
        }
    }

    @Test("C1: a promise that throws, or that promises without end, is an error, never an empty content")
    func promises() async throws {
        struct Broken: Error {}
        let folder = ContentFolder()
        let writer = try SpoolWriter.make(folder, seed: 4)
        @Sendable func endless() async throws -> NodeData { .promise(endless) }
        await #expect(throws: ContentError.promiseFailed) {
            try await writer.write(NodeSections(data: .promise { throw Broken() }), name: Self.name)
        }
        await #expect(throws: ContentError.promiseTooDeep) {
            try await writer.write(NodeSections(data: .promise(endless)), name: Self.name)
        }
        await #expect(throws: ContentError.sourceUnreadable(ENOENT)) {
            try await writer.write(NodeSections(data: .file(folder.file("absent"))), name: Self.name)
        }
        await #expect(throws: ContentError.sourceUnreadable(EINVAL)) {
            try await writer.write(NodeSections(data: .file(folder.path)), name: Self.name)
        }
        #expect(folder.names.isEmpty)
    }

    /// Changes of a source while it is read.
    enum Change: CaseIterable {
        case overwrite, append, cut, replace, sameTimes
    }

    @Test(
        "C5, A18: a source that changes while it is sealed is sealed again under a new plan, whole and not mixed",
        arguments: Change.allCases)
    func changed(change: Change) async throws {
        let folder = ContentFolder()
        let (path, size) = (folder.file("clear"), 300_000)
        let (before, after) = (ContentSeed(5).bytes(size), ContentSeed(6).bytes(size))
        ContentFolder.put(before, to: path)
        let files = FaultFiles()
        let changes = Atomic(0)
        files.set {
            $0.beforeRead = { read, offset in
                guard read == path, offset == 131_072, changes.add(1, ordering: .relaxed).oldValue == 0 else { return }
                switch change {
                case .overwrite: ContentFolder.put(after, to: path)
                case .append: ContentFolder.put(before + after, to: path)
                case .cut: ContentFolder.put(Array(before[..<150_000]), to: path)
                case .replace:
                    ContentFolder.put(after, to: path + ".new")
                    rename(path + ".new", path)
                case .sameTimes: Self.overwrite(path, after)
                }
            }
        }
        // The clock of the file system may be coarse: the file counts as just changed.
        let writer = try SpoolWriter.make(folder, files, seed: 7)
        let blob = try #require(await writer.write(NodeSections(data: .file(path)), name: Self.name).blob)
        let sealed = try blob.file.read(.data)
        // A file that was replaced is still open, and has not changed.
        let expected: [[UInt8]] =
            switch change {
            case .overwrite, .sameTimes: [after]
            case .append: [before + after]
            case .cut: [Array(before[..<150_000])]
            case .replace: [before, after]
            }
        #expect(expected.contains(sealed))
        #expect(folder.names == ["clear", blob.plan.id.text].sorted(), "the discarded plan leaves no file")
    }

    /// Writes from the middle on, and sets the time of the last write back.
    private static func overwrite(_ path: String, _ bytes: [UInt8]) {
        var status = stat()
        stat(path, &status)
        let file = open(path, O_WRONLY | O_CLOEXEC)
        _ = bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
        futimens(file, [status.st_atim, status.st_mtim])
        close(file)
    }

    @Test("C5: two changes within one step of the file system's clock are detected by reading a fresh file twice")
    func coarseClock() async throws {
        let folder = ContentFolder()
        let path = folder.file("clear")
        let (before, after) = (ContentSeed(8).bytes(200_000), ContentSeed(9).bytes(200_000))
        ContentFolder.put(before, to: path)
        let files = FrozenTimes(FaultFiles())
        let changes = Atomic(0)
        files.inner.set {
            $0.beforeRead = { read, offset in
                guard read == path, offset == 65_536, changes.add(1, ordering: .relaxed).oldValue == 0 else { return }
                Self.overwrite(path, after)
            }
        }
        let writer = try SpoolWriter.make(folder, files, seed: 10, now: { FrozenTimes.moment + 1_000 })
        let blob = try #require(await writer.write(NodeSections(data: .file(path)), name: Self.name).blob)
        #expect(try blob.file.read(.data) == after)
        #expect(changes.load(ordering: .relaxed) > 2, "it was read twice")
    }

    @Test("a source that changes at each attempt is an error after five plans, and leaves no file")
    func alwaysChanged() async throws {
        let folder = ContentFolder()
        let path = folder.file("clear")
        ContentFolder.put(ContentSeed(11).bytes(100_000), to: path)
        let files = FaultFiles()
        let changes = Atomic(0)
        files.set {
            $0.beforeRead = { read, offset in
                guard read == path, offset == 65_536 else { return }
                let count = changes.add(1, ordering: .relaxed).newValue
                ContentFolder.put(ContentSeed(UInt64(count)).bytes(100_000 + count), to: path)
            }
        }
        let writer = try SpoolWriter.make(folder, files, seed: 12)
        await #expect(throws: ContentError.sourceChanged) {
            try await writer.write(NodeSections(data: .file(path)), name: Self.name)
        }
        #expect(changes.load(ordering: .relaxed) == SpoolLimits.attemptsMax)
        #expect(folder.names == ["clear"])
    }

    @Test("200 kills between any two steps of sealing leave a whole file under its name, or none")
    func kills() async throws {
        let seed = ContentSeed(13)
        var outcomes = [0, 0]
        for round in 0..<200 {
            let folder = ContentFolder()
            let files = FaultFiles(cut: { seed.below($0) })
            let content = Self.content(seed, 150_000)
            files.set { $0.killAt = 1 + seed.below(9) }
            let writer = try SpoolWriter.make(folder, files, seed: UInt64(1_000 + round))
            let result = try? await writer.write(NodeSections(content), name: Self.name)
            let whole = folder.names.filter { !$0.hasSuffix(SpoolWriter.draftEnding) }
            if let blob = result?.blob {
                #expect(try blob.file.read(.data) == content.data && whole == [blob.plan.id.text])
                outcomes[0] += 1
            } else {
                #expect(whole.isEmpty, "killed before the rename was done")
                outcomes[1] += 1
            }
        }
        #expect(outcomes.allSatisfy { $0 > 20 }, "\(outcomes)")
    }

    @Test("a full disk is its own error, and leaves no file")
    func full() async throws {
        for step in 1...6 {
            let folder = ContentFolder()
            let files = FaultFiles()
            files.set { $0.fullAt = step }
            let writer = try SpoolWriter.make(folder, files, seed: 14)
            await #expect(throws: ContentError.diskFull) {
                try await writer.write(NodeSections(data: .bytes(ContentSeed(15).bytes(200_000))), name: Self.name)
            }
            #expect(folder.names.isEmpty)
        }
    }

    @Test("C10: a file of 64 MiB is sealed and read in pieces of a chunk, with three files open at most")
    func memory() async throws {
        let folder = ContentFolder()
        let path = folder.file("sparse")
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        ftruncate(file, 64 << 20)
        close(file)
        let files = FaultFiles()
        let writer = try SpoolWriter.make(folder, files, seed: 16, padding: .none, now: { .max })
        let blob = try #require(await writer.write(NodeSections(data: .file(path)), name: Self.name).blob)
        var count = 0
        for try await part in blob.file.stream() {
            #expect(part.count <= ContentLayout.chunkBytes && !part.isEmpty)
            count += part.count
        }
        #expect(count == 64 << 20)
        files.set { state in
            #expect(state.largest <= ContentLayout.sealedChunkBytes)
            #expect(state.openMost <= 3 && state.open == 0)
            // Memory of the system: all but the last step is released, in order, once it is on disk.
            #expect(state.releasedDirty == 0 && state.released.count >= 3)
            let ends = state.released.map(\.upperBound)
            #expect(state.released.map(\.lowerBound) == [0] + ends.dropLast())
            #expect(blob.plan.map.layout.sealedLength - (ends.last ?? 0) < ReleasedWrites.stepBytes)
        }
    }
}

/// A file system whose clock stands still.
private struct FrozenTimes: ContentFiles {
    static let moment: Int64 = 1_700_000_000_000_000_000
    let inner: FaultFiles

    init(_ inner: FaultFiles) { self.inner = inner }

    private final class File: ContentFile {
        let inner: any ContentFile
        init(_ inner: any ContentFile) { self.inner = inner }

        func identity() throws(ContentError) -> FileIdentity {
            var identity = try inner.identity()
            (identity.modified, identity.changed) = (moment, moment)
            return identity
        }
        func read(at offset: UInt64, into room: UnsafeMutableRawBufferPointer) throws(ContentError) -> Int {
            try inner.read(at: offset, into: room)
        }
        func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ContentError) {
            try inner.write(bytes, at: offset)
        }
        func truncate(to size: UInt64) throws(ContentError) { try inner.truncate(to: size) }
        func sync() throws(ContentError) { try inner.sync() }
    }

    func create(_ path: String) throws(ContentError) -> any ContentFile { File(try inner.create(path)) }
    func open(_ path: String, writable: Bool) throws(ContentError) -> (any ContentFile)? {
        try inner.open(path, writable: writable).map { File($0) }
    }
    func rename(_ path: String, to target: String) throws(ContentError) { try inner.rename(path, to: target) }
    func remove(_ path: String) throws(ContentError) { try inner.remove(path) }
    func makeFolder(_ path: String) throws(ContentError) { try inner.makeFolder(path) }
    func names(in folder: String) throws(ContentError) -> [String] { try inner.names(in: folder) }
}
