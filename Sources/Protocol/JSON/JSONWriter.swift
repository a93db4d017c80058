#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Writes compact JSON: no white space, one line, raw UTF-8; only `"`, `\` and bytes below 0x20 are escaped.
public struct JSONWriter: Sendable {
    /// The bytes written so far.
    public var bytes: [UInt8] = []

    /// Makes an empty writer with reserved memory.
    public init(reservingBytes count: Int = 0) { bytes.reserveCapacity(count) }

    /// Writes the whole tree.
    public mutating func write(_ value: JSONValue) {
        switch value {
        case .null: raw("null")
        case .bool(let bool): raw(bool ? "true" : "false")
        case .number(let number): write(number)
        case .string(let text): write(string: text)
        case .array(let elements):
            raw(byte: UInt8(ascii: "["))
            for (place, element) in elements.enumerated() {
                if place > 0 { raw(byte: UInt8(ascii: ",")) }
                write(element)
            }
            raw(byte: UInt8(ascii: "]"))
        case .object(let object): write(object)
        }
    }

    /// Writes an object with its pairs in order.
    public mutating func write(_ object: JSONObject) {
        var separator = UInt8(ascii: "{")
        for pair in object.pairs {
            raw(byte: separator)
            write(string: pair.key)
            raw(byte: UInt8(ascii: ":"))
            write(pair.value)
            separator = UInt8(ascii: ",")
        }
        if separator == UInt8(ascii: "{") { raw(byte: separator) }
        raw(byte: UInt8(ascii: "}"))
    }

    /// Writes the lexeme of the number.
    public mutating func write(_ number: JSONNumber) {
        number.lexeme.withBytes { (text: UnsafeBufferPointer<UInt8>) -> Void in bytes.append(contentsOf: text) }
    }

    /// Writes an integer in plain digits.
    public mutating func write(_ integer: Int64) {
        if integer >= 0, integer < 10 {
            bytes.append(UInt8(ascii: "0") + UInt8(integer))
        } else {
            bytes.append(contentsOf: String(integer).utf8)
        }
    }

    /// Writes the text of `node` as received, without line breaks (white space between values), because a message is
    /// one line.
    public mutating func write(_ node: JSONNode) { raw(line: node.rawBytes) }

    /// Writes JSON that is known to be valid, without line breaks, which can only be white space between values.
    public mutating func raw(line json: ArraySlice<UInt8>) {
        let isOneLine = json.withUnsafeBufferPointer { (text: UnsafeBufferPointer<UInt8>) -> Bool in
            guard let base = text.baseAddress else { return true }
            return memchr(base, 0x0A, text.count) == nil && memchr(base, 0x0D, text.count) == nil
        }
        if isOneLine {
            bytes.append(contentsOf: json)
        } else {
            bytes.append(contentsOf: json.lazy.filter { $0 != 0x0A && $0 != 0x0D })
        }
    }

    /// Writes a string with its quotes.
    public mutating func write(string text: String) {
        bytes.append(UInt8(ascii: "\""))
        text.withBytes { (source: UnsafeBufferPointer<UInt8>) -> Void in appendEscaped(source) }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes `"key":`, for keys that need no escapes.
    public mutating func key(_ key: StaticString) {
        bytes.append(UInt8(ascii: "\""))
        raw(key)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// Writes bytes that are JSON already.
    public mutating func raw(_ json: [UInt8]) { bytes.append(contentsOf: json) }
    /// Writes bytes that are JSON already.
    public mutating func raw(_ json: ArraySlice<UInt8>) { bytes.append(contentsOf: json) }
    /// Writes text that is JSON already.
    public mutating func raw(_ json: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: json.utf8Start, count: json.utf8CodeUnitCount))
    }
    /// Writes a byte that is JSON already.
    @inline(__always)
    public mutating func raw(byte: UInt8) { bytes.append(byte) }

