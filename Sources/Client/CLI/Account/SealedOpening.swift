import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// In which mode a command opens a bucket, and by which keys.
///
/// A bucket is sealed when `--sealed` says so, when the copy on this machine is, or when the account's bundle has it
/// so; never because a server says so, and never in clear because a server says that.
struct SealedOpening: Sendable {
    /// What this machine has of the account; nil where it has no keys.
    let keys: OpenAccount?
    let account: Account
    let name: String

    init(_ account: Account, _ name: String) throws(Failure) {
        (self.account, self.name) = (account, name)
        let kept = try account.home?.readKeys(account.profileName)
        do throws(AccountError) { keys = try kept?.open() } catch {
            throw Failure("the keys kept here cannot be used", keys: error)
        }
    }

    /// Opens the bucket.
    func open(_ session: Session, _ client: ClientSession?) async throws(Failure) -> (bucket: Bucket, isSealed: Bool) {
        let what = "cannot open the bucket \(name)"
        let kept = try await trying(what) { () throws(ClientError) in try await session.isSealed(name) }
        guard account.isSealed || kept == true || keys?.bundle.buckets[name]?.isSealed == true else {
            return (try await trying(what) { () throws(ClientError) in try await session.bucket(name) }, false)
        }
        guard let keys else { throw missing() }
        do throws(ClientError) {
            if let client { try await client.useKeys(of: keys) } else { try await session.useKeys(of: keys) }
            return (try await session.bucket(name, sealed: true), true)
        } catch {
            guard error.code == .sealed, kept == false, keys.bundle.buckets[name] == nil else {
                throw Failure(what, error)
            }
            throw Failure(
                "\(name) is not a sealed bucket: the copy on this machine is an open one, with objects in it. Nothing was "
                    + "changed. Leave --sealed out, or take another name for a sealed bucket.", .usage)
        }
    }

    private func missing() -> Failure {
        let next =
            switch account.profile.kind {
            case .keys: "'thicket login', 'thicket recover' or 'thicket pair' gets them."
            case .partner: "'thicket keys' gets them, or makes them on the first machine."
            case .account, .token:
                "This login never has any: 'thicket signup' makes an account whose password and keys stay with you."
            }
        return Failure(
            "\(name) is a sealed bucket, and this machine does not have the account's keys. \(next)", .notFound)
    }

    /// `--sealed` for a bucket of open objects seals none of them, and must not leave a copy behind that no command
    /// gets any further with. Only where this very call has said `--sealed`: a call that leaves the mode to the copy
    /// would be followed by one that writes in clear, because a server says so. What the account's bundle has as a
    /// sealed bucket stays one, whatever the server shows.
    func checkMode(_ session: Session) async throws(Failure) {
        guard account.isSealed, keys?.bundle.buckets[name] == nil else { return }
        let isUndone = try await trying("cannot open the bucket \(name)") { () throws(ClientError) in
            try await session.unseal(name)
        }
        guard isUndone else { return }
        throw Failure(
            "\(name) is not a sealed bucket: the server holds objects in it that it can read, and none that is sealed. "
                + "Nothing was changed. Leave --sealed out, or take another name for a sealed bucket. If you have sealed "
                + "this bucket before, the server does not show it to you: do not write into it.", .usage)
    }

    /// Tells the account's other machines, by its bundle, that the bucket is sealed: once, when the server holds it so.
    func tellOthers(_ session: Session) async throws(Failure) {
        // A token by itself may be one that writes nothing, and has no keys of its own (`KeyCall`).
        guard account.profile.kind == .keys || account.profile.kind == .partner, let keys,
            let home = account.home, keys.bundle.buckets[name] == nil,
            await session.isServedSealed(name)
        else { return }
        let accounts = try KeyCall.accounts(account)
        let noted: OpenAccount
        do throws(AccountError) {
            noted = try await accounts.keepSealed(name, of: keys, accessToken: account.profile.token)
        } catch {
            Terminal.writeError(
                "warning: the account's other machines are not told that \(name) is sealed (\(error)); they need --sealed "
                    + "once\n")
            return
        }
        // Another command may have kept something newer meanwhile, which has it, too.
        try KeptKeys(home: home, profile: account.profileName).keep(noted)
    }
}
