/// Reads sealed content (STREAM, as in `ContentSealer`; spec 3.3) at any place: a range needs only its own chunks.
/// Memory does not grow with the content.
///
/// A chunk is returned only after it has been authenticated. The length of the whole is checked before anything is
/// read, and is part of the data that each chunk authenticates.
public struct ContentOpener: ~Copyable {
    private let key: ContentKey
    /// The places of the chunks.
    public let layout: ContentLayout
    /// Memory for a sealed chunk and the clear one.
    private let room: UnsafeMutableRawBufferPointer

    /// Checks the lengths.
    ///
    /// - Parameters:
    ///   - key: the key of the stream.
    ///   - length: exact bytes of the plain stream, as stored beside the key.
    ///   - storedLength: bytes of the sealed stream that exist.
    /// - Throws: `openingFailed` when the lengths do not match, or the length is more than `ContentLayout.lengthMax`.
    public init(_ key: ContentKey, length: UInt64, storedLength: UInt64) throws(CryptoError) {
        guard let layout = try? ContentLayout(length: length), layout.sealedLength == storedLength else {
            throw .openingFailed
        }
        (self.key, self.layout) = (key, layout)
        room = .allocate(byteCount: ContentLayout.sealedChunkBytes + ContentLayout.chunkBytes, alignment: 64)
    }

    deinit {
        room.cleanse()
        room.deallocate()
    }

    /// Reads a range of the plain stream.
    ///
    /// - Parameters:
    ///   - range: the range in the plain stream; `0..<layout.length` for all of it.
    ///   - read: fills a buffer with the sealed stream's bytes from an offset, and returns how many it had; fewer than
    ///     asked for means that the rest does not exist.
    ///   - output: receives the clear bytes, chunk by chunk in order, valid during the call.
    /// - Throws: `openingFailed` for a damaged chunk (all bytes passed to `output` before are authentic);
    ///   `outOfBounds(.count)` for a range beyond the end; any error of `read` and `output`.
    public func read(
        _ range: Range<UInt64>, from read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Int,
        _ output: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        guard let chunks = layout.chunks(holding: range) else { throw CryptoError.outOfBounds(.count) }
        for chunk in chunks {
            let (from, to) = (
                layout.sealedRange(of: chunk), layout.clearRange(of: chunk)
            )
            let sealed = UnsafeMutableRawBufferPointer(rebasing: room[..<from.count])
            let clear = UnsafeMutableRawBufferPointer(
                rebasing: room[ContentLayout.sealedChunkBytes..<ContentLayout.sealedChunkBytes + to.count])
            guard try read(from.lowerBound, sealed) == sealed.count else { throw CryptoError.openingFailed }
            try key.open(chunk, of: layout, UnsafeRawBufferPointer(sealed), into: clear)
            let wanted = range.clamped(to: to)
            guard !wanted.isEmpty else { continue }
            try output(
                .init(rebasing: clear[Int(wanted.lowerBound - to.lowerBound)..<Int(wanted.upperBound - to.lowerBound)]))
        }
    }
}

extension ContentOpener {
    /// Opens a short stream at once.
    ///
    /// - Parameters:
    ///   - sealed: the whole sealed stream.
    ///   - key: the key of the stream.
    ///   - length: exact bytes of the plain stream.
    /// - Throws: `openingFailed` for any deviation; no bytes are returned then.
    public static func open(_ sealed: [UInt8], _ key: ContentKey, length: UInt64) throws(CryptoError) -> [UInt8] {
        // Checked before memory is allocated for the claimed length.
        guard let layout = try? ContentLayout(length: length),
            layout.sealedLength == UInt64(sealed.count)
        else { throw .openingFailed }
        return try [UInt8].made(Int(length)) { room throws(CryptoError) in
            try sealed.lent { sealed throws(CryptoError) in
                for chunk in 0..<layout.chunks {
                    let (from, to) = (
                        layout.sealedRange(of: chunk), layout.clearRange(of: chunk)
                    )
                    try key.open(
                        chunk, of: layout, .init(rebasing: sealed[Int(from.lowerBound)..<Int(from.upperBound)]),
                        into: .init(rebasing: room[Int(to.lowerBound)..<Int(to.upperBound)]))
                }
            }
        }
    }
}
