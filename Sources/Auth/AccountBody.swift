import ThicketProtocol

/// The members of a request's body, whatever its content type: clients send JSON labelled as a form, and forms
/// without a type. JSON is therefore tried first, then a form.
struct AccountBody {
    let object: JSONNode?
    private let form: [(name: String, value: String)]

    /// Deepest nesting of the JSON.
    private static let depthMax = 8
    /// Members read of a form; further ones are ignored.
    private static let membersMax = 64

    /// - Throws: `AccountRefusal.badRequest` when it is neither.
    init(_ bytes: [UInt8]) throws(AccountRefusal) {
        if bytes.isEmpty {
            (object, form) = (nil, [])
            return
        }
        do throws(JSONBodyProblem) {
            (object, form) = (try JSONDocument.object(in: bytes, depthMax: Self.depthMax), [])
        } catch {
            guard error != .noObject, !Self.beginsAsJSON(bytes) else { throw .badRequest("the body is \(error.text)") }
            guard bytes.contains(UInt8(ascii: "=")) else {
                throw .badRequest("the body is not a form, and \(error.text)")
            }
            (object, form) = (nil, try Self.members(bytes))
        }
    }

    /// Whether a body can only be JSON: its errors are then reported as JSON errors, even if it contains "=".
    private static func beginsAsJSON(_ bytes: [UInt8]) -> Bool {
        if bytes.starts(with: JSONError.byteOrderMark) { return true }
        return switch bytes.first(where: { $0 > 0x20 }) {
        case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\""): true
        default: false
        }
    }

    /// A text; nil when it is missing or not a text.
    func text(_ name: String) -> String? {
        if let object { return object[name]?.string }
        return form.last { same($0.name, name) }?.value
    }

    /// A whole number; nil when it is missing or not one.
    func integer(_ name: String) -> Int64? { object?[name]?.int64 }

    /// Whether the member exists, with a value of any kind.
    func has(_ name: String) -> Bool { object?[name] != nil || form.contains { same($0.name, name) } }

    /// Whether the member exists and is null.
    func isNull(_ name: String) -> Bool { object?[name]?.kind == .null }

    /// `a=1&b=2`, percent-encoded, with `+` for a space (WHATWG URL, 5.1).
    private static func members(_ bytes: [UInt8]) throws(AccountRefusal) -> [(name: String, value: String)] {
        var members = [(name: String, value: String)]()
        for part in bytes.split(separator: UInt8(ascii: "&")).prefix(membersMax) {
            let halves = part.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(halves[0]), let value = decode(halves.count > 1 ? halves[1] : [])
            else {
                let place = "member \(members.count + 1) (byte \(part.startIndex + 1))"
                throw .badRequest("the body is a form whose \(place) is not percent-encoded UTF-8")
            }
            members.append((name, value))
        }
        return members
    }

    private static func decode(_ bytes: ArraySlice<UInt8>) -> String? {
        let text = String(validating: bytes.lazy.map { $0 == 0x2B ? 0x20 : $0 }, as: UTF8.self)
        return text.flatMap { PercentCoding.decode($0[...]) }
    }
}
