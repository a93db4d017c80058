/// Reads sealed content (STREAM, as `ContentSealer`; spec 3.3) at any place: a range needs its own chunks only. Memory
/// does not grow with the content.
///
/// A chunk is handed out after it has been authenticated, never before. That the whole is as long as it should be is
/// checked before anything is read; the length is part of what each chunk authenticates.
public struct ContentOpener: ~Copyable {
    private let key: ContentKey
    /// Where the chunks lie.
    public let layout: ContentLayout
    /// A sealed chunk, and the clear one.
    private let room: UnsafeMutableRawBufferPointer

    /// - Parameters:
    ///   - length: exact bytes of the plain stream, from where the key stands.
    ///   - storedLength: bytes that are there.
    /// - Throws: `openingFailed` when they do not belong together, or the length is beyond `ContentLayout.lengthMax`.
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
    ///   - range: of the plain stream; all of it by `0..<layout.length`.
    ///   - read: fills a buffer with the sealed stream's bytes from an offset, and says how many it had: fewer than
    ///     asked for means that they are not there.
    ///   - output: gets the clear bytes, chunk by chunk in order; they are lent for the call.
    /// - Throws: `openingFailed` for a damaged chunk, and what was handed out before it is genuine;
    ///   `outOfBounds(.count)` for a range beyond the end; whatever `read` and `output` throw.
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
    /// - Parameter length: exact bytes of the plain stream.
    /// - Throws: `openingFailed` for anything that is wrong, and nothing of it comes out.
    public static func open(_ sealed: [UInt8], _ key: ContentKey, length: UInt64) throws(CryptoError) -> [UInt8] {
        // Before there is room for what somebody says the length is.
        guard let layout = try? ContentLayout(length: length),
            layout.sealedLength == UInt64(sealed.count)
        else { throw .openingFailed }
        return try [UInt8].made(Int(length)) { room throws(CryptoError) in
            try sealed.lent { sealed throws(CryptoError) in
                for chunk: UInt64 in 0..<layout.chunks {
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
