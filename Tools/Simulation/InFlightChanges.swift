import ThicketProtocol

/// The changes of one connection that await their answer, as the client's end knows them: never two of one object.
/// Beside an operation of a sealed object one compaction of it may be in flight: it changes nothing that a reader sees,
/// and the server rebases the one over the other (decision 0044). Once the client has read that an object is gone, a
/// change in flight to it is decided: it can only be refused. The client reads that in a removal, or, if the log with
/// the removal was cut before the client received it, in an index that was requested since and does not list the object
/// any more.
///
/// Only this end can check it. A change that is sent again while the first answer is in flight is answered twice, and
/// the client correctly continues after the first answer.
package struct InFlightChanges {
    package init() {}

    private var waiting = [ChannelNumber: [Slot: InFlight]]()
    private var scans = [ChannelNumber: Scan]()

    private struct Slot: Hashable {
        let key: String
        let isCompaction: Bool
    }

    private struct InFlight: Equatable {
        let ccid: String
        /// It is a removal, or an operation of a sealed object: its author drops it if an index does not list the
        /// object. An edit of an open object keeps its ccid then (0005).
        let endsWithObject: Bool
    }

    /// An index scan of the client.
    private struct Scan {
        /// The changes that were in flight when the scan was requested.
        let before: [Slot: InFlight]
        var keys = Set<String>()
    }

    /// The client sends `text`.
    /// - Returns: the violation; nil: none.
    package mutating func sent(_ text: [UInt8]) -> String? {
        switch try? ClientMessage(parsing: text) {
        case .channel(let number, .index(let request))? where request.mark == nil:
            scans[number] = Scan(before: waiting[number] ?? [:])
            return nil
        case .channel(let number, .change(let change))?:
            let slot = Slot(key: change.key, isCompaction: change.isCompaction)
            let isSealed = change.sv != nil && change.sealedOperation != nil
            let inFlightChange = InFlight(
                ccid: change.ccid, endsWithObject: isSealed || change.operation == .remove)
            let before = waiting[number, default: [:]].updateValue(inFlightChange, forKey: slot)
            guard let before, before.ccid != change.ccid else { return nil }
            return "\(change.key) is in flight as \(before.ccid), and \(change.ccid) was sent"
        default: return nil
        }
    }

    /// The client processes `text`.
    package mutating func received(_ text: [UInt8]) {
        switch try? ServerMessage(parsing: text) {
        case .channel(let number, .changes(let events))?: answered(events, on: number)
        case .channel(let number, .index(let page))?: read(page, on: number)
        default: return
        }
    }

    private mutating func answered(_ events: [ChangeEvent], on number: ChannelNumber) {
        guard let flights = waiting[number], !flights.isEmpty else { return }
        var answered = Set<String>()
        for event in events {
            switch event {
            case .applied(let change):
                answered.formUnion(change.ccids)
                // A change in flight to an object that is gone can only be refused.
                let slot = Slot(key: change.key.text, isCompaction: false)
                if change.operation == .remove, let own = flights[slot] { answered.insert(own.ccid) }
            case .refused(let refusal): answered.formUnion(refusal.ccids)
            }
        }
        waiting[number] = flights.filter { !answered.contains($0.value.ccid) }
    }

    private mutating func read(_ page: IndexPage, on number: ChannelNumber) {
        guard var scan = scans[number] else { return }
        for entry in page.entries { scan.keys.insert(entry.key.text) }
        scans[number] = page.mark == nil ? nil : scan
        guard page.mark == nil else { return }
        for (slot, inFlightChange) in scan.before where inFlightChange.endsWithObject && !slot.isCompaction {
            guard !scan.keys.contains(slot.key), waiting[number]?[slot] == inFlightChange else { continue }
            waiting[number]?[slot] = nil
        }
    }
}
