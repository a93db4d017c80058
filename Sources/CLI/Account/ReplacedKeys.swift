import ThicketClient
import ThicketCommandLine
import ThicketCrypto

/// `thicket keys --rotate`: replaces the keys under which the account is in the key log (decision 0066).
///
/// The bundle is written first and the log completed from it, so that a command that was cut short leaves an account
/// that every machine can use: the next check, or this command again, appends what the log lacks.
enum ReplacedKeys {
    private static let what = "the keys were not replaced"
    private static let unlogged =
        "the account has new keys, and the key log does not show them yet: others use the ones before, which still "
        + "open. 'thicket keys --rotate' goes on"

    static func rotate(_ call: Call) async throws(Failure) {
        let keys = try KeyCall(call, what)
        // Two processes would each replace the keys.
        let lock = try FolderLock(keys.home.folder(keys.account.profileName), "renew.lock", waits: false)
        defer { lock.end() }
        let known = try await keys.finishingKeyChange(what)
        let session = try await trying(what) { () throws(ClientError) in
            try await keys.account.peopleSession(known)
        }
        let result: Result<String, Failure>
        do throws(Failure) {
            result = .success(try await rotate(keys, session, exchangeOnly: call.flag("exchange-only")))
        } catch { result = .failure(error) }
        await session.close()
        Terminal.write(try result.get())
    }

    /// - Parameter exchangeOnly: the signing key stays.
    /// - Returns: a text for the user.
    private static func rotate(
        _ keys: KeyCall, _ session: ClientSession, exchangeOnly: Bool
    ) async throws(Failure) -> String {
        let book: KeyBook
        let check: KeyBook.OwnCheck
        do throws(PeopleError) {
            book = try await session.people()
            check = try await book.checkOwn()
        } catch { throw Failure(what, people: error) }
        guard let known = session.account else { throw Failure("\(what): there are no keys", .notFound) }
        try keys.keep(known)
        if case .appended = check, !known.bundle.earlierKeys.isEmpty {
            return "the keys were replaced before; the key log has them now. Again replaces them again.\n"
        }
        let token = keys.account.profile.token
        let next = try await keyed(what, lost: "'thicket keys --rotate' goes on, and shows it.") {
            () throws(AccountError) in
            exchangeOnly
                ? try await keys.accounts.replaceExchangeKey(of: known, accessToken: token)
                : try await keys.accounts.replaceKeys(of: known, accessToken: token)
        }
        try keys.keep(next)
        try await trying(unlogged) { () throws(ClientError) in try await session.useKeys(of: next) }
        do throws(PeopleError) { try await book.checkOwn() } catch { throw Failure(unlogged, people: error) }
        return exchangeOnly ? doneExchangeOnly : done
    }

    private static let done = """
        the account has new keys, signed by the ones before in the key log. Your contacts need not do anything; the
        numbers to compare with them ('thicket verify USER') are others now. \(rest)
        """

    private static let doneExchangeOnly = """
        the account has a new key to which others seal, signed in the key log. Your contacts need not do anything; the
        numbers that you have compared with them stay. \(rest)
        """

    private static let rest = """
        Your other machines get the keys by themselves. Password and words stay, and content is not sealed again: a
        holder of the keys from before still opens what was sealed to those.

        """
}
