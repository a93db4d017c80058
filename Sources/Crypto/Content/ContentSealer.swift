/// Seals a stream of known length piece by piece (STREAM: Hoang, Reyhanitabar, Rogaway, Vizár, CRYPTO 2015), in memory
/// that does not grow with it.
///
/// ```swift
/// var sealer = try ContentSealer(key, length: 150_000)
/// try sealer.seal(piece) { output.write($0) } // pieces of any size; each full chunk is written at once
/// try sealer.finish { output.write($0) }
/// ```
///
/// It cannot be copied, so that each chunk is sealed once. A stream that fails half way must be discarded together with
/// its key.
public struct ContentSealer: ~Copyable {
    private let key: ContentKey
    /// The places of the chunks.
    public let layout: ContentLayout
    /// Number of the next chunk.
    private var chunk: UInt64 = 0
    /// Bytes of the next chunk received so far, stored in `clear`.
    private var waiting = 0
    /// Memory for one sealed chunk and one incomplete clear chunk.
    private let room: UnsafeMutableRawBufferPointer

    /// Starts a stream.
    ///
    /// - Parameters:
    ///   - key: a key that has not sealed anything before.
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

    /// Bytes of the plain stream received so far.
    public var count: UInt64 { chunk * UInt64(ContentLayout.chunkBytes) + UInt64(waiting) }

    /// Takes the next bytes of the plain stream.
    ///
    /// - Parameters:
    ///   - bytes: the bytes, of any number.
    ///   - output: receives each sealed chunk, in order; the bytes are valid during the call. Its errors are passed on;
    ///     the stream has then failed and must not be continued.
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

    /// Ends the stream. For a stream of length 0 this writes its only chunk.
    ///
    /// - Throws: `outOfBounds(.count)` when bytes are missing: the chunks written so far are worthless then.
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
        // Counted before `output` is called: this number must never be used again, even if `output` fails.
        chunk += 1
        waiting = 0
        try output(UnsafeRawBufferPointer(sealed))
    }
}

extension ContentSealer {
    /// Seals a short stream at once.
    ///
    /// - Parameters:
    ///   - bytes: the plain stream.
    ///   - key: a key that has not sealed anything before.
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
