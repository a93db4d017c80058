import Glibc
import Synchronization
import ThicketPlatform
import ThicketProtocol
import ThicketServer

/// The interference of one reader and the writer: index pages of 500 and catch-ups of 100, of a store of 200 buckets
/// with 1,000 objects each, alone and while another thread commits groups of 100 without a pause.
///
/// Index pages are of any bucket in its present state. Catch-ups are of the half that is not written, so that each is
/// of the same 100 changes; their rows are among those that are written.
func readsBeside() throws -> [Figure] {
    let folder = try TemporaryFolder()
    let store = try SQLiteStore(path: folder.path + "/thicket.db", settings: StoreSettings(ServerLimits()))
    var work = try StoreWork(
        StoreWork.Shape(buckets: 200, objects: 1_000, diffBytes: 180, bodyBytes: 200), seed: 1)
    let writer: any StoreWriter = try store.makeWriter()
    for batch in try work.filling() { try writer.commit(batch) }
    // The newest changes of each bucket in a server's order: spread among those of the others.
    for _ in 0..<400 { try writer.commit(try work.group(100)) }
    let heads: [GlobalID] = work.heads
    let reader = try Reading(store, ids: work.ids)
    try reader.findCatchUps(heads)
    let background = Writing(writer, work)
    progress("reads: store filled")
    var samples = Samples()
    for round: Int in 0..<7 {
        samples.writes.append(try background.during { usleep(500_000) })
        samples.pages.append(try reader.pages(seconds: 0.5))
        samples.catchUps.append(try reader.catchUps(seconds: 0.5))
        samples.writesBesidePages.append(
            try background.during { samples.pagesBeside.append(try reader.pages(seconds: 0.5)) })
        samples.writesBesideCatchUps.append(
            try background.during(bucketsBelow: 100) {
                samples.catchUpsBeside.append(try reader.catchUps(seconds: 0.5))
            })
        progress("reads: round \(round + 1) of 7")
    }
    return samples.figures
}

private struct Samples {
    var writes: [Double] = []
    var pages: [Double] = []
    var catchUps: [Double] = []
    var pagesBeside: [Double] = []
    var catchUpsBeside: [Double] = []
    var writesBesidePages: [Double] = []
    var writesBesideCatchUps: [Double] = []

    var figures: [Figure] {
        [
            Figure(name: "index pages of 500, objects", samples: pages, unit: "1/s"),
            Figure(name: "index pages of 500, beside the writer", samples: pagesBeside, unit: "1/s"),
            share("index pages: share that is left", pagesBeside, pages, 0.4),
            Figure(name: "catch-ups of 100, changes", samples: catchUps, unit: "1/s"),
            Figure(name: "catch-ups of 100, beside the writer", samples: catchUpsBeside, unit: "1/s"),
            share("catch-ups: share that is left", catchUpsBeside, catchUps, 0.3),
            Figure(name: "writer alone, changes", samples: writes, unit: "1/s"),
            Figure(name: "writer beside index pages", samples: writesBesidePages, unit: "1/s"),
            share("writer beside index pages: share that is left", writesBesidePages, writes, 0.5),
            Figure(name: "writer beside catch-ups", samples: writesBesideCatchUps, unit: "1/s"),
            share("writer beside catch-ups: share that is left", writesBesideCatchUps, writes, 0.5),
        ]
    }

    private func share(_ name: String, _ beside: [Double], _ alone: [Double], _ goal: Double) -> Figure {
        Figure(name: "  \(name)", samples: zip(beside, alone).map { $0 / $1 }, unit: "", goal: .atLeast(goal))
    }
}

/// The reading side: on a thread of lower priority, as the server's readers are.
private final class Reading: @unchecked Sendable {
    // Only the thread of `rate` uses these while it runs, and otherwise only the caller of `rate`, which waits.
    private let reader: any StoreReader
    private let ids: [BucketID]
    private var ranges: [(bucket: BucketRow, after: GlobalID, upTo: GlobalID)] = []
    private var turn = 0
    private var outcome: Result<Double, any Error> = .success(.nan)

