internal import ThicketClient
import ThicketCrypto
import ThicketPlatform
public import ThicketTree
import ThicketTreeShape

/// Bounds of sealing.
public enum SpoolLimits {
    /// How often a content is sealed again because a source file changed meanwhile.
    public static let attemptsMax = 5
    /// Promises that one section may lead through.
    public static let promisesMax = 8
    /// A file that changed within this time is read twice, because two changes within one step of the file system's
    /// clock leave the same times. FAT has the longest step, 2 s.
    static let recentNanoseconds: Int64 = 2_000_000_000
}

/// What became of a content that was handed over.
public enum SpooledContent: Sendable {
    /// No section was given.
    case none
    /// Small enough for the record, which seals it.
    case inline(NodeContent)
    /// Sealed in a file, under a plan that is used up.
    case blob(SpooledBlob)
}

/// A content that was sealed for an upload.
public struct SpooledBlob: Sendable {
    /// Its id, key, header and layout.
    public let plan: ContentSpool
    /// The file.
    public let file: SealedFile
}

/// Seals content into files, chunk by chunk, in memory of a few chunks.
///
/// A content key seals one plain stream. A plan whose sealing fails, or whose source changed meanwhile, is discarded
/// with its file, and the content is sealed again under a new plan. A file appears under its name when it is complete
/// and on disk. The work blocks, so the actor has its own thread.
actor SpoolWriter {
    private let folder: String
    private let files: any ContentFiles
    private let random: TreeRandom
    private let padding: ContentPadding
    private let now: @Sendable () -> Int64
    private let loop: EngineLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - now: nanoseconds since 1970.
    ///   - folder: an existing folder.
    /// - Throws: `tooManyFiles` when the system cannot make a thread.
    init(
        folder: String, files: any ContentFiles, random: TreeRandom, padding: ContentPadding = .standard,
        now: @escaping @Sendable () -> Int64
    ) throws(ContentError) {
        (self.folder, self.files, self.random, self.padding, self.now) = (folder, files, random, padding, now)
        do throws(ClientError) { loop = try EngineLoop() } catch { throw .tooManyFiles }
    }

    deinit { loop.stop() }

    /// The name of a file whose sealing is not complete; a store removes such files when it is opened.
    static let draftEnding = ".draft"

    /// Seals a content.
    ///
    /// - Returns: for a blob, a file with the name `name` gives it.
    /// - Throws: `sourceChanged`, `sourceUnreadable`, `promiseFailed`, `promiseTooDeep`, `tooLarge`, `diskFull`,
    ///   `disk`, and the faults of a sealed source. No file is left then.
    func write(
        _ sections: NodeSections, name: @Sendable (DataID) -> String
    ) async throws(ContentError) -> SpooledContent {
        let sources = [
            try await SectionSource(sections.metadata), try await SectionSource(sections.thumbnail),
            try await SectionSource(sections.data),
        ]
        if sources.allSatisfy(\.isNone) { return .none }
        for _ in 0..<SpoolLimits.attemptsMax {
            do throws(ContentError) {
                return try attempt(sources, name)
            } catch {
                guard error == .sourceChanged else { throw error }
            }
        }
        throw .sourceChanged
    }

    private func attempt(
        _ sources: [SectionSource], _ name: (DataID) -> String
    ) throws(ContentError) -> SpooledContent {
        var open = [OpenSource]()
        let start = now()
        for source in sources { open.append(try source.open(files)) }
        let digest = try thumbnailDigest(open[1])
        let plan: ContentSpool
        do throws(ContentFault) {
            let sizes = try SectionSizes(metadata: open[0].size, thumbnail: open[1].size, data: open[2].size)
            plan = try ContentSpool(sizes, thumbnailDigest: digest, padding: padding, random: random)
        } catch { throw .tooLarge }
        if plan.isInline { return .inline(try content(open)) }
        return .blob(try seal(open, plan, name(plan.id), start))
    }

    private func thumbnailDigest(_ source: OpenSource) throws(ContentError) -> [UInt8] {
        if source.size == 0 { return ContentHeader.digest([]) }
        return Array(try source.digest().prefix(ContentHeader.digestBytes))
    }

    private func content(_ open: [OpenSource]) throws(ContentError) -> NodeContent {
        var parts = [[UInt8]](repeating: [], count: open.count)
        for (place, source) in open.enumerated() { try source.read { parts[place] += $0 } }
        for source in open where try !source.isUnchanged() { throw .sourceChanged }
        return NodeContent(metadata: parts[0], thumbnail: parts[1], data: parts[2])
    }

    private func seal(
        _ open: [OpenSource], _ plan: ContentSpool, _ name: String, _ start: Int64
    ) throws(ContentError) -> SpooledBlob {
        let (path, draft) = ("\(folder)/\(name)", "\(folder)/\(name)\(Self.draftEnding)")
        let file = try files.create(draft)
        do throws(ContentError) {
            // A file that was changed long ago cannot change without another time.
            let isHashed = open.enumerated().map { place, source in place == 1 || source.isRecent(start) }
            let digests = try seal(open, plan, into: file, isHashed)
            try check(open, digests, plan)
            try file.sync()
            try files.rename(draft, to: path)
        } catch {
            try? files.remove(draft)
            throw error
        }
        return SpooledBlob(plan: plan, file: SealedFile(path: path, key: plan.key, map: plan.map, files: files))
    }

    /// Seals the stream once.
    ///
    /// - Parameter isHashed: for each section, whether its hash is needed: it costs as much as everything else.
    /// - Returns: SHA-256 of each section as it was sealed; nil for one that is not hashed.
    private func seal(
        _ open: [OpenSource], _ plan: ContentSpool, into file: any ContentFile, _ isHashed: [Bool]
    ) throws(ContentError) -> [[UInt8]?] {
        do {
            var sealer = try ContentSealer(plan.key, length: plan.map.layout.length)
            var (offset, writes) = (UInt64(0), ReleasedWrites())
            let output = { (bytes: UnsafeRawBufferPointer) throws in
                try file.write(bytes, at: offset)
                offset += UInt64(bytes.count)
                try writes.wrote(to: offset, of: file)
            }
            try plan.header.octets.withUnsafeBytes { try sealer.seal($0, output) }
            var digests = [[UInt8]?]()
            for (source, isHashed) in zip(open, isHashed) {
                var hash = isHashed ? SHA256() : nil
                try source.read { bytes throws(ContentError) in
                    hash?.update(bytes)
                    do { try sealer.seal(bytes, output) } catch let error as ContentError {
                        throw error
                    } catch { throw .sourceChanged }
                }
                digests.append(hash?.digest())
            }
            let zeros = [UInt8](repeating: 0, count: ContentLayout.chunkBytes)
            var padding = plan.header.padding
            while padding > 0 {
                let count = Int(min(padding, UInt64(zeros.count)))
                try zeros.withUnsafeBytes { try sealer.seal(.init(rebasing: $0[..<count]), output) }
                padding -= UInt64(count)
            }
            try sealer.finish(output)
            return digests
        } catch let error as ContentError {
            throw error
        } catch { throw .sourceChanged }
    }

    /// Compares the sources with what was sealed.
    private func check(
        _ open: [OpenSource], _ digests: [[UInt8]?], _ plan: ContentSpool
    ) throws(ContentError) {
        // The thumbnail was read for the header's digest before.
        if plan.header.sizes.thumbnail > 0 {
            guard digests[1]?.starts(with: plan.header.thumbnailDigest) == true else { throw .sourceChanged }
        }
        for (source, digest) in zip(open, digests) {
            if let digest { guard try source.digest() == digest else { throw .sourceChanged } }
        }
        for source in open where try !source.isUnchanged() { throw .sourceChanged }
    }
}
