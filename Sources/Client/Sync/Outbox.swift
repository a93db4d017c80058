import ThicketProtocol

/// A bucket's changes on their way to the server. Starts from the beginning on each connection.
struct Outbox {
    /// A change in flight: when it was sent, and its size.
    struct InFlight {
        let sentAt: Int64
        let bytes: Int
    }

    private(set) var inFlight = [EntityKey: InFlight]()
    private var bytesInFlight = 0
    /// Objects with edits that are not yet a change.
    var ready = KeyQueue()
    /// Objects whose pending change is sent again: those with edits from before this connection and changes refused
    /// with 500 or 503, which are sent unchanged, and those of `refusedWaiting`.
    var resend = KeyQueue()
    /// Objects whose change was refused on this connection and is sent again, as an edit of the newest state.
    var refusedWaiting = Set<EntityKey>()
    /// Changes that were in flight when the token expired. They are sent again if the server has sent everything it has
    /// and still has not answered them.
    private var strays = Set<EntityKey>()
    /// No change is sent before this time (500, 503).
    var resumeAt: Int64?
    /// The token does not permit changes: they wait.
    var isReadOnly = false

    /// - Parameter most: most changes in flight.
    func hasRoom(_ most: Int) -> Bool {
        inFlight.count < most && bytesInFlight < SyncLimits.bytesInFlightMax
    }

    mutating func sent(_ key: EntityKey, bytes: Int, at now: Int64) {
        refusedWaiting.remove(key)
        inFlight[key] = InFlight(sentAt: now, bytes: bytes)
        bytesInFlight += bytes
    }

    /// The server has answered the object's change.
    mutating func answered(_ key: EntityKey) {
        guard let inFlightChange = inFlight.removeValue(forKey: key) else { return }
        bytesInFlight -= inFlightChange.bytes
    }

    /// No change is sent before `time`, or before the time set earlier.
    mutating func pause(until time: Int64) { resumeAt = max(resumeAt ?? 0, time) }

    /// The token has expired: it is unknown whether the server has the changes in flight.
    mutating func lapse() { strays.formUnion(inFlight.keys) }

    /// Everything the server has was received: changes that it still has not answered are sent again unchanged.
    mutating func resendStrays() {
        for key in strays.sorted() where inFlight[key] != nil {
            answered(key)
            resend.append(key)
        }
        strays = []
    }
}
