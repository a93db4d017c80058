/// Work of many users in the order in which it is done: each user's own is done in the order it came, and the users
/// take turns. Whoever cost too much rests, and what it sends meanwhile waits behind nobody but itself. Whoever waits
/// for something to be done elsewhere is held: its next piece depends on it.
///
/// Pure: time is passed in (nanoseconds of a clock that never goes back).
struct FairRow<Work> {
    /// Whose work it is.
    typealias Lane = UInt32

    private struct Waiting {
        var line = WaitingLine<Work>()
        var restsUntil = Int64.min
        /// Pieces that were taken by `takeOne` and are not `done`.
        var atWork = 0
        var isHeld = false

        var count: Int { line.count }
    }

    /// What a piece counts of a turn's weight: about how long it takes, in pieces of the usual kind.
    private let weigh: (Work) -> Int
    private var lanes = [Lane: Waiting]()
    /// Lanes with work, in the order of their turns.
    private var turns = [Lane]()
    private var next = 0
    private(set) var count = 0
    /// Lanes that wait for something done elsewhere.
    private(set) var heldCount = 0

    init(weigh: @escaping (Work) -> Int = { _ in 1 }) { self.weigh = weigh }

    mutating func append(_ work: Work, of lane: Lane) {
        count += 1
        if lanes[lane, default: Waiting()].count == 0 { turns.append(lane) }
        lanes[lane, default: Waiting()].line.append(work)
    }

    /// Gives each lane in turn up to `share` pieces, `most` in all.
    ///
    /// - Parameters:
    ///   - weightMax: what those of one lane may weigh together, the last one left out.
    ///   - rests: false when nobody rests any more: everything is finished at the end.
    mutating func take(most: Int, share: Int, weightMax: Int = .max, now: Int64, rests: Bool = true) -> [Work] {
        var taken = [Work]()
        for _ in 0..<turns.count {
            guard taken.count < most else { break }
            if next >= turns.count { next = 0 }
            let lane: Lane = turns[next]
            if isHeld(lane) || rests && self.rests(lane, at: now) {
                next += 1
            } else {
                take(min(share, most - taken.count), weightMax, of: lane, &taken)
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
                var taken = [Work]()
                take(1, .max, of: lane, &taken)
                lanes[lane, default: Waiting()].atWork += 1
                return taken.first.map { (lane, $0) }
            }
            next += 1
        }
        return nil
    }

    /// A piece that `takeOne` gave has been done.
    /// - Returns: whether more of the lane waits.
    @discardableResult
    mutating func done(_ lane: Lane) -> Bool {
        lanes[lane]?.atWork -= 1
        let waits = (lanes[lane]?.count ?? 0) > 0
        forgetIfIdle(lane)
        return waits
    }

    /// Work that was taken and not begun is the lane's next again, in its order.
    mutating func putBack(_ work: [Work], of lane: Lane) {
        guard !work.isEmpty else { return }
        count += work.count
        if lanes[lane, default: Waiting()].count == 0 { turns.append(lane) }
        var waiting = lanes.removeValue(forKey: lane) ?? Waiting()
        waiting.line.putBack(work)
        lanes[lane] = waiting
    }

    /// Nothing of the lane is taken until `resume`, not even at the end.
    mutating func hold(_ lane: Lane) {
        guard !isHeld(lane) else { return }
        lanes[lane, default: Waiting()].isHeld = true
        heldCount += 1
    }

    /// The lane goes on, with this first.
    mutating func resume(_ lane: Lane, with work: Work) {
        if isHeld(lane) { heldCount -= 1 }
        lanes[lane]?.isHeld = false
        putBack([work], of: lane)
    }

    func isHeld(_ lane: Lane) -> Bool { heldCount > 0 && lanes[lane]?.isHeld ?? false }

