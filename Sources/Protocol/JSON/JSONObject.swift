/// A JSON object: keys in the order in which they were written, compared byte by byte, each at most once.
///
/// Objects with fewer than `indexedFrom` keys are a plain list; larger ones add a hash index, so that reading, changing
/// and removing thousands of keys takes time proportional to their number.
public struct JSONObject: Sendable {
    /// A key and its value.
    public typealias Pair = (key: String, value: JSONValue)

    /// Objects with fewer keys are searched linearly.
    static let indexedFrom = 17

    /// The pairs in order. With an index, removed pairs stay as empty places until more than half of the places are
    /// empty.
    private var slots: [Pair]
    private var index: JSONKeyIndex?

    /// An empty object.
    public init() {
        slots = []
        index = nil
    }

    /// Makes an object of pairs. A repeated key keeps its first place and its last value.
    public init(_ pairs: [Pair]) {
        self.init(reserving: pairs.count)
        for pair in pairs { set(pair.key, pair.value) }
    }

    /// An empty object with reserved memory for `count` pairs.
    public init(reserving count: Int) {
        slots = []
        slots.reserveCapacity(count)
        index = nil
    }

    /// Trusts that no key is repeated: the parser has checked it.
    init(distinct pairs: [Pair]) {
        slots = pairs
        index = pairs.count < Self.indexedFrom ? nil : JSONKeyIndex(pairs)
    }

    /// Number of pairs.
    public var count: Int { slots.count - (index?.deadCount ?? 0) }
    /// Whether the object has no pairs.
    public var isEmpty: Bool { count == 0 }

    /// All pairs in order.
    public var pairs: [Pair] {
        guard let index, index.deadCount > 0 else { return slots }
        return index.living(slots)
    }

    /// All keys in order.
    public var keys: [String] { pairs.map(\.key) }
    /// All values in order.
    public var values: [JSONValue] { pairs.map(\.value) }

    /// The value of `key`. Setting nil removes the pair; setting a new key appends it.
    public subscript(key: String) -> JSONValue? {
        get { slot(of: key).map { slots[$0].value } }
        set {
            if let newValue { set(key, newValue) } else { remove(key) }
        }
    }

    /// Whether the object has the key, whatever its value.
    public func contains(_ key: String) -> Bool { slot(of: key) != nil }

    /// Appends the pair, or replaces the value of an existing key.
    public mutating func append(key: String, value: JSONValue) { set(key, value) }

    /// Removes a pair.
    ///
    /// - Returns: its value; nil when the object does not have the key.
    @discardableResult
    public mutating func remove(_ key: String) -> JSONValue? {
        guard let place = slot(of: key) else { return nil }
        guard index != nil else { return slots.remove(at: place).value }
        let value = slots[place].value
        ownIndex()
        index?.kill(slot: place, slots)
        slots[place] = (key: "", value: .null)
        if let index, index.deadCount > slots.count / 2 { self = JSONObject(distinct: index.living(slots)) }
        return value
    }

    private mutating func set(_ key: String, _ value: JSONValue) {
        if let place = slot(of: key) {
            slots[place].value = value
            return
        }
        slots.append((key: key, value: value))
        if index != nil {
            ownIndex()
            index?.add(slot: slots.count - 1, slots)
        } else if slots.count >= Self.indexedFrom {
            index = JSONKeyIndex(slots)
        }
    }

    private func slot(of key: String) -> Int? {
        if let index { return index.slot(of: key, slots) }
        return key.withBytes { (wanted: UnsafeBufferPointer<UInt8>) -> Int? in
            slots.firstIndex { (pair: Pair) -> Bool in
                pair.key.utf8.count == wanted.count && pair.key.withBytes { sameBytes($0, wanted) }
            }
        }
    }

    /// Copies the index before a change if another copy of this object shares it.
    private mutating func ownIndex() {
        if !isKnownUniquelyReferenced(&index) { index = index?.copy() }
    }
}

extension JSONObject: Hashable {
    /// Whether both have the same keys with equal values, in any order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.count == right.count else { return false }
        let rightPairs = right.pairs
        for (place, pair) in left.pairs.enumerated() {
            if rightPairs[place].key.hasSameBytes(as: pair.key) {
                guard rightPairs[place].value == pair.value else { return false }
            } else {
                guard let value = right[pair.key], value == pair.value else { return false }
            }
        }
        return true
    }

    /// Hashes keys and values, independently of their order.
    public func hash(into hasher: inout Hasher) {
        // A sum, because the order must not matter.
        var sum = 0
        for pair in pairs {
            var single = Hasher()
            pair.key.hashBytes(into: &single)
            pair.value.hash(into: &single)
            sum &+= single.finalize()
        }
        hasher.combine(count)
        hasher.combine(sum)
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral, CustomDebugStringConvertible {
    /// Makes an object of a dictionary literal. A repeated key keeps its first place and its last value.
    public init(dictionaryLiteral pairs: (String, JSONValue)...) {
        self.init(pairs.map { (key: $0.0, value: $0.1) })
    }

    /// The whole content: for tests and debuggers, never for logs.
    public var debugDescription: String { JSONValue.object(self).serializedText }
}

extension JSONObject {
    /// This object with all members of another object set in it.
    public func setting(_ members: JSONObject) -> JSONObject {
        var result = self
        for (key, value) in members.pairs { result[key] = value }
        return result
    }
}
