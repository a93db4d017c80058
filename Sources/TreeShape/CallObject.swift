import ThicketProtocol

/// Reads the members of an object in a call to a tree: each member is known, and has one form.
struct CallObject {
    private let object: JSONObject

    /// - Parameter members: every name that the object may have.
    init(_ value: JSONValue, _ members: Set<String>) throws(TreeCallFault) {
        guard case .object(let object) = value else { throw .notObject }
        guard object.pairs.allSatisfy({ members.contains($0.key) }) else { throw .unknownMember }
        self.object = object
    }

    /// - Parameters:
    ///   - bytesMax: bytes that the text may have.
    ///   - maxDepth: levels of JSON.
    static func parse(_ text: [UInt8], bytesMax: Int, maxDepth: Int) throws(TreeCallFault) -> JSONValue {
        guard text.count <= bytesMax else { throw .tooLarge }
        guard let value = try? JSONValue(parsing: text, maxDepth: maxDepth) else { throw .notJSON }
        return value
    }

    func contains(_ name: String) -> Bool { object.contains(name) }

    func value(_ name: String) throws(TreeCallFault) -> JSONValue {
        guard let value = object[name] else { throw .missing(name) }
        return value
    }

    func text(_ name: String) throws(TreeCallFault) -> String {
        guard case .string(let text) = try value(name) else { throw .badValue(name) }
        return text
    }

    func flag(_ name: String) throws(TreeCallFault) -> Bool {
        guard case .bool(let flag) = try value(name) else { throw .badValue(name) }
        return flag
    }

    func number(_ name: String, _ bounds: ClosedRange<Int64>) throws(TreeCallFault) -> Int64 {
        guard let number = Self.number(try value(name), bounds) else { throw .badValue(name) }
        return number
    }

    func list(_ name: String) throws(TreeCallFault) -> [JSONValue] {
        guard case .array(let list) = try value(name) else { throw .badValue(name) }
        return list
    }

    func id<ID: Identifier128>(_ name: String) throws(TreeCallFault) -> ID {
        guard let id = ID(text: try text(name)) else { throw .badValue(name) }
        return id
    }

    func user(_ name: String) throws(TreeCallFault) -> UserID {
        let text = try text(name)
        do throws(IdentifierError) { return try UserID(text) } catch { throw .badValue(name) }
    }

    func position(_ name: String) throws(TreeCallFault) -> ChangeVersion {
        let text = try text(name)
        do throws(IdentifierError) { return try ChangeVersion(text) } catch { throw .badValue(name) }
    }

    /// A whole number within bounds, in plain digits; nil for anything else.
    static func number(_ value: JSONValue, _ bounds: ClosedRange<Int64>) -> Int64? {
        guard case .number(let number) = value, let whole = Int64(number.lexeme), bounds.contains(whole),
            String(whole) == number.lexeme
        else { return nil }
        return whole
    }
}

extension JSONValue {
    static func version(_ version: Version) -> JSONValue { .number(JSONNumber(version)) }
    static func count(_ count: Int) -> JSONValue { .number(JSONNumber(Int64(count))) }
}