    /// Nothing of the lane is taken before that time, or before the end of a longer rest.
    mutating func rest(_ lane: Lane, until time: Int64) {
        lanes[lane, default: Waiting()].restsUntil = max(time, lanes[lane]?.restsUntil ?? .min)
    }

    /// Whether the lane must wait at that time.
    func rests(_ lane: Lane, at now: Int64) -> Bool { lanes[lane]?.restsUntil ?? .min > now }

    /// When the first of those who rest and have work may go on; nil when nobody does.
    func wakes(after now: Int64) -> Int64? {
        turns.lazy.filter { !isHeld($0) }.compactMap { lanes[$0]?.restsUntil }.filter { $0 > now }.min()
    }

    /// Whether somebody has work, is not held, and does not rest.
    /// - Parameter rests: as for `take`.
    func hasWork(_ now: Int64, rests: Bool = true) -> Bool {
        turns.contains { !isHeld($0) && !(rests && self.rests($0, at: now)) }
    }

    /// Takes some of a lane and passes the turn on.
    private mutating func take(_ wanted: Int, _ weightMax: Int, of lane: Lane, _ taken: inout [Work]) {
        guard var waiting = lanes.removeValue(forKey: lane) else { return }
        var number = min(wanted, waiting.count)
        if weightMax < .max {
            var (fitting, weight) = (0, 0)
            while fitting < number, weight < weightMax {
                weight += weigh(waiting.line[fitting])
                fitting += 1
            }
            number = fitting
        }
        taken.append(contentsOf: waiting.line.takeFirst(number))
        count -= number
        if waiting.count == 0 { turns.remove(at: next) } else { next += 1 }
        lanes[lane] = waiting
        forgetIfIdle(lane)
    }

    private mutating func forgetIfIdle(_ lane: Lane) {
        guard let waiting = lanes[lane], waiting.count == 0, waiting.atWork <= 0, waiting.restsUntil == .min,
            !waiting.isHeld
        else { return }
        lanes[lane] = nil
    }

    /// Forgets rests that are over, so that lanes of users long gone take no room.
    mutating func forgetRests(before now: Int64) {
        for (lane, waiting) in lanes where waiting.restsUntil <= now {
            lanes[lane]?.restsUntil = .min
            forgetIfIdle(lane)
        }
    }
}

/// A `FairRow` between threads.
///
/// It has no bound of its own: the hub counts what is under way, in all and of each user, and stops reading from
/// clients before it grows further.
///
/// Another thread may take the place of the one that waits in `take` for a moment (`claim`), so that what is little is
/// done where it is, without waking anybody.
final class FairQueue<Work: Sendable>: @unchecked Sendable {
    // All mutable state is touched only inside `monitor`.
    private let monitor = Monitor()
    private var row: FairRow<Work>
    private var isClosed = false
    private var restCount = 0
    /// Somebody sleeps in `take`.
    private var isAwaited = false
    private var isClaimed = false
    /// Who sleeps in `take` woke up while the place was taken, and sleeps without end until it is free.
    private var isHeldBack = false
    /// `take` is to come back, with nothing if need be.
    private var isRoused = false

    /// - Parameter weigh: see `FairRow`; called inside of the monitor.
    init(weigh: @escaping @Sendable (Work) -> Int = { _ in 1 }) { row = FairRow(weigh: weigh) }

    /// Adds work; after `close` it is dropped.
    func push(_ work: [(lane: UInt32, work: Work)]) {
        guard !work.isEmpty else { return }
        monitor.locked {
            if !isClosed { for (lane, piece) in work { row.append(piece, of: lane) } }
        }
        if work.count == 1 { monitor.wakeOne() } else { monitor.wakeAll() }
    }

    /// No more work comes; what is queued is still handed out.
    func close() {
        monitor.locked { isClosed = true }
        monitor.wakeAll()
    }

    /// Nothing of the lane is handed out until `resume`, which must come; what was handed out of it and not begun comes
    /// again after that.
    func hold(_ lane: UInt32, puttingBack work: [Work]) {
        monitor.locked {
            row.hold(lane)
            row.putBack(work, of: lane)
        }
    }

