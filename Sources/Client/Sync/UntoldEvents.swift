package import ThicketProtocol

/// What a bucket had to tell that comes once, and of which nobody has been told: what gave way, and what is not as it
/// should be. It is kept in the store, in the transaction of the turn that found it, until somebody has it (decision
/// 0060); this counts what is there.
struct UntoldEvents: Equatable {
    private(set) var count = 0
    /// Of these the first ones that somebody has been told of, in this life of the program: the others must not be
    /// forgotten yet.
    private(set) var told = 0
    /// Of those that came when there was no room, the ones that somebody has been told of.
    private var toldMissed = 0
    /// Bytes of JSON in them: a conflict may hold a whole object.
    private var bytes = 0
    /// Of those that came when there was no room.
    private var missed = 0

    init() {}

    /// - Parameters:
    ///   - kept: as the store has them.
    ///   - known: what was known of these before: whom the store has failed meanwhile goes on behind what was told.
    init(_ kept: [BucketEvent], after known: UntoldEvents = UntoldEvents()) {
        for event in kept {
            if case .overrun(let more) = event { missed += more } else { hold(Self.size(of: event)) }
        }
        (told, toldMissed) = (min(known.told, count), min(known.toldMissed, missed))
    }

    /// All that came, those included for which there was no room.
    var total: Int { count + missed }
    var isEmpty: Bool { total == 0 }

    /// What somebody has still to be told of, of all that is kept.
    func left(of kept: [BucketEvent]) -> [BucketEvent] {
        var left = Array(kept.dropFirst(told))
        guard toldMissed > 0, case .overrun(let all)? = left.last else { return left }
        left.removeLast()
        if all > toldMissed { left.append(.overrun(missed: all - toldMissed)) }
        return left
    }

    /// Somebody has been told of so many, the next ones in the order in which they came, as they came.
    ///
    /// - Returns: whether that is all there is.
    mutating func tell(_ more: Int) -> Bool {
        if told + toldMissed + more == total { return isAllTold() }
        // Where there was no room for some, it is not known which these are.
        if missed == 0, told + more < count { told += more }
        return false
    }

    /// The same of so many of `left(of:)`, where those there was no room for are one.
    mutating func give(_ more: Int) -> Bool {
        if told + more == count + (missed > toldMissed ? 1 : 0) { return isAllTold() }
        if told + more <= count { told += more }
        return false
    }

    /// Remembered until it is forgotten, for which the store is needed.
    private mutating func isAllTold() -> Bool {
        (told, toldMissed) = (count, missed)
        return true
    }

    /// - Returns: what is to be kept for it, in the place of what stands there. Behind the last place stands how many
    ///   there was no room for.
    mutating func add(_ event: BucketEvent) -> (place: Int, event: BucketEvent) {
        let size = Self.size(of: event)
        guard count < StreamLimits.unheardMax, bytes + size <= StreamLimits.unheardBytesMax else {
            missed += 1
            return (StreamLimits.unheardMax, .overrun(missed: missed))
        }
        hold(size)
        return (count - 1, event)
    }

    private mutating func hold(_ size: Int) {
        count += 1
        bytes += size
    }

    private static func size(of event: BucketEvent) -> Int {
        guard case .conflict(let report) = event else { return 0 }
        return [report.losing, report.winning].reduce(0) { $0 + ($1?.serialized().count ?? 0) }
    }
}

/// A conflict or an alarm that is to be kept until somebody was told.
package struct UntoldWrite: Sendable, Equatable {
    package let bucket: BucketName
    /// What stands there already is replaced. They are told in this order.
    package let place: Int
    /// `.conflict`, `.integrity` or `.overrun`.
    package let event: BucketEvent

    package init(bucket: BucketName, place: Int, event: BucketEvent) {
        (self.bucket, self.place, self.event) = (bucket, place, event)
    }
}

/// Conflicts and alarms: told once, whoever listens.
extension SyncMachine {
    /// Tells the app, and keeps it until somebody has been told.
    mutating func tellOnce(_ number: Int, _ event: BucketEvent) {
        let bucket = channels[number].record.name
        actions.append(.event(bucket, event))
        let (place, kept) = channels[number].untold.add(event)
        untoldWrites.append(UntoldWrite(bucket: bucket, place: place, event: kept))
    }

    /// Conflicts and alarms that nobody was told of, also in an earlier life of the program; the oldest first. They are
    /// not told again.
    package mutating func takeUntold(
        _ bucket: BucketName, now: Int64
    ) throws(ClientError) -> ([BucketEvent], [SyncAction]) {
        guard let number = channelNumbers[bucket], !channels[number].untold.isEmpty else { return ([], []) }
        let events = try untold(bucket)
        return (events, try turn(now) { machine throws(ClientError) in machine.forgetUntold(number) })
    }

    /// What `takeUntold` gives, and it stays untold.
    package func untold(_ bucket: BucketName) throws(ClientError) -> [BucketEvent] {
        guard let number = channelNumbers[bucket], !channels[number].untold.isEmpty else { return [] }
        return channels[number].untold.left(of: try store.untold(bucket))
    }

    /// Somebody has been told of as many conflicts and alarms of the bucket, one by one as they came. If nothing is
    /// left to be told, all is forgotten; else the next who asks is told of what is left, and in another life of the
    /// program of all.
    package mutating func told(_ bucket: BucketName, count: Int, now: Int64) -> [SyncAction] {
        guard let number = channelNumbers[bucket], channels[number].untold.tell(count) else { return [] }
        return quietTurn(now) { machine throws(ClientError) in machine.forgetUntold(number) }
    }

    /// The same of as many of those that `untold` gives.
    package mutating func gave(_ bucket: BucketName, count: Int, now: Int64) -> [SyncAction] {
        guard let number = channelNumbers[bucket], channels[number].untold.give(count) else { return [] }
        return quietTurn(now) { machine throws(ClientError) in machine.forgetUntold(number) }
    }

    mutating func forgetUntold(_ number: Int) {
        let bucket = channels[number].record.name
        forgotten[number] = forgotten[number] ?? channels[number].untold
        channels[number].untold = UntoldEvents()
        untoldWrites.removeAll { $0.bucket == bucket }
        toldBuckets.insert(bucket)
    }

    /// What is kept of the bucket in the store.
    func readUntold(_ channel: inout Channel) throws(ClientError) {
        channel.untold = UntoldEvents(try store.untold(channel.record.name), after: channel.untold)
    }
}
