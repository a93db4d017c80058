import ThicketClient
import ThicketProtocol
import ThicketTreeShape

/// The removal of a link: first its guest leaves the list of the branch, then the guest's account is removed.
///
/// An actor whose call passes nothing, for the reason that `Deposit` names.
package actor LinkRemoval {
    private let session: ClientSession
    private let tree: Treesystem
    private let guest: UserID
    private let root: NodeID
    private let rekey: Rekey
    private let timeout: Duration

    init(
        _ session: ClientSession, _ tree: Treesystem, _ guest: UserID, _ root: NodeID, _ rekey: Rekey,
        _ timeout: Duration
    ) {
        (self.session, self.tree, self.guest) = (session, tree, guest)
        (self.root, self.rekey, self.timeout) = (root, rekey, timeout)
    }

    /// Runs it. After an error it can be repeated.
    ///
    /// - Throws: as `BranchLinks.remove`.
    package func run() async throws(TreeError) {
        let members = try await tree.sharing.members(of: root)
        let isMember = members?[guest] != nil
        if isMember {
            let operation = try await tree.sharing.remove(guest, from: root, rekey: rekey)
            try await tree.wait(for: operation, timeout: timeout)
        }
        let wasThere = try await removeAccount()
        guard isMember || wasThere else { throw TreeError(.notFound, "there is no such link") }
    }

    private func removeAccount() async throws(TreeError) -> Bool {
        do throws(ClientError) { return try await session.removeGuest(guest) } catch { throw TreeError(error) }
    }
}
