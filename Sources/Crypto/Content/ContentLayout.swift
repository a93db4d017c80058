/// The places of the chunks of sealed content (spec 3.3), computed from the exact length of the plain stream.
///
/// A plain stream is cut into chunks of 65,536 bytes. Each becomes its ciphertext and a tag of 16 bytes; chunk i begins
/// at i·65,552. A stream of length 0 is one chunk without bytes, so that even its emptiness is authenticated.
public struct ContentLayout: Sendable, Hashable {
    /// Clear bytes of a chunk; the last one may have fewer.
    public static let chunkBytes = 65_536
    /// Bytes of a sealed chunk with its tag.
    public static let sealedChunkBytes: Int = 65_536 + AEADSuite.tagBytes
    /// Chunks of a stream at most: 2^32 − 1.
    public static let chunksMax: UInt64 = 0xFFFF_FFFF
    /// Bytes of the longest plain stream.
    public static let lengthMax: UInt64 = chunksMax * UInt64(chunkBytes)

    /// Bytes of the plain stream.
    public let length: UInt64

    /// Computes the layout of a stream.
    ///
    /// - Throws: `outOfBounds(.count)` for more than `lengthMax` bytes.
    public init(length: UInt64) throws(CryptoError) {
        guard length <= Self.lengthMax else { throw .outOfBounds(.count) }
        self.length = length
    }

    /// Number of chunks of the stream, at least one.
    public var chunks: UInt64 { max(1, (length + UInt64(Self.chunkBytes) - 1) / UInt64(Self.chunkBytes)) }

    /// Bytes of the sealed stream.
    public var sealedLength: UInt64 { length + chunks * UInt64(AEADSuite.tagBytes) }

    /// Whether this is the last chunk, as the chunk itself states.
    func isLast(_ chunk: UInt64) -> Bool { chunk == chunks - 1 }

    /// The range of a chunk in the plain stream.
    ///
    /// - Parameter chunk: a number below `chunks`.
    public func clearRange(of chunk: UInt64) -> Range<UInt64> {
        let start = chunk * UInt64(Self.chunkBytes)
        return start..<min(length, start + UInt64(Self.chunkBytes))
    }

    /// The range of a chunk in the sealed stream.
    ///
    /// - Parameter chunk: a number below `chunks`.
    public func sealedRange(of chunk: UInt64) -> Range<UInt64> {
        let start = chunk * UInt64(Self.sealedChunkBytes)
        return start..<min(sealedLength, start + UInt64(Self.sealedChunkBytes))
    }

    /// The chunks that contain these bytes of the plain stream. None for an empty range, except in an empty stream:
    /// only its single chunk proves that it is empty.
    ///
    /// - Returns: nil for a range beyond the end.
    public func chunks(holding range: Range<UInt64>) -> Range<UInt64>? {
        guard range.upperBound <= length else { return nil }
        if length == 0 { return 0..<1 }
        guard !range.isEmpty else { return 0..<0 }
        let size = UInt64(Self.chunkBytes)
        return range.lowerBound / size..<(range.upperBound - 1) / size + 1
    }

    /// The part of the sealed stream that must be fetched to read these bytes of the plain stream, as one range.
    ///
    /// - Returns: nil for a range beyond the end.
    public func sealedRange(holding range: Range<UInt64>) -> Range<UInt64>? {
        guard let chunks = chunks(holding: range) else { return nil }
        guard !chunks.isEmpty else { return 0..<0 }
        return sealedRange(of: chunks.lowerBound).lowerBound..<sealedRange(of: chunks.upperBound - 1).upperBound
    }
}
