public import ThicketTreeShape

/// Something that happened to a shared branch: reported by `TreeSharing.events`.
public enum ShareEvent: Sendable, Hashable {
    /// The list of the branch with this root is another one, which was verified.
    case changed(NodeID, [ShareList.Member], epoch: UInt32)
    /// The eager re-key of the branch with this root goes on.
    case rekeying(NodeID, left: Int, of: Int)
    /// The eager re-key of the branch with this root is over.
    case rekeyed(NodeID)
    /// The branch with this root is shared no more.
    case ended(NodeID)
    /// The server serves the branch no more: the list does not let this account read it, or it does not exist. Local
    /// copies stay until the app removes them.
    case revoked
}
