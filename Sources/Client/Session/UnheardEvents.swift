/// What a bucket had to tell that comes once and nobody heard: what gave way, and what is not as it should be. It waits for the
/// first who listens.
struct UnheardEvents {
    private var events: [BucketEvent] = []
    /// Of those that came when there was no room.
    private var missed: Int = 0

    mutating func add(_ event: BucketEvent) {
        switch event {
        case .conflict, .integrity: break
        default: return
        }
        if events.count < StreamLimits.unheardMax { events.append(event) } else { missed += 1 }
    }

    /// All of it, the oldest first; it is not told again.
    mutating func take() -> [BucketEvent] {
        defer { self = UnheardEvents() }
        return missed == 0 ? events : events + [.overrun(missed: missed)]
    }
}
