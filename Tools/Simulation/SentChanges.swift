import ThicketServer

/// The changes that are sent to one channel: each once, none left out, in order, except for gaps that the rules close
/// in another way.
struct SentChanges {
    /// The last change that was sent.
    private var last: GlobalID?
    /// Positions after which the channel was promised the changes, and how often.
    private var starts = [GlobalID: Int]()
    /// The server has said that it does not know the channel's position: until the channel asks again it receives its
    /// own changes, whatever others did between them.
    private var isLost = false

    init() {}

    /// A channel that is opened again on one connection, for the same bucket: the server continues where a token ended.
    init(after before: SentChanges) { isLost = before.isLost }

    /// `cv:` of a position that the server can read.
    mutating func asked(since position: GlobalID) {
        starts[position, default: 0] += 1
        isLost = false
    }

    mutating func askedForIndex() { isLost = false }

    /// A page of an index. At the end of a scan the server continues from its position by itself, and the client asks
    /// for the same.
    mutating func index(at position: GlobalID) { starts[position] = max(1, starts[position] ?? 0) }

    /// The log was cut during a scan (decision 0003). The scan that replaced it closes the gap.
    mutating func scannedAgain() { last = nil }

    /// `cv:?`. The log was cut before the channel's position: the client was told to scan the index, which closes the
    /// gap.
    mutating func positionUnknown() {
        last = nil
        isLost = true
    }

    /// A change is sent.
    /// - Parameters:
    ///   - before: the bucket's previous change.
    ///   - isOwn: the channel's client made it.
    /// - Returns: the violation; nil: none.
    mutating func record(_ change: GlobalID, after before: GlobalID, isOwn: Bool) -> String? {
        var flaw: String?
        if last != before {
            if let count = starts[before] {
                starts[before] = count > 1 ? count - 1 : nil
            } else if isLost, isOwn {
                return nil
            } else if let last {
                let what = change <= last ? "doubled" : "changes are missing before it"
                flaw = "change \(change) after \(last): \(what)"
            }
        }
        last = change
        isLost = false
        return flaw
    }
}
