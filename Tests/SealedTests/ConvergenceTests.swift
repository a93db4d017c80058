import Glibc
import Testing
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// Any number of devices, any interleaving, compaction at any moment: all devices end equal to each other and to a
/// fresh device; no character of a text is missing or doubled; and no device reports a false alarm.
///
/// `THICKET_SEALED_CASES` sets the number of cases of each kind, `THICKET_SEED` the seed.
@Suite("Sealed objects converge")
struct ConvergenceTests {
    private static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }

    private static let seed = number("THICKET_SEED") ?? 42

    private func play(_ name: String, _ cases: Int, _ settings: (inout SeededRandom) -> World.Settings) {
        let count = Self.number("THICKET_SEALED_CASES").map(Int.init) ?? cases
        var totals = World.Totals()
        for number in 0..<count {
            let seed = Self.seed &* 1_000_003 &+ UInt64(number)
            var random = SeededRandom(seed: ~seed)
            var world = World(seed: seed, settings: settings(&random))
            do { try world.run() } catch {
                Issue.record("\(name), case \(number) of THICKET_SEED=\(Self.seed): \(error)")
                return
            }
            totals.operations += world.totals.operations
            totals.voids += world.totals.voids
            totals.conflicts += world.totals.conflicts
            totals.compactions += world.totals.compactions
            totals.catchUps += world.totals.catchUps
        }
        print(
            "sealed: \(name): \(count) cases from THICKET_SEED=\(Self.seed), \(totals.operations) operations, "
                + "\(totals.voids) sent anew, \(totals.conflicts) conflicts told, \(totals.compactions) compactions, "
                + "\(totals.catchUps) catch-ups over a snapshot")
        #expect(totals.operations > count)
    }

    @Test("two to eight devices that type converge, with occasional compactions")
    func typing() {
        play("typing", 150) { random in
            .init(
                devices: 2 + random.below(7), steps: 20 + random.below(100), awayPercent: 3, compactions: 40,
                latecomers: random.below(3), edits: .textOnly, checksEachStep: true)
        }
    }

    @Test("devices converge over edits of every kind: keys, numbers, lists, nested objects")
    func everything() {
        play("everything", 150) { random in
            .init(
                devices: 2 + random.below(4), steps: 20 + random.below(80), awayPercent: 3, compactions: 40,
                latecomers: random.below(3), edits: .everything, checksEachStep: true)
        }
    }

    @Test("devices that were offline for longer than the window converge and send their void operations again")
    func longAway() {
        play("long away", 12) { random in
            .init(
                devices: 2 + random.below(3), steps: 200 + random.below(200), awayPercent: 2, compactions: 4,
                latecomers: 2, edits: random.below(2) == 0 ? .textOnly : .everything, isQuick: true)
        }
    }

    @Test("devices converge while compactions race all the time")
    func racing() {
        play("racing compactions", 60) { random in
            .init(
                devices: 2 + random.below(4), steps: 40 + random.below(100), awayPercent: 2, compactions: 300,
                latecomers: 3, edits: random.below(2) == 0 ? .textOnly : .everything)
        }
    }
}
