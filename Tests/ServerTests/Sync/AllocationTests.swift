import CThicketAllocations
import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// What one change takes from the heap on its way through the server, counted exactly.
///
/// Counts are not noisy, times are: a step that begins to copy shows here at once. The numbers hold for the build that
/// the tests run in (debug takes more than release) and for one toolchain. A smaller number is written down here; a
/// larger one wants a reason.
@Suite("Allocations of one change") struct AllocationTests {
    /// Changes before counting begins: everything that grows by doubling has room then.
    private static let warmUp: Int = 80
    /// Changes counted; the median is held against the number, because now and then a table grows.
    private static let counted: Int = 61

    #if DEBUG
        private static let expected: (reading: Int, deciding: Int, store: Int, telling: Int) = (17, 33, 27, 5)
    #endif

    /// Replaces one of two fields of an object of 240 bytes.
    private func message(_ number: Int) -> [UInt8] {
        let digits: String = String(number, radix: 16)
        let changeID: String = String(repeating: "0", count: 32 - digits.count) + digits
        return Array(
            "0:c:{\"clientid\":\"w\",\"id\":\"k\",\"o\":\"M\",\"sv\":\(number),\"v\":{\"n\":{\"o\":\"r\",\"v\":\(1_000 + number)}},\"ccid\":\"\(changeID)\"}"
                .utf8)
    }

    private func submitted(_ number: Int, _ bucket: BucketID, _ client: ClientID) throws -> SubmittedChange {
        guard case .channel(_, .change(let request)) = try ClientMessage(parsing: message(number)) else {
            throw AllocationError.notAChange
        }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket, clientID: client, library: .other,
            canWrite: true, request: request, now: 1_700_000_000_000)
    }

    private enum AllocationError: Error { case notAChange }

    /// Calls of the heap during `body`.
    private func count(_ body: () throws -> Void) rethrows -> Int {
        thicket_allocations_begin()
        defer { _ = thicket_allocations_end() }
        try body()
        return Int(thicket_allocations_end())
    }

    private func median(_ counts: [Int]) -> Int { counts.sorted()[counts.count / 2] }

    /// Creates the object as version 1.
    private func create(_ core: ShardCore, _ bucket: BucketID, _ client: ClientID) throws {
        let text: String =
            "0:c:{\"id\":\"k\",\"o\":\"M\",\"v\":{\"text\":{\"o\":\"+\",\"v\":\"\(String(repeating: "x", count: 200))\"},"
            + "\"n\":{\"o\":\"+\",\"v\":1}},\"ccid\":\"creation\"}"
        guard case .channel(_, .change(let request)) = try ClientMessage(parsing: Array(text.utf8)) else {
            throw AllocationError.notAChange
        }
        _ = core.receive(
            .change(
                SubmittedChange(
                    origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket, clientID: client, library: .other,
                    canWrite: true, request: request, now: 1_700_000_000_000)))
        #expect(core.commit().appliedCount == 1)
    }

    @Test(
        "reading, deciding, storing and telling one change take so many blocks from the heap, no more and no fewer",
        .enabled(if: thicket_allocations_are_counted() != 0, "a sanitizer has its own heap"))
    func perChange() throws {
        let folder: StoreFolder = .init()
        let store: SQLiteStore = try .init(path: folder.path("thicket.db"), settings: .init())
        let bucket: BucketID = try StoreDriver.id("a")
        let client: ClientID = try ClientID("w")
        let core: ShardCore = .init(store: try store.makeWriter())
        try create(core, bucket, client)
        var counts: (reading: [Int], deciding: [Int], store: [Int], telling: [Int]) = ([], [], [], [])
        for number: Int in 1...(Self.warmUp + Self.counted) {
            let bytes: [UInt8] = message(number)
            let reading: Int = try count { _ = try ClientMessage(parsing: bytes) }
            let change: SubmittedChange = try submitted(number, bucket, client)
            let deciding: Int = count { _ = core.receive(.change(change)) }
            var outcome: CommitOutcome = .init()
            let storing: Int = count { outcome = core.commit() }
            #expect(outcome.appliedCount == 1)
            guard case .applied(let applied)? = outcome.buckets.first?.events.first else { continue }
            let telling: Int = count { _ = Reply.changes(0, [applied.element], bytes: applied.element.count) }
            guard number > Self.warmUp else { continue }
            counts.reading.append(reading)
            counts.deciding.append(deciding)
            counts.store.append(storing)
            counts.telling.append(telling)
        }
        let found: [Int] = [counts.reading, counts.deciding, counts.store, counts.telling].map(median)
        #if DEBUG
            let expected: [Int] = [
                Self.expected.reading, Self.expected.deciding, Self.expected.store, Self.expected.telling,
            ]
            #expect(found == expected, "reading, deciding, storing, telling")
        #else
            #expect(found.allSatisfy { $0 < 120 }, "the exact numbers are kept for debug builds")
        #endif
    }
}
