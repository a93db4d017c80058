public import ThicketCrypto
public import ThicketTree

/// A set of sections of a content, as a caller asks for them.
public struct ContentComponents: OptionSet, Sendable, Hashable {
    /// Bit 0: metadata, 1: thumbnail, 2: data.
    public let rawValue: UInt8
    /// A set from its bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// What the app says about the data.
    public static let metadata = ContentComponents(rawValue: 1)
    /// A small picture.
    public static let thumbnail = ContentComponents(rawValue: 2)
    /// The data.
    public static let data = ContentComponents(rawValue: 4)
    /// The whole content, padding included.
    public static let all: ContentComponents = [.metadata, .thumbnail, .data]

    /// The set of one section.
    public init(_ section: ContentSection) { self.init(rawValue: 1 << UInt8(section.rawValue)) }

    /// Its sections in the order of the stream.
    public var sections: [ContentSection] { ContentSection.allCases.filter { contains(ContentComponents($0)) } }
}

/// Some chunks of a content, ascending, as a file of the store has them one after the other.
public struct ChunkSpan: Sendable, Hashable {
    /// Ascending and apart from each other; at most four.
    public let ranges: [Range<UInt64>]
    /// The chunks of the whole content.
    public let layout: ContentLayout

    /// The chunks of some sections, and the first, whose header is checked. All chunks for `all`.
    public init(_ components: ContentComponents, of map: SectionMap) {
        layout = map.layout
        guard components != .all else {
            ranges = [0..<map.layout.chunks]
            return
        }
        var ranges = [UInt64(0)..<1]
        for section in components.sections {
            let range = map.sizes.range(of: section)
            guard let chunks = map.layout.chunks(holding: range), !chunks.isEmpty else { continue }
            if let last = ranges.last, chunks.lowerBound <= last.upperBound {
                ranges[ranges.count - 1] = last.lowerBound..<max(last.upperBound, chunks.upperBound)
            } else {
                ranges.append(chunks)
            }
        }
        self.ranges = ranges
    }

    /// Number of chunks.
    public var count: UInt64 { ranges.reduce(0) { $0 + UInt64($1.count) } }

    /// Sealed bytes of the chunks.
    public var bytes: UInt64 { ranges.reduce(0) { $0 + UInt64(sealedRange($1).count) } }

    /// The place of a chunk among those of the span; nil when it is not one of them.
    public func place(of chunk: UInt64) -> UInt64? {
        var before: UInt64 = 0
        for range in ranges {
            if range.contains(chunk) { return before + chunk - range.lowerBound }
            before += UInt64(range.count)
        }
        return nil
    }

    /// The chunk at a place below `count`; nil beyond.
    public func chunk(at place: UInt64) -> UInt64? { run(from: place, atMost: 1)?.lowerBound }

    /// The chunks from a place on that follow each other in the content, so that one request fetches them.
    ///
    /// - Returns: nil at the end of the span.
    public func run(from place: UInt64, atMost most: UInt64) -> Range<UInt64>? {
        var rest = place
        for range in ranges {
            if rest < UInt64(range.count) {
                let first = range.lowerBound + rest
                return first..<min(range.upperBound, first + most)
            }
            rest -= UInt64(range.count)
        }
        return nil
    }

    /// The part of the sealed stream of chunks that follow each other.
    public func sealedRange(_ chunks: Range<UInt64>) -> Range<UInt64> {
        guard !chunks.isEmpty else { return 0..<0 }
        return layout.sealedRange(of: chunks.lowerBound)
            .lowerBound..<layout.sealedRange(of: chunks.upperBound - 1).upperBound
    }

    /// Where the chunk at a place begins in a file of the span: only the last chunk of a content is shorter, and it is
    /// the last of any span.
    public static func offset(ofPlace place: UInt64) -> UInt64 { place * UInt64(ContentLayout.sealedChunkBytes) }

    /// Whether each chunk of another span is one of this span.
    public func contains(_ other: ChunkSpan) -> Bool {
        layout == other.layout
            && other.ranges.allSatisfy { range in
                ranges.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
            }
    }
}
