import ThicketProtocol

/// An edit of one value under the transform rules 1 of sealed buckets: a jsondiff operation and, once it was applied,
/// the values that it replaced and removed. Without them a device that joined later could not transform an older edit
/// over it.
///
/// `+` and `r` are the same here: both set. `dL` is not supported, because it depends on the JSON serialization, which
/// the rules must not.
public indirect enum Edit: Sendable, Equatable {
    /// `+` and `r`.
    case set(JSONValue, Context = Context())
    /// `-`
    case remove(Context = Context())
    /// `I`
    case increment(JSONNumber)
    /// `O`, in the order in which it was written, each key at most once.
    case members([Member])
    /// `L`
    case list([ListStep])
    /// `d`
    case text(TextDelta)

    /// What an applied edit records about its place.
    public struct Context: Sendable, Equatable {
        /// The value that was replaced or removed; nil when none was, and in an edit that was not applied yet.
        public var old: JSONValue?
        /// Whether the rules preferred this edit to another one; set only during transforms.
        public var isContested: Bool

        /// Without arguments: an edit that was not applied or transformed yet.
        public init(old: JSONValue? = nil, isContested: Bool = false) {
            self.old = old
            self.isContested = isContested
        }
    }

    /// The edit of one member of an object.
    public struct Member: Sendable, Equatable {
        /// The member's key.
        public var key: String
        /// The edit of its value.
        public var edit: Edit

        /// The edit of the member `key`.
        public init(_ key: String, _ edit: Edit) {
            self.key = key
            self.edit = edit
        }

        /// Compares keys by their bytes.
        public static func == (left: Member, right: Member) -> Bool {
            left.key.utf8.elementsEqual(right.key.utf8) && left.edit == right.edit
        }
    }

    /// One step over the elements of a list; elements after the last step are kept.
    public enum ListStep: Sendable, Equatable {
        /// Keep this many elements, more than 0.
        case retain(Int)
        /// Insert an element.
        case insert(JSONValue, Context = Context())
        /// Delete the next element.
        case delete(Context = Context())
        /// Edit the next element.
        case edit(Edit)
    }
}

extension Edit {
    /// Reads a jsondiff operation.
    /// - Throws: `DiffError.Kind.unknownOperation` for `dL`, at any depth.
    public init(_ operation: Operation) throws(DiffError) {
        switch operation {
        case .insert(let value), .replace(let value): self = .set(value)
        case .remove: self = .remove()
        case .increment(let number): self = .increment(number)
        case .object(let diff): self = .members(try Self.members(diff))
        case .list(let diff): self = .list(try Self.steps(diff))
        case .text(let delta): self = .text(delta)
        case .listText: throw DiffError(.unknownOperation)
        }
    }

    private static func members(_ diff: ObjectDiff) throws(DiffError) -> [Member] {
        var members = [Member]()
        members.reserveCapacity(diff.operations.count)
        for (key, operation) in diff.operations { members.append(Member(key, try Edit(operation))) }
        return members
    }

    /// Each index is a place in the list of all elements: kept, deleted and inserted ones (wire contract 7.5).
    private static func steps(_ diff: ListDiff) throws(DiffError) -> [ListStep] {
        var steps = [ListStep]()
        var place = 0
        for (index, operation) in diff.operations {
            if index > place { steps.append(.retain(index - place)) }
            switch operation {
            case .insert(let value): steps.append(.insert(value))
            case .remove: steps.append(.delete())
            default: steps.append(.edit(try Edit(operation)))
            }
            place = index + 1
        }
        return steps
    }

    /// The jsondiff operation: `+` where no value was replaced, `r` where one was.
    public var operation: Operation {
        switch self {
        case .set(let value, let context): context.old == nil ? .insert(value) : .replace(value)
        case .remove: .remove
        case .increment(let number): .increment(number)
        case .members(let members):
            .object(ObjectDiff(members.map { (key: $0.key, operation: $0.edit.operation) }))
        case .list(let steps): .list(Self.diff(steps))
        case .text(let delta): .text(delta)
        }
    }

    private static func diff(_ steps: [ListStep], replaces: Bool = false) -> ListDiff {
        var operations = [(index: Int, operation: Operation)]()
        var place = 0
        for step in steps {
            switch step {
            case .retain(let count):
                place += count
                continue
            case .insert(let value, _): operations.append((index: place, operation: .insert(value)))
            case .delete: operations.append((index: place, operation: .remove))
            // Setting an element replaces it: `+` at an index would insert a new one.
            case .edit(.set(let value, _)): operations.append((index: place, operation: .replace(value)))
            case .edit(let edit):
                operations.append((index: place, operation: replaces ? edit.replacing : edit.operation))
            }
            place += 1
        }
        return ListDiff(operations)
    }

    /// The jsondiff operation for composing, before the replaced values are known: every setting is `r`, which a
    /// removal that follows turns into a removal; with `+` nothing would remain.
    var replacing: Operation {
        switch self {
        case .set(let value, _): .replace(value)
        case .members(let members):
            .object(ObjectDiff(members.map { (key: $0.key, operation: $0.edit.replacing) }))
        case .list(let steps): .list(Self.diff(steps, replaces: true))
        default: operation
        }
    }

    /// Whether it changes nothing, whatever the value.
    public var isEmpty: Bool {
        switch self {
        case .members(let members): members.allSatisfy { $0.edit.isEmpty }
        case .list(let steps):
            steps.allSatisfy { step in
                switch step {
                case .retain: true
                case .edit(let edit): edit.isEmpty
                case .insert, .delete: false
                }
            }
        case .text(let delta): delta.isIdentity
        case .set, .remove, .increment: false
        }
    }

    /// Whether the rules preferred a part of it to another edit.
    var isContested: Bool {
        switch self {
        case .set(_, let context), .remove(let context): context.isContested
        case .members(let members): members.contains { $0.edit.isContested }
        case .list(let steps): steps.contains(where: \.isContested)
        case .increment, .text: false
        }
    }

    /// The same edit after its conflicts have been reported.
    var uncontested: Edit {
        guard isContested else { return self }
        switch self {
        case .set(let value, let context): return .set(value, Context(old: context.old))
        case .remove(let context): return .remove(Context(old: context.old))
        case .members(let members): return .members(members.map { Member($0.key, $0.edit.uncontested) })
        case .list(let steps): return .list(steps.map(\.uncontested))
        case .increment, .text: return self
        }
    }

    /// Whether it contains a text delta.
    var editsText: Bool {
        switch self {
        case .text: true
        case .members(let members): members.contains { $0.edit.editsText }
        case .list(let steps): steps.contains { if case .edit(let edit) = $0 { edit.editsText } else { false } }
        case .set, .remove, .increment: false
        }
    }
}

extension Edit.ListStep {
    fileprivate var isContested: Bool {
        switch self {
        case .retain: false
        case .insert(_, let context), .delete(let context): context.isContested
        case .edit(let edit): edit.isContested
        }
    }

    fileprivate var uncontested: Edit.ListStep {
        switch self {
        case .retain: self
        case .insert(let value, let context): .insert(value, Edit.Context(old: context.old))
        case .delete(let context): .delete(Edit.Context(old: context.old))
        case .edit(let edit): .edit(edit.uncontested)
        }
    }
}

extension [Edit.ListStep] {
    /// Adds a step; two `retain` become one.
    mutating func add(_ step: Edit.ListStep) {
        guard case .retain(let count) = step else { return append(step) }
        guard count > 0 else { return }
        if case .retain(let before)? = last {
            self[endIndex - 1] = .retain(before + count)
        } else {
            append(step)
        }
    }
}
