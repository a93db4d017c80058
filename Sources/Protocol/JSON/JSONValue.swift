/// A JSON value as a tree, for applications and for merging. Numbers stay as written, keys keep their order.
///
/// Equality is by value: objects regardless of key order, numbers by decimal value (1 = 1.0), strings byte by byte
/// (Swift's own `String ==` treats "é" and "e" + accent as equal; a merge with that equality would lose edits).
public enum JSONValue: Sendable {
    /// null
    case null
    /// true or false
    case bool(Bool)
    /// A number, as written.
    case number(JSONNumber)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object(JSONObject)
}

extension JSONValue {
    /// Reads one JSON text by the rules of `JSONDocument`.
    ///
    /// - Throws: `JSONError` with the problem and its offset.
    public init(parsing bytes: [UInt8], maxDepth: Int = Limits.jsonDepthMax) throws(JSONError) {
        self = try JSONDocument(parsing: bytes, maxDepth: maxDepth).root.value
    }

    /// Reads one JSON text by the rules of `JSONDocument`.
    ///
    /// - Throws: `JSONError`; its offset counts UTF-8 bytes.
    public init(parsing text: String, maxDepth: Int = Limits.jsonDepthMax) throws(JSONError) {
        self = try JSONDocument(parsing: Array(text.utf8), maxDepth: maxDepth).root.value
    }

    /// The compact text: one line, raw UTF-8, keys in their order, numbers as written.
    public func serialized() -> [UInt8] {
        var writer = JSONWriter(reservingBytes: serializedSize)
        writer.write(self)
        return writer.bytes
    }

    /// The compact text as a string.
    public var serializedText: String { String(decoding: serialized(), as: UTF8.self) }
}

extension JSONValue: Hashable {
    /// Equal by value: objects in any key order, numbers by decimal value, strings byte by byte.
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    /// Hashes the value; equal values have equal hashes.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0 as UInt8)
        case .bool(let bool): hasher.combine(bool ? 2 : 1 as UInt8)
        case .number(let number):
            hasher.combine(3 as UInt8)
            number.hash(into: &hasher)
        case .string(let text):
            hasher.combine(4 as UInt8)
            text.hashBytes(into: &hasher)
        case .array(let elements):
            hasher.combine(5 as UInt8)
            elements.hash(into: &hasher)
        case .object(let object):
            hasher.combine(6 as UInt8)
            object.hash(into: &hasher)
        }
    }
}

extension JSONValue {
    /// Whether this is null.
    public var isNull: Bool { if case .null = self { true } else { false } }
    /// The Boolean value; nil for a value of another kind.
    public var boolValue: Bool? { if case .bool(let bool) = self { bool } else { nil } }
    /// The number; nil for a value of another kind.
    public var numberValue: JSONNumber? { if case .number(let number) = self { number } else { nil } }
    /// The number, if it is whole (in any notation: 1.0 and 1e2 are whole) and fits.
    public var intValue: Int64? { numberValue?.int64 }
    /// The number as the nearest double; infinite beyond the range of doubles; nil for a value of another kind.
    public var doubleValue: Double? { numberValue?.double }
    /// The string; nil for a value of another kind.
    public var stringValue: String? { if case .string(let text) = self { text } else { nil } }
    /// The elements of an array; nil for a value of another kind.
    public var arrayValue: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }
    /// The object; nil for a value of another kind.
    public var objectValue: JSONObject? { if case .object(let object) = self { object } else { nil } }

    /// The member with this name; nil when it is missing or this is not an object.
    public subscript(key: String) -> JSONValue? { objectValue?[key] }
    /// The element at this index; nil when it is missing or this is not an array.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }
}

extension JSONValue: CustomDebugStringConvertible {
    /// The whole content: for tests and debuggers, never for logs.
    public var debugDescription: String { serializedText }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// null
    public init(nilLiteral: ()) { self = .null }
    /// The value of a Boolean literal.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// The value of an integer literal.
    public init(integerLiteral value: Int64) { self = .number(JSONNumber(value)) }
    /// The value of a floating-point literal. Infinity and NaN, which JSON cannot represent, become null, as in
    /// JavaScript.
    public init(floatLiteral value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
    /// The value of a string literal.
    public init(stringLiteral value: String) { self = .string(value) }
    /// The value of an array literal.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// The value of a dictionary literal. A repeated key keeps its first place and its last value.
    public init(dictionaryLiteral pairs: (String, JSONValue)...) {
        self = .object(JSONObject(pairs.map { (key: $0.0, value: $0.1) }))
    }
}
