public import ThicketClient
public import ThicketCrypto
internal import ThicketKeyLog
import ThicketProtocol
public import ThicketTree

/// A link that is open: what its holder may do with the branch. Nothing is kept when it is closed.
public final class LinkSession: Sendable {
    /// The link.
    public let link: BranchLink
    let session: ClientSession

    init(_ link: BranchLink, _ session: ClientSession) { (self.link, self.session) = (link, session) }

    /// Puts a node into the branch, sealed to its owner alone.
    ///
    /// - Parameters:
    ///   - content: the content.
    ///   - name: the name; the owner's devices add the beginning of the id to it.
    ///   - tags: pairs of the app.
    ///   - modified: milliseconds since 1970 at which the content was last changed; nil: not stated.
    ///   - progress: receives the bytes that were transferred, for contents that are not in the record.
    /// - Throws: as `ClientSession.deposit`; `refused` with the reason `guest-limit` when the link has no deposits or
    ///   bytes left.
    public func deposit(
        _ content: NodeSections, named name: NodeName, tags: [NodeMetadata.AppTag] = [], modified: Int64? = nil,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(TreeError) {
        try await session.deposit(
            content, named: name, into: link.owner, root: link.root, tags: tags, modified: modified,
            progress: progress)
    }

    /// The session of the guest's login.
    package var client: ClientSession { session }

    /// The branch, as `ClientSession.branch`: its later changes arrive while it is open.
    ///
    /// - Throws: as `ClientSession.branch`.
    public func branch(policy: DownloadPolicy = .nothing) async throws(TreeError) -> Treesystem {
        try await session.branch(of: link.owner, root: link.root, policy: policy)
    }

    /// Ends the guest's login and the session.
    public func close() async {
        _ = await session.signOut()
        await session.close()
    }
}

extension BranchLink {
    /// Logs in as the link's guest, and proves the owner of the branch by the key log and the link.
    ///
    /// - Parameters:
    ///   - passphrase: UTF-8, for a link that needs one.
    ///   - options: of the connection. Nothing is stored.
    /// - Throws: `link` with the reason `passphrase` for a missing or wrong one, or `ended` when the guest is there no
    ///   more; `keys` with the reason `other-owner` when the server shows other keys of the owner than the link names,
    ///   which is an alarm; `keys`, `network`, `limit`.
    public func open(
        passphrase: SecureBytes? = nil, options: SessionOptions = SessionOptions()
    ) async throws(TreeError) -> LinkSession {
        try await open(passphrase: passphrase, options: options, stretch: nil, rules: .product)
    }

    /// As above, with another key derivation, for tests.
    package func open(
        passphrase: SecureBytes?, options: SessionOptions, stretch: AccountAPIClient.Stretch?, rules: PasswordRules
    ) async throws(TreeError) -> LinkSession {
        let password: SecureBytes
        if let secret {
            password = BranchLinks.password(secret)
        } else {
            guard let passphrase, passphrase.count > 0 else {
                throw TreeError(.link, "the link needs its passphrase", reason: "passphrase")
            }
            password = passphrase
        }
        let session = try await logIn(password, options, stretch, rules)
        do throws(TreeError) {
            try await proveOwner(session)
        } catch {
            await session.close()
            throw error
        }
        return LinkSession(self, session)
    }

    private func logIn(
        _ password: SecureBytes, _ options: SessionOptions, _ stretch: AccountAPIClient.Stretch?, _ rules: PasswordRules
    ) async throws(TreeError) -> ClientSession {
        let app: ThicketApp
        let accounts: Accounts
        do throws(ClientError) {
            app = try ThicketApp(server: server, app: self.app, apiKey: apiKey, store: .memory, options: options)
            accounts = try app.accounts(stretch, rules)
        } catch { throw TreeError(error) }
        let result: SignInResult
        do throws(AccountError) {
            result = try await accounts.signIn(name: guest.text, password: password)
        } catch { throw refusal(error) }
        guard case .open(let signed) = result, signed.account.user.utf8.elementsEqual(guest.text.utf8) else {
            throw TreeError(.link, "the server shows another account than the link names", reason: "other-account")
        }
        do throws(ClientError) { return try await app.resume(signed) } catch { throw TreeError(error) }
    }

    private func refusal(_ error: AccountError) -> TreeError {
        switch error {
        case .wrongPassword where needsPassphrase:
            TreeError(.link, "the passphrase is wrong, or the link has ended", reason: "passphrase")
        case .wrongPassword: TreeError(.link, "the link has ended", reason: "ended")
        case .server(let error) where error.number == 403: TreeError(.link, error.detail, reason: "ended")
        case .doesNotOpen, .bundleMissing, .damaged, .otherAccount:
            TreeError(.link, error.description, reason: "other-account")
        default: TreeError(link: error)
        }
    }

    /// The server does not choose the owner: the link names the owner's identity key, or one that it has replaced by a
    /// signed entry.
    private func proveOwner(_ session: ClientSession) async throws(TreeError) {
        let (app, wanted) = (self.app, ownerDigest)
        do throws(PeopleError) {
            let people = try await session.people()
            let isKnown = try await people.hasSuccessors(of: owner) { Self.digest(of: $0, app: app) == wanted }
            guard !isKnown else { return }
        } catch {
            if case .offline(let error) = error { throw TreeError(error) }
            throw TreeError(.keys, "the keys of the branch's owner cannot be used: \(error)", reason: error.code)
        }
        throw TreeError(
            .keys, "the server shows other keys of the branch's owner than the link names: do not use the link",
            reason: "other-owner")
    }
}
