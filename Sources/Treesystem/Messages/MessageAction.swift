package import ThicketKeyLog
package import ThicketProtocol
package import ThicketTreeShape

/// What messages need beside the tree's connection.
package enum MessageAction: Sendable, Equatable {
    /// Look up keys of another account and verify them; report `KeyQuestions.answered`.
    case lookUpKeys(KeyQuestion)
    /// Read the account's own keys again; report `KeyRenewal.renewed`, and the answer to the question.
    case renewKeys(KeyQuestion?)
    /// Another account knows this head of the key log: compare it with the own one.
    case hear(KeyLogHead, from: UserID)
    /// Compute the SHA-256 of the sealed contents of a message; the operation waits meanwhile.
    case digest(OperationID, NodeID)

    static func start(_ action: MessageAction, _ tree: isolated Treesystem) {
        switch action {
        case .lookUpKeys(let question): KeyLookUp.start(question, tree)
        case .renewKeys(let question): KeyLookUp.renew(question, tree)
        case .hear(let head, let user): KeyLookUp.hear(head, user, tree.connection)
        case .digest(let id, let node): ContentDigests.start(id, node, tree)
        }
    }
}
