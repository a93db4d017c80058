/// Seals a stream of known length piece by piece (STREAM: Hoang, Reyhanitabar, Rogaway, Vizár, CRYPTO 2015), in memory
/// that does not grow with it.
///
/// ```swift
/// var sealer = try ContentSealer(key, length: 150_000)
/// try sealer.seal(piece) { output.write($0) }     // pieces of any size; each full chunk comes out at once
/// try sealer.finish { output.write($0) }
/// ```
///
/// A value that cannot be copied: a chunk is sealed once. What fails half way is thrown away with its key.
public struct ContentSealer: ~Copyable {
    private let key: ContentKey
    /// Where the chunks lie.
    public let layout: ContentLayout
    /// The chunk that comes next.
    private var chunk: UInt64 = 0
    /// What has come of it, in front of `room`.
    private var waiting = 0
    /// One sealed chunk, and one clear chunk that is not full yet.
    private let room: UnsafeMutableRawBufferPointer

    /// - Parameters:
    ///   - key: which has sealed nothing before.
    ///   - length: exact bytes of the plain stream.
    /// - Throws: `outOfBounds(.count)` for more than `ContentLayout.lengthMax`.
    public init(_ key: ContentKey, length: UInt64) throws(CryptoError) {
        self.key = key
        layout = try ContentLayout(length: length)
        room = .allocate(byteCount: ContentLayout.sealedChunkBytes + ContentLayout.chunkBytes, alignment: 64)
    }

    deinit {
        room.cleanse()
        room.deallocate()
    }

    /// Bytes of the plain stream that have come.
    public var count: UInt64 { chunk * UInt64(ContentLayout.chunkBytes) + UInt64(waiting) }

    /// Takes the next bytes of the plain stream.
    /// - Parameter output: gets each sealed chunk, in order; the bytes are lent for the call. What it throws is passed
    ///   on, and then this stream has failed: it is never to be continued.
    /// - Throws: `outOfBounds(.count)` for bytes beyond the length, before any of them is sealed.
    public mutating func seal(
        _ bytes: UnsafeRawBufferPointer, _ output: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        guard UInt64(bytes.count) <= layout.length - min(count, layout.length) else {
            throw CryptoError.outOfBounds(.count)
        }
        var rest = bytes
        while !rest.isEmpty {
            let range = layout.clearRange(of: chunk)
            let size = range.count
            if waiting == 0, rest.count >= size {
                try emit(.init(rebasing: rest[..<size]), output)
                rest = .init(rebasing: rest[size...])
                continue
            }
            let taken = min(size - waiting, rest.count)
            UnsafeMutableRawBufferPointer(rebasing: clear[waiting...]).copyMemory(
                from: .init(rebasing: rest[..<taken]))
            waiting += taken
            rest = .init(rebasing: rest[taken...])
            if waiting == size { try emit(.init(rebasing: clear[..<size]), output) }
        }
    }

    /// Says that the stream has ended: of one of length 0 its only chunk comes out now.
    /// - Throws: `outOfBounds(.count)` when bytes are missing: what came out is worthless then.
    public consuming func finish(_ output: (UnsafeRawBufferPointer) throws -> Void) throws {
        guard count >= layout.length else { throw CryptoError.outOfBounds(.count) }
        if layout.length == 0 { try emit(.init(start: nil, count: 0), output) }
    }

    private var clear: UnsafeMutableRawBufferPointer { .init(rebasing: room[ContentLayout.sealedChunkBytes...]) }

    private mutating func emit(
        _ bytes: UnsafeRawBufferPointer, _ output: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let sealed = UnsafeMutableRawBufferPointer(rebasing: room[..<(bytes.count + AEADSuite.tagBytes)])
        key.seal(chunk, of: layout, bytes, into: sealed)
        // Counted before it is given away: whatever becomes of it, this number is used up.
        chunk += 1
        waiting = 0
        try output(UnsafeRawBufferPointer(sealed))
    }
}

extension ContentSealer {
    /// Seals a short stream at once.
    /// - Parameter key: which has sealed nothing before.
    /// - Throws: `outOfBounds(.count)` for more than `ContentLayout.lengthMax`.
    public static func seal(_ bytes: [UInt8], _ key: ContentKey) throws(CryptoError) -> [UInt8] {
        let layout = try ContentLayout(length: UInt64(bytes.count))
        return [UInt8].made(Int(layout.sealedLength)) { room in
            bytes.withUnsafeBytes { bytes in
                for chunk in 0..<layout.chunks {
                    let (from, to) = (
                        layout.clearRange(of: chunk), layout.sealedRange(of: chunk)
                    )
                    key.seal(
                        chunk, of: layout, .init(rebasing: bytes[Int(from.lowerBound)..<Int(from.upperBound)]),
                        into: .init(rebasing: room[Int(to.lowerBound)..<Int(to.upperBound)]))
                }
            }
        }
    }
}
