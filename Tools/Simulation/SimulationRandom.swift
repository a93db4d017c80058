/// The only source of randomness of a run (SplitMix64): the same seed makes the same run on every machine.
struct SimulationRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// 0..<limit; 0 for an empty range.
    mutating func below(_ limit: Int) -> Int { limit > 1 ? Int(next() % UInt64(limit)) : 0 }

    /// Both ends included.
    mutating func between(_ low: Int64, _ high: Int64) -> Int64 {
        high > low ? low + Int64(next() % UInt64(high - low + 1)) : low
    }

    /// True in `perMille` of 1,000 cases.
    mutating func chance(_ perMille: Int) -> Bool { below(1_000) < perMille }

    /// Mostly short, sometimes long, like real delays.
    mutating func delay(_ low: Int64, _ high: Int64) -> Int64 {
        chance(900) ? between(low, low + (high - low) / 20) : between(low, high)
    }

    /// An independent stream.
    mutating func split() -> SimulationRandom { SimulationRandom(seed: next()) }
}
