import Glibc

/// Work of many users in the order in which it is done: each user's own is done in the order it came, and the users take
/// turns. Whoever cost too much rests, and what it sends meanwhile waits behind nobody but itself.
///
/// Pure: time is passed in (nanoseconds of a clock that never goes back).
struct FairRow<Work> {
    /// Whose work it is.
    typealias Lane = UInt32

    private struct Waiting {
        var work: [Work] = []
        var start: Int = 0
        var restsUntil: Int64 = .min
        /// Pieces that were taken by `takeOne` and are not `done`.
        var atWork: Int = 0

        var count: Int { work.count - start }
    }

    private var lanes: [Lane: Waiting] = [:]
    /// Lanes with work, in the order of their turns.
    private var turns: [Lane] = []
    private var next: Int = 0
    private(set) var count: Int = 0

    mutating func append(_ work: Work, of lane: Lane) {
        count += 1
        if lanes[lane, default: Waiting()].count == 0 { turns.append(lane) }
        lanes[lane, default: Waiting()].work.append(work)
    }

    /// Gives each lane in turn up to `share` pieces, `most` in all.
    ///
    /// - Parameter rests: false when nobody rests any more: everything is finished at the end.
    mutating func take(most: Int, share: Int, now: Int64, rests: Bool = true) -> [Work] {
        var taken: [Work] = []
        for _ in 0..<turns.count {
            guard taken.count < most else { break }
            if next >= turns.count { next = 0 }
            let lane: Lane = turns[next]
            if rests, lanes[lane]?.restsUntil ?? .min > now {
                next += 1
            } else {
                take(min(share, most - taken.count), of: lane, &taken)
            }
        }
        return taken
    }

    /// The next piece of the next lane that has fewer than `atOnce` at work; nil when there is none.
    mutating func takeOne(atOnce: Int) -> (lane: Lane, work: Work)? {
        for _ in 0..<turns.count {
            if next >= turns.count { next = 0 }
            let lane: Lane = turns[next]
            if lanes[lane]?.atWork ?? 0 < atOnce {
                var taken: [Work] = []
                take(1, of: lane, &taken)
                lanes[lane, default: Waiting()].atWork += 1
                return taken.first.map { (lane, $0) }
            }
            next += 1
        }
        return nil
    }

    /// A piece that `takeOne` gave has been done.
    mutating func done(_ lane: Lane) {
        lanes[lane]?.atWork -= 1
        forgetIfIdle(lane)
    }

    /// Nothing of the lane is taken before that time.
    mutating func rest(_ lane: Lane, until time: Int64) {
        lanes[lane, default: Waiting()].restsUntil = time
    }

    /// When the first of those who rest and have work may go on; nil when nobody does.
    func wakes(after now: Int64) -> Int64? {
        turns.lazy.compactMap { lanes[$0]?.restsUntil }.filter { $0 > now }.min()
    }

    /// Whether somebody has work and does not rest.
    func hasWork(_ now: Int64) -> Bool { turns.contains { lanes[$0]?.restsUntil ?? .min <= now } }

    /// Takes some of a lane and passes the turn on.
    private mutating func take(_ wanted: Int, of lane: Lane, _ taken: inout [Work]) {
        guard var waiting: Waiting = lanes.removeValue(forKey: lane) else { return }
        let end: Int = waiting.start + min(wanted, waiting.count)
        taken.append(contentsOf: waiting.work[waiting.start..<end])
        count -= end - waiting.start
        waiting.start = end
        if waiting.count == 0 {
            (waiting.work, waiting.start) = ([], 0)
            turns.remove(at: next)
        } else {
            if waiting.start >= 1_024, waiting.start * 2 >= waiting.work.count {
                waiting.work.removeFirst(waiting.start)
                waiting.start = 0
            }
            next += 1
        }
        lanes[lane] = waiting
        forgetIfIdle(lane)
    }

    private mutating func forgetIfIdle(_ lane: Lane) {
        guard let waiting: Waiting = lanes[lane], waiting.count == 0, waiting.atWork <= 0, waiting.restsUntil == .min
        else { return }
        lanes[lane] = nil
    }

    /// Forgets rests that are over, so that lanes of users long gone take no room.
    mutating func forgetRests(before now: Int64) {
        for (lane, waiting): (Lane, Waiting) in lanes where waiting.restsUntil <= now {
            lanes[lane]?.restsUntil = .min
            forgetIfIdle(lane)
        }
    }
}

/// A `FairRow` between threads.
///
/// It has no bound of its own: the hub counts what is under way, in all and of each user, and stops reading from clients
/// before it grows further.
final class FairQueue<Work: Sendable>: @unchecked Sendable {
    // All mutable state is guarded by `mutex`.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t> = .allocate(capacity: 1)
    private let condition: UnsafeMutablePointer<pthread_cond_t> = .allocate(capacity: 1)
    private var row: FairRow<Work> = .init()
    private var isClosed: Bool = false
    private var restCount: Int = 0

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes: pthread_condattr_t = .init()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Adds work; after `close` it is dropped.
    func push(_ work: [(lane: UInt32, work: Work)]) {
        guard !work.isEmpty else { return }
        pthread_mutex_lock(mutex)
        if !isClosed { for (lane, piece): (UInt32, Work) in work { row.append(piece, of: lane) } }
        pthread_mutex_unlock(mutex)
        if work.count == 1 { pthread_cond_signal(condition) } else { pthread_cond_broadcast(condition) }
    }

    /// No more work comes; what is queued is still handed out.
    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_mutex_unlock(mutex)
        pthread_cond_broadcast(condition)
    }

    /// What is next, a share of each lane, waiting for the first; nil when closed and empty.
    /// - Parameter seconds: longest wait; 0 does not wait. An empty array comes back when it is over.
    func take(most: Int, share: Int, waitingSeconds seconds: Double) -> [Work]? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        var now: Int64 = SystemClock.monotonic()
        let end: Int64 = now + Int64(seconds * 1e9)
        while !isClosed, now < end, !row.hasWork(now) {
            wait(until: min(end, row.wakes(after: now) ?? end))
            now = SystemClock.monotonic()
        }
        let taken: [Work] = row.take(most: most, share: share, now: now, rests: !isClosed)
        return taken.isEmpty && isClosed ? nil : taken
    }

    /// One piece, waiting for it, of a lane that has fewer than `atOnce` at work; nil when closed and empty. `done` says
    /// when it has been done.
    func next(atOnce: Int) -> (lane: UInt32, work: Work)? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let found: (lane: UInt32, work: Work) = row.takeOne(atOnce: isClosed ? .max : atOnce) { return found }
            guard !isClosed else { return nil }
            pthread_cond_wait(condition, mutex)
        }
    }

    func done(_ lane: UInt32) {
        pthread_mutex_lock(mutex)
        row.done(lane)
        let wakes: Bool = row.count > 0
        pthread_mutex_unlock(mutex)
        if wakes { pthread_cond_signal(condition) }
    }

    /// Nothing of the lane is taken before that time.
    func rest(_ lane: UInt32, until time: Int64) {
        pthread_mutex_lock(mutex)
        row.rest(lane, until: time)
        restCount += 1
        if restCount % 256 == 0 { row.forgetRests(before: SystemClock.monotonic()) }
        pthread_mutex_unlock(mutex)
    }

    private func wait(until time: Int64) {
        var deadline: timespec = .init(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
        pthread_cond_timedwait(condition, mutex, &deadline)
    }
}
