import ThicketCrypto
import ThicketProtocol

/// An `EMPTY` under way: one removal per object, in batches, over as many groups as it takes.
///
/// Objects changed after it was asked for stay: an edit is never lost to it. The last removal carries the request's own
/// ccid, so an `EMPTY` cut short by a crash is simply sent again by its author, and one that ended is answered 409.
struct EmptyJob {
    let submitted: SubmittedChange
    let change: CheckedChange
    /// Newest change of the bucket when it was asked for.
    let snapshot: GlobalID
    /// True from the group after the one it came with.
    var isReady = false
    /// True when its answer is in the open group.
    var isDone = false
    /// Keys up to here have been looked at.
    var cursor: EntityKey?
    /// An object that is removed when the next one is found, or as the last.
    var held: EntityKey?
    /// Removals made.
    var removedCount = 0

    /// The ccid of a removal that is not the last: made from the request's, the key and the row.
    func changeID(for key: EntityKey, gid: GlobalID) -> ChangeID? {
        var text: [UInt8] = Array(change.changeID.text.utf8)
        text.append(0)
        text.append(contentsOf: key.text.utf8)
        text.append(0)
        text.append(contentsOf: String(gid).utf8)
        return try? ChangeID(Hex.encode(Array(Hash.sha256(text).prefix(16))))
    }
}
