import ThicketCrypto
import ThicketTree
import ThicketTreeShape

/// Reads verified chunks of one sealed file, in memory of one sealed and one clear chunk. Used by one task at a time.
final class ChunkReader {
    /// Chunks that are tried to tell damage from foreign bytes.
    static let probesMax: UInt64 = 16

    private let file: any ContentFile
    private let opener: ContentOpener
    private let span: ChunkSpan
    /// Bytes of the file when it was opened.
    private let size: UInt64

    /// - Throws: `missing` without the file, `disk`; `contentDamaged` or `contentMismatch` for another length.
    init(_ sealed: SealedFile) throws(ContentError) {
        guard let file = try sealed.files.open(sealed.path, writable: false) else { throw .missing }
        let layout = sealed.map.layout
        guard let opener = try? ContentOpener(sealed.key, length: layout.length, storedLength: layout.sealedLength)
        else { throw .contentMismatch }
        (self.file, span) = (file, sealed.span)
        size = try file.identity().size
        self.opener = opener
        guard size == span.bytes else { throw fault() }
    }

    /// Reads a part of the plain stream.
    ///
    /// - Parameter output: receives clear bytes, chunk by chunk, each after its chunk has been verified.
    /// - Throws: `missing` for chunks that the file does not have, `contentDamaged`, `contentMismatch`, `disk`, and the
    ///   errors of `output`.
    func read(
        _ range: Range<UInt64>, _ output: (UnsafeRawBufferPointer) throws(ContentError) -> Void
    ) throws(ContentError) {
        do {
            try opener.read(range, from: fill) { bytes in try output(bytes) }
        } catch let error as ContentError {
            throw error
        } catch {
            throw fault()
        }
    }

    /// Checks the first chunk's header against the sizes that the record names.
    ///
    /// - Throws: `newerFormat`; `contentMismatch` for other sizes; as `read`.
    func header(_ map: SectionMap) throws(ContentError) -> ContentHeader {
        var octets = [UInt8]()
        try read(0..<UInt64(TreeLimits.contentHeaderBytes)) { octets += $0 }
        return try map.checkHeader(octets)
    }

    private func fill(_ offset: UInt64, _ room: UnsafeMutableRawBufferPointer) throws(ContentError) -> Int {
        let chunk = offset / UInt64(ContentLayout.sealedChunkBytes)
        guard let place = span.place(of: chunk) else { throw .missing }
        return try file.read(at: ChunkSpan.offset(ofPlace: place), into: room)
    }

    /// Why a chunk does not open. A single failed chunk cannot tell; a content of which another chunk opens is damaged,
    /// and one of which no chunk opens is foreign. Too short a file for its first chunk is damaged.
    private func fault() -> ContentError {
        let count = span.count
        guard let first = span.run(from: 0, atMost: 1), size >= UInt64(span.sealedRange(first).count) else {
            return .contentDamaged
        }
        let step = max(1, count / Self.probesMax)
        for place in stride(from: 0, to: count, by: Int(clamping: step)) {
            if let chunk = span.chunk(at: place), opens(chunk) { return .contentDamaged }
        }
        if let chunk = span.chunk(at: count - 1), opens(chunk) { return .contentDamaged }
        return .contentMismatch
    }

    private func opens(_ chunk: UInt64) -> Bool {
        (try? opener.read(span.layout.clearRange(of: chunk), from: fill) { _ in }) != nil
    }
}

extension SectionMap {
    /// Compares the header of a content with the sizes that its record names.
    ///
    /// - Throws: `newerFormat`, `contentDamaged`; `contentMismatch` for other sizes.
    @discardableResult
    func checkHeader(_ octets: [UInt8]) throws(ContentError) -> ContentHeader {
        let header: ContentHeader
        do throws(ContentFault) { header = try ContentHeader(octets: octets) } catch {
            throw error == .newerFormat ? .newerFormat : .contentDamaged
        }
        guard header.sizes == sizes, header.padding == layout.length - sizes.length else { throw .contentMismatch }
        return header
    }
}
