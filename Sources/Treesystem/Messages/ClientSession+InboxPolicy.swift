public import ThicketClient
import ThicketProtocol
public import ThicketTreeShape

/// Which accounts may write to this one. The server keeps the policy, and it decides each message that is sent after it
/// was replaced.
extension ClientSession {
    /// Seconds for a request of the policy.
    private static let policySeconds = 60

    /// The policy of the account's inbox.
    ///
    /// - Throws: `unauthorized`, `unavailable`, `offline`; `refused` when the answer is no policy.
    public func inboxPolicy() async throws(ClientError) -> InboxPolicy { try await policy("GET", nil) }

    /// Replaces the policy, as a whole: of two devices that change it at the same time, the last one wins.
    ///
    /// - Parameter policy: at most 1,000 contacts, and as many blocked accounts.
    /// - Returns: the policy in force.
    /// - Throws: as `inboxPolicy`; `limit` for longer lists.
    @discardableResult
    public func setInboxPolicy(_ policy: InboxPolicy) async throws(ClientError) -> InboxPolicy {
        let most = TreeLimits.policyListMax
        guard policy.contacts.count <= most, policy.blocked.count <= most else {
            throw ClientError(.limit, "the lists of an inbox's policy have at most \(most) accounts each")
        }
        return try await self.policy("PUT", policy.object.serialized())
    }

    private func policy(_ method: String, _ body: [UInt8]?) async throws(ClientError) -> InboxPolicy {
        guard let (owner, _) = sync.treeSecret else {
            throw ClientError(.unauthorized, "the session has no keys of its account: it has no inbox")
        }
        let pool = HTTPPool(options: transportOptions)
        let answer = try await transfer(
            pool, method: method, path: "tree/\(HTTPBlobTransport.percentEncoded(owner))/inbox",
            fields: body == nil ? [] : ["Content-Type: application/json"], body: body,
            timeoutSeconds: Self.policySeconds)
        guard answer.status == 200 else { throw ServerCalls.refusal(answer) }
        do throws(TreeCallFault) { return try InboxPolicy(parsing: answer.body) } catch {
            throw ClientError(.refused, "the server's answer is no policy of an inbox: \(error.description)")
        }
    }
}
