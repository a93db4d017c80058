import Synchronization
import Testing
@testable import ThicketPlatform
import ThicketProtocol
import ThicketSQLite
@testable import ThicketScheduling
import ThicketTestSupport

@testable import ThicketServer

/// The shard's thread, and another thread that commits in its place.
struct ShardThreadTests {
    private typealias Work = (tenant: TenantID, work: ServerShard.Work)

    /// A shard's thread over a store, and what it reports.
    private final class Shard {
        let metrics = Metrics()
        let health = Health()
        let shard: ServerShard
        private let seen = SeenReports()
        private var lastID = 0
        private var isFinished = false

        init(_ store: any Store) {
            var limits = ServerLimits()
            limits.inlineCommitMicroseconds = 1_000_000
            let seen: SeenReports = self.seen
            shard = ServerShard(
                store: store, settings: ShardSettings(limits), limits: limits, metrics: metrics, health: health,
                log: .silent
            ) { report in seen.reports.withLock { $0.append((report.outcome, false)) } }
            shard.awaitOpening()
        }

        deinit { finish() }

        func finish() {
            guard !isFinished else { return }
            isFinished = true
            shard.finish()
        }

        var reports: [(outcome: CommitOutcome, isHere: Bool)] { seen.reports.withLock { $0 } }
        var releasedCount: Int { reports.reduce(0) { $0 + $1.outcome.released.count } }

