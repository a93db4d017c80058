import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// In which mode a command opens a bucket, and with which keys.
///
/// A bucket is sealed when `--sealed` says so, when the copy on this machine is sealed, or when the account's bundle
/// lists it as sealed. The server's word alone never decides: neither for sealed nor for clear.
struct SealedOpening: Sendable {
    /// The account as this machine stores it; nil where it has no keys.
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

    /// `--sealed` on a bucket of open objects seals none of them, and must not leave a copy behind that blocks every
    /// later command. Such a copy is removed only if this very call has `--sealed`: a later call that leaves the mode
    /// to the copy would otherwise write in clear because a server says so. A bucket that the account's bundle lists as
    /// sealed stays sealed, whatever the server shows.
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

    /// Lists the bucket as sealed in the account's bundle, for the account's other machines: once, when the server
    /// stores it as sealed.
    func listAsSealed(_ session: Session) async throws(Failure) {
        // A bare token may be read-only, and has no keys (`KeyCall`).
        guard account.profile.kind == .keys || account.profile.kind == .partner, let keys,
            let home = account.home, keys.bundle.buckets[name] == nil,
            await session.isServedSealed(name)
        else { return }
        let accounts = try KeyCall.accounts(account)
        let recorded: OpenAccount
        do throws(AccountError) {
            recorded = try await accounts.keepSealed(name, of: keys, accessToken: account.profile.token)
        } catch {
            Terminal.writeError(
                "warning: the account's other machines do not know that \(name) is sealed (\(error)); they need "
                    + "--sealed once\n")
            return
        }
        // Another command may have stored a newer bundle meanwhile, which lists the bucket, too.
        try KeptKeys(home: home, profile: account.profileName).keep(recorded)
    }
}
