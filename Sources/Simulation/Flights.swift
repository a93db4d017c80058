import ThicketProtocol

/// The changes of one connection that await their answer, as the client's end knows them: of one object never two.
/// Beside an operation of a sealed object one compaction of it may be on its way: it changes nothing that anybody
/// reads, and the server carries the one over the other (decision 0044). And once the client has read that an object is
/// gone, what was on its way to it is decided: it can only be refused. It reads that in a removal, or, where the log
/// that has the removal was cut before it was told, in an index that was asked for since and lists the object no more.
///
/// Only this end can tell. A change that is sent again while the first answer to it is on its way is answered twice,
/// and the client rightly goes on with the first.
package struct Flights {
    package init() {}

    private var waiting = [ChannelNumber: [Slot: Flight]]()
    private var walks = [ChannelNumber: Walk]()

    private struct Slot: Hashable {
        let key: String
        let isCompaction: Bool
    }

    private struct Flight: Equatable {
        let ccid: String
        /// It is a removal, or an operation of a sealed object: its author gives it up where an index does not list the
        /// object. An edit of an open object keeps its ccid then (0082).
        let endsWithObject: Bool
    }

    /// An index that the client reads.
    private struct Walk {
        /// What awaited its answer when it was asked for.
        let before: [Slot: Flight]
        var keys = Set<String>()
    }

    /// The client sends `text`.
    /// - Returns: what is wrong with that; nil: nothing.
    package mutating func sent(_ text: [UInt8]) -> String? {
        switch try? ClientMessage(parsing: text) {
        case .channel(let number, .index(let request))? where request.mark == nil:
            walks[number] = Walk(before: waiting[number] ?? [:])
            return nil
        case .channel(let number, .change(let change))?:
            let slot = Slot(key: change.key, isCompaction: change.isCompaction)
            let isSealed = change.sv != nil && change.sealedOperation != nil
            let flight = Flight(
                ccid: change.ccid, endsWithObject: isSealed || change.operation == .remove)
            let before = waiting[number, default: [:]].updateValue(flight, forKey: slot)
            guard let before, before.ccid != change.ccid else { return nil }
            return "\(change.key) is in flight as \(before.ccid), and \(change.ccid) was sent"
        default: return nil
        }
    }

    /// The client looks at `text`.
    package mutating func heard(_ text: [UInt8]) {
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
                // What was in flight to an object that is gone can only be refused.
                let slot = Slot(key: change.key.text, isCompaction: false)
                if change.operation == .remove, let own = flights[slot] { answered.insert(own.ccid) }
            case .refused(let refusal): answered.formUnion(refusal.ccids)
            }
        }
        waiting[number] = flights.filter { !answered.contains($0.value.ccid) }
    }

    private mutating func read(_ page: IndexPage, on number: ChannelNumber) {
        guard var walk = walks[number] else { return }
        for entry in page.entries { walk.keys.insert(entry.key.text) }
        walks[number] = page.mark == nil ? nil : walk
        guard page.mark == nil else { return }
        for (slot, flight) in walk.before where flight.endsWithObject && !slot.isCompaction {
            guard !walk.keys.contains(slot.key), waiting[number]?[slot] == flight else { continue }
            waiting[number]?[slot] = nil
        }
    }
}