        /// A change of a user that creates an object; its ccid is a number that counts up.
        func change(user: TenantID = 1) throws -> Work {
            try submit(user: user) { ccid in
                let diff = try JSONDocument(parsing: Array(#"{"n":{"o":"+","v":"\#(ccid)"}}"#.utf8))
                return ChangeRequest(key: "k\(ccid)", ccid: ccid, operation: .modify, diff: .node(diff.root))
            }
        }

        private func submit(user: TenantID, _ request: (_ ccid: String) throws -> ChangeRequest) throws -> Work {
            lastID += 1
            let bucket = try BucketID(
                app: AppID("app"), user: UserID("user\(user)@example.com"), name: BucketName("notes"))
            var reservation = QuotaReservation()
            reservation.tenant = user
            reservation.arrival = Int64(lastID)
            let submitted = SubmittedChange(
                origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket, clientID: try ClientID("client"),
                library: .other, canWrite: true, request: try request("\(lastID)"), now: 1, reservation: reservation)
            return (user, .request(.change(submitted)))
        }

        /// A change that sends the whole of one object of a user, long enough to be deferred.
        func whole(_ number: Int, user: TenantID) throws -> Work {
            let text: String = String(repeating: "word ", count: 1_000) + "\(number)"
            let document = try JSONDocument(parsing: Array(#"{"t":"\#(text)"}"#.utf8))
            return try submit(user: user) {
                ChangeRequest(key: "whole", ccid: $0, operation: .modify, object: .node(document.root))
            }
        }

        /// Commits changes until the gate is open, and one more through it.
        func warmUp(users: UInt32 = 1) throws {
            for user in (1...users).map({ TenantID($0) }) {
                for _ in 0..<10 {
                    commitThere([try change(user: user)])
                }
            }
            try commitHere()
        }

        /// Commits on this thread if that is possible now.
        func commitNow(_ work: [Work]) -> Bool {
            guard let reports = shard.commitNow(work) else { return false }
            seen.reports.withLock { seen in seen += reports.map { ($0.outcome, true) } }
            return true
        }

        /// Retries until the thread sleeps and this one can commit.
        func commitHere(user: TenantID = 1) throws {
            let work: [Work] = [try change(user: user)]
            waitFor { commitNow(work) ? true : nil }
        }

        /// Lets the thread commit.
        func commitThere(_ work: [Work]) {
            let before: Int = releasedCount
            shard.push(work)
            awaitReports(before + work.count)
        }

        func awaitReports(_ count: Int) { waitFor { releasedCount == count ? true : nil } }
    }

    private final class SeenReports: Sendable {
        let reports: Mutex<[(outcome: CommitOutcome, isHere: Bool)]> = .init([])
    }

    @Test("reports come in log order and each change once, whether the thread or the caller commits")
    func order() throws {
        var random = SeededRandom(seed: 20)
        let shard = Shard(MemoryStore())
        try shard.warmUp(users: 3)
        var sent: Int = shard.releasedCount
        for _ in 0..<300 {
            let work: [Work] = try (0..<(1 + random.next() % 5)).map { _ in
                try shard.change(user: TenantID(1 + UInt32(random.next() % 3)))
            }
            sent += work.count
            if random.next() % 3 == 0 || !shard.commitNow(work) { shard.shard.push(work) }
            if random.next() % 2 == 0 { shard.awaitReports(sent) }
        }
        shard.awaitReports(sent)
        let reports: [(outcome: CommitOutcome, isHere: Bool)] = shard.reports
        var last: [TenantID: Int64] = [:]
        for reservation in reports.flatMap(\.outcome.released) {
            #expect(last[reservation.tenant] ?? 0 < reservation.arrival, "each user's in the order they came")
            last[reservation.tenant] = reservation.arrival
        }
        let heads: [GlobalID] = reports.map { $0.outcome.buckets.compactMap(\.published).max() ?? 0 }
        #expect(heads == heads.sorted() && Set(heads).count == heads.count)
        #expect(heads.last == GlobalID(sent))
        #expect(shard.metrics.commitsInline.value == reports.count(where: \.isHere))
        #expect(shard.metrics.commitsInline.value > 1)
    }

    @Test("a deferred change keeps its place among its user's changes, and none is lost at the end")
    func elsewhere() throws {
        var random = SeededRandom(seed: 49)
        let shard = Shard(MemoryStore())
        try shard.warmUp(users: 2)
        // Two versions of a text: a change that sends the whole text is compared with the stored one.
        shard.commitThere([try shard.whole(0, user: 1)])
        var sent: Int = shard.releasedCount
        for number: Int in 1...60 {
            let user = TenantID(1 + UInt32(random.next() % 2))
            let work: Work = try random.next() % 3 == 0 ? shard.whole(number, user: 1) : shard.change(user: user)
            if random.next() % 3 == 0 || !shard.commitNow([work]) { shard.shard.push([work]) }
            sent += 1
        }
        shard.finish()
        #expect(shard.releasedCount == sent)
        #expect(shard.reports.reduce(0) { $0 + $1.outcome.refusedCount } == 0)
        var last: [TenantID: Int64] = [:]
        for reservation in shard.reports.flatMap(\.outcome.released) {
            #expect(last[reservation.tenant] ?? 0 < reservation.arrival, "each user's in the order they came")
            last[reservation.tenant] = reservation.arrival
        }
        #expect(shard.metrics.deferredChangeSeconds.count > 0)
    }

    /// A disk whose commits, once it is slow, wait until they are released.
    private struct HeldDisk {
        let isSlow = Flag(false)
        let holds = BlockingQueue<Bool>(bound: 9)
        let free = BlockingQueue<Bool>(bound: 9)

        func store() -> MemoryStore {
            MemoryStore(faults: { [isSlow, holds, free] _ in
                if isSlow.value.load(ordering: .sequentiallyConsistent) {
                    holds.add(true)
                    _ = free.takeAll()
                }
                return .none
            })
        }
    }

    @Test("a caller does not commit in place of a thread that is working or whose queue is closed")
    func busy() throws {
        let disk = HeldDisk()
        let shard = Shard(disk.store())
        try shard.warmUp()
        disk.isSlow.value.store(true, ordering: .sequentiallyConsistent)
        shard.shard.push([try shard.change()])
        _ = disk.holds.takeAll()
        #expect(!shard.commitNow([try shard.change()]), "the thread is in its commit")
        disk.isSlow.value.store(false, ordering: .sequentiallyConsistent)
        disk.free.add(true)
        try shard.commitHere()
        shard.finish()
        #expect(!shard.commitNow([try shard.change()]))
    }

    @Test("no user is throttled for one slow commit of the disk, although another user wants the thread")
    func slowDisk() throws {
        let disk = HeldDisk()
        let shard = Shard(disk.store())
        try shard.warmUp(users: 2)
        let before: Int = shard.metrics.limitHits.value(.shardShare)
        disk.isSlow.value.store(true, ordering: .sequentiallyConsistent)
        shard.shard.push([try shard.change()])
        _ = disk.holds.takeAll()
        // Far more debt than a user may have.
        let end: Int64 = SystemClock.monotonic() + 20 * TenantShares.free
        while SystemClock.monotonic() < end { OwnThread.yield() }
        disk.free.add(true)
        shard.finish()
        #expect(shard.metrics.limitHits.value(.shardShare) == before)
    }

    @Test(
        "a group that the caller could not commit is refused with 503, and the thread retries the store by itself")
    func failure() throws {
        let fails = Flag(false)
        let shard = Shard(
            MemoryStore(faults: { _ in
                fails.value.load(ordering: .sequentiallyConsistent) ? .fail(StoreError(.io, "sector")) : .none
            }))
        try shard.warmUp()
        fails.value.store(true, ordering: .sequentiallyConsistent)
        try shard.commitHere()
        let last = try #require(shard.reports.last)
        #expect(last.isHere && last.outcome.failure != nil && last.outcome.refusedCount == 1)
        #expect(!shard.health.isReady && shard.metrics.commitFailures.value == 1)
        #expect(!shard.commitNow([try shard.change()]), "only the thread waits for a failing store")
        fails.value.store(false, ordering: .sequentiallyConsistent)
        waitFor { shard.health.isReady ? true : nil }
        // The failure dropped the bucket; the thread loads it again.
        shard.commitThere([try shard.change()])
        try shard.commitHere()
        #expect(shard.reports.last?.outcome.appliedCount == 1)
    }

    @Test("while another process locks the file, only the thread waits for it")
    func lockedFile() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let shard = Shard(store)
        try shard.warmUp()
        let other = try Database(path: store.path)
        try other.begin(.immediate)
        let before: Int = shard.metrics.commitsInline.value
        for _ in 0..<20 { #expect(!shard.commitNow([try shard.change()])) }
        try other.commit()
        try shard.commitHere()
        #expect(shard.metrics.commitsInline.value == before + 1)
    }

    @Test("a bucket that is not in memory is loaded by the thread")
    func coldBucket() throws {
        let shard = Shard(MemoryStore())
        try shard.warmUp()
        let other: Work = try shard.change(user: 2)
        for _ in 0..<20 { #expect(!shard.commitNow([other])) }
        shard.commitThere([other])
        try shard.commitHere(user: 2)
    }

    private final class Flag: Sendable {
        let value: Atomic<Bool>
        init(_ value: Bool) { self.value = .init(value) }
    }
}

/// Work of several tenants between threads.
struct FairQueueTests {
    @Test("a closed queue still hands out held work once it is resumed")
    func heldAtTheEnd() {
        let (queue, taken): (FairQueue<Int>, BlockingQueue<[Int]>) = (.init(), .init(bound: 100))
        queue.push([(1, 10), (1, 11), (2, 20)])
        #expect(queue.awaitWork(seconds: 0) && queue.take(most: 10, share: 10) == [10, 11, 20])
        queue.hold(1, puttingBack: [11])
        queue.close()
        let thread: OwnThread = Self.sleeper(queue, taken)
        #expect(!queue.isIdle(for: [1]) && !queue.isIdle(for: [2]))
        queue.resume(1, with: 10)
        #expect(taken.takeAll() == [[10, 11]])
        thread.join()
    }

    private static func sleeper(_ queue: FairQueue<Int>, _ taken: BlockingQueue<[Int]>) -> OwnThread {
        OwnThread("sleeper") {
            while queue.awaitWork(seconds: 60) { taken.add(queue.take(most: 10, share: 10)) }
        }
    }

    @Test("an open queue without work is idle for tenants that are neither throttled nor held; a closed one is not")
    func idle() {
        let queue = FairQueue<Int>()
        #expect(queue.isIdle(for: [1, 2]))
        queue.push([(1, 10)])
        #expect(!queue.isIdle(for: [2]), "work of another tenant would be overtaken")
        #expect(queue.take(most: 1, share: 1) == [10] && queue.isIdle(for: [1]))
        queue.throttle(1, until: SystemClock.monotonic() + 3_600_000_000_000)
        #expect(queue.isIdle(for: [2]) && !queue.isIdle(for: [2, 1]))
        queue.hold(2, puttingBack: [])
        #expect(!queue.isIdle(for: [2]) && queue.isIdle(for: [3]))
        queue.close()
        #expect(!queue.isIdle(for: [3]))
    }

    @Test("a roused thread returns once without work")
    func roused() {
        let (queue, taken): (FairQueue<Int>, BlockingQueue<[Int]>) = (.init(), .init(bound: 100))
        let thread: OwnThread = Self.sleeper(queue, taken)
        queue.rouse()
        #expect(taken.takeAll() == [[]])
        queue.push([(1, 10)])
        #expect(taken.takeAll() == [[10]])
        queue.close()
        thread.join()
        #expect(taken.takeAll(until: SystemClock.steadyTime()).isEmpty)
    }
}
