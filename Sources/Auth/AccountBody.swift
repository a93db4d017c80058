import ThicketProtocol

/// The members of a request's body, whatever it calls itself: clients send JSON as a form, and forms without a type. So
/// JSON is tried first, then a form.
struct AccountBody {
    private let object: JSONNode?
    private let form: [(name: String, value: String)]

    /// Nesting of the JSON at most.
    private static let depthMax: Int = 8
    /// Members of a form at most; what comes behind is not read.
    private static let membersMax: Int = 64

    /// - Throws: `AccountRefusal.badRequest` when it is neither.
    init(_ bytes: [UInt8]) throws(AccountRefusal) {
        if bytes.isEmpty {
            (object, form) = (nil, [])
            return
        }
        if let document: JSONDocument = try? JSONDocument(parsing: bytes[...], maxDepth: Self.depthMax) {
            guard document.root.kind == .object else { throw .badRequest("the body is no object") }
            (object, form) = (document.root, [])
            return
        }
        guard let members: [(name: String, value: String)] = Self.members(bytes) else {
            throw .badRequest("the body is neither JSON nor a form")
        }
        (object, form) = (nil, members)
    }

    /// A text; nil when it is missing, or something else.
    func text(_ name: String) -> String? {
        if let object: JSONNode { return object[name]?.string }
        return form.last { same($0.name, name) }?.value
    }

    /// A whole number; nil when it is missing, or something else.
    func integer(_ name: String) -> Int64? { object?[name]?.int64 }

    /// Whether there is such a member, of whatever kind.
    func has(_ name: String) -> Bool { object?[name] != nil || form.contains { same($0.name, name) } }

    /// Whether the member is there to say that there is none.
    func isNull(_ name: String) -> Bool { object?[name]?.kind == .null }

    /// `a=1&b=2`, percent-encoded, with `+` for a space (WHATWG URL, 5.1).
    private static func members(_ bytes: [UInt8]) -> [(name: String, value: String)]? {
        guard bytes.contains(UInt8(ascii: "=")), let text: String = String(validating: bytes, as: UTF8.self) else {
            return nil
        }
        var members: [(name: String, value: String)] = []
        for part: Substring in text.split(separator: "&").prefix(membersMax) {
            let halves: [Substring] = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name: String = decode(halves[0]), let value: String = decode(halves.count > 1 ? halves[1] : "")
            else { return nil }
            members.append((name, value))
        }
        return members
    }

    private static func decode(_ text: Substring) -> String? {
        PercentCoding.decode(Substring(String(decoding: text.utf8.map { $0 == 0x2B ? 0x20 : $0 }, as: UTF8.self)))
    }
}
