/// JSON inside a message, in the form in which its owner has it; it is converted only when another form is needed.
public enum JSONFragment: Sendable {
    /// Part of a received message; written as received.
    case node(JSONNode)
    /// A tree.
    case value(JSONValue)
    /// Text that is known to be valid JSON, such as a stored object.
    case bytes([UInt8])

    /// Bytes that the message of this fragment takes in memory in addition to its text, as far as known without
    /// traversing it; 0 for a tree or bytes.
    public var documentTapeBytes: Int { if case .node(let node) = self { node.documentTapeBytes } else { 0 } }

    /// The value as a tree. Bytes that are not JSON, contrary to the promise, become null.
    public var value: JSONValue {
        switch self {
        case .node(let node): node.value
        case .value(let value): value
        case .bytes(let bytes): (try? JSONValue(parsing: bytes, maxDepth: JSONDocument.depthCeiling)) ?? .null
        }
    }

    /// Whether this is an object, determined without making a tree.
    public var isObject: Bool {
        switch self {
        case .node(let node): node.kind == .object
        case .value(let value): if case .object = value { true } else { false }
        case .bytes(let bytes): bytes.first { $0 > 0x20 } == UInt8(ascii: "{")
        }
    }

    /// The value as an object; nil for a value of another kind.
    public var object: JSONObject? { value.objectValue }

    /// Writes the value as one line of JSON.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .node(let node): writer.write(node)
        case .value(let value): writer.write(value)
        case .bytes(let bytes): writer.raw(line: bytes[...])
        }
    }

    /// The value as one line of JSON.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        write(to: &writer)
        return writer.bytes
    }
}

extension JSONFragment: Equatable {
    /// Equal by value, in whatever form.
    public static func == (left: JSONFragment, right: JSONFragment) -> Bool { left.value == right.value }
}
