import ThicketCrypto
import ThicketTreeShape

/// The parts of a node's content. Each may be empty.
public enum ContentSection: Int, Sendable, Hashable, CaseIterable {
    /// What the app says about the data.
    case metadata
    /// A small picture.
    case thumbnail
    /// The data.
    case data
}

/// Bytes of the three sections of a content.
public struct SectionSizes: Sendable, Hashable {
    /// Bytes of the metadata section.
    public let metadata: UInt64
    /// Bytes of the thumbnail.
    public let thumbnail: UInt64
    /// Bytes of the data.
    public let data: UInt64

    /// - Throws: `tooLarge` if a plain stream with these sections is longer than `ContentLayout.lengthMax`.
    public init(metadata: UInt64 = 0, thumbnail: UInt64 = 0, data: UInt64 = 0) throws(ContentFault) {
        (self.metadata, self.thumbnail, self.data) = (metadata, thumbnail, data)
        let bound = ContentLayout.lengthMax
        guard metadata <= bound, thumbnail <= bound, data <= bound, length <= bound else { throw .tooLarge }
    }

    /// Bytes of the header and the sections: the plain stream without padding.
    public var length: UInt64 { UInt64(TreeLimits.contentHeaderBytes) + metadata + thumbnail + data }

    /// Bytes of one section.
    public subscript(section: ContentSection) -> UInt64 {
        switch section {
        case .metadata: metadata
        case .thumbnail: thumbnail
        case .data: data
        }
    }

    /// The sections before one, and the header: its place in the plain stream.
    public func range(of section: ContentSection) -> Range<UInt64> {
        let before = ContentSection.allCases.prefix(section.rawValue).reduce(UInt64(TreeLimits.contentHeaderBytes)) {
            $0 + self[$1]
        }
        return before..<before + self[section]
    }
}

/// Why a content cannot be made or read.
public enum ContentFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The plain stream would be longer than `ContentLayout.lengthMax`, or a content for a record too large for it.
    case tooLarge
    /// The header was written by a newer version.
    case newerFormat
    /// The header, its sizes or the padding are not what any version writes, or do not match what the record's metadata
    /// says.
    case damaged

    /// A sentence without content.
    public var description: String {
        switch self {
        case .tooLarge: "the content is too large"
        case .newerFormat: "the content was written by a newer version"
        case .damaged: "the content is damaged"
        }
    }
}

/// How the length of content is hidden.
public enum ContentPadding: Sendable, Hashable {
    /// Content in a record: to the next multiple of 64 bytes. Content in a blob: Padmé, at most 12 % more.
    case standard
    /// The length is visible.
    case none

    /// Bytes of the plain stream after padding.
    ///
    /// - Parameter length: header and sections, at most 2^62.
    public func length(_ length: UInt64) -> UInt64 {
        guard self == .standard else { return length }
        let inline = Padding.multiple(of: Self.inlineStep).size(of: Int(length))
        if inline + AEADSuite.tagBytes <= TreeLimits.inlineBytesMax { return UInt64(inline) }
        return UInt64(Padding.padme.size(of: Int(length)))
    }

    private static let inlineStep = 64
}