    /// The lane goes on, with this first; after `close` too.
    func resume(_ lane: UInt32, with work: Work) {
        monitor.locked { row.resume(lane, with: work) }
        monitor.wakeAll()
    }

    /// Nothing of the lane is handed out before that time, and what was handed out of it and not begun only then.
    func rest(_ lane: UInt32, until time: Int64, puttingBack work: [Work]) {
        monitor.locked { row.putBack(work, of: lane) }
        rest(lane, until: time)
    }

    /// What is next, a share of each lane, waiting for the first; nil when closed and empty.
    /// - Parameter seconds: longest wait; 0 does not wait. An empty array comes back when it is over.
    func take(most: Int, share: Int, weightMax: Int = .max, waitingSeconds seconds: Double) -> [Work]? {
        monitor.locked {
            var now = SystemClock.monotonic()
            let end = now + Int64(seconds * 1e9)
            while isClaimed || waits(now, until: end) {
                isAwaited = true
                isHeldBack = isClaimed
                monitor.wait(until: isClaimed || isClosed ? .max : min(end, row.wakes(after: now) ?? end))
                isAwaited = false
                now = SystemClock.monotonic()
            }
            isRoused = false
            let taken = row.take(
                most: most, share: share, weightMax: weightMax, now: now, rests: !isClosed)
            return taken.isEmpty && isClosed ? nil : taken
        }
    }

    /// Whether there is nothing to take at that time. When closed, only what is held is waited for.
    private func waits(_ now: Int64, until end: Int64) -> Bool {
        guard !row.hasWork(now, rests: !isClosed) else { return false }
        return isClosed ? row.heldCount > 0 : !isRoused && now < end
    }

    /// Puts the caller in the place of the thread that waits in `take`, until `release`: that one is not at work and
    /// begins nothing, so the caller may do work of these lanes itself, in their order.
    /// - Returns: false, and nothing has changed, when something waits or is being done, a lane rests, or all is
    ///   closed.
    func claim(_ lanes: some Sequence<UInt32>) -> Bool {
        monitor.locked {
            guard isAwaited, !isClaimed, !isClosed, row.count == 0 else { return false }
            let now = SystemClock.monotonic()
            guard !lanes.contains(where: { row.rests($0, at: now) || row.isHeld($0) }) else { return false }
            isClaimed = true
            return true
        }
    }

    /// Gives the place back.
    /// - Parameter rousing: whether the thread is to come back from `take` even when nothing has come.
    func release(rousing: Bool) {
        let wakes = monitor.locked {
            isClaimed = false
            if rousing { isRoused = true }
            return isRoused || isClosed || row.count > 0 || isHeldBack
        }
        if wakes { monitor.wakeAll() }
    }

    /// One piece, waiting for it, of a lane that has fewer than `atOnce` at work; nil when closed and empty. `done`
    /// says when it has been done.
    func next(atOnce: Int) -> (lane: UInt32, work: Work)? {
        monitor.locked {
            while true {
                if let found = row.takeOne(atOnce: isClosed ? .max : atOnce) {
                    return found
                }
                guard !isClosed else { return nil }
                monitor.wait()
            }
        }
    }

    /// A piece that `next` gave has been done.
    /// - Returns: whether more of the lane waits.
    @discardableResult
    func done(_ lane: UInt32) -> Bool {
        let (waits, wakes) = monitor.locked { (row.done(lane), row.count > 0) }
        if wakes { monitor.wakeOne() }
        return waits
    }

    /// Nothing of the lane is taken before that time.
    func rest(_ lane: UInt32, until time: Int64) {
        monitor.locked {
            row.rest(lane, until: time)
            restCount += 1
            if restCount % 256 == 0 { row.forgetRests(before: SystemClock.monotonic()) }
        }
    }
}