    private mutating func appendEscaped(_ source: UnsafeBufferPointer<UInt8>) {
        guard let base = source.baseAddress else { return }
        var at = 0
        while at < source.count {
            let plain = JSONText.plainEnd(base, from: at, count: source.count)
            if plain > at { bytes.append(contentsOf: UnsafeBufferPointer(start: base + at, count: plain - at)) }
            at = plain
            if at < source.count {
                appendEscape(base[at])
                at += 1
            }
        }
    }

    private mutating func appendEscape(_ byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0C: bytes.append(UInt8(ascii: "f"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        default:
            bytes.append(contentsOf: [UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0")])
            bytes.append(UInt8(ascii: "0") + byte >> 4)
            let low = byte & 0x0F
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        }
    }
}

extension JSONValue {
    /// Length of `serialized()` in bytes, computed without writing.
    public var serializedSize: Int {
        switch self {
        case .null: 4
        case .bool(let bool): bool ? 4 : 5
        case .number(let number): number.lexeme.utf8.count
        case .string(let text): JSONText.quotedSize(text)
        case .array(let elements): elements.reduce(max(elements.count + 1, 2)) { $0 + $1.serializedSize }
        case .object(let object): object.serializedSize
        }
    }
}

extension JSONObject {
    /// The compact text: one line, raw UTF-8, keys in their order, numbers as written.
    public func serialized() -> [UInt8] { JSONValue.object(self).serialized() }

    /// Length of `serialized()` in bytes, computed without writing.
    public var serializedSize: Int {
        pairs.reduce(max(count + 1, 2)) { $0 + JSONText.quotedSize($1.key) + 1 + $1.value.serializedSize }
    }
}

/// Measures and writes strings in the form of `JSONWriter`.
package enum JSONText {
    /// End of the run from `start` that needs no escapes.
    @inline(__always)
    static func plainEnd(_ base: UnsafePointer<UInt8>, from start: Int, count: Int) -> Int {
        var at = start
        while at + 8 <= count {
            let marks = EightBytes.escapes(EightBytes.load(base + at))
            if marks != 0 { return at + EightBytes.first(marks) }
            at += 8
        }
        while at < count {
            let byte = base[at]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return at }
            at += 1
        }
        return at
    }

    /// Writes the string without quotes, escaped as by `JSONWriter`, to memory with capacity for its escaped bytes.
    ///
    /// - Returns: the number of bytes written.
    package static func write(_ text: String, to place: UnsafeMutablePointer<UInt8>) -> Int {
        text.withBytes { (source: UnsafeBufferPointer<UInt8>) -> Int in
            guard let base = source.baseAddress else { return 0 }
            guard plainEnd(base, from: 0, count: source.count) < source.count else {
                place.update(from: base, count: source.count)
                return source.count
            }
            // Escapes are rare in names: the slow path goes through the writer and drops its quotes.
            var writer = JSONWriter(reservingBytes: quotedSize(source) + 2)
            writer.write(string: text)
            writer.bytes.withUnsafeBufferPointer { written in
                guard let first = written.baseAddress else { return }
                place.update(from: first + 1, count: written.count - 2)
            }
            return writer.bytes.count - 2
        }
    }

    /// Bytes of the string with its quotes and escapes.
    package static func quotedSize(_ text: String) -> Int {
        text.withBytes { (source: UnsafeBufferPointer<UInt8>) -> Int in quotedSize(source) + 2 }
    }

    /// Bytes of a part of a string with its escapes, without quotes.
    static func quotedSize(_ source: UnsafeBufferPointer<UInt8>) -> Int {
        guard let base = source.baseAddress else { return 0 }
        var size = source.count
        var at = plainEnd(base, from: 0, count: source.count)
        while at < source.count {
            let byte = base[at]
            let isShort = byte >= 0x20 || (byte >= 0x08 && byte <= 0x0D && byte != 0x0B)
            size += isShort ? 1 : 5
            at = plainEnd(base, from: at + 1, count: source.count)
        }
        return size
    }
}
