import Testing
@testable import ThicketFaultDisk

@testable import ThicketSQLite

/// A seed alone chooses what a crash leaves of a file. Bytes that differ in each run (salts, nonces, what is sealed
/// with them) must have no influence on it, or a failing seed gives another case when it is repeated.
@Suite("What a crash leaves on the disk") struct DiskModelTests {
    private static let old = (0..<1_200).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) }
    /// SplitMix64, so that the cases are the same in each run.
    private struct Seeded: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    private func left(
        writing bytes: [UInt8], at offset: Int, over file: [UInt8], _ loss: DiskModel.Loss, _ seed: UInt64
    ) -> [UInt8]? {
        var disk = DiskModel(["f": file])
        disk.apply(DiskHistory.Step(action: .write(offset: offset, bytes: bytes), file: "f"))
        var random = Seeded(state: seed)
        return disk.crashed(loss, &random)["f"]
    }

    @Test("a torn write is never whole by chance", arguments: [DiskModel.Loss.bytes, .sectors])
    func tornIsTorn(loss: DiskModel.Loss) {
        let (offset, count) = (500, 40)
        let place: Range<Int> = offset..<(offset + count)
        let others = Self.old[place].map { ~$0 }
        var torn = 0
        for seed: UInt64 in 0..<2_000 {
            // No byte is as it was, so the result shows what became of the write.
            let shown = left(writing: others, at: offset, over: Self.old, loss, seed) ?? []
            let isTorn = shown[place].elementsEqual(others) == false && shown != Self.old
            torn += isTorn ? 1 : 0
            // All bytes are as they were: the file may differ only if the write is torn.
            let same: [UInt8] = left(writing: Array(Self.old[place]), at: offset, over: Self.old, loss, seed) ?? []
            #expect((same != Self.old) == isTorn, "seed \(seed)")
            #expect(same.count == Self.old.count && same[..<offset] == Self.old[..<offset], "seed \(seed)")
            #expect(same[place.upperBound...] == Self.old[place.upperBound...], "seed \(seed)")
        }
        #expect(torn > 200, "hardly any write was torn")
    }

    @Test("a torn write of zeros after the end of a file leaves bytes that are not zero")
    func tornZeros() {
        var torn = 0
        for seed: UInt64 in 0..<500 {
            let others = [UInt8](repeating: 7, count: 24)
            let shown: [UInt8] = left(writing: others, at: 1_200, over: Self.old, .bytes, seed) ?? []
            guard shown != Self.old, shown != Self.old + others else { continue }
            torn += 1
            let zeros =
                left(writing: .init(repeating: 0, count: 24), at: 1_200, over: Self.old, .bytes, seed) ?? []
            #expect(zeros[1_200...].contains { $0 != 0 }, "seed \(seed)")
        }
        #expect(torn > 50, "hardly any write was torn")
    }
}
