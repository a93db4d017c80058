import ThicketProtocol

/// What a bucket had to tell that comes once and nobody heard: what gave way, and what is not as it should be. It waits for the
/// first who listens.
struct UnheardEvents {
    private var events: [BucketEvent] = []
    /// Bytes of JSON in them: a conflict may hold a whole object.
    private var bytes: Int = 0
    /// Of those that came when there was no room.
    private var missed: Int = 0

    mutating func add(_ event: BucketEvent) {
        var size: Int = 0
        switch event {
        case .conflict(let report):
            for value: JSONValue? in [report.losing, report.winning] { size += value?.serialized().count ?? 0 }
        case .integrity: break
        default: return
        }
        guard events.count < StreamLimits.unheardMax, bytes + size <= StreamLimits.unheardBytesMax else {
            missed += 1
            return
        }
        events.append(event)
        bytes += size
    }

    /// All of it, the oldest first; it is not told again.
    mutating func take() -> [BucketEvent] {
        defer { self = UnheardEvents() }
        return missed == 0 ? events : events + [.overrun(missed: missed)]
    }
}
