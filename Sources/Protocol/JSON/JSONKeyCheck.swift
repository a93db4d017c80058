#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Refuses objects with repeated keys. Small objects compare keys pairwise; large objects, and those with escapes in
/// their keys, use a hash set, so that the time for any input is proportional to its length.
enum JSONKeyCheck {
    /// Objects with more keys use the hash set.
    private static let comparedMax = 12

    /// Checks the object at tape index `object`, whose pairs end at tape index `end`; its second word holds their
    /// number.
    @inline(__always)
    static func run(
        _ base: UnsafePointer<UInt8>, _ tape: UnsafePointer<UInt64>, object: Int, end: Int
    ) throws(JSONError) {
        let count = JSONTape.count(tape[object + 1])
        if count < 2 { return }
        try runMany(base, tape, first: object + 2, end: end, count: count)
    }

    private static func runMany(
        _ base: UnsafePointer<UInt8>, _ tape: UnsafePointer<UInt64>, first: Int, end: Int, count: Int
    ) throws(JSONError) {
        var key = first
        while key < end {
            guard JSONTape.kind(tape[key]) == JSONTape.Kind.string else {
                return try runDecoded(base, tape, first: first, end: end, count: count)
            }
            key = JSONTape.next(tape, key + 1)
        }
        if count <= comparedMax {
            try runCompared(base, tape, first: first, end: end)
        } else {
            try runHashed(base, tape, first: first, end: end, count: count)
        }
    }

    private static func runCompared(
        _ base: UnsafePointer<UInt8>, _ tape: UnsafePointer<UInt64>, first: Int, end: Int
    ) throws(JSONError) {
        var key = JSONTape.next(tape, first + 1)
        while key < end {
            var earlier = first
            while earlier < key {
                if isSame(base, tape[key], tape[earlier]) {
                    throw JSONError(.duplicateKey, at: JSONTape.offset(tape[key]))
                }
                earlier = JSONTape.next(tape, earlier + 1)
            }
            key = JSONTape.next(tape, key + 1)
        }
    }

    private static func runHashed(
        _ base: UnsafePointer<UInt8>, _ tape: UnsafePointer<UInt64>, first: Int, end: Int, count: Int
    ) throws(JSONError) {
        var size = 64
        while size < count * 2 { size *= 2 }
        let duplicate = withUnsafeTemporaryAllocation(of: UInt32.self, capacity: size) { places -> Int? in
            guard let table = places.baseAddress else { return nil }
            table.initialize(repeating: 0, count: size)
            var key = first
            while key < end {
                let word = tape[key]
                // Hasher is seeded per process, so that a client cannot choose keys that collide.
                var hasher = Hasher()
                hasher.combine(
                    bytes: UnsafeRawBufferPointer(start: base + JSONTape.offset(word), count: JSONTape.length(word)))
                var place = hasher.finalize() & (size - 1)
                while table[place] != 0 {
                    if isSame(base, word, tape[Int(table[place])]) { return JSONTape.offset(word) }
                    place = (place + 1) & (size - 1)
                }
                table[place] = UInt32(key)
                key = JSONTape.next(tape, key + 1)
            }
            return nil
        }
        if let duplicate { throw JSONError(.duplicateKey, at: duplicate) }
    }

    /// The path for objects with escapes in keys: compares the decoded keys.
    private static func runDecoded(
        _ base: UnsafePointer<UInt8>, _ tape: UnsafePointer<UInt64>, first: Int, end: Int, count: Int
    ) throws(JSONError) {
        var seen = Set<[UInt8]>()
        seen.reserveCapacity(count)
        var key = first
        while key < end {
            let word = tape[key]
            let raw = UnsafeBufferPointer<UInt8>(
                start: base + JSONTape.offset(word) + 1, count: JSONTape.length(word) - 2)
            let decoded = [UInt8](unsafeUninitializedCapacity: raw.count) { (buffer, written) in
                guard let out = buffer.baseAddress else { return }
                written = JSONEscapes.decode(raw, to: out)
            }
            guard seen.insert(decoded).inserted else { throw JSONError(.duplicateKey, at: JSONTape.offset(word)) }
            key = JSONTape.next(tape, key + 1)
        }
    }

    @inline(__always)
    private static func isSame(_ base: UnsafePointer<UInt8>, _ left: UInt64, _ right: UInt64) -> Bool {
        (left ^ right) & JSONTape.shapeMask == 0
            && memcmp(base + JSONTape.offset(left), base + JSONTape.offset(right), JSONTape.length(left)) == 0
    }
}
