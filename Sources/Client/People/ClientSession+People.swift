internal import ThicketCrypto
internal import ThicketKeyLog
import ThicketProtocol

extension ClientSession {
    /// The keys of other people. The first call begins the checks of the account's own entries in the key log: at once,
    /// unless this device has checked them within the last hour, and daily while the session is open. A session that
    /// starts offline checks nothing by itself (`KeyBook.checkOwn`). A check is a request for the bundle and one for
    /// each of the account's entries in the log, id and name.
    ///
    /// - Throws: `noKeys` when the session has no keys of its account; `store`, `closed`.
    public func people() async throws(PeopleError) -> KeyBook {
        guard let account = sync.openAccount else { throw .noKeys }
        let (calls, keeper, place, clock) = (calls, keeper, place, SystemSessionClock())
        let isPartner = if case .partner = user { true } else { false }
        var isNew = false
        let part: PeoplePart
        do throws(ClientError) {
            part = try parts.part("people", isOwned: true) { () throws(ClientError) in
                isNew = true
                let reading = OwnBundle(
                    account: account, sync: sync, calls: calls, keeper: keeper, isPartner: isPartner)
                return PeoplePart(
                    try KeyBook(
                        app: account.app, user: account.user,
                        server: SessionKeyLog(calls: calls, keeper: keeper, isPartner: isPartner),
                        storage: try place.peopleStorage(),
                        now: { UInt64(max(0, clock.unixSeconds() * 1_000)) },
                        readOwn: { () async throws(ClientError) in try await reading.read() }))
            }
        } catch { throw .store(error) }
        if isNew {
            await part.book.know(try? OwnEntries(account).keys(as: account.user).current)
            if place.options.startsOnline { await part.book.startChecks(clock) }
        }
        return part.book
    }
}

/// The key book of a session.
final class PeoplePart: SessionPart {
    let book: KeyBook
    init(_ book: KeyBook) { self.book = book }
    func close() async { await book.close() }
}

extension KeyBook {
    /// Ends the checks and the events.
    func close() {
        for check in [first, daily] { check?.cancel() }
        renewing?.cancel()
        (first, daily, renewing) = (nil, nil, nil)
        endEvents()
    }

    /// The keys with which the session begins.
    func know(_ keys: PublicKeys?) { own = keys }
}

extension StoreLocation {
    /// The alarms of the key book that is kept at this place, also of those that another program has raised.
    ///
    /// - Returns: none without a key book.
    /// - Throws: `store`.
    public func peopleAlarms() throws(ClientError) -> [PeopleAlarm] {
        guard let (path, key) = try folder(part: "people") else { return [] }
        guard let bytes = try FilePeopleStorage(path: path, key: key).read() else { return [] }
        return try PeopleState(bytes).alarms
    }
}

extension SessionPlace {
    /// Beside the session's store, or where the options say.
    func peopleStorage() throws(ClientError) -> any PeopleStorage {
        guard let (path, key) = try (options.people ?? store).folder(part: "people") else {
            return MemoryPeopleStorage()
        }
        return FilePeopleStorage(path: path, key: key)
    }
}

extension ClientSession {
    /// The account with its keys as the session has them: newer than those that `useKeys` has given to it when another
    /// device has changed the bundle and the key book has read it. Apps that store `DeviceKeys` store them again then.
    ///
    /// - Returns: nil while the session has no keys.
    public var account: OpenAccount? { sync.openAccount }
}

/// Reads the account's own keys from the newest bundle at the server, which the session uses from then on.
private struct OwnBundle: Sendable {
    let account: OpenAccount
    let sync: Session
    let calls: ServerCalls
    let keeper: TokenKeeper
    let isPartner: Bool

    func read() async throws(ClientError) -> OwnEntries {
        let token = try await keeper.token().text
        do throws(AccountError) {
            // A flow without a change reads, and compares with what this device has seen.
            var flow = BundleFlow(sync.openAccount ?? account, isPartner ? .partner(token: token) : .user(token: token))
            { _ in }
            var step = try flow.begin()
            while true {
                switch step {
                case .done(let newest):
                    _ = sync.adopt(newest)
                    return OwnEntries(newest)
                case .stretch: throw .unusable("reading a bundle needs no password")
                case .ask(let request):
                    let event: AccountEvent
                    do throws(ClientError) { event = .answered(try await calls.ask(request)) } catch {
                        event = .refused(error)
                    }
                    step = try flow.receive(event)
                }
            }
        } catch {
            if case .server(let reason) = error { throw reason }
            throw ClientError(.unavailable, error.description)
        }
    }
}
