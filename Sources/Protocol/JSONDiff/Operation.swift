/// One jsondiff operation (wire contract 7.1).
public indirect enum Operation: Sendable, Equatable {
    /// `+`: insert the value.
    case insert(JSONValue)
    /// `-`: remove the value.
    case remove
    /// `r`: replace by the value.
    case replace(JSONValue)
    /// `I`: add to a number.
    case increment(JSONNumber)
    /// `O`: edit an object key by key.
    case object(ObjectDiff)
    /// `L`: edit a list by index.
    case list(ListDiff)
    /// `dL`: text delta on the serialised list, one line of JSON per element.
    case listText(TextDelta)
    /// `d`: text delta on a string.
    case text(TextDelta)
}

/// The content of a change's `v`: operations by key, in the order in which they were written, each key at most once.
public struct ObjectDiff: Sendable, Equatable {
    /// The operations, each with its key. The caller must not repeat a key.
    public var operations: [(key: String, operation: Operation)]

    /// Makes a diff of operations with different keys.
    public init(_ operations: [(key: String, operation: Operation)] = []) { self.operations = operations }

    /// Whether the diff changes nothing.
    public var isEmpty: Bool { operations.isEmpty }

    /// The operation for a key; keys are compared byte by byte.
    public subscript(key: String) -> Operation? { place(of: key).map { operations[$0].operation } }

    func place(of key: String) -> Int? { operations.firstIndex { $0.key.hasSameBytes(as: key) } }

    /// Equal regardless of key order; keys are compared byte by byte.
    public static func == (left: ObjectDiff, right: ObjectDiff) -> Bool {
        guard left.operations.count == right.operations.count else { return false }
        let index = OperationIndex(right)
        return left.operations.allSatisfy { index[$0.key] == $0.operation }
    }
}

/// Operations by index, ascending, each index at most once.
///
/// An index counts the elements of the source, including deleted ones, and the elements inserted before it (wire
/// contract 7.5): `{0: +a, 1: -}` puts a before the first element and removes that one.
public struct ListDiff: Sendable, Equatable {
    /// The operations, each with its index, in ascending order.
    public var operations: [(index: Int, operation: Operation)]

    /// Makes a diff of operations in ascending order of their indexes.
    public init(_ operations: [(index: Int, operation: Operation)] = []) { self.operations = operations }

    /// Whether the diff changes nothing.
    public var isEmpty: Bool { operations.isEmpty }

    /// Whether both have equal operations at the same indexes.
    public static func == (left: ListDiff, right: ListDiff) -> Bool {
        left.operations.count == right.operations.count
            && zip(left.operations, right.operations).allSatisfy {
                $0.index == $1.index && $0.operation == $1.operation
            }
    }
}

/// Finds operations by key: a linear search for few keys, a table for many.
struct OperationIndex {
    private let diff: ObjectDiff
    private let places: [KeyBytes: Int]

    /// Diffs with fewer keys are searched linearly.
    private static let indexedFrom = 17

    init(_ diff: ObjectDiff) {
        self.diff = diff
        var places = [KeyBytes: Int]()
        if diff.operations.count >= Self.indexedFrom {
            places.reserveCapacity(diff.operations.count)
            for (place, entry) in diff.operations.enumerated() { places[KeyBytes(text: entry.key)] = place }
        }
        self.places = places
    }

    subscript(key: String) -> Operation? {
        if diff.operations.count < Self.indexedFrom { return diff[key] }
        return places[KeyBytes(text: key)].map { diff.operations[$0].operation }
    }
}

/// A key, compared byte by byte.
struct KeyBytes: Hashable {
    let text: String
    static func == (left: KeyBytes, right: KeyBytes) -> Bool { left.text.hasSameBytes(as: right.text) }
    func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}
