import ThicketProtocol
import ThicketTree

/// The merge of contents whose data is JSON.
enum JSONContents {
    /// Why contents are not merged.
    enum Fault: Error { case thumbnails }

    /// - Throws: for data, or metadata that both changed, that is not JSON; and for two thumbnails.
    static func merged(
        base: NodeContent, local: NodeContent, remote: NodeContent
    ) throws -> MergeRule.Outcome {
        if local == base { return MergeRule.Outcome(content: remote) }
        let data = try merged(base.data, local.data, remote.data)
        let metadata = try merged(base.metadata, local.metadata, remote.metadata)
        let thumbnail: [UInt8]
        if local.thumbnail == base.thumbnail {
            thumbnail = remote.thumbnail
        } else {
            guard remote.thumbnail == base.thumbnail || remote.thumbnail == local.thumbnail else {
                throw Fault.thumbnails
            }
            thumbnail = local.thumbnail
        }
        return MergeRule.Outcome(
            content: NodeContent(metadata: metadata.bytes, thumbnail: thumbnail, data: data.bytes),
            lacksChanges: data.lacksChanges || metadata.lacksChanges)
    }

    /// Merges one section. A side that says the same as the base yields the other one, byte by byte.
    private static func merged(
        _ base: [UInt8], _ local: [UInt8], _ remote: [UInt8]
    ) throws -> (bytes: [UInt8], lacksChanges: Bool) {
        if local == remote || remote == base { return (local, false) }
        if local == base { return (remote, false) }
        let (old, mine, theirs) = (
            try JSONValue(parsing: base), try JSONValue(parsing: local), try JSONValue(parsing: remote)
        )
        if mine == theirs || theirs == old { return (local, false) }
        if mine == old { return (remote, false) }
        let merge = try JSONMerge(base: old, local: mine, remote: theirs)
        if merge.value == theirs { return (remote, !merge.losses.isEmpty) }
        return (JSONStyle(local).bytes(merge.value), !merge.losses.isEmpty)
    }
}

/// How a JSON text is laid out, so that a merged one looks as its file did.
struct JSONStyle {
    /// The spaces or tabs of one level; nil: everything is in one line.
    private var indent: [UInt8]?
    private var endsWithLineFeed = false

    /// Most bytes of one level.
    private static let indentMax = 16

    /// The style of a text: the first indented line shows that of all.
    init(_ text: [UInt8]) {
        endsWithLineFeed = text.last == 0x0A
        guard let open = text.first, open == UInt8(ascii: "{") || open == UInt8(ascii: "[") else { return }
        let inner = text.dropFirst()
        guard let first = inner.first, first == 0x0A || first == 0x0D else { return }
        let spaces = inner.drop { $0 == 0x0A || $0 == 0x0D }.prefix { $0 == 0x20 || $0 == 0x09 }
        indent = Array(spaces.prefix(Self.indentMax))
    }

    func bytes(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        if let indent { write(value, level: 0, indent, &writer) } else { writer.write(value) }
        if endsWithLineFeed { writer.raw("\n") }
        return writer.bytes
    }

    private func write(_ value: JSONValue, level: Int, _ indent: [UInt8], _ writer: inout JSONWriter) {
        switch value {
        case .array(let elements) where !elements.isEmpty:
            writer.raw("[")
            for (place, element) in elements.enumerated() {
                startLine(level + 1, indent, isFirst: place == 0, &writer)
                write(element, level: level + 1, indent, &writer)
            }
            endLines(level, indent, &writer)
            writer.raw("]")
        case .object(let object) where !object.isEmpty:
            writer.raw("{")
            for (place, pair) in object.pairs.enumerated() {
                startLine(level + 1, indent, isFirst: place == 0, &writer)
                writer.write(string: pair.key)
                writer.raw(": ")
                write(pair.value, level: level + 1, indent, &writer)
            }
            endLines(level, indent, &writer)
            writer.raw("}")
        default: writer.write(value)
        }
    }

    private func startLine(_ level: Int, _ indent: [UInt8], isFirst: Bool, _ writer: inout JSONWriter) {
        if !isFirst { writer.raw(",") }
        endLines(level, indent, &writer)
    }

    private func endLines(_ level: Int, _ indent: [UInt8], _ writer: inout JSONWriter) {
        writer.raw("\n")
        for _ in 0..<level { writer.raw(indent) }
    }
}