    init(_ store: SQLiteStore, ids: [BucketID]) throws {
        reader = try store.makeReader()
        self.ids = ids
    }

    /// The newest 100 changes of each bucket of the upper half.
    func findCatchUps(_ heads: [GlobalID]) throws {
        for (place, head) in heads.enumerated().dropFirst(heads.count / 2) {
            let bucket = BucketRow(place + 1)
            var after: GlobalID = head
            for _ in 0..<100 { after = try reader.change(after)?.previousOfBucket ?? 0 }
            ranges.append((bucket, after, head))
        }
    }

    /// Objects per second.
    func pages(seconds: Double) throws -> Double {
        try rate(seconds) { [self] in
            guard let record: BucketRecord = try reader.bucket(ids[turn % ids.count]),
                let page: IndexSlice = try reader.indexPage(
                    IndexQuery(bucket: record.row, current: record.head, limit: 500))
            else { throw BenchError("a bucket has no index") }
            guard page.entries.count == 500 else { throw BenchError("a page has \(page.entries.count) objects") }
            return page.entries.count
        }
    }

    /// Changes per second.
    func catchUps(seconds: Double) throws -> Double {
        try rate(seconds) { [self] in
            let range = ranges[turn % ranges.count]
            let page: ChangePage? = try reader.changes(
                in: range.bucket, after: range.after, upTo: range.upTo, limit: 100, byteLimit: .max)
            guard let page, page.changes.count == 100 else {
                throw BenchError("a catch-up has \(page?.changes.count ?? 0) changes of 100")
            }
            return page.changes.count
        }
    }

    private func rate(_ seconds: Double, _ body: @escaping @Sendable () throws -> Int) throws -> Double {
        let thread: OwnThread = OwnThread("reading") { [self] in
            OwnThread.yieldToOthers(by: 5)
            outcome = Result { try loop(seconds, body) }
        }
        thread.join()
        return try outcome.get()
    }

    private func loop(_ seconds: Double, _ body: () throws -> Int) throws -> Double {
        let start: UInt64 = nanoseconds()
        var count = 0
        while nanoseconds() - start < UInt64(seconds * 1e9) {
            // A stride that reaches every bucket, so that no index scan is found in a cache.
            turn += 77
            count += try body()
        }
        return Double(count) / (Double(nanoseconds() - start) / 1e9)
    }
}

/// The writing side: a thread that commits while the caller runs something else.
private final class Writing: @unchecked Sendable {
    // Only the thread of `during` uses these while it runs, and otherwise only the caller of `during`, which waits.
    private let writer: any StoreWriter
    private var work: StoreWork
    private var failure: (any Error)?
    private let written = Atomic<Int>(0)
    private let isWanted = Atomic<Bool>(false)

    init(_ writer: any StoreWriter, _ work: StoreWork) { (self.writer, self.work) = (writer, work) }

    /// Changes per second written while `body` runs.
    func during(bucketsBelow bound: Int? = nil, _ body: () throws -> Void) throws -> Double {
        isWanted.store(true, ordering: .releasing)
        let thread: OwnThread = OwnThread("writing") { [self] in
            do {
                while isWanted.load(ordering: .acquiring) {
                    try writer.commit(try work.group(100, bucketsBelow: bound))
                    written.add(100, ordering: .releasing)
                }
            } catch {
                failure = error
            }
        }
        let (start, first): (UInt64, Int) = (nanoseconds(), written.load(ordering: .acquiring))
        let result: Result<Void, any Error> = Result { try body() }
        let count: Int = written.load(ordering: .acquiring) - first
        let seconds: Double = Double(nanoseconds() - start) / 1e9
        isWanted.store(false, ordering: .releasing)
        thread.join()
        if let failure { throw failure }
        try result.get()
        return Double(count) / seconds
    }
}
