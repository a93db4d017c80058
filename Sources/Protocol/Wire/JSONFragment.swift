/// JSON inside a message, in whichever form its owner has it: nobody turns one into another before that is needed.
public enum JSONFragment: Sendable {
    /// Part of a message that came in; written as it came.
    case node(JSONNode)
    /// A tree.
    case value(JSONValue)
    /// Text that is known to be valid JSON, such as what the store keeps.
    case bytes([UInt8])

    /// Bytes that the message which it is part of takes in memory besides its text, as far as they are known without
    /// looking at all of it.
    public var documentTapeBytes: Int { if case .node(let node) = self { node.documentTapeBytes } else { 0 } }

    /// As a tree. Bytes that are no JSON, against the promise, are null.
    public var value: JSONValue {
        switch self {
        case .node(let node): node.value
        case .value(let value): value
        case .bytes(let bytes): (try? JSONValue(parsing: bytes, maxDepth: JSONDocument.depthCeiling)) ?? .null
        }
    }

    /// Whether this is an object, without making a tree of it.
    public var isObject: Bool {
        switch self {
        case .node(let node): node.kind == .object
        case .value(let value): if case .object = value { true } else { false }
        case .bytes(let bytes): bytes.first { $0 > 0x20 } == UInt8(ascii: "{")
        }
    }

    /// As an object, nil when it is none.
    public var object: JSONObject? { value.objectValue }

    /// As one line of JSON.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .node(let node): writer.write(node)
        case .value(let value): writer.write(value)
        case .bytes(let bytes): writer.raw(line: bytes[...])
        }
    }

    /// As one line of JSON.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        write(to: &writer)
        return writer.bytes
    }
}

extension JSONFragment: Equatable {
    /// Equal by value, whatever the form.
    public static func == (left: JSONFragment, right: JSONFragment) -> Bool { left.value == right.value }
}
