import ThicketCrypto

/// A section whose promises are kept, ready to be opened.
enum SectionSource: Sendable {
    case none
    case bytes([UInt8])
    case file(String)
    case sealed(SealedFile)

    /// Waits for promises.
    ///
    /// - Throws: `promiseFailed`, `promiseTooDeep`.
    init(_ data: NodeData?) async throws(ContentError) {
        var data = data ?? .none
        for _ in 0...SpoolLimits.promisesMax {
            switch data {
            case .none: self = .none
            case .bytes(let bytes): self = .bytes(bytes)
            case .file(let path): self = .file(path)
            case .sealedFile(let file): self = .sealed(file)
            case .promise(let promise):
                do { data = try await promise() } catch { throw .promiseFailed }
                continue
            }
            return
        }
        throw .promiseTooDeep
    }

    var isNone: Bool { if case .none = self { true } else { false } }

    /// - Throws: `sourceUnreadable`, and the faults of a sealed file.
    func open(_ files: any ContentFiles) throws(ContentError) -> OpenSource {
        switch self {
        case .none: return OpenSource(.bytes([]), size: 0)
        case .bytes(let bytes): return OpenSource(.bytes(bytes), size: UInt64(bytes.count))
        case .file(let path):
            do throws(ContentError) {
                guard let file = try files.open(path, writable: false) else { throw .sourceUnreadable(noSuchFile) }
                return OpenSource(.file(file, try file.identity()), size: try file.identity().size)
            } catch {
                guard case .disk(let number) = error else { throw error }
                throw .sourceUnreadable(number)
            }
        case .sealed(let file): return OpenSource(.sealed(file), size: file.map.sizes.data)
        }
    }

    private var noSuchFile: Int32 { 2 }
}

/// A source while it is read: once for each pass, in pieces of a chunk.
///
/// A class, because the passes share the open file.
final class OpenSource {
    enum Kind {
        case bytes([UInt8])
        case file(any ContentFile, FileIdentity)
        case sealed(SealedFile)
    }

    private let kind: Kind
    /// Bytes when it was opened.
    let size: UInt64

    init(_ kind: Kind, size: UInt64) { (self.kind, self.size) = (kind, size) }

    /// Hands all bytes to `output`, in pieces of at most a chunk.
    ///
    /// - Throws: `sourceChanged` for a file with fewer or more bytes than at its opening; `sourceUnreadable`; the
    ///   errors of `output`.
    func read(_ output: (UnsafeRawBufferPointer) throws(ContentError) -> Void) throws(ContentError) {
        switch kind {
        case .bytes(let bytes): try bytes.lend(output)
        case .file(let file, _): try read(file, output)
        case .sealed(let sealed):
            if size > 0 { try ChunkReader(sealed).read(sealed.map.sizes.range(of: .data), output) }
        }
    }

    private func read(
        _ file: any ContentFile, _ output: (UnsafeRawBufferPointer) throws(ContentError) -> Void
    ) throws(ContentError) {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: ContentLayout.chunkBytes, alignment: 64)
        defer { room.deallocate() }
        var offset: UInt64 = 0
        while true {
            let count: Int
            do throws(ContentError) { count = try file.read(at: offset, into: room) } catch {
                guard case .disk(let number) = error else { throw error }
                throw .sourceUnreadable(number)
            }
            guard UInt64(count) <= size - offset else { throw .sourceChanged }
            if count == 0 { break }
            try output(UnsafeRawBufferPointer(rebasing: room[..<count]))
            offset += UInt64(count)
        }
        guard offset == size else { throw .sourceChanged }
    }

    /// Whether the file is as it was when it was opened; true for other sources.
    func isUnchanged() throws(ContentError) -> Bool {
        guard case .file(let file, let before) = kind else { return true }
        return try file.identity() == before
    }

    /// Whether the file was changed so short a time ago that a further change may leave its times as they are.
    ///
    /// - Parameter now: nanoseconds since 1970.
    func isRecent(_ now: Int64) -> Bool {
        guard case .file(_, let before) = kind else { return false }
        return max(before.changed, before.modified) > now - SpoolLimits.recentNanoseconds
    }

    /// SHA-256 of all bytes.
    ///
    /// - Throws: as `read`.
    func digest() throws(ContentError) -> [UInt8] {
        var hash = SHA256()
        try read { hash.update($0) }
        return hash.digest()
    }
}
