extension ObjectDiff {
    /// Reads the JSON form of a change's `v`.
    ///
    /// - Throws: `DiffError` when it is not a diff.
    public init(_ node: JSONNode) throws(DiffError) { try self.init(node, depth: 0) }

    init(_ node: JSONNode, depth: Int) throws(DiffError) {
        guard node.kind == .object else { throw DiffError(.malformed) }
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        var operations = [(key: String, operation: Operation)]()
        operations.reserveCapacity(node.count)
        for (key, entry) in node.pairs {
            do throws(DiffError) {
                operations.append((key: key, operation: try Operation(entry, depth: depth + 1)))
            } catch { throw error.inside(key) }
        }
        self.operations = operations
    }

    /// Reads the JSON form of a change's `v`: key → `{"o":…,"v":…}`; other members are ignored.
    ///
    /// - Throws: `DiffError` when it is not a diff.
    public init(_ value: JSONValue) throws(DiffError) { try self.init(value, depth: 0) }

    init(_ value: JSONValue, depth: Int) throws(DiffError) {
        guard case .object(let object) = value else { throw DiffError(.malformed) }
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        var operations = [(key: String, operation: Operation)]()
        operations.reserveCapacity(object.count)
        for (key, entry) in object.pairs {
            do throws(DiffError) {
                operations.append((key: key, operation: try Operation(entry, depth: depth + 1)))
            } catch { throw error.inside(key) }
        }
        self.operations = operations
    }

    /// The JSON form.
    public var json: JSONValue {
        .object(JSONObject(operations.map { (key: $0.key, value: $0.operation.json) }))
    }

    /// Writes the JSON form.
    public func write(to writer: inout JSONWriter) {
        writer.raw("{")
        for (place, entry) in operations.enumerated() {
            if place > 0 { writer.raw(",") }
            writer.write(string: entry.key)
            writer.raw(":")
            entry.operation.write(to: &writer)
        }
        writer.raw("}")
    }
}

extension ListDiff {
    init(_ value: JSONValue, depth: Int) throws(DiffError) {
        guard case .object(let object) = value else { throw DiffError(.malformed) }
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        var operations = [(index: Int, operation: Operation)]()
        operations.reserveCapacity(object.count)
        for (key, entry) in object.pairs {
            do throws(DiffError) {
                operations.append((index: try Self.index(key), operation: try Operation(entry, depth: depth + 1)))
            } catch { throw error.inside(key) }
        }
        operations.sort { $0.index < $1.index }
        for (before, after) in zip(operations, operations.dropFirst()) where before.index == after.index {
            throw DiffError(.badIndex, path: [String(after.index)])
        }
        self.operations = operations
    }

    /// A canonical decimal number of up to nine digits; no document contains longer lists.
    private static func index(_ key: String) throws(DiffError) -> Int {
        let isCanonical =
            (1...9).contains(key.utf8.count) && key.utf8.allSatisfy { (0x30...0x39).contains($0) }
            && (key.utf8.count == 1 || key.utf8.first != 0x30)
        guard isCanonical, let index = Int(key) else { throw DiffError(.badIndex) }
        return index
    }

    var json: JSONValue {
        .object(JSONObject(operations.map { (key: String($0.index), value: $0.operation.json) }))
    }

    func write(to writer: inout JSONWriter) {
        writer.raw("{")
        for (place, entry) in operations.enumerated() {
            if place > 0 { writer.raw(",") }
            writer.write(string: String(entry.index))
            writer.raw(":")
            entry.operation.write(to: &writer)
        }
        writer.raw("}")
    }
}

extension Operation {
    /// Reads an operation like `init(_:depth:)` of a value, without converting the operation itself to a value.
    init(_ node: JSONNode, depth: Int) throws(DiffError) {
        guard node.kind == .object, let name = node["o"]?.string else { throw DiffError(.malformed) }
        guard let kind = Name(rawValue: name) else { throw DiffError(.unknownOperation) }
        if kind == .remove {
            self = .remove
            return
        }
        guard let argument = node["v"] else {
            guard kind == .object else { throw DiffError(.missingValue) }
            self = .object(ObjectDiff())
            return
        }
        // Nested diffs are read from nodes as well.
        self =
            kind == .object
            ? .object(try ObjectDiff(argument, depth: depth)) : try Self.read(kind, argument.value, depth: depth)
    }

    init(_ value: JSONValue, depth: Int) throws(DiffError) {
        guard case .object(let object) = value, case .string(let name)? = object["o"] else {
            throw DiffError(.malformed)
        }
        guard let kind = Name(rawValue: name) else { throw DiffError(.unknownOperation) }
        if kind == .remove {
            self = .remove
            return
        }
        guard let argument = object["v"] else {
            // Some libraries write an empty nested edit without its map.
            guard kind == .object else { throw DiffError(.missingValue) }
            self = .object(ObjectDiff())
            return
        }
        self = try Self.read(kind, argument, depth: depth)
    }

    private enum Name: String {
        case insert = "+"
        case remove = "-"
        case replace = "r"
        case increment = "I"
        case object = "O"
        case list = "L"
        case listText = "dL"
        case text = "d"
    }

    private static func read(_ name: Name, _ argument: JSONValue, depth: Int) throws(DiffError) -> Operation {
        switch (name, argument) {
        case (.insert, _): return .insert(argument)
        case (.replace, _): return .replace(argument)
        case (.increment, .number(let number)): return .increment(number)
        case (.object, _): return .object(try ObjectDiff(argument, depth: depth))
        case (.list, _): return .list(try ListDiff(argument, depth: depth))
        case (.text, .string(let delta)): return .text(try parse(delta))
        case (.listText, .string(let delta)): return .listText(try parse(delta))
        default: throw DiffError(.wrongValue)
        }
    }

    private static func parse(_ delta: String) throws(DiffError) -> TextDelta {
        do throws(DeltaError) { return try TextDelta(parsing: delta) } catch { throw DiffError(.delta(error)) }
    }

    private var name: Name {
        switch self {
        case .insert: .insert
        case .remove: .remove
        case .replace: .replace
        case .increment: .increment
        case .object: .object
        case .list: .list
        case .listText: .listText
        case .text: .text
        }
    }

    /// The JSON form: `{"o":…,"v":…}`.
    public var json: JSONValue {
        let argument: JSONValue? =
            switch self {
            case .remove: nil
            case .insert(let value), .replace(let value): value
            case .increment(let number): .number(number)
            case .object(let diff): diff.json
            case .list(let diff): diff.json
            case .listText(let delta), .text(let delta): .string(delta.encoded)
            }
        var object = JSONObject(reserving: 2)
        object["o"] = .string(name.rawValue)
        object["v"] = argument
        return .object(object)
    }

    func write(to writer: inout JSONWriter) {
        writer.raw(#"{"o":"#)
        writer.write(string: name.rawValue)
        if case .remove = self {
            writer.raw("}")
            return
        }
        writer.raw(#","v":"#)
        switch self {
        case .remove: break
        case .insert(let value), .replace(let value): writer.write(value)
        case .increment(let number): writer.write(number)
        case .object(let diff): diff.write(to: &writer)
        case .list(let diff): diff.write(to: &writer)
        case .listText(let delta), .text(let delta): writer.write(string: delta.encoded)
        }
        writer.raw("}")
    }
}
