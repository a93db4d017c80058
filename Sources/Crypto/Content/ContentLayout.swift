/// Where the chunks of sealed content lie (spec 3.3): arithmetic alone, from the exact length of the plain stream.
///
/// A plain stream is cut into chunks of 65,536 bytes. Each becomes its ciphertext and a tag of 16 bytes; chunk i begins
/// at i·65,552. A stream of length 0 is one chunk without bytes, so that even its emptiness is authenticated.
public struct ContentLayout: Sendable, Hashable {
    /// Clear bytes of a chunk; the last may have fewer.
    public static let chunkBytes = 65_536
    /// A chunk with its tag.
    public static let sealedChunkBytes: Int = 65_536 + AEADSuite.tagBytes
    /// Chunks of a stream at most: 2^32 − 1.
    public static let chunksMax: UInt64 = 0xFFFF_FFFF
    /// The longest plain stream.
    public static let lengthMax: UInt64 = chunksMax * UInt64(chunkBytes)

    /// Bytes of the plain stream.
    public let length: UInt64

    /// - Throws: `outOfBounds(.count)` for more than `lengthMax`.
    public init(length: UInt64) throws(CryptoError) {
        guard length <= Self.lengthMax else { throw .outOfBounds(.count) }
        self.length = length
    }

    /// Chunks of the stream, at least one.
    public var chunks: UInt64 { max(1, (length + UInt64(Self.chunkBytes) - 1) / UInt64(Self.chunkBytes)) }

    /// Bytes of the sealed stream.
    public var sealedLength: UInt64 { length + chunks * UInt64(AEADSuite.tagBytes) }

    /// Whether this is the chunk that says that nothing follows.
    func isLast(_ chunk: UInt64) -> Bool { chunk == chunks - 1 }

    /// Where the bytes of a chunk stand in the plain stream.
    /// - Parameter chunk: below `chunks`.
    public func clearRange(of chunk: UInt64) -> Range<UInt64> {
        let start = chunk * UInt64(Self.chunkBytes)
        return start..<min(length, start + UInt64(Self.chunkBytes))
    }

    /// Where a chunk stands in the sealed stream.
    /// - Parameter chunk: below `chunks`.
    public func sealedRange(of chunk: UInt64) -> Range<UInt64> {
        let start = chunk * UInt64(Self.sealedChunkBytes)
        return start..<min(sealedLength, start + UInt64(Self.sealedChunkBytes))
    }

    /// The chunks that hold these bytes of the plain stream. None for an empty range, but for that of an empty stream:
    /// only its one chunk proves it to be empty.
    /// - Returns: nil for a range beyond the end.
    public func chunks(holding range: Range<UInt64>) -> Range<UInt64>? {
        guard range.upperBound <= length else { return nil }
        if length == 0 { return 0..<1 }
        guard !range.isEmpty else { return 0..<0 }
        let size = UInt64(Self.chunkBytes)
        return range.lowerBound / size..<(range.upperBound - 1) / size + 1
    }

    /// The part of the sealed stream that one has to fetch to read these bytes of the plain one: one range.
    /// - Returns: nil for a range beyond the end.
    public func sealedRange(holding range: Range<UInt64>) -> Range<UInt64>? {
        guard let chunks = chunks(holding: range) else { return nil }
        guard !chunks.isEmpty else { return 0..<0 }
        return sealedRange(of: chunks.lowerBound).lowerBound..<sealedRange(of: chunks.upperBound - 1).upperBound
    }
}
