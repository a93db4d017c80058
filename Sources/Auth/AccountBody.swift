import ThicketProtocol

/// The members of a request's body, whatever it calls itself: clients send JSON as a form, and forms without a type. So
/// JSON is tried first, then a form.
struct AccountBody {
    private let object: JSONNode?
    private let form: [(name: String, value: String)]

    /// Nesting of the JSON at most.
    private static let depthMax = 8
    /// Members of a form at most; what comes behind is not read.
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
            guard bytes.contains(UInt8(ascii: "=")) else { throw .badRequest("the body is no form, and \(error.text)") }
            (object, form) = (nil, try Self.members(bytes))
        }
    }

    /// Whether a body can only be meant as JSON: it is told what is wrong with it as that, whatever "=" is in it.
    private static func beginsAsJSON(_ bytes: [UInt8]) -> Bool {
        if bytes.starts(with: JSONError.byteOrderMark) { return true }
        return switch bytes.first(where: { $0 > 0x20 }) {
        case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\""): true
        default: false
        }
    }

    /// A text; nil when it is missing, or something else.
    func text(_ name: String) -> String? {
        if let object { return object[name]?.string }
        return form.last { same($0.name, name) }?.value
    }

    /// A whole number; nil when it is missing, or something else.
    func integer(_ name: String) -> Int64? { object?[name]?.int64 }

    /// Whether there is such a member, of whatever kind.
    func has(_ name: String) -> Bool { object?[name] != nil || form.contains { same($0.name, name) } }

    /// Whether the member is there to say that there is none.
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
