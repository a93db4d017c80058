import ThicketPlatform
import ThicketProtocol

/// Reads single members of a record, each with the fault that names it.
enum RecordValue {
    static func member(_ object: JSONObject, _ key: RecordKey) throws(RecordFault) -> JSONValue {
        guard let value = object[key.rawValue] else { throw .missing(key) }
        return value
    }

    static func text(_ object: JSONObject, _ key: RecordKey) throws(RecordFault) -> String {
        guard case .string(let text) = try member(object, key) else { throw .wrongType(key) }
        return text
    }

    static func user(_ object: JSONObject, _ key: RecordKey) throws(RecordFault) -> UserID {
        let text = try text(object, key)
        do throws(IdentifierError) { return try UserID(text) } catch { throw .badUser(key) }
    }

    /// A whole number in plain digits, so that a record has one text.
    static func number(
        _ value: JSONValue, _ key: RecordKey, _ bounds: ClosedRange<Int64>
    ) throws(RecordFault) -> Int64 {
        guard case .number(let number) = value else { throw .wrongType(key) }
        guard let whole = Int64(number.lexeme), bounds.contains(whole), String(whole) == number.lexeme else {
            throw .badNumber(key)
        }
        return whole
    }

    static func number(
        _ object: JSONObject, _ key: RecordKey, _ bounds: ClosedRange<Int64>
    ) throws(RecordFault) -> Int64 {
        try number(member(object, key), key, bounds)
    }

    static func number(
        ifPresent object: JSONObject, _ key: RecordKey, _ bounds: ClosedRange<Int64>
    ) throws(RecordFault) -> Int64? {
        object.contains(key.rawValue) ? try number(object, key, bounds) : nil
    }

    /// Bytes as strict base64url.
    static func octets(_ value: JSONValue, _ key: RecordKey) throws(RecordFault) -> [UInt8] {
        guard case .string(let text) = value else { throw .wrongType(key) }
        guard let octets = Base64.decodeURL(Array(text.utf8)[...]) else { throw .badBytes(key) }
        return octets
    }

    static func octets(_ object: JSONObject, _ key: RecordKey) throws(RecordFault) -> [UInt8] {
        try octets(member(object, key), key)
    }
}
