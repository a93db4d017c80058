import ThicketProtocol

extension Edit {
    /// The form used in a snapshot: the jsondiff operation, and as `w` the value that it replaced or removed.
    public var storedJSON: JSONValue {
        var object = JSONObject(reserving: 3)
        switch self {
        case .set(let value, let context):
            object["o"] = context.old == nil ? "+" : "r"
            object["v"] = value
            object["w"] = context.old
        case .remove(let context):
            object["o"] = "-"
            object["w"] = context.old
        case .increment(let number):
            object["o"] = "I"
            object["v"] = .number(number)
        case .members(let members):
            object["o"] = "O"
            object["v"] = .object(JSONObject(members.map { (key: $0.key, value: $0.edit.storedJSON) }))
        case .list(let steps):
            object["o"] = "L"
            object["v"] = .object(Self.stepsJSON(steps))
        case .text(let delta):
            object["o"] = "d"
            object["v"] = .string(delta.encoded)
        }
        return .object(object)
    }

    private static func stepsJSON(_ steps: [ListStep]) -> JSONObject {
        var object = JSONObject(reserving: steps.count)
        var place = 0
        for step in steps {
            switch step {
            case .retain(let count):
                place += count
                continue
            case .insert(let value, _): object[String(place)] = ["o": "+", "v": value]
            case .delete(let context): object[String(place)] = Edit.remove(context).storedJSON
            case .edit(let edit): object[String(place)] = edit.storedJSON
            }
            place += 1
        }
        return object
    }

    /// Reads what `storedJSON` writes.
    /// - Throws: `DiffError.Kind.malformed` for anything else.
    public init(stored json: JSONValue) throws(DiffError) {
        guard case .object(let object) = json, case .string(let name)? = object["o"] else {
            throw DiffError(.malformed)
        }
        let old = object["w"]
        switch (name.utf8.count == 1 ? name.utf8.first : nil, object["v"]) {
        case (UInt8(ascii: "+"), let value?) where old == nil: self = .set(value)
        case (UInt8(ascii: "r"), let value?): self = .set(value, Context(old: old))
        case (UInt8(ascii: "-"), nil): self = .remove(Context(old: old))
        case (UInt8(ascii: "I"), .number(let number)?): self = .increment(number)
        case (UInt8(ascii: "O"), .object(let members)?): self = .members(try Self.members(members))
        case (UInt8(ascii: "L"), .object(let steps)?): self = .list(try Self.steps(steps))
        case (UInt8(ascii: "d"), .string(let delta)?):
            do throws(DeltaError) { self = .text(try TextDelta(parsing: delta)) } catch {
                throw DiffError(.delta(error))
            }
        default: throw DiffError(.malformed)
        }
    }

    private static func members(_ object: JSONObject) throws(DiffError) -> [Member] {
        var members = [Member]()
        for (key, value) in object.pairs { members.append(Member(key, try Edit(stored: value))) }
        return members
    }

    private static func steps(_ object: JSONObject) throws(DiffError) -> [ListStep] {
        var steps = [ListStep]()
        var place = 0
        for (key, value) in object.pairs {
            // Ascending, as we write them.
            guard let index = Int(key), index >= place, String(index).utf8.elementsEqual(key.utf8) else {
                throw DiffError(.badIndex)
            }
            steps.add(.retain(index - place))
            switch try Edit(stored: value) {
            case .set(let value, let context) where context.old == nil: steps.append(.insert(value))
            case .remove(let context): steps.append(.delete(context))
            case let edit: steps.append(.edit(edit))
            }
            place = index + 1
        }
        return steps
    }
}
