import ThicketCrypto

/// Finds the iterated SHA-256 values of a canary after any number of rounds: a value with one round too few gives an
/// attacker as much as the last one, and a single round is guessed at once.
///
/// `@unchecked`: nothing changes after `init`.
final class DigestChains: @unchecked Sendable {
    /// Rounds after which no value may be found: the stretching of old notes sends that of round 15,000.
    static let rounds: Range<Int> = 1..<15_000

    private let names: [String]
    /// The first eight bytes of a value; 0 in an empty place, so that eight zeros are never found.
    private let keys: UnsafeMutableBufferPointer<UInt64>
    /// Canary and round of each value: `canary << 16 | round`.
    private let sources: UnsafeMutableBufferPointer<UInt32>
    private let mask: Int
    /// A bit for each 24 bits of a key, so that most places need one look-up.
    private let filter: UnsafeMutableBufferPointer<UInt8>

    init(_ canaries: [(name: String, secret: [UInt8])]) {
        names = canaries.map(\.name)
        var size = 1 << 12
        while size < canaries.count * Self.rounds.count * 2 { size *= 2 }
        (keys, sources) = (.allocate(capacity: size), .allocate(capacity: size))
        keys.initialize(repeating: 0)
        sources.initialize(repeating: 0)
        filter = .allocate(capacity: 1 << 21)
        filter.initialize(repeating: 0)
        mask = size - 1
        for (number, canary) in canaries.enumerated() {
            var value = canary.secret
            for round in Self.rounds {
                value = Hash.sha256(value)
                insert(value, UInt32(number << 16 | round))
            }
        }
    }

    deinit {
        keys.deallocate()
        sources.deallocate()
        filter.deallocate()
    }

    private static func slot(_ key: UInt64) -> Int { Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> 24) }

    private func insert(_ value: [UInt8], _ source: UInt32) {
        let key = value.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        filter[Int(key & 0xFF_FFFF) >> 3] |= 1 << UInt8(key & 7)
        var slot = Self.slot(key) & mask
        while keys[slot] != 0 { slot = (slot + 1) & mask }
        (keys[slot], sources[slot]) = (key, source)
    }

    /// The canaries in `bytes`, as lines for a person: each canary once.
    func findings(in bytes: [UInt8], place: String) -> [String] {
        var found = [Int: Int]()
        guard bytes.count >= 8 else { return [] }
        bytes.withUnsafeBytes { (hay: UnsafeRawBufferPointer) in
            var start = 0
            while start <= hay.count - 8 {
                let key = hay.loadUnaligned(fromByteOffset: start, as: UInt64.self)
                start += 1
                guard key != 0, filter[Int(key & 0xFF_FFFF) >> 3] & 1 << UInt8(key & 7) != 0 else { continue }
                var slot = Self.slot(key) & mask
                while keys[slot] != 0, keys[slot] != key { slot = (slot + 1) & mask }
                if keys[slot] == key { found[Int(sources[slot] >> 16)] = Int(sources[slot] & 0xFFFF) }
            }
        }
        return found.map { "\(names[$0.key]) after \($0.value) rounds of SHA-256 in \(place)" }.sorted()
    }
}
