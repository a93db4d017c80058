import ThicketProtocol

/// The changes of one connection that await their answer, as the client's end knows them: of one object never two.
///
/// Only this end can tell. A change that is sent again while the first answer to it is on its way is answered twice, and
/// the client rightly goes on with the first.
struct Flights {
    /// ccid by key, or by the bucket's name for an EMPTY.
    private var changeIDs: [ChannelNumber: [String: String]] = [:]

    /// The client sends `text`.
    /// - Returns: what is wrong with that; nil: nothing.
    mutating func sent(_ text: [UInt8]) -> String? {
        guard case .channel(let number, .change(let change))? = try? ClientMessage(parsing: text) else { return nil }
        let before: String? = changeIDs[number, default: [:]].updateValue(change.ccid, forKey: change.key)
        guard let before, before != change.ccid else { return nil }
        return "\(change.key) is in flight as \(before), and \(change.ccid) was sent"
    }

    /// The client looks at `text`.
    mutating func heard(_ text: [UInt8]) {
        guard case .channel(let number, .changes(let events))? = try? ServerMessage(parsing: text),
            let waiting: [String: String] = changeIDs[number], !waiting.isEmpty
        else { return }
        var answered: Set<String> = []
        for event: ChangeEvent in events {
            switch event {
            case .applied(let change): answered.formUnion(change.ccids)
            case .refused(let refusal): answered.formUnion(refusal.ccids)
            }
        }
        changeIDs[number] = waiting.filter { !answered.contains($0.value) }
    }
}
