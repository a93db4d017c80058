public import ThicketClient
public import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol
import ThicketTree
public import ThicketTreeShape

/// The links to branches of an account's tree, for people without an account. Get it from `ClientSession.links()`.
///
/// Behind each link is a guest: an account that this device makes, and with which the branch is shared like with any
/// other. What it writes is signed by keys that nothing connects with a person: `UserID.isGuest` is true of its author,
/// and an app shows it as not verified.
public struct BranchLinks: Sendable {
    let session: ClientSession
    let tree: Treesystem
    /// The key derivation of tests; nil: the usual one.
    package var stretch: AccountAPIClient.Stretch?

    /// A link that this account has made.
    public struct Entry: Sendable, Hashable {
        /// The account behind the link.
        public let guest: UserID
        /// The root of the branch.
        public let root: NodeID
        /// What the link is for.
        public let purpose: LinkPurpose
        /// Its bounds; nil when the server has the guest no more.
        public let account: GuestAccount?
        /// Whether the list of the branch has the guest.
        public let isShared: Bool

        /// Whether its holder can use it, but for the time of its end.
        public var isOpen: Bool { account != nil && isShared }
    }

    /// Makes a link to a branch.
    ///
    /// The call returns when the server has the changed list. After an error there is no link, and nothing that opens
    /// without one; what was made of it is removed, or listed by `list`.
    ///
    /// - Parameters:
    ///   - root: as `TreeSharing.share`.
    ///   - passphrase: UTF-8; nil: the link has a random secret.
    ///   - timeout: for the server's answer to the list.
    /// - Throws: `noKeys`; `refused` with the server's word; as `TreeSharing.share` and `Treesystem.wait(for:)`.
    public func make(
        _ root: NodeID, for purpose: LinkPurpose, passphrase: SecureBytes? = nil, limits: LinkLimits = LinkLimits(),
        timeout: Duration = .seconds(60)
    ) async throws(TreeError) -> BranchLink {
        guard let owner = session.messageIdentity else {
            throw TreeError(.noKeys, "the session has no keys of its account: it makes no links")
        }
        let secret = passphrase == nil ? SecureBytes.random(BranchLink.secretBytes) : nil
        let guest = try await makeGuest(root.text, purpose, limits, passphrase ?? Self.password(secret))
        let link = try BranchLink(session.serverPlace, owner.keys, root, guest, secret: secret)
        do throws(TreeError) {
            try await share(root, guest, timeout)
        } catch {
            // The server removes it at its end, if not now.
            _ = try? await session.removeGuest(guest.id)
            throw error
        }
        return link
    }

    /// The links to a branch, or to all of them: those of the server's list, and guests of the lists of branches that
    /// the server has no more.
    ///
    /// - Throws: `network`, `store`, `closed`.
    public func list(of root: NodeID? = nil) async throws(TreeError) -> [Entry] {
        let accounts: [GuestAccount]
        do throws(ClientError) { accounts = try await session.guests() } catch { throw TreeError(error) }
        let roots: [NodeID]
        if let root { roots = [root] } else { roots = try await tree.sharing.roots }
        var entries = [Entry]()
        for account in accounts {
            guard let place = NodeID(text: account.root), root.map({ $0 == place }) ?? true else { continue }
            let members = try await tree.sharing.members(of: place) ?? [:]
            entries.append(
                Entry(
                    guest: account.id, root: place, purpose: account.purpose, account: account,
                    isShared: members[account.id] != nil))
        }
        let known = Set(accounts.map(\.id))
        for place in roots {
            let members = try await tree.sharing.members(of: place) ?? [:]
            for (user, letters) in members.sorted(by: { $0.key < $1.key }) where user.isGuest && !known.contains(user) {
                entries.append(
                    Entry(
                        guest: user, root: place, purpose: letters.contains(.read) ? .reading : .deposit, account: nil,
                        isShared: true))
            }
        }
        return entries
    }

    /// Removes a link: first its guest from the list of the branch, then the guest. After an error the call can be
    /// repeated.
    ///
    /// - Throws: `notFound` when there is no such link; as `TreeSharing.remove` and `Treesystem.wait(for:)`.
    public func remove(
        _ guest: UserID, from root: NodeID, rekey: Rekey = .lazy, timeout: Duration = .seconds(60)
    ) async throws(TreeError) {
        try await removal(of: guest, from: root, rekey: rekey, timeout: timeout).run()
    }

    /// A removal that is ready to run: callers that pass it to a task need not pass the ids.
    package func removal(
        of guest: UserID, from root: NodeID, rekey: Rekey = .lazy, timeout: Duration
    ) -> LinkRemoval { LinkRemoval(session, tree, guest, root, rekey, timeout) }

    // MARK: - Parts

    /// The password of a guest whose link has a secret.
    static func password(_ secret: SecureBytes?) -> SecureBytes {
        SecureBytes(copying: Array(Hex.encode(secret?.withUnsafeBytes { Array($0) } ?? []).utf8))
    }

    private func makeGuest(
        _ root: String, _ purpose: LinkPurpose, _ limits: LinkLimits, _ password: SecureBytes
    ) async throws(TreeError) -> GuestAccount {
        do throws(AccountError) {
            return try await session.makeGuest(root, purpose, limits, password: password, stretch: stretch)
        } catch { throw TreeError(link: error) }
    }

    private func share(_ root: NodeID, _ guest: GuestAccount, _ timeout: Duration) async throws(TreeError) {
        let letters: SharePermissions = guest.purpose == .deposit ? .writeOnce : .read
        let operation = try await tree.sharing.share(root, with: [guest.id: letters])
        do throws(TreeError) { try await tree.wait(for: operation, timeout: timeout) } catch {
            // A list that is sent later names a guest whose password is forgotten.
            try? await tree.discard(operation)
            throw error
        }
    }
}

extension ClientSession {
    /// The links to branches of the session's own tree.
    ///
    /// - Throws: as `tree()`.
    public func links() async throws(TreeError) -> BranchLinks { BranchLinks(session: self, tree: try await tree()) }
}

extension TreeError {
    /// The same failure of an account's request about a guest.
    init(link error: AccountError) {
        switch error {
        case .server(let error) where error.code == .refused || error.code == .unauthorized:
            self.init(.refused, error.detail, reason: error.code.rawValue)
        case .server(let error), .unknown(let error): self.init(error)
        case .memory: self.init(.limit, error.description)
        default: self.init(.network, error.description)
        }
    }
}
