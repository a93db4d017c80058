public import ThicketCrypto
public import ThicketTreeShape

/// Where the sections of a sealed content are, for a reader that fetches ranges of it.
public struct SectionMap: Sendable, Hashable {
    /// Bytes of the sections.
    public let sizes: SectionSizes
    /// The chunks.
    public let layout: ContentLayout

    /// The map of a content.
    ///
    /// - Parameters:
    ///   - sizes: what the metadata of the record says.
    ///   - plainLength: bytes of the plain stream (`RecordData.plainLength`).
    /// - Throws: `damaged` if the sections are longer than the stream.
    public init(_ sizes: SectionSizes, plainLength: UInt64) throws(ContentFault) {
        guard sizes.length <= plainLength, let layout = try? ContentLayout(length: plainLength) else {
            throw .damaged
        }
        (self.sizes, self.layout) = (sizes, layout)
    }

    /// The part of the sealed stream that must be fetched for a section; empty for an empty section.
    public func sealedRange(of section: ContentSection) -> Range<UInt64> { sealedRange(sizes.range(of: section)) }

    /// The part of the sealed stream that must be fetched for the header.
    public var headerRange: Range<UInt64> { sealedRange(0..<UInt64(TreeLimits.contentHeaderBytes)) }

    /// The part of the sealed stream that contains everything but the data: the header, the metadata and the thumbnail.
    public var frontRange: Range<UInt64> { sealedRange(0..<sizes.range(of: .data).lowerBound) }

    private func sealedRange(_ plain: Range<UInt64>) -> Range<UInt64> {
        guard let range = layout.sealedRange(holding: plain) else {
            preconditionFailure("the sections are inside of the stream")
        }
        return range
    }
}

/// The plan of a new version of a content: everything that is decided before its first byte is sealed.
///
/// The caller writes `header.octets`, the sections and `header.padding` zeros through one `ContentSealer` of `key` and
/// `map.layout.length` into a spool file, and uploads the file. If sealing fails or the source changes, the plan is
/// discarded: a content key never seals two plain streams.
public struct ContentSpool: Sendable {
    /// The id of this version.
    public let id: DataID
    /// What opens it.
    public let access: ContentAccess
    /// The first bytes of the plain stream.
    public let header: ContentHeader
    /// Where the sections are.
    public let map: SectionMap
    /// Whether a content was sealed by this plan: then it seals no other one.
    package let isSealed: Bool

    /// Plans a content with a new id and a new key.
    ///
    /// - Parameters:
    ///   - sizes: bytes of the sections.
    ///   - thumbnailDigest: `ContentHeader.digest` of the thumbnail; zeros for an empty one.
    ///   - padding: how the length is hidden.
    ///   - suite: the algorithm of the chunks.
    ///   - random: makes the id and the key.
    /// - Throws: `tooLarge`.
    public init(
        _ sizes: SectionSizes, thumbnailDigest: [UInt8] = ContentHeader.digest([]),
        padding: ContentPadding = .standard, suite: AEADSuite = .aes256GCM, random: TreeRandom
    ) throws(ContentFault) {
        precondition(thumbnailDigest.count == ContentHeader.digestBytes, "a digest has 8 bytes")
        let length = padding.length(sizes.length)
        guard length <= ContentLayout.lengthMax else { throw .tooLarge }
        id = DataID.random(random.bytes)
        access = ContentAccess(suite, key: random.secret(ContentAccess.keyBytes), sizes: sizes)
        header = ContentHeader(sizes: sizes, padding: length - sizes.length, thumbnailDigest: thumbnailDigest)
        map = try SectionMap(sizes, plainLength: length)
        isSealed = false
    }

    /// Plans a content that is in memory.
    ///
    /// - Throws: `tooLarge`.
    public init(
        _ content: NodeContent, padding: ContentPadding = .standard, random: TreeRandom
    ) throws(ContentFault) {
        try self.init(
            content.sizes, thumbnailDigest: ContentHeader.digest(content.thumbnail), padding: padding, random: random)
    }

    /// Bytes of `octets`.
    package static let octetsCount = 1 + DataID.bytesCount + ContentAccess.keyBytes + TreeLimits.contentHeaderBytes

    /// The plan as it is kept until its record is made: suite, id, key, header. It contains the key.
    package var octets: [UInt8] {
        [access.suite.rawValue] + id.octets + access.key.withUnsafeBytes { Array($0) } + header.octets
    }

    /// The plan of a content that a record has in a blob, so that the same sealed bytes are uploaded again. The digest
    /// of the thumbnail is in the sealed header only; here it is zeros.
    ///
    /// - Returns: nil for a node without content, for content in the record, and for sections that do not fit.
    package init?(sealedOf node: OpenedNode) {
        guard case .blob(let id, _, _)? = node.record.data, let access = node.metadata.content,
            let map = (try? node.contentMap())?.map
        else { return nil }
        (self.id, self.access, self.map, isSealed) = (id, access, map, true)
        header = ContentHeader(
            sizes: access.sizes, padding: map.layout.length - access.sizes.length,
            thumbnailDigest: ContentHeader.digest([]))
        if isInline { return nil }
    }

    /// Reads a plan that was kept, which is done when its content is sealed.
    ///
    /// - Returns: nil for bytes that are not one.
    package init?(octets: some Collection<UInt8>) {
        var rest = Array(octets)[...]
        guard rest.count == Self.octetsCount, let suite = AEADSuite(rawValue: rest.removeFirst()),
            let id = DataID(octets: Array(rest.prefix(DataID.bytesCount)))
        else { return nil }
        rest = rest.dropFirst(DataID.bytesCount)
        let key = SecureBytes(copying: Array(rest.prefix(ContentAccess.keyBytes)))
        guard let header = try? ContentHeader(octets: Array(rest.dropFirst(ContentAccess.keyBytes))) else { return nil }
        let (length, isOver) = header.sizes.length.addingReportingOverflow(header.padding)
        guard !isOver, length <= ContentLayout.lengthMax,
            let map = try? SectionMap(header.sizes, plainLength: length)
        else { return nil }
        (self.id, self.header, self.map) = (id, header, map)
        access = ContentAccess(suite, key: key, sizes: header.sizes)
        isSealed = true
    }

    /// Whether the content belongs into the record: its sealed size is at most `TreeLimits.inlineBytesMax`.
    public var isInline: Bool { map.layout.sealedLength <= UInt64(TreeLimits.inlineBytesMax) }

    /// The key that seals the chunks, once.
    public var key: ContentKey {
        guard let key = try? access.contentKey(id) else { preconditionFailure("a random key has the right length") }
        return key
    }

    /// Seals a content in memory by this plan, which must have been made for it and is used up.
    ///
    /// - Throws: `damaged` for a content with other sections, and for a plan that is known to be used up.
    public func seal(_ content: NodeContent) throws(ContentFault) -> [UInt8] {
        guard !isSealed, try content.sizes == header.sizes,
            ContentHeader.digest(content.thumbnail) == header.thumbnailDigest,
            let sealed = try? ContentSealer.seal(content.stream(header), key)
        else { throw .damaged }
        return sealed
    }
}
