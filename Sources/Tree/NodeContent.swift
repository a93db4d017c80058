public import ThicketCrypto
public import ThicketTreeShape

/// A content in memory, in its three sections.
public struct NodeContent: Sendable, Hashable {
    /// What the app says about the data.
    public var metadata: [UInt8]
    /// A small picture.
    public var thumbnail: [UInt8]
    /// The data.
    public var data: [UInt8]

    /// A content; each section may be empty.
    public init(metadata: [UInt8] = [], thumbnail: [UInt8] = [], data: [UInt8] = []) {
        (self.metadata, self.thumbnail, self.data) = (metadata, thumbnail, data)
    }

    /// Bytes of the sections.
    ///
    /// - Throws: `tooLarge`, which no content in memory is.
    public var sizes: SectionSizes {
        get throws(ContentFault) {
            try SectionSizes(
                metadata: UInt64(metadata.count), thumbnail: UInt64(thumbnail.count), data: UInt64(data.count))
        }
    }

    /// The plain stream: header ‖ metadata ‖ thumbnail ‖ data ‖ zeros.
    func stream(_ header: ContentHeader) -> [UInt8] {
        header.octets + metadata + thumbnail + data + [UInt8](repeating: 0, count: Int(header.padding))
    }

    /// Reads a plain stream.
    ///
    /// - Parameter sizes: what the metadata of the record says about the sections.
    /// - Throws: `newerFormat` or `damaged`.
    init(stream: [UInt8], sizes: SectionSizes) throws(ContentFault) {
        guard stream.count >= TreeLimits.contentHeaderBytes else { throw .damaged }
        let header = try ContentHeader(octets: Array(stream[..<TreeLimits.contentHeaderBytes]))
        guard header.sizes == sizes, sizes.length <= UInt64(stream.count),
            header.padding == UInt64(stream.count) - sizes.length,
            stream[Int(sizes.length)...].allSatisfy({ $0 == 0 })
        else { throw .damaged }
        func part(_ section: ContentSection) -> [UInt8] {
            let range = sizes.range(of: section)
            return Array(stream[Int(range.lowerBound)..<Int(range.upperBound)])
        }
        self.init(metadata: part(.metadata), thumbnail: part(.thumbnail), data: part(.data))
        guard header.thumbnailDigest == ContentHeader.digest(thumbnail) else { throw .damaged }
    }
}

/// What opens a content. It is in the sealed metadata of the record, so that a copy or another key of the node re-seals
/// a few hundred bytes and never the content.
public struct ContentAccess: Sendable {
    /// Bytes of the key.
    public static let keyBytes: Int = AEADSuite.keyBytes

    /// The algorithm of the chunks.
    public let suite: AEADSuite
    /// The key, which seals this one content and nothing else.
    public let key: SecureBytes
    /// Bytes of the sections.
    public let sizes: SectionSizes

    /// - Parameter key: 32 bytes.
    init(_ suite: AEADSuite, key: SecureBytes, sizes: SectionSizes) {
        (self.suite, self.key, self.sizes) = (suite, key, sizes)
    }

    /// The key of the content's chunks.
    ///
    /// - Throws: `CryptoError.outOfBounds(.key)` for a key of another length, which no metadata that was read has.
    public func contentKey(_ data: DataID) throws(CryptoError) -> ContentKey {
        try ContentKey(suite, key: key, dataID: data.octets)
    }
}
