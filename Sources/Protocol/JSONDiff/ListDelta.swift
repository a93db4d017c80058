/// An edit of a list, element by element: the exact meaning of `L`, and of `dL` by whole lines. Elements after the last
/// step are kept.
struct ListDelta: Equatable {
    enum Step: Equatable {
        /// Keep that many elements.
        case retain(Int)
        case insert(JSONValue)
        case delete
        /// An operation on one element other than `+` and `-`.
        case edit(Operation)
    }

    private(set) var steps = [Step]()

    init() {}

    /// The steps of a `L`: each index is a place in the list of all elements, including kept, deleted and inserted
    /// ones.
    init(_ diff: ListDiff) {
        var place = 0
        for (index, operation) in diff.operations {
            retain(index - place)
            switch operation {
            case .insert(let value): steps.append(.insert(value))
            case .remove: steps.append(.delete)
            default: steps.append(.edit(operation))
            }
            place = index + 1
        }
    }

    /// The form for the wire.
    var diff: ListDiff {
        var operations = [(index: Int, operation: Operation)]()
        var place = 0
        for step in steps {
            switch step {
            case .retain(let count):
                place += count
                continue
            case .insert(let value): operations.append((index: place, operation: .insert(value)))
            case .delete: operations.append((index: place, operation: .remove))
            case .edit(let operation): operations.append((index: place, operation: operation))
            }
            place += 1
        }
        return ListDiff(operations)
    }

    /// Whether the delta leaves every list unchanged.
    var isIdentity: Bool { steps.allSatisfy { if case .retain = $0 { true } else { false } } }

    mutating func retain(_ count: Int) {
        guard count > 0 else { return }
        if case .retain(let before)? = steps.last {
            steps[steps.count - 1] = .retain(before + count)
        } else {
            steps.append(.retain(count))
        }
    }

    mutating func removeLastStep() { steps.removeLast() }

    mutating func append(_ step: Step) {
        if case .retain(let count) = step { retain(count) } else { steps.append(step) }
    }

    /// The list after the edit.
    ///
    /// - Throws: `DiffError.Kind.badIndex` when a step is beyond the end, and the errors of the operations.
    func apply(to list: [JSONValue], depth: Int, keepsPairs: Bool = false) throws(DiffError) -> [JSONValue] {
        guard depth <= Limits.jsonDepthMax else { throw DiffError(.tooDeep) }
        var result = [JSONValue]()
        result.reserveCapacity(list.count + steps.count)
        var read = 0
        for step in steps {
            if case .insert(let value) = step {
                result.append(value)
                continue
            }
            let count = if case .retain(let count) = step { count } else { 1 }
            guard count <= list.count - read else { throw DiffError(.badIndex, path: [String(read)]) }
            switch step {
            case .retain: result.append(contentsOf: list[read..<(read + count)])
            case .edit(let operation):
                do throws(DiffError) {
                    result.append(try JSONDiff.edit(list[read], by: operation, depth: depth, keepsPairs: keepsPairs))
                } catch { throw error.inside(String(read)) }
            case .insert, .delete: break
            }
            read += count
        }
        result.append(contentsOf: list[read...])
        return result
    }
}
