/// One jsondiff operation (wire contract 7.1).
public indirect enum Operation: Sendable, Equatable {
    /// `+`: insert the value.
    case insert(JSONValue)
    /// `-`: remove.
    case remove
    /// `r`: replace by the value.
    case replace(JSONValue)
    /// `I`: add to a number.
    case increment(JSONNumber)
    /// `O`: edit an object key by key.
    case object(ObjectDiff)
    /// `L`: edit a list by index.
    case list(ListDiff)
    /// `dL`: text delta on the serialised list.
    case listText(String)
    /// `d`: text delta on a string.
    case text(String)
}

/// What goes into a change's `v`: operations by key, in the order they were written.
public struct ObjectDiff: Sendable, Equatable {
    public var operations: [(key: String, operation: Operation)]
    public init(_ operations: [(key: String, operation: Operation)] = []) { self.operations = operations }
    public var isEmpty: Bool { operations.isEmpty }
    /// Equal regardless of key order; keys compare byte by byte.
    public static func == (left: ObjectDiff, right: ObjectDiff) -> Bool {
        guard left.operations.count == right.operations.count else { return false }
        return left.operations.allSatisfy { key, operation in
            right.operations.contains { $0.key.utf8.elementsEqual(key.utf8) && $0.operation == operation }
        }
    }
}

/// Operations by index of the source list, ascending.
public struct ListDiff: Sendable, Equatable {
    public var operations: [(index: Int, operation: Operation)]
    public init(_ operations: [(index: Int, operation: Operation)] = []) { self.operations = operations }
    public static func == (left: ListDiff, right: ListDiff) -> Bool {
        left.operations.count == right.operations.count
            && zip(left.operations, right.operations).allSatisfy { $0.index == $1.index && $0.operation == $1.operation }
    }
}
