/// Hash index over the slots of one large `JSONObject`: open addressing, linear probing, a hash with a seed per process
/// (so that a client cannot choose keys that collide).
///
/// `@unchecked Sendable`: changed only by a `JSONObject` that has made sure that it holds the only reference.
final class JSONKeyIndex: @unchecked Sendable {
    typealias Pair = JSONObject.Pair

    private static let empty: UInt32 = 0
    private static let removed = UInt32.max

    /// Slot + 1, `empty` or `removed`. The size is a power of two; the table is at most half full.
    private var table: [UInt32]
    /// Entries of `table` that are not empty.
    private var used: Int
    private var isDead: [Bool]
    private(set) var deadCount: Int

    init(_ slots: [Pair]) {
        table = []
        used = 0
        isDead = .init(repeating: false, count: slots.count)
        deadCount = 0
        rebuild(slots)
    }

    private init(copying other: JSONKeyIndex) {
        table = other.table
        used = other.used
        isDead = other.isDead
        deadCount = other.deadCount
    }

    func copy() -> JSONKeyIndex { JSONKeyIndex(copying: self) }

    func slot(of key: String, _ slots: [Pair]) -> Int? {
        place(of: key, slots).map { Int(table[$0]) - 1 }
    }

    /// Adds the last slot, whose key is not in the index yet.
    func add(slot: Int, _ slots: [Pair]) {
        isDead.append(false)
        if (used + 1) * 2 > table.count { rebuild(slots) } else { insert(slot, slots[slot].key) }
    }

    /// Removes a slot from the index; its place in the list stays, empty.
    func kill(slot: Int, _ slots: [Pair]) {
        guard let place = place(of: slots[slot].key, slots) else { return }
        table[place] = Self.removed
        isDead[slot] = true
        deadCount += 1
    }

    func living(_ slots: [Pair]) -> [Pair] {
        var pairs = [Pair]()
        pairs.reserveCapacity(slots.count - deadCount)
        for (slot, pair) in slots.enumerated() where !isDead[slot] { pairs.append(pair) }
        return pairs
    }

    private func place(of key: String, _ slots: [Pair]) -> Int? {
        let mask = table.count - 1
        var place = Self.hash(key) & mask
        while true {
            let entry = table[place]
            if entry == Self.empty { return nil }
            if entry != Self.removed, slots[Int(entry) - 1].key.hasSameBytes(as: key) { return place }
            place = (place + 1) & mask
        }
    }

    private func insert(_ slot: Int, _ key: String) {
        let mask = table.count - 1
        var place = Self.hash(key) & mask
        while table[place] != Self.empty { place = (place + 1) & mask }
        table[place] = UInt32(slot) + 1
        used += 1
    }

    private func rebuild(_ slots: [Pair]) {
        var size = 64
        while size < slots.count * 4 { size *= 2 }
        table = .init(repeating: Self.empty, count: size)
        used = 0
        for (slot, pair) in slots.enumerated() where !isDead[slot] { insert(slot, pair.key) }
    }

    private static func hash(_ key: String) -> Int {
        key.withBytes { (bytes: UnsafeBufferPointer<UInt8>) -> Int in
            var hasher = Hasher()
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
            return hasher.finalize()
        }
    }
}
