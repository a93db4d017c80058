import Testing
@testable import ThicketPlatform
@testable import ThicketScheduling
import ThicketTestSupport

@testable import ThicketServer

/// The order in which the work of many tenants is done.
struct RoundRobinQueueTests {
    private static func row(_ work: [(TenantID, Int)]) -> RoundRobinQueue<Int> {
        var row = RoundRobinQueue<Int>()
        for (tenant, piece) in work { row.append(piece, of: tenant) }
        return row
    }

    @Test("each tenant in turn gets a share, and the rest of its work comes in later turns")
    func turns() {
        var row: RoundRobinQueue<Int> = Self.row((0..<5).map { (1, $0) } + [(2, 20), (2, 21), (3, 30)])
        #expect(row.take(most: 100, share: 2, now: 0) == [0, 1, 20, 21, 30])
        row.append(22, of: 2)
        #expect(row.take(most: 3, share: 2, now: 0) == [22, 2, 3], "the tenant that had less comes first")
        #expect(row.count == 1)
        #expect(row.take(most: 100, share: 2, now: 0) == [4])
        #expect(row.take(most: 100, share: 2, now: 0).isEmpty)
    }

    private final class Piece {}

    @Test("the queue does not hold a piece that it handed out, however much of the tenant is queued behind it")
    func nothingHeld() throws {
        var row = RoundRobinQueue<Piece>()
        let first = Piece()
        weak var large: Piece? = nil
        do {
            let piece = Piece()
            large = piece
            row.append(piece, of: 1)
        }
        for _ in 0..<3 { row.append(first, of: 1) }
        var taken: [Piece] = row.take(most: 2, share: 2, now: 0)
        #expect(taken.first === large)
        #expect(large != nil)
        row.putBack([taken.removeLast()], of: 1)
        taken = []
        #expect(large == nil, "the queue holds a piece that it handed out")
        #expect(row.count == 3)
        #expect(row.take(most: 9, share: 9, now: 0).count == 3)
    }

