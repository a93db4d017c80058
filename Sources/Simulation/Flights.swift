import ThicketProtocol

/// The changes of one connection that await their answer, as the client's end knows them: of one object never two.
/// Beside an operation of a sealed object one compaction of it may be on its way: it changes nothing that anybody reads,
/// and the server carries the one over the other (decision 0044). And once the client has read that an object is gone, what
/// was on its way to it is decided: it can only be refused.
///
/// Only this end can tell. A change that is sent again while the first answer to it is on its way is answered twice, and
/// the client rightly goes on with the first.
package struct Flights {
    package init() {}

    /// ccid by key, or by the bucket's name for an EMPTY.
    private var changeIDs: [ChannelNumber: [Slot: String]] = [:]

    private struct Slot: Hashable {
        let key: String
        let isCompaction: Bool
    }

    /// The client sends `text`.
    /// - Returns: what is wrong with that; nil: nothing.
    package mutating func sent(_ text: [UInt8]) -> String? {
        guard case .channel(let number, .change(let change))? = try? ClientMessage(parsing: text) else { return nil }
        let slot: Slot = Slot(key: change.key, isCompaction: change.isCompaction)
        let before: String? = changeIDs[number, default: [:]].updateValue(change.ccid, forKey: slot)
        guard let before, before != change.ccid else { return nil }
        return "\(change.key) is in flight as \(before), and \(change.ccid) was sent"
    }

    /// The client looks at `text`.
    package mutating func heard(_ text: [UInt8]) {
        guard case .channel(let number, .changes(let events))? = try? ServerMessage(parsing: text),
            let waiting: [Slot: String] = changeIDs[number], !waiting.isEmpty
        else { return }
        var answered: Set<String> = []
        for event: ChangeEvent in events {
            switch event {
            case .applied(let change):
                answered.formUnion(change.ccids)
                // What was in flight to an object that is gone can only be refused.
                let slot: Slot = Slot(key: change.key.text, isCompaction: false)
                if change.operation == .remove, let own: String = waiting[slot] { answered.insert(own) }
            case .refused(let refusal): answered.formUnion(refusal.ccids)
            }
        }
        changeIDs[number] = waiting.filter { !answered.contains($0.value) }
    }
}
