/// A JSON value as a tree: what applications and the merge work with. Numbers stay as written, keys keep their order.
///
/// Equality is by value: objects regardless of key order, numbers by decimal value (1 = 1.0), strings byte by byte
/// (Swift's own `String ==` holds "é" and "e" + accent equal; a merge that did so would lose edits).
public enum JSONValue: Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

extension JSONValue {
    /// Reads one JSON text; the rules are those of `JSONDocument`.
    public init(parsing bytes: [UInt8], maxDepth: Int = Limits.jsonDepthMax) throws(JSONError) {
        self = try JSONDocument(parsing: bytes, maxDepth: maxDepth).root.value
    }

    /// Reads one JSON text; the rules are those of `JSONDocument`, offsets count UTF-8 bytes.
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
    /// True for null. The accessors below are nil when the value is of another kind.
    public var isNull: Bool { if case .null = self { true } else { false } }
    public var boolValue: Bool? { if case .bool(let bool) = self { bool } else { nil } }
    public var numberValue: JSONNumber? { if case .number(let number) = self { number } else { nil } }
    /// The number, if it is a whole one (in any notation: 1.0 and 1e2 are) and fits.
    public var intValue: Int64? { numberValue?.int64 }
    /// The number as the nearest double; infinite beyond the doubles' range.
    public var doubleValue: Double? { numberValue?.double }
    public var stringValue: String? { if case .string(let text) = self { text } else { nil } }
    public var arrayValue: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }
    public var objectValue: JSONObject? { if case .object(let object) = self { object } else { nil } }

    /// The member of that name; nil when there is none or this is not an object.
    public subscript(key: String) -> JSONValue? { objectValue?[key] }
    /// The element at that index; nil when there is none or this is not an array.
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
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .number(JSONNumber(value)) }
    /// A value that JSON cannot write (infinity) becomes null, as in JavaScript.
    public init(floatLiteral value: Double) { self = JSONNumber(value).map(JSONValue.number) ?? .null }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// A key that is given twice keeps the last value.
    public init(dictionaryLiteral pairs: (String, JSONValue)...) {
        self = .object(JSONObject(pairs.map { (key: $0.0, value: $0.1) }))
    }
}
