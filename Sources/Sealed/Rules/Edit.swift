import ThicketProtocol

/// An edit of one value under the transform rules 1 of sealed buckets: what a jsondiff operation does, and, once it was
/// applied, what it replaced and removed. Without those a device that came later could not carry an older edit over it.
///
/// `+` and `r` are one here: both set. `dL` has no place: it rests on how JSON is written, which the rules must not.
public indirect enum Edit: Sendable, Equatable {
    /// `+` and `r`.
    case set(JSONValue, Note = Note())
    /// `-`
    case remove(Note = Note())
    /// `I`
    case increment(JSONNumber)
    /// `O`, in the order it was written, each key at most once.
    case members([Member])
    /// `L`
    case list([ListStep])
    /// `d`
    case text(TextDelta)

    /// What an applied edit remembers of its place.
    public struct Note: Sendable, Equatable {
        /// The value that stood there before; nil when there was none, and in an edit that was not applied yet.
        public var old: JSONValue?
        /// The rules had to prefer this edit to another one's; only while it is being carried.
        public var isContested: Bool

        public init(old: JSONValue? = nil, isContested: Bool = false) {
            self.old = old
            self.isContested = isContested
        }
    }

    public struct Member: Sendable, Equatable {
        public var key: String
        public var edit: Edit

        public init(_ key: String, _ edit: Edit) {
            self.key = key
            self.edit = edit
        }

        public static func == (left: Member, right: Member) -> Bool {
            left.key.utf8.elementsEqual(right.key.utf8) && left.edit == right.edit
        }
    }

    /// One step over the elements of a list; what lies behind the last one is kept.
    public enum ListStep: Sendable, Equatable {
        /// Keep that many elements, more than 0.
        case retain(Int)
        case insert(JSONValue, Note = Note())
        case delete(Note = Note())
        case edit(Edit)
    }
}

extension Edit {
    /// Reads a jsondiff operation.
    /// - Throws: `DiffError.Kind.unknownOperation` for `dL`, however deep.
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

    /// Each index names a place in the list of all elements: kept, deleted and inserted ones (wire contract 7.5).
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

    /// The jsondiff operation: `+` where nothing stood before, `r` where something did.
    public var operation: Operation {
        switch self {
        case .set(let value, let note): note.old == nil ? .insert(value) : .replace(value)
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
            // An element that is set is replaced: `+` at an index would put a new one in front.
            case .edit(.set(let value, _)): operations.append((index: place, operation: .replace(value)))
            case .edit(let edit):
                operations.append((index: place, operation: replaces ? edit.replacing : edit.operation))
            }
            place += 1
        }
        return ListDiff(operations)
    }

    /// The jsondiff operation for composing, before it is known what it meets: every setting is `r`, which a removal
    /// that follows turns into a removal, where after `+` nothing would be left.
    var replacing: Operation {
        switch self {
        case .set(let value, _): .replace(value)
        case .members(let members):
            .object(ObjectDiff(members.map { (key: $0.key, operation: $0.edit.replacing) }))
        case .list(let steps): .list(Self.diff(steps, replaces: true))
        default: operation
        }
    }

    /// Whether nothing would happen, whatever the value.
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

    /// Whether the rules had to prefer some of it to another edit.
    var isContested: Bool {
        switch self {
        case .set(_, let note), .remove(let note): note.isContested
        case .members(let members): members.contains { $0.edit.isContested }
        case .list(let steps): steps.contains(where: \.isContested)
        case .increment, .text: false
        }
    }

    /// The same edit, after what it prevailed over has been told.
    var uncontested: Edit {
        guard isContested else { return self }
        switch self {
        case .set(let value, let note): return .set(value, Note(old: note.old))
        case .remove(let note): return .remove(Note(old: note.old))
        case .members(let members): return .members(members.map { Member($0.key, $0.edit.uncontested) })
        case .list(let steps): return .list(steps.map(\.uncontested))
        case .increment, .text: return self
        }
    }

    /// Whether a text delta is somewhere inside.
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
        case .insert(_, let note), .delete(let note): note.isContested
        case .edit(let edit): edit.isContested
        }
    }

    fileprivate var uncontested: Edit.ListStep {
        switch self {
        case .retain: self
        case .insert(let value, let note): .insert(value, Edit.Note(old: note.old))
        case .delete(let note): .delete(Edit.Note(old: note.old))
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
