import ThicketCrypto
public import ThicketProtocol
public import ThicketTreeShape

/// A batch as it was sent, parsed.
public struct TreeBatchRequest: Sendable {
    /// The member that has sent the batch, and the branch that it names.
    public struct Member: Sendable, Hashable {
        /// The account.
        public let user: UserID
        /// The root of the branch.
        public let root: NodeID

        /// A member of a branch.
        public init(_ user: UserID, root: NodeID) { (self.user, self.root) = (user, root) }
    }

    /// The batch.
    public let batch: TreeBatch
    /// SHA-256 of the bytes.
    public let digest: [UInt8]
    /// The member of a shared branch that has sent it; nil: the owner of the tree.
    public var member: Member?
    /// What is known of the signatures of its copies.
    public var copies = CopyVerdict.unchecked
    /// What is known of the signatures of its puts, by their place in the batch; nothing of those that are missing.
    public var proofs = [Int: PutProof]()
    /// Whether signatures were looked at.
    var isChecked = false

    /// The account whose changes they are.
    var actor: TreeActor { member.map { .member($0.user, root: $0.root) } ?? .owner }
    /// Whether the shard can decide the batch.
    var isReady: Bool { isChecked || !hasSignatures }
    /// Whether an operation looks at another tree than the caller's.
    var reachesOtherTrees: Bool { batch.operations.contains { $0.receiver != nil } }
    /// Whether an operation needs a signature.
    var hasCopies: Bool {
        batch.operations.contains { if case .copy = $0 { true } else { false } }
    }
    private var hasSignatures: Bool {
        batch.operations.contains { operation in
            switch operation {
            case .copy: true
            case .put(_, _, let record): record.signature != nil
            case .delete, .deleteTree, .burn: false
            }
        }
    }

    /// The digest under which the answer is stored: a batch of another account is another batch.
    var answerDigest: [UInt8] {
        guard let member else { return digest }
        return Hash.sha256(Array("thicket/member-batch/1".utf8) + [0] + digest + Array(member.user.text.utf8))
    }

    /// Parses the body of a request.
    public init(parsing body: [UInt8]) throws(BatchFault) {
        batch = try TreeBatch(parsing: body)
        digest = Hash.sha256(body)
    }
}

extension TreeBatchRequest {
    /// Refuses the batch of an account without letters: it learns nothing, not even that a batch was made.
    func checkMember(in tree: ShardTree) throws(ChangeRejection) {
        guard let member else { return }
        let list = try tree.record(of: member.root)?.shareList
        guard list?.member(member.user) != nil else { throw ChangeRejection(TreeRefusal.notPermitted(.noRead)) }
    }
}
