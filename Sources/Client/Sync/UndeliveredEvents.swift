package import ThicketProtocol

/// Counts a bucket's undelivered conflicts and integrity reports. They are written to the store in the transaction of
/// the turn that found them, and kept until a reader has them (decision 0051).
struct UndeliveredEvents: Equatable {
    private(set) var count = 0
    /// The number of events, from the first on, that were delivered in this run; they are deleted only with all the
    /// others.
    private(set) var delivered = 0
    /// The number of delivered events among those beyond the bound.
    private var deliveredMissed = 0
    /// Size of the events as JSON: a conflict may hold a whole object.
    private var bytes = 0
    /// The number of events beyond the bound.
    private var missed = 0

    init() {}

    /// - Parameters:
    ///   - kept: the events in the store.
    ///   - known: the state before the store failed, so that delivered events are not delivered again.
    init(_ kept: [BucketEvent], after known: UndeliveredEvents = UndeliveredEvents()) {
        for event in kept {
            if case .overrun(let more) = event { missed += more } else { hold(Self.size(of: event)) }
        }
        (delivered, deliveredMissed) = (min(known.delivered, count), min(known.deliveredMissed, missed))
    }

    /// All events, including those beyond the bound.
    var total: Int { count + missed }
    var isEmpty: Bool { total == 0 }

    /// The events among `kept` that are still to be delivered.
    func left(of kept: [BucketEvent]) -> [BucketEvent] {
        var left = Array(kept.dropFirst(delivered))
        guard deliveredMissed > 0, case .overrun(let all)? = left.last else { return left }
        left.removeLast()
        if all > deliveredMissed { left.append(.overrun(missed: all - deliveredMissed)) }
        return left
    }

    /// Records that the next `more` events, in order of occurrence, were delivered one by one.
    ///
    /// - Returns: whether all events are delivered.
    mutating func markDelivered(_ more: Int) -> Bool {
        if delivered + deliveredMissed + more == total { return markAllDelivered() }
        // When some events are beyond the bound, it is unknown which ones were delivered.
        if missed == 0, delivered + more < count { delivered += more }
        return false
    }

    /// As above, for the first `more` events of `left(of:)`, where the events beyond the bound are one entry.
    mutating func give(_ more: Int) -> Bool {
        if delivered + more == count + (missed > deliveredMissed ? 1 : 0) { return markAllDelivered() }
        if delivered + more <= count { delivered += more }
        return false
    }

    /// Remembered until the events are deleted, which needs the store.
    private mutating func markAllDelivered() -> Bool {
        (delivered, deliveredMissed) = (count, missed)
        return true
    }

    /// - Returns: what to store for the event, replacing the entry at that place. The place after the last event holds
    ///   the number of events beyond the bound.
    mutating func add(_ event: BucketEvent) -> (place: Int, event: BucketEvent) {
        let size = Self.size(of: event)
        guard count < StreamLimits.undeliveredMax, bytes + size <= StreamLimits.undeliveredBytesMax else {
            missed += 1
            return (StreamLimits.undeliveredMax, .overrun(missed: missed))
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

/// A conflict or an integrity report to be stored until it is delivered.
package struct UndeliveredWrite: Sendable, Equatable {
    package let bucket: BucketName
    /// An existing entry at this place is replaced. Events are delivered in order of their places.
    package let place: Int
    /// `.conflict`, `.integrity` or `.overrun`.
    package let event: BucketEvent

    package init(bucket: BucketName, place: Int, event: BucketEvent) {
        (self.bucket, self.place, self.event) = (bucket, place, event)
    }
}
