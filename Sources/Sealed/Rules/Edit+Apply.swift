import ThicketProtocol

/// Two edits of one value conflicted and one gave way. Every device finds the same conflict, at the same position.
public struct SealedConflict: Sendable, Equatable {
    /// Keys and list indexes from the outermost in; empty for the object itself. User content: not for logs.
    public var path: [String]
    /// The value that gave way; nil when a deletion gave way.
    public var losing: JSONValue?
    /// The value that prevailed; nil when a deletion prevailed.
    public var winning: JSONValue?

    /// A conflict at a path.
    public init(path: [String], losing: JSONValue?, winning: JSONValue?) {
        self.path = path
        self.losing = losing
        self.winning = winning
    }
}

extension Edit {
    /// The result of applying an edit.
    public struct Applied: Sendable, Equatable {
        /// The value afterwards; nil when it is deleted.
        public var value: JSONValue?
        /// The same edit with the values that it replaced and removed; nil when nothing changed.
        public var edit: Edit?
        /// The conflicts in which this edit prevailed.
        public var conflicts: [SealedConflict] = []
    }

    /// Applies the edit. Setting works whether or not a value exists, and removing a missing value does nothing; all
    /// other operations must fit.
    /// - Throws: `DiffError`: a text of another length, a cut surrogate pair, a value of another type, an index behind
    ///   the end, a number or a nesting beyond `Limits`.
    public func apply(to value: JSONValue?) throws(DiffError) -> Applied {
        var walk = Walk()
        let (after, edit) = try apply(to: value, &walk)
        return Applied(value: after, edit: edit, conflicts: walk.conflicts)
    }

    /// The current path and the conflicts found so far.
    private struct Walk {
        var path = [String]()
        var conflicts = [SealedConflict]()

        mutating func record(_ context: Context, losing: JSONValue?, winning: JSONValue?) {
            guard context.isContested, losing != winning else { return }
            conflicts.append(SealedConflict(path: path, losing: losing, winning: winning))
        }

        /// A new value must not nest deeper than documents may.
        func checkDepth(of value: JSONValue) throws(DiffError) {
            guard value.fits(levels: Limits.jsonDepthMax - path.count) else { throw DiffError(.tooDeep, path: path) }
        }
    }

    private func apply(to value: JSONValue?, _ walk: inout Walk) throws(DiffError) -> (JSONValue?, Edit?) {
        switch self {
        case .set(let new, let context):
            try walk.checkDepth(of: new)
            walk.record(context, losing: value, winning: new)
            return (new, .set(new, Context(old: value)))
        case .remove(let context):
            guard let value else { return (nil, nil) }
            walk.record(context, losing: value, winning: nil)
            return (nil, .remove(Context(old: value)))
        default:
            guard let value else { throw DiffError(.missingKey, path: walk.path) }
            return try edit(value, &walk)
        }
    }

    private func edit(_ value: JSONValue, _ walk: inout Walk) throws(DiffError) -> (JSONValue?, Edit?) {
        switch (self, value) {
        case (.increment(let amount), .number(let number)):
            guard let sum = number.adding(amount) else {
                throw DiffError(.numberTooLong, path: walk.path)
            }
            return (.number(sum), self)
        case (.members(let members), .object(let object)):
            return try Self.apply(members, to: object, &walk)
        case (.list(let steps), .array(let list)):
            return try Self.apply(steps, to: list, &walk)
        case (.text(let delta), .string(let text)):
            do throws(DeltaError) {
                return (.string(try delta.applyWhole(to: text)), delta.isIdentity ? nil : self)
            } catch { throw DiffError(.delta(error), path: walk.path) }
        default:
            throw DiffError(.wrongType, path: walk.path)
        }
    }

    private static func apply(
        _ members: [Member], to object: JSONObject, _ walk: inout Walk
    ) throws(DiffError) -> (JSONValue?, Edit?) {
        var result = object
        var applied = [Member]()
        applied.reserveCapacity(members.count)
        for member in members {
            walk.path.append(member.key)
            let (after, edit) = try member.edit.apply(to: object[member.key], &walk)
            walk.path.removeLast()
            guard let edit else { continue }
            result[member.key] = after
            applied.append(Member(member.key, edit))
        }
        return (.object(result), applied.isEmpty ? nil : .members(applied))
    }

    private static func apply(
        _ steps: [ListStep], to list: [JSONValue], _ walk: inout Walk
    ) throws(DiffError) -> (JSONValue?, Edit?) {
        var result = [JSONValue]()
        result.reserveCapacity(list.count + steps.count)
        var applied = [ListStep]()
        var read = 0
        for step in steps {
            walk.path.append(String(result.count))
            if case .insert(let value, let context) = step {
                try walk.checkDepth(of: value)
                walk.record(context, losing: nil, winning: value)
                result.append(value)
                applied.append(.insert(value))
                walk.path.removeLast()
                continue
            }
            let count = if case .retain(let count) = step { count } else { 1 }
            guard count <= list.count - read else { throw DiffError(.badIndex, path: walk.path) }
            switch step {
            case .retain:
                result.append(contentsOf: list[read..<(read + count)])
                applied.add(step)
            case .delete(let context):
                walk.record(context, losing: list[read], winning: nil)
                applied.append(.delete(Context(old: list[read])))
            case .edit(let edit):
                let (after, done) = try edit.apply(to: list[read], &walk)
                if let after { result.append(after) }
                applied.add(done.map { .edit($0) } ?? .retain(1))
            case .insert: break
            }
            read += count
            walk.path.removeLast()
        }
        result.append(contentsOf: list[read...])
        if case .retain? = applied.last { applied.removeLast() }
        return (.array(result), applied.isEmpty ? nil : .list(applied))
    }
}

extension JSONValue {
    /// Whether at most `levels` arrays and objects are nested, the value itself counted.
    func fits(levels: Int) -> Bool {
        switch self {
        case .array(let elements): levels > 0 && elements.allSatisfy { $0.fits(levels: levels - 1) }
        case .object(let object): levels > 0 && object.values.allSatisfy { $0.fits(levels: levels - 1) }
        default: true
        }
    }
}
