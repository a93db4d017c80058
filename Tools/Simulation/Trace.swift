/// All events of a run, as one hash and, if a sink is set, as lines.
struct Trace {
    /// FNV-1a over all events: equal for equal seeds.
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var events = 0
    /// Receives one line per event; nil: no lines are made.
    let sink: (@Sendable (String) -> Void)?

    init(sink: (@Sendable (String) -> Void)?) { self.sink = sink }

    mutating func record(_ time: Int64, _ what: StaticString, _ who: Int, _ bytes: [UInt8] = []) {
        events += 1
        mix(UInt64(bitPattern: time))
        what.withUTF8Buffer { buffer in
            for byte in buffer { mix(byte) }
        }
        mix(UInt64(bitPattern: Int64(who)))
        for byte in bytes { mix(byte) }
        guard let sink else { return }
        let milliseconds = String(time / 1_000) + "." + String(1_000 + time % 1_000).dropFirst()
        sink("\(milliseconds) ms  \(what) \(who)  \(String(decoding: bytes, as: UTF8.self))")
    }

    private mutating func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }

    private mutating func mix(_ number: UInt64) {
        for shift in stride(from: 0, to: 64, by: 8) { mix(UInt8(truncatingIfNeeded: number >> shift)) }
    }
}