    @Test("a Deque hands out its elements in order, also those that were put back", arguments: 0..<5)
    func line(seed: Int) {
        var random = SeededRandom(seed: UInt64(seed))
        var line = Deque<Int>()
        var model: [Int] = []
        var next = 0
        // Long enough that the deque releases places on the way.
        for _ in 0..<3_000 {
            for _ in 0..<Int.random(in: 0..<5, using: &random) {
                line.append(next)
                model.append(next)
                next += 1
            }
            let number: Int = .random(in: 0..<(next % 700 == 0 ? 3_000 : 5), using: &random)
            let taken: [Int] = line.takeFirst(number)
            #expect(taken == Array(model.prefix(number)))
            model.removeFirst(taken.count)
            if Bool.random(using: &random), !taken.isEmpty {
                let back: [Int] = Array(taken.suffix(2))
                line.putBack(back)
                model.insert(contentsOf: back, at: 0)
            }
            #expect(line.count == model.count)
            if !model.isEmpty { #expect(line[model.count - 1] == model[model.count - 1]) }
        }
    }

    @Test("a shorter throttle does not end a longer one")
    func longestRest() {
        var row: RoundRobinQueue<Int> = Self.row([(1, 10)])
        row.throttle(1, until: 500)
        row.throttle(1, until: 50)
        #expect(row.take(most: 10, share: 10, now: 499).isEmpty)
        #expect(row.wakes(after: 50) == 500)
        #expect(row.take(most: 10, share: 10, now: 500) == [10])
    }

    @Test("a turn ends with the piece that reaches the weight bound, and hands out at least one piece")
    func weights() {
        var row: RoundRobinQueue<Int> = .init { $0 }
        for piece: Int in [1, 1, 100, 1, 100, 100] { row.append(piece, of: 1) }
        row.append(2, of: 2)
        #expect(row.take(most: 100, share: 64, weightMax: 16, now: 0) == [1, 1, 100, 2])
        #expect(row.take(most: 100, share: 64, weightMax: 16, now: 0) == [1, 100])
        #expect(row.take(most: 100, share: 64, weightMax: 16, now: 0) == [100])
    }

    @Test("a throttled tenant is passed over until its time; at shutdown no tenant is throttled")
    func isThrottled() {
        var row: RoundRobinQueue<Int> = Self.row([(1, 10), (2, 20)])
        row.throttle(1, until: 50)
        #expect(row.take(most: 10, share: 10, now: 0) == [20])
        #expect(!row.hasWork(0) && row.wakes(after: 0) == 50)
        #expect(row.take(most: 10, share: 10, now: 49).isEmpty)
        #expect(row.hasWork(50))
        #expect(row.take(most: 10, share: 10, now: 50) == [10])
        row.append(11, of: 1)
        row.throttle(1, until: 500)
        #expect(row.take(most: 10, share: 10, now: 60, throttles: false) == [11])
    }

    @Test(
        "a held tenant is passed over, at shutdown too, until it is resumed; pieces put back follow the resumed one")
    func held() {
        var row: RoundRobinQueue<Int> = Self.row([(1, 10), (1, 11), (1, 12), (1, 13), (2, 20)])
        #expect(row.take(most: 10, share: 3, now: 0) == [10, 11, 12, 20])
        row.hold(1)
        row.putBack([11, 12], of: 1)
        #expect(row.count == 3 && row.heldCount == 1 && row.isHeld(1) && !row.isHeld(2))
        row.append(14, of: 1)
        row.append(21, of: 2)
        #expect(row.take(most: 10, share: 10, now: 0) == [21])
        #expect(!row.hasWork(0) && !row.hasWork(0, throttles: false) && row.wakes(after: 0) == nil)
        #expect(row.take(most: 10, share: 10, now: 0, throttles: false).isEmpty)
        row.resume(1, with: 10)
        #expect(row.heldCount == 0 && row.hasWork(0))
        #expect(row.take(most: 10, share: 10, now: 0) == [10, 11, 12, 13, 14])
        #expect(row.count == 0)
    }

    @Test("a tenant that was emptied, held and resumed is queued again, and its throttle continues")
    func heldAndResting() {
        var row: RoundRobinQueue<Int> = Self.row([(1, 10)])
        #expect(row.take(most: 10, share: 10, now: 0) == [10])
        row.hold(1)
        row.throttle(1, until: 50)
        row.resume(1, with: 10)
        #expect(row.take(most: 10, share: 10, now: 49).isEmpty && row.wakes(after: 0) == 50)
        #expect(row.take(most: 10, share: 10, now: 50) == [10])
        row.putBack([10, 11], of: 1)
        row.throttle(1, until: 60)
        #expect(row.take(most: 10, share: 10, now: 55).isEmpty)
        #expect(row.take(most: 10, share: 10, now: 60) == [10, 11])
    }

    @Test("takeOne passes over a tenant with enough pieces in progress until one of them is done")
    func atWork() {
        var row: RoundRobinQueue<Int> = Self.row([(1, 10), (1, 11), (2, 20)])
        #expect(row.takeOne(atOnce: 1)?.work == 10)
        #expect(row.takeOne(atOnce: 1)?.work == 20)
        #expect(row.takeOne(atOnce: 1) == nil)
        row.done(1)
        #expect(row.takeOne(atOnce: 1)?.work == 11)
        #expect(row.count == 0)
    }

    @Test("done returns whether the tenant has more work queued, whatever other tenants have")
    func waits() {
        var row: RoundRobinQueue<Int> = Self.row([(1, 10), (1, 11), (2, 20)])
        var reported: [Bool] = []
        for tenant: TenantID in [1, 2, 1] {
            #expect(row.takeOne(atOnce: 1)?.tenant == tenant)
            reported.append(row.done(tenant))
        }
        #expect(reported == [true, false, false])
    }

    @Test(
        "whatever is queued and throttled, no piece is lost or handed out twice, and each tenant's keep their order",
        arguments: 0..<20)
    func property(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var row: RoundRobinQueue<(tenant: TenantID, piece: Int)> = .init()
        var (next, now): (Int, Int64) = (0, 0)
        var seen: [TenantID: Int] = [:]
        var count = 0
        for _ in 0..<2_000 {
            now += Int64(random.next() % 10)
            let tenant = TenantID(UInt32(random.next() % 6))
            switch random.next() % 4 {
            case 0: row.throttle(tenant, until: now + Int64(random.next() % 30))
            case 1:
                let share: Int = 1 + Int(random.next() % 4)
                let taken = row.take(most: 1 + Int(random.next() % 9), share: share, now: now)
                count += taken.count
                for (tenant, piece) in taken {
                    #expect(seen[tenant] ?? -1 < piece, "seed \(seed)")
                    seen[tenant] = piece
                }
                for (_, own) in Dictionary(grouping: taken, by: \.tenant) { #expect(own.count <= share) }
            default:
                row.append((tenant, next), of: tenant)
                next += 1
            }
            row.forgetThrottles(before: now)
        }
        count += row.take(most: .max, share: .max, now: now, throttles: false).count
        #expect(count == next && row.count == 0, "seed \(seed)")
    }
}
