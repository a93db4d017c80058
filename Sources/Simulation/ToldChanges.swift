import ThicketServer

/// The changes that one channel is told of: each once, none left out, in order, but for the gaps that the rules close
/// otherwise.
struct ToldChanges {
    /// The last change that was sent.
    private var last: GlobalID?
    /// Positions the channel was promised the changes after, and how often.
    private var starts = [GlobalID: Int]()
    /// The server has said that it does not know where the channel stands: until that asks again it is told its own
    /// changes, whatever others did between them.
    private var isLost = false

    init() {}

    /// A channel that is opened anew on one connection, for the same bucket: the server goes on where a token ended.
    init(after before: ToldChanges) { isLost = before.isLost }

    /// `cv:` of a position that the server can read.
    mutating func asked(since position: GlobalID) {
        starts[position, default: 0] += 1
        isLost = false
    }

    mutating func askedForIndex() { isLost = false }

    /// A page of an index. At the end of a walk the server goes on from there by itself, and the client asks for the
    /// same.
    mutating func index(at position: GlobalID) { starts[position] = max(1, starts[position] ?? 0) }

    /// The log was cut under a walk (decision 0081). The one that took its place closes the gap.
    mutating func walkedAnew() { last = nil }

    /// `cv:?`. The log was cut before the channel's position: the client was told to walk, which closes the gap.
    mutating func positionUnknown() {
        last = nil
        isLost = true
    }

    /// A change is sent.
    /// - Parameters:
    ///   - before: the bucket's change before it.
    ///   - isOwn: the channel's client made it.
    /// - Returns: what is wrong with that; nil: nothing.
    mutating func told(_ change: GlobalID, after before: GlobalID, isOwn: Bool) -> String? {
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
