public import ThicketProtocol

/// The name of a shared branch, as its members open it: `tree@OWNER~ROOT`. It stands where the name of a bucket does,
/// in an `init` and in the path of a request; no bucket has such a name.
public struct BranchName: Sendable, Hashable {
    /// The account whose tree the branch is in.
    public let owner: UserID
    /// The root of the branch.
    public let root: NodeID

    /// The branch below a root, with the root.
    public init(of owner: UserID, root: NodeID) { (self.owner, self.root) = (owner, root) }

    private static let prefix = Array("tree@".utf8)
    /// Ids have one length, so that the mark before it is found also in an owner's name that has one.
    private static let mark = UInt8(ascii: "~")

    /// Reads a name.
    ///
    /// - Returns: nil for any other text, such as the name of a bucket.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.starts(with: Self.prefix), let mark = bytes.lastIndex(of: Self.mark), mark > Self.prefix.count,
            let root = NodeID(text: String(decoding: bytes[(mark + 1)...], as: UTF8.self)),
            let owner = try? UserID(String(decoding: bytes[Self.prefix.count..<mark], as: UTF8.self))
        else { return nil }
        self.init(of: owner, root: root)
    }

    /// The name.
    public var text: String { String(decoding: Self.prefix, as: UTF8.self) + owner.text + "~" + root.text }
}
