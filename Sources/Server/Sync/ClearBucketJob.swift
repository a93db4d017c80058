import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// An `EMPTY` in progress: one removal per object, in batches, over as many groups as needed.
///
/// Objects changed after the request stay, so that no edit is lost. The last removal carries the request's own ccid: an
/// `EMPTY` interrupted by a crash is sent again by its author, and a completed one is answered with 409.
struct ClearBucketJob {
    let submitted: SubmittedChange
    let change: CheckedChange
    /// Newest change of the bucket when the request was received.
    let snapshot: GlobalID
    /// True from the group after the one in which the request was received.
    var isReady = false
    /// True when the open group contains its answer.
    var isDone = false
    /// Keys up to this one have been visited.
    var cursor: EntityKey?
    /// An object whose removal is delayed until the next object is found, because the last removal is special.
    var held: EntityKey?
    /// Number of removals so far.
    var removedCount = 0

    /// The ccid of a removal that is not the last: derived from the request's ccid, the key and the gid.
    func changeID(for key: EntityKey, gid: GlobalID) -> ChangeID? {
        var text: [UInt8] = Array(change.changeID.text.utf8)
        text.append(0)
        text.append(contentsOf: key.text.utf8)
        text.append(0)
        text.append(contentsOf: String(gid).utf8)
        return try? ChangeID(Hex.encode(Array(Hash.sha256(text).prefix(16))))
    }
}
