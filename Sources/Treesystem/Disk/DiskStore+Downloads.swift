import ThicketCrypto
import ThicketTree
import ThicketTreeShape

/// A download whose chunks are stored as they are verified. The file is retained while this exists.
package struct PartialDownload: Sendable {
    /// What is downloaded.
    package let reference: BlobReference
    /// The chunks of the file.
    package let span: ChunkSpan
    /// Chunks that were there and verified when it was opened.
    package let verified: UInt64
    let key: DiskKey
    let token: RetainToken
}

extension DiskStore {
    /// Starts or resumes a download: the chunks of a partial file are verified again, and what follows the first that
    /// does not open is cut off.
    ///
    /// - Throws: `disk`, `diskFull`, `index`, `tooManyFiles`.
    package func begin(
        _ reference: BlobReference, _ components: ContentComponents, options: DiskOptions = .cache
    ) throws(ContentError) -> PartialDownload {
        let (key, span) = (DiskKey(reference.id, components), ChunkSpan(components, of: reference.map))
        let token = RetainToken(retainers, key)
        var verified: UInt64 = 0
        if var entry = index[key], entry.state != .absent, let file = try files.open(path(key), writable: true) {
            verified = try Self.verified(file, reference, span)
            try file.truncate(to: min(span.bytes, ChunkSpan.offset(ofPlace: verified)))
            // A whole file that was damaged is downloaded again from there.
            if verified < span.count { entry.state = .partial }
            index.set(key, entry)
            let isPersistent = entry.isPersistent
            if options.isPersistent { entry.pin(until: options.expires) }
            if entry.isPersistent != isPersistent || entry.expires != index[key]?.expires {
                try rows.write([(key, entry)])
                index.set(key, entry)
            }
        } else {
            try files.remove(path(key))
            _ = try files.create(path(key))
            try add(key, reference.node, .partial, bytes: 0, options)
        }
        try setBytes(key, span, verified)
        return PartialDownload(reference: reference, span: span, verified: verified, key: key, token: token)
    }

    /// Number of chunks from the start of a file that open.
    private static func verified(
        _ file: any ContentFile, _ reference: BlobReference, _ span: ChunkSpan
    ) throws(ContentError) -> UInt64 {
        let check = try ChunkCheck(reference)
        var sealed = [UInt8](repeating: 0, count: ContentLayout.sealedChunkBytes)
        for place in 0..<span.count {
            guard let chunk = span.chunk(at: place) else { return place }
            let size = span.layout.sealedRange(of: chunk).count
            let count = try sealed.fill { room throws(ContentError) in
                try file.read(
                    at: ChunkSpan.offset(ofPlace: place), into: UnsafeMutableRawBufferPointer(rebasing: room[..<size]))
            }
            guard count == size, check.opens(chunk, sealed[..<size]) else { return place }
        }
        return span.count
    }

    private func setBytes(_ key: DiskKey, _ span: ChunkSpan, _ places: UInt64) throws(ContentError) {
        guard var entry = index[key] else { throw .missing }
        entry.bytes = min(span.bytes, ChunkSpan.offset(ofPlace: places))
        index.set(key, entry)
        try trim()
    }

    /// Stores verified chunks behind those that are there.
    ///
    /// - Parameters:
    ///   - sealed: whole chunks.
    ///   - place: the place of the first in the span.
    ///   - count: their number.
    ///   - download: the download.
    /// - Throws: `diskFull`, `disk`; the chunks before are kept then.
    package func append(
        _ sealed: ArraySlice<UInt8>, at place: UInt64, count: UInt64, _ download: PartialDownload
    ) throws(ContentError) {
        guard let file = try files.open(path(download.key), writable: true) else { throw .missing }
        let outcome: Result<Void, ContentError> = sealed.withUnsafeBytes { bytes in
            do throws(ContentError) {
                let start = ChunkSpan.offset(ofPlace: place)
                try file.write(bytes, at: start)
                // Each write opens the file: the steps are counted from its start.
                var writes = ReleasedWrites(from: start / ReleasedWrites.stepBytes * ReleasedWrites.stepBytes)
                return .success(try writes.wrote(to: start + UInt64(bytes.count), of: file))
            } catch { return .failure(error) }
        }
        try outcome.get()
        try setBytes(download.key, download.span, place + count)
    }

    /// Makes a complete download visible. It is on disk when it returns.
    ///
    /// - Throws: `contentDamaged` when chunks are missing; `disk`, `diskFull`, `index`.
    package func finish(_ download: PartialDownload, options: DiskOptions) throws(ContentError) -> RetainedFile {
        guard let file = try files.open(path(download.key), writable: true), var entry = index[download.key] else {
            throw .missing
        }
        guard try file.identity().size == download.span.bytes else { throw .contentDamaged }
        try file.sync()
        (entry.state, entry.bytes, entry.used) = (.whole, download.span.bytes, index.nextUse())
        if options.isPersistent {
            entry.pin(until: options.expires)
        } else if !entry.isPersistent {
            entry.expires = index.expiry(options, download.key.pool, now: now())
        }
        try rows.write([(download.key, entry)])
        index.set(download.key, entry)
        try trim()
        return retained(download.key, download.reference, download.span)
    }

    /// Removes a download whose bytes turned out to be wrong.
    ///
    /// - Throws: `disk`, `index`.
    package func discard(_ download: PartialDownload) throws(ContentError) {
        download.token.release()
        guard index[download.key]?.state == .partial else { return }
        try remove([download.key])
    }

    /// Removes the partial downloads of a content that no transfer writes. The files go before their rows are written,
    /// so it works, and frees space, on a full disk.
    ///
    /// - Throws: `disk`, `diskFull`, `index`.
    public func removePartial(_ id: DataID) throws(ContentError) {
        let partial = index.entries.filter { $0.key.id == id && $0.value.state == .partial }.map(\.key)
        try remove(partial.filter { !retainers.isRetained($0) })
    }
}

/// Opens single chunks in memory, to verify them.
final class ChunkCheck {
    private let opener: ContentOpener

    /// - Throws: `contentMismatch` for a map that no content has.
    init(_ reference: BlobReference) throws(ContentError) {
        let layout = reference.map.layout
        guard
            let made = try? ContentOpener(
                reference.key, length: layout.length, storedLength: layout.sealedLength)
        else { throw .contentMismatch }
        opener = made
    }

    /// Whether a sealed chunk is the one with this number.
    func opens(_ chunk: UInt64, _ sealed: ArraySlice<UInt8>) -> Bool { read(chunk, sealed) { _ in } }

    /// The clear bytes of a sealed chunk; nil when it is not the one with this number.
    func clear(_ chunk: UInt64, _ sealed: ArraySlice<UInt8>) -> [UInt8]? {
        var clear = [UInt8]()
        return read(chunk, sealed) { clear += $0 } ? clear : nil
    }

    private func read(
        _ chunk: UInt64, _ sealed: ArraySlice<UInt8>, _ output: (UnsafeRawBufferPointer) -> Void
    ) -> Bool {
        guard UInt64(sealed.count) == UInt64(opener.layout.sealedRange(of: chunk).count) else { return false }
        let result: Void? = sealed.withUnsafeBytes { bytes in
            try? opener.read(
                opener.layout.clearRange(of: chunk),
                from: { _, room in
                    room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<min(bytes.count, room.count)]))
                    return min(bytes.count, room.count)
                }, output)
        }
        return result != nil
    }
}
