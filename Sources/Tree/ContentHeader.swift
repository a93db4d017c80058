import ThicketCrypto
import ThicketTreeShape

/// The first 64 bytes of the plain stream of a content (treesystem 4.5; decision 0092).
///
/// | bytes | content |
/// | --- | --- |
/// | 0 | version, 1 |
/// | 1 ..< 8 | zeros |
/// | 8 ..< 32 | bytes of metadata, thumbnail and data, 8 bytes each, big-endian |
/// | 32 ..< 40 | bytes of padding behind the sections, all zero |
/// | 40 ..< 48 | the first 8 bytes of SHA-256 of the thumbnail; zeros without a thumbnail |
/// | 48 ..< 64 | zeros |
public struct ContentHeader: Sendable, Hashable {
    /// The version that is written.
    public static let version: UInt8 = 1
    /// Bytes of a thumbnail's digest.
    public static let digestBytes = 8

    /// Bytes of the sections.
    public let sizes: SectionSizes
    /// Bytes of zeros behind the sections.
    public let padding: UInt64
    /// Tells whether a thumbnail has changed; zeros without one.
    public let thumbnailDigest: [UInt8]

    package init(sizes: SectionSizes, padding: UInt64, thumbnailDigest: [UInt8]) {
        (self.sizes, self.padding, self.thumbnailDigest) = (sizes, padding, thumbnailDigest)
    }

    /// The digest of a thumbnail; zeros for an empty one.
    public static func digest(_ thumbnail: [UInt8]) -> [UInt8] {
        if thumbnail.isEmpty { return [UInt8](repeating: 0, count: digestBytes) }
        return Array(Hash.sha256(thumbnail).prefix(digestBytes))
    }

    /// Reads a header.
    ///
    /// - Throws: `newerFormat`, or `damaged` for bytes that no version writes.
    public init(octets: [UInt8]) throws(ContentFault) {
        guard octets.count == TreeLimits.contentHeaderBytes, octets[0] > 0 else { throw .damaged }
        guard octets[0] == Self.version else { throw .newerFormat }
        guard octets[1..<8].allSatisfy({ $0 == 0 }), octets[48...].allSatisfy({ $0 == 0 }) else { throw .damaged }
        func number(_ place: Int) -> UInt64 { octets[place..<place + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        do throws(ContentFault) {
            sizes = try SectionSizes(metadata: number(8), thumbnail: number(16), data: number(24))
        } catch { throw .damaged }
        (padding, thumbnailDigest) = (number(32), Array(octets[40..<48]))
        guard sizes.thumbnail > 0 || thumbnailDigest.allSatisfy({ $0 == 0 }) else { throw .damaged }
    }

    /// The 64 bytes.
    public var octets: [UInt8] {
        let numbers = [sizes.metadata, sizes.thumbnail, sizes.data, padding].flatMap(\.octets)
        return [Self.version] + [UInt8](repeating: 0, count: 7) + numbers + thumbnailDigest
            + [UInt8](repeating: 0, count: 16)
    }
}
