/// A JSON object: keys in the order they were written, compared byte by byte, each at most once.
///
/// Up to `indexedFrom` keys live in a plain list; larger objects carry a hash index beside it, so that thousands of
/// keys can be read, changed and removed in time proportional to their number.
public struct JSONObject: Sendable {
    public typealias Pair = (key: String, value: JSONValue)

    /// Objects with fewer keys are searched one by one.
    static let indexedFrom = 17

    /// In order; with an index, removed pairs stay as empty places until there are too many of them.
    private var slots: [Pair]
    private var index: JSONKeyIndex?

    public init() {
        slots = []
        index = nil
    }

    /// A key that is given twice keeps its first place and its last value.
    public init(_ pairs: [Pair]) {
        self.init(reserving: pairs.count)
        for pair in pairs { set(pair.key, pair.value) }
    }

    /// An empty object with room for `count` pairs.
    public init(reserving count: Int) {
        slots = []
        slots.reserveCapacity(count)
        index = nil
    }

    /// Trusts that no key is there twice: the parser has looked.
    init(distinct pairs: [Pair]) {
        slots = pairs
        index = pairs.count < Self.indexedFrom ? nil : JSONKeyIndex(pairs)
    }

    /// Pairs.
    public var count: Int { slots.count - (index?.deadCount ?? 0) }
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

    /// The value of `key`. Setting nil removes the pair; setting a new key puts it last.
    public subscript(key: String) -> JSONValue? {
        get { slot(of: key).map { slots[$0].value } }
        set {
            if let newValue { set(key, newValue) } else { remove(key) }
        }
    }

    /// True when the key is there, whatever its value.
    public func contains(_ key: String) -> Bool { slot(of: key) != nil }

    /// Puts the pair last, or replaces the value of a key that is there already.
    public mutating func append(key: String, value: JSONValue) { set(key, value) }

    /// Takes the pair out.
    /// - Returns: its value, nil when there was none.
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

    /// Copies the index before a change when another copy of this object uses it too.
    private mutating func ownIndex() {
        if !isKnownUniquelyReferenced(&index) { index = index?.copy() }
    }
}

extension JSONObject: Hashable {
    /// Same keys with equal values, in whatever order.
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

    public func hash(into hasher: inout Hasher) {
        // A sum, because order must not matter.
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
    /// A key that is given twice keeps the last value.
    public init(dictionaryLiteral pairs: (String, JSONValue)...) {
        self.init(pairs.map { (key: $0.0, value: $0.1) })
    }

    /// The whole content: for tests and debuggers, never for logs.
    public var debugDescription: String { JSONValue.object(self).serializedText }
}

extension JSONObject {
    /// This object with all members of another set in it.
    public func setting(_ members: JSONObject) -> JSONObject {
        var result = self
        for (key, value) in members.pairs { result[key] = value }
        return result
    }
}
