import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Trees of several accounts: messages go from one server's tree to another's.
extension TreeWorld {
    /// The server of an account's tree.
    subscript(owner: String) -> ModelServer {
        get { others[owner] ?? server }
        set { if others[owner] == nil { server = newValue } else { others[owner] = newValue } }
    }

    /// - Parameter caller: the account of the token.
    func batch(_ body: [UInt8], of owner: String, by caller: String) -> TreeBatchAnswer {
        guard !people.isEmpty else { return server.batch(body) }
        let answer = self[owner].batch(body, by: caller)
        let posted = self[owner].posted
        self[owner].posted = []
        for operation in posted {
            if withheld.contains(operation.node) {
                late.append((operation, owner))
            } else if let receiver = operation.receiver {
                self[receiver.text].arrive(operation, from: owner)
            }
        }
        return answer
    }

    /// A device with which an account opens a branch of another one.
    func join(_ owner: String, _ root: NodeID, as user: String, invite: BranchInvite? = nil) throws -> WorldDevice {
        let identity = people[user]
        let device = try WorldDevice(
            devices.count, seed: random.next(), .rename, .lazy(depth: TreeLimits.depthMax), owner: owner,
            identity: identity, branch: BranchName(of: try UserID(owner), root: root), invite: invite)
        add(device)
        return device
    }

    /// What was withheld arrives.
    func release() {
        withheld = []
        for (operation, sender) in late {
            if let receiver = operation.receiver { self[receiver.text].arrive(operation, from: sender) }
        }
        late = []
    }

    func answer(_ question: KeyQuestion) -> KeyAnswer {
        if let trouble = troubles[question.user.text] { return .failed(trouble) }
        guard let identity = people[question.user.text] else { return .failed(.absent) }
        return .found(identity.keys, nil)
    }
}
