import ThicketPlatform
import ThicketProtocol

/// Reads payloads from clients: JSON arrays of strings (sockjs-protocol 0.3.3, "XhrPolling", "JsonPolling").
enum SockJSPayload {
    enum Failure: Error, Equatable {
        /// The payload is empty or not an array.
        case missing
        /// Not JSON, or an element is not a string.
        case broken
        /// More than `messagesMax`.
        case tooMany

        /// The body of the answer; the protocol prescribes the first two.
        var text: String {
            switch self {
            case .missing: "Payload expected."
            case .broken: "Broken JSON encoding."
            case .tooMany: "Too many messages."
            }
        }

        var status: Int { self == .tooMany ? 413 : 500 }
    }

    /// Most messages of one payload.
    static let messagesMax = 10_000

    /// The messages of an `xhr_send` body, of any content type.
    static func messages(_ body: [UInt8]) throws(Failure) -> [[UInt8]] {
        guard !body.isEmpty else { throw .missing }
        let root = try document(body).root
        guard root.kind == .array else { throw .missing }
        return try strings(of: root)
    }

    /// The messages of a `jsonp_send` body: a form with `d`, or the array itself.
    static func messages(_ body: [UInt8], contentType: String?) throws(Failure) -> [[UInt8]] {
        let type: [UInt8] = Array((contentType ?? "").utf8.prefix { $0 != UInt8(ascii: ";") })
        guard SockJSQuery.lowercased(type).elementsEqual("application/x-www-form-urlencoded".utf8) else {
            return try messages(body)
        }
        guard let field = SockJSQuery.field("d", of: body[...]) else { throw .missing }
        guard let decoded = SockJSQuery.decode(field) else { throw .broken }
        return try messages(decoded)
    }

    /// The messages of one WebSocket message: an array, or a single string; none for an empty text.
    static func messages(ofSocket text: [UInt8]) throws(Failure) -> [[UInt8]] {
        guard !text.isEmpty else { return [] }
        let root = try document(text).root
        if root.kind == .string { return [bytes(of: root)] }
        guard root.kind == .array else { throw .broken }
        return try strings(of: root)
    }

    private static func strings(of array: JSONNode) throws(Failure) -> [[UInt8]] {
        guard array.count <= messagesMax else { throw .tooMany }
        var strings = [[UInt8]]()
        strings.reserveCapacity(array.count)
        for element in array.elements {
            guard element.kind == .string else { throw .broken }
            strings.append(bytes(of: element))
        }
        return strings
    }

    private static func bytes(of string: JSONNode) -> [UInt8] {
        let raw = string.rawBytes.dropFirst().dropLast()
        guard raw.contains(UInt8(ascii: "\\")) else { return Array(raw) }
        return Array((string.string ?? "").utf8)
    }

    private static func document(_ body: [UInt8]) throws(Failure) -> JSONDocument {
        do {
            return try JSONDocument(parsing: body)
        } catch {
            guard error.kind == .loneSurrogate else { throw .broken }
        }
        do {
            return try JSONDocument(parsing: mended(body))
        } catch {
            throw .broken
        }
    }

    /// Replaces half a surrogate pair by U+FFFD, as browsers do in every text for a WebSocket: scripts can hold such
    /// halves, UTF-8 cannot.
    private static func mended(_ body: [UInt8]) -> [UInt8] {
        var mended = [UInt8]()
        mended.reserveCapacity(body.count)
        var at = 0
        while at < body.count {
            guard body[at] == UInt8(ascii: "\\"), at + 1 < body.count else {
                mended.append(body[at])
                at += 1
                continue
            }
            let unit = escapedUnit(body, at)
            let isHigh = unit.map { $0 & 0xFC00 == 0xD800 } ?? false
            let isLow = unit.map { $0 & 0xFC00 == 0xDC00 } ?? false
            let isPair = isHigh && (escapedUnit(body, at + 6).map { $0 & 0xFC00 == 0xDC00 } ?? false)
            let length = isPair ? 12 : unit == nil ? 2 : 6
            if (isHigh && !isPair) || isLow {
                mended.append(contentsOf: "\\ufffd".utf8)
            } else {
                mended.append(contentsOf: body[at..<(at + length)])
            }
            at += length
        }
        return mended
    }

    /// The unit of the `\u` escape at `at`; nil where no escape begins.
    private static func escapedUnit(_ body: [UInt8], _ at: Int) -> UInt16? {
        guard at + 6 <= body.count, body[at] == UInt8(ascii: "\\"), body[at + 1] == UInt8(ascii: "u") else {
            return nil
        }
        var unit: UInt16 = 0
        for byte in body[(at + 2)..<(at + 6)] {
            guard let digit = Hex.value(byte) else { return nil }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }
}

/// Forms and queries as SockJS uses them: one field, percent-encoded.
enum SockJSQuery {
    /// The first field of that name, still encoded.
    static func field(_ name: String, of form: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        for part in form.split(separator: UInt8(ascii: "&")) {
            let key = part.prefix { $0 != UInt8(ascii: "=") }
            guard key.elementsEqual(name.utf8) else { continue }
            return part.dropFirst(key.count + 1)
        }
        return nil
    }

    /// nil when a `%` is not followed by two hex digits.
    static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes = [UInt8]()
        bytes.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(0x20)
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(Hex.value),
                    let low = rest.popFirst().flatMap(Hex.value)
                else { return nil }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    static func lowercased(_ bytes: [UInt8]) -> [UInt8] {
        bytes.filter { $0 != 0x20 }.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }
}
