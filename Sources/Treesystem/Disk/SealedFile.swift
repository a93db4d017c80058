package import ThicketCrypto
public import ThicketTree

/// A sealed content on disk, whole or some of its sections, and what opens it.
///
/// Clear bytes are handed out after their chunk has been verified; a file that was changed gives an error, never other
/// bytes. Each call opens the file: a file that the store has evicted is `missing`, unless a `RetainToken` keeps it.
/// The calls read the disk in the calling thread.
public struct SealedFile: Sendable {
    /// Where the file is.
    public let path: String
    /// Where the sections are.
    public let map: SectionMap
    /// The chunks that the file has.
    public let span: ChunkSpan
    let key: ContentKey
    let files: any ContentFiles

    package init(
        path: String, key: ContentKey, map: SectionMap, span: ChunkSpan? = nil, files: any ContentFiles = SystemFiles()
    ) {
        (self.path, self.key, self.map, self.files) = (path, key, map, files)
        self.span = span ?? ChunkSpan(.all, of: map)
    }

    /// Whether a section can be read from the file.
    public func has(_ section: ContentSection) -> Bool {
        span.contains(ChunkSpan(ContentComponents(section), of: map))
    }

    /// Reads a part of a section; only the chunks that contain it are read.
    ///
    /// - Parameters:
    ///   - range: in the section; the result is in memory.
    ///   - section: the section.
    /// - Throws: `outOfRange`, `missing`, `contentDamaged`, `contentMismatch`, `disk`.
    public func read(_ range: Range<UInt64>, of section: ContentSection = .data) throws(ContentError) -> [UInt8] {
        guard range.upperBound <= map.sizes[section] else { throw .outOfRange }
        if range.isEmpty { return [] }
        let start = map.sizes.range(of: section).lowerBound
        var bytes = [UInt8]()
        bytes.reserveCapacity(range.count)
        try ChunkReader(self).read(start + range.lowerBound..<start + range.upperBound) { bytes += $0 }
        return bytes
    }

    /// Reads a whole section, and checks the header; for a thumbnail also its digest.
    ///
    /// - Throws: as `read(_:of:)`, `newerFormat`.
    public func read(_ section: ContentSection) throws(ContentError) -> [UInt8] {
        let reader = try ChunkReader(self)
        let header = try reader.header(map)
        var bytes = [UInt8]()
        let range = map.sizes.range(of: section)
        bytes.reserveCapacity(range.count)
        if !range.isEmpty { try reader.read(range) { bytes += $0 } }
        guard section != .thumbnail || ContentHeader.digest(bytes) == header.thumbnailDigest else {
            throw .contentDamaged
        }
        return bytes
    }

    /// The clear bytes of a section, one chunk at a time.
    public func stream(_ section: ContentSection = .data) -> SealedStream { SealedStream(file: self, section: section) }

    /// Writes a section in clear to a file, which appears whole or not at all and is readable by this user only.
    ///
    /// - Throws: as `read(_:)`; `diskFull`; `disk` when a draft, the path and `.draft`, exists.
    public func copy(_ section: ContentSection = .data, to target: String) throws(ContentError) {
        let reader = try ChunkReader(self)
        _ = try reader.header(map)
        let draft = target + ".draft"
        let file = try files.create(draft)
        do throws(ContentError) {
            var (offset, writes) = (UInt64(0), ReleasedWrites())
            let range = map.sizes.range(of: section)
            if !range.isEmpty {
                try reader.read(range) { bytes throws(ContentError) in
                    try file.write(bytes, at: offset)
                    offset += UInt64(bytes.count)
                    try writes.wrote(to: offset, of: file)
                }
            }
            try file.sync()
            try files.rename(draft, to: target)
        } catch {
            try? files.remove(draft)
            throw error
        }
    }

    /// Verifies the header and each chunk of the file.
    ///
    /// - Throws: as `read(_:)`.
    public func verify() throws(ContentError) {
        let reader = try ChunkReader(self)
        _ = try reader.header(map)
        for range in span.ranges {
            let clear =
                map.layout.clearRange(of: range.lowerBound)
                .lowerBound..<map.layout.clearRange(of: range.upperBound - 1).upperBound
            try reader.read(clear) { _ in }
        }
    }

    /// Reads sealed bytes, for an upload.
    ///
    /// - Throws: `missing` for a file that does not have the whole content, `contentDamaged` for a file that ends
    ///   before the range, `disk`.
    package func sealedBytes(_ range: Range<UInt64>) throws(ContentError) -> [UInt8] {
        guard span.ranges == [0..<map.layout.chunks], let file = try files.open(path, writable: false) else {
            throw .missing
        }
        var bytes = [UInt8](repeating: 0, count: range.count)
        let count = try bytes.fill { room throws(ContentError) in try file.read(at: range.lowerBound, into: room) }
        guard count == range.count else { throw .contentDamaged }
        file.release(range)
        return bytes
    }
}

extension SealedFile: CustomStringConvertible, CustomReflectable {
    /// The path alone: keys never reach a log.
    public var description: String { path }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// The clear bytes of a section, one chunk at a time: at most 65,536 bytes each, never empty.
public struct SealedStream: AsyncSequence, Sendable {
    let file: SealedFile
    let section: ContentSection

    /// Starts at the beginning of the section.
    public func makeAsyncIterator() -> Iterator { Iterator(file: file, range: file.map.sizes.range(of: section)) }

    /// Reads on. The header is checked before the first bytes.
    public struct Iterator: AsyncIteratorProtocol {
        let file: SealedFile
        var range: Range<UInt64>
        private var reader: ChunkReader?

        init(file: SealedFile, range: Range<UInt64>) { (self.file, self.range) = (file, range) }

        /// The next bytes; nil at the end.
        ///
        /// - Throws: as `SealedFile.read(_:)`.
        public mutating func next() async throws(ContentError) -> [UInt8]? {
            try await next(isolation: nil)
        }

        /// As above.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ContentError) -> [UInt8]? {
            guard let chunks = file.map.layout.chunks(holding: range), !range.isEmpty else { return nil }
            let reader: ChunkReader = if let reader { reader } else { try start() }
            let end = file.map.layout.clearRange(of: chunks.lowerBound).upperBound
            let part = range.lowerBound..<Swift.min(end, range.upperBound)
            var bytes = [UInt8]()
            try reader.read(part) { bytes += $0 }
            range = part.upperBound..<range.upperBound
            return bytes
        }

        private mutating func start() throws(ContentError) -> ChunkReader {
            let made = try ChunkReader(file)
            _ = try made.header(file.map)
            reader = made
            return made
        }
    }
}

extension [UInt8] {
    /// `withUnsafeMutableBytes` with typed errors.
    mutating func fill<Value>(
        _ body: (UnsafeMutableRawBufferPointer) throws(ContentError) -> Value
    ) throws(ContentError) -> Value {
        let outcome: Result<Value, ContentError> = withUnsafeMutableBytes { room in
            do throws(ContentError) { return .success(try body(room)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// `withUnsafeBytes` with typed errors.
    func lend<Value>(
        _ body: (UnsafeRawBufferPointer) throws(ContentError) -> Value
    ) throws(ContentError) -> Value {
        let outcome: Result<Value, ContentError> = withUnsafeBytes { bytes in
            do throws(ContentError) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try outcome.get()
    }
}
