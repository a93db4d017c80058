import ThicketPlatform
import ThicketProtocol
import ThicketTree
import ThicketTreesystem

/// The form of an exported tree.
///
/// ```
/// thicket-tree.json       {"format": 1}
/// home/…                  a folder for each trunk
///   plan.md               a node with content and without children: its data, with the time of the last change
///   plan.md%meta          what a file cannot hold of it, where it has that (`NodeExtras`)
///   trips/                a node without content
///   trips/%meta           the same for a folder
///   both/%content         the data of a node that has content and children
/// ```
enum PlainForm {
    static let marker = "thicket-tree.json"
    static let format: Int64 = 1
    static let metaEnding = "%meta"
    static let nameEnding = "%name"
    static let content = "%content"
    /// Bytes of the longest ending.
    static let endingBytesMax = 5
    /// Bytes of a file with extras at most.
    static let extrasBytesMax = 64 << 20

    static var markerBytes: [UInt8] { Pretty.bytes(.object(["format": .number(JSONNumber(format))])) }

    /// Checks that a folder is an exported tree of a known format.
    static func check(_ folder: String) throws(Failure) {
        switch Files.read("\(folder)/\(marker)", bytesMax: 1 << 16) {
        case .absent:
            throw Failure(
                "\(folder) is not an exported tree: it has no \(marker). 'thicket tree put -r' copies a folder", .usage)
        case .failed(let reason): throw Failure("\(folder)/\(marker) cannot be read: \(reason)", .usage)
        case .bytes(let bytes):
            guard let found = (try? JSONValue(parsing: bytes))?["format"]?.intValue else {
                throw Failure("\(folder)/\(marker) is damaged", .usage)
            }
            guard found == format else {
                throw Failure("\(folder) was exported by a newer version (format \(found)): update thicket", .usage)
            }
        }
    }
}

/// What a file or folder cannot hold of a node.
struct NodeExtras: Sendable, Equatable {
    /// When the content was last changed, in milliseconds since 1970; `.some(nil)`: the node says nothing. nil: the
    /// file's time says it.
    var modified: Int64??
    var burnTime: Int64?
    /// Pairs of the app, without that of these commands.
    var tags: [NodeMetadata.AppTag] = []
    /// The metadata section.
    var metadata = [UInt8]()
    var thumbnail = [UInt8]()

    init() {}

    var isEmpty: Bool { self == NodeExtras() }

    var json: [UInt8] {
        var object = JSONObject()
        switch modified {
        case .none: break
        case .some(.none): object["modified"] = .null
        case .some(.some(let time)): object["modified"] = .number(JSONNumber(time))
        }
        if let burnTime { object["burns"] = .number(JSONNumber(burnTime)) }
        if !tags.isEmpty {
            object["pairs"] = .array(
                tags.map { .array([.string($0.key), .string(Base64.encodeURL($0.value))]) })
        }
        if !metadata.isEmpty { object["metadata"] = .string(Base64.encodeURL(metadata)) }
        if !thumbnail.isEmpty { object["thumbnail"] = .string(Base64.encodeURL(thumbnail)) }
        return Pretty.bytes(.object(object))
    }

    /// Reads what `json` writes; nil for anything else.
    init?(json bytes: [UInt8]) {
        guard let object = (try? JSONValue(parsing: bytes))?.objectValue else { return nil }
        let known: Set<String> = ["modified", "burns", "pairs", "metadata", "thumbnail"]
        for key in object.keys where !known.contains(key) { return nil }
        switch object["modified"] {
        case nil: break
        case .null?: modified = .some(nil)
        case let value?:
            guard let time = value.intValue else { return nil }
            modified = .some(time)
        }
        if let value = object["burns"] {
            guard let time = value.intValue else { return nil }
            burnTime = time
        }
        for pair in object["pairs"]?.arrayValue ?? [] {
            guard let parts = pair.arrayValue, parts.count == 2, let key = parts[0].stringValue,
                let value = Self.bytes(parts[1]), let tag = NodeMetadata.AppTag(key, value)
            else { return nil }
            tags.append(tag)
        }
        guard let metadata = Self.bytes(object["metadata"] ?? .string("")),
            let thumbnail = Self.bytes(object["thumbnail"] ?? .string(""))
        else { return nil }
        (self.metadata, self.thumbnail) = (metadata, thumbnail)
    }

    private static func bytes(_ value: JSONValue) -> [UInt8]? {
        value.stringValue.flatMap { Base64.decodeURL(Array($0.utf8)[...]) }
    }
}
