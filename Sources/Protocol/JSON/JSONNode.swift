/// One value inside a `JSONDocument`, decoded on demand. Cheap to copy; keeps the document alive.
public struct JSONNode: Sendable {
    /// The kinds of JSON values.
    public enum Kind: Sendable, Hashable { case null, bool, number, string, array, object }

    let storage: JSONStorage
    let index: Int

    @inline(__always) var word: UInt64 { storage.tape[index] }

    /// The kind of this value.
    public var kind: Kind {
        switch JSONTape.kind(word) {
        case JSONTape.Kind.null: .null
        case JSONTape.Kind.falsehood, JSONTape.Kind.truth: .bool
        case JSONTape.Kind.number: .number
        case JSONTape.Kind.string, JSONTape.Kind.escapedString: .string
        case JSONTape.Kind.array: .array
        default: .object
        }
    }

    /// The text of this value, exactly as received, including white space inside arrays and objects.
    public var rawBytes: ArraySlice<UInt8> {
        let start = storage.bytes.startIndex + JSONTape.offset(word)
        return storage.bytes[start..<(start + JSONTape.length(word))]
    }

    /// Bytes that the whole document takes in memory in addition to its text.
    public var documentTapeBytes: Int { JSONTape.next(storage.tape, 0) * MemoryLayout<UInt64>.stride }

    /// Calls `body` with `rawBytes`, without counting references.
    @inline(__always)
    func withRaw<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        storage.bytes.withUnsafeBufferPointer { source in
            body(
                UnsafeBufferPointer(
                    rebasing: source[JSONTape.offset(word)..<(JSONTape.offset(word) + JSONTape.length(word))]))
        }
    }

    /// Whether this is null.
    public var isNull: Bool { JSONTape.kind(word) == JSONTape.Kind.null }

    /// The Boolean value; nil for a value of another kind.
    public var bool: Bool? {
        switch JSONTape.kind(word) {
        case JSONTape.Kind.truth: true
        case JSONTape.Kind.falsehood: false
        default: nil
        }
    }

    /// The number as written; nil for a value of another kind.
    public var number: JSONNumber? {
        guard JSONTape.kind(word) == JSONTape.Kind.number else { return nil }
        return JSONNumber(unchecked: withRaw { String(decoding: $0, as: UTF8.self) })
    }

    /// The number, if it is whole (in any notation) and fits.
    public var int64: Int64? {
        guard JSONTape.kind(word) == JSONTape.Kind.number else { return nil }
        return withRaw { JSONNumber.plainInteger($0) ?? Decimal($0).int64 }
    }

    /// The string with escapes decoded; nil for a value of another kind.
    public var string: String? {
        switch JSONTape.kind(word) {
        case JSONTape.Kind.string:
            withRaw { String(decoding: UnsafeBufferPointer(rebasing: $0[1..<($0.count - 1)]), as: UTF8.self) }
        case JSONTape.Kind.escapedString:
            withRaw { raw in
                String(unsafeUninitializedCapacity: raw.count) { buffer in
                    guard let out = buffer.baseAddress else { return 0 }
                    return JSONEscapes.decode(UnsafeBufferPointer(rebasing: raw[1..<(raw.count - 1)]), to: out)
                }
            }
        default:
            nil
        }
    }

    /// The string as UTF-16 code units, in which text deltas count; nil for a value of another kind.
    public var utf16: [UInt16]? {
        switch JSONTape.kind(word) {
        case JSONTape.Kind.string:
            return withRaw { UTF8Bytes.utf16(UnsafeBufferPointer(rebasing: $0[1..<($0.count - 1)])) }
        case JSONTape.Kind.escapedString:
            return string?.withBytes { UTF8Bytes.utf16($0) }
        default:
            return nil
        }
    }

    /// Number of elements of an array or of pairs of an object; 0 for any other value.
    public var count: Int { isContainer ? JSONTape.count(storage.tape[index + 1]) : 0 }

    @inline(__always) var isContainer: Bool { JSONTape.kind(word) >= JSONTape.Kind.array }

    /// The whole value as a tree.
    public var value: JSONValue {
        switch JSONTape.kind(word) {
        case JSONTape.Kind.null: return .null
        case JSONTape.Kind.falsehood: return .bool(false)
        case JSONTape.Kind.truth: return .bool(true)
        case JSONTape.Kind.number: return number.map(JSONValue.number) ?? .null
        case JSONTape.Kind.array:
            var values = [JSONValue]()
            values.reserveCapacity(count)
            for element in elements { values.append(element.value) }
            return .array(values)
        case JSONTape.Kind.object:
            var pairs = [JSONObject.Pair]()
            pairs.reserveCapacity(count)
            for (key, node) in self.pairs { pairs.append((key: key, value: node.value)) }
            return .object(JSONObject(distinct: pairs))
        default: return string.map(JSONValue.string) ?? .null
        }
    }

    /// This value as an object tree; nil for a value of another kind.
    public var object: JSONObject? { value.objectValue }
}

extension JSONNode: Equatable {
    /// Equal by value, as `JSONValue` is.
    public static func == (left: JSONNode, right: JSONNode) -> Bool {
        left.rawBytes == right.rawBytes || left.value == right.value
    }
}
