import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Heap blocks that one change allocates on its way through the server, counted exactly.
///
/// Counts have no noise, unlike times: a step that begins to copy shows here at once. The numbers hold for the build
/// that the tests run in (debug allocates more than release) and for one toolchain. A smaller number is recorded here;
/// a larger one needs a reason.
@Suite("Allocations of one change") struct AllocationTests {
    /// Changes before counting begins; everything that grows by doubling has room then.
    private static let warmUp = 80
    /// Changes that are counted; their median is compared, because a table grows now and then.
    private static let counted = 61

    /// What a change does to an object of 240 bytes.
    enum Edit {
        /// Replaces one of its two fields.
        case replace
        /// Appends a letter to its text.
        case type

        func diff(_ number: Int) -> String {
            switch self {
            case .replace: "\"n\":{\"o\":\"r\",\"v\":\(1_000 + number)}"
            case .type: "\"text\":{\"o\":\"d\",\"v\":\"=\(200 + number - 1)\\t+y\"}"
            }
        }
    }

    private func message(_ object: Int, _ number: Int, _ edit: Edit) -> [UInt8] {
        let digits = String(object << 32 | number, radix: 16)
        let changeID: String = String(repeating: "0", count: 32 - digits.count) + digits
        return Array(
            "0:c:{\"clientid\":\"w\",\"id\":\"k\(object)\",\"o\":\"M\",\"sv\":\(number),\"v\":{\(edit.diff(number))},\"ccid\":\"\(changeID)\"}"
                .utf8)
    }

    private func submitted(_ bytes: [UInt8], _ bucket: BucketID, _ client: ClientID) throws -> SubmittedChange {
        guard case .channel(_, .change(let request)) = try ClientMessage(parsing: bytes) else {
            throw AllocationError.notAChange
        }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket, clientID: client, library: .other,
            canWrite: true, request: request, now: 1_700_000_000_000)
    }

    private enum AllocationError: Error { case notAChange, notApplied }

    /// Creates the object as version 1.
    private func create(_ object: Int, _ core: ShardCore, _ bucket: BucketID, _ client: ClientID) throws {
        let text: String =
            "0:c:{\"id\":\"k\(object)\",\"o\":\"M\",\"v\":{\"text\":{\"o\":\"+\",\"v\":\"\(String(repeating: "x", count: 200))\"},"
            + "\"n\":{\"o\":\"+\",\"v\":1}},\"ccid\":\"creation-\(object)\"}"
        _ = core.receive(.change(try submitted(Array(text.utf8), bucket, client)))
        #expect(core.commit().appliedCount == 1)
    }

    /// The blocks of each step, sorted, for successive changes of objects in turn.
    private func steps(of edit: Edit, objects: Int, settings: StoreSettings = .init()) throws -> [[Int]] {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings)
        let bucket: BucketID = try StoreDriver.id("a")
        let client = try ClientID("w")
        let core = ShardCore(store: try store.makeWriter())
        for object: Int in 0..<objects { try create(object, core, bucket, client) }
        var counts: [[Int]] = [[], [], [], []]
        for turn: Int in 0..<max(Self.warmUp + Self.counted, 3 * objects) {
            let bytes: [UInt8] = message(turn % objects, 1 + turn / objects, edit)
            let reading: Int = try AllocationCount.during { _ = try ClientMessage(parsing: bytes) }
            let change: SubmittedChange = try submitted(bytes, bucket, client)
            let deciding: Int = AllocationCount.during { _ = core.receive(.change(change)) }
            var outcome = CommitOutcome()
            let storing: Int = AllocationCount.during { outcome = core.commit() }
            guard case .applied(let applied)? = outcome.buckets.first?.events.first else {
                throw AllocationError.notApplied
            }
            let telling: Int = AllocationCount.during {
                _ = Reply.changes(0, [applied.element], bytes: applied.element.count)
            }
            guard turn >= Self.warmUp else { continue }
            for (place, found): (Int, Int) in [reading, deciding, storing, telling].enumerated() {
                counts[place].append(found)
            }
        }
        return counts.map { $0.sorted() }
    }

    /// - Parameter share: the quantile, by default the median.
    private func expect(_ counts: [[Int]], _ expected: [Int], share: Double = 0.5) {
        let found: [Int] = counts.map { $0[Int(share * Double($0.count))] }
        #if DEBUG
            #expect(found == expected, "reading, deciding, storing, telling")
        #else
            #expect(found.allSatisfy { $0 < 120 }, "the exact numbers are kept for debug builds")
        #endif
    }

    @Test(
        "reading, deciding, storing and answering one change allocate an exact number of blocks",
        .enabled(if: AllocationCount.isPossible, "a sanitizer has its own heap"))
    func perChange() throws {
        expect(try steps(of: .replace, objects: 1), [17, 33, 27, 5])
    }

    @Test(
        "a typed letter allocates an exact number of blocks",
        .enabled(if: AllocationCount.isPossible, "a sanitizer has its own heap"))
    func perLetter() throws {
        expect(try steps(of: .type, objects: 1), [17, 34, 27, 5])
    }

    /// 64 heads wait before the oldest 64 are written to their table, two with each change (0008): half of the changes
    /// write heads.
    @Test(
        "a change that writes heads of earlier changes, and one that does not, allocate exact numbers of blocks",
        .enabled(if: AllocationCount.isPossible, "a sanitizer has its own heap"))
    func perChangeWithWriteBehindHeads() throws {
        var settings = StoreSettings()
        settings.writeBehindHeadsMax = 64
        let counts: [[Int]] = try steps(of: .replace, objects: 100, settings: settings)
        expect(counts, [17, 33, 27, 5], share: 0.25)
        expect(counts, [17, 35, 40, 5], share: 0.75)
    }
}
