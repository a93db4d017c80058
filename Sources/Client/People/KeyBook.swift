internal import ThicketCrypto
public import ThicketKeyLog
public import ThicketProtocol

/// The keys of other people, as the key log of the account's app proves them (docs/decisions/0066): look-ups, contacts,
/// safety numbers, alarms, and the daily check of the account's own entries.
///
/// What it knows is kept beside the session's store, sealed under the same key. All decisions are made by a pure part;
/// a book asks the server, and keeps the result before it returns.
public actor KeyBook: PeopleKeys {
    let server: any KeyLogServer
    private let storage: any PeopleStorage
    /// Reads the account's own keys, from the newest bundle.
    let readOwn: @Sendable () async throws(ClientError) -> OwnEntries
    /// Milliseconds since 1970.
    let now: @Sendable () -> UInt64
    nonisolated let app: String
    /// The account's id.
    public nonisolated let user: String
    private let loop: EngineLoop
    /// Look-ups under way: callers for the same user wait for one request.
    private var waiting = [String: Task<PeopleState.Found, Never>]()
    /// Entries of users, verified by an answer that had all of them.
    private var chains = [String: [KeyLogEntry]]()
    private var hub: EventHub<PeopleEvent> = EventHub(overrun: nil)
    /// The check at the start of the session.
    var first: Task<Void, Never>?
    var daily: Task<Void, Never>?
    /// The account's keys as the session had them at its start.
    var own: PublicKeys?
    /// A check that was begun because the account's keys did not fit.
    typealias Renewal = Task<Result<OwnCheck, PeopleError>, Never>
    var renewing: Renewal?

    /// File accesses stay off the threads of the concurrency runtime.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package init(
        app: String, user: String, server: any KeyLogServer, storage: any PeopleStorage,
        now: @escaping @Sendable () -> UInt64,
        readOwn: @escaping @Sendable () async throws(ClientError) -> OwnEntries
    ) throws(ClientError) {
        (self.app, self.user, self.server, self.storage) = (app, user, server, storage)
        (self.now, self.readOwn) = (now, readOwn)
        loop = try EngineLoop()
    }

    deinit {
        first?.cancel()
        daily?.cancel()
        renewing?.cancel()
        loop.stop()
    }

    /// Alarms and changes from now on. A slow reader gets only the newest ones; alarms are kept all the same.
    public var events: AsyncStream<PeopleEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: PeopleEvent.self, bufferingPolicy: .bufferingNewest(PeopleLimits.eventsMax))
        hub.add(continuation)
        return stream
    }

    func report(_ event: PeopleEvent) { hub.yield(event) }

    func endEvents() { hub.finish() }

    // MARK: - Keys

    public func keys(of user: UserID) async throws(PeopleError) -> PublicKeys {
        let (user, time) = (user.text, now())
        if let ready = try read({ $0.ready(user, now: time, isOnline: true) }) { return ready }
        return try await fresh(user).get()
    }

    /// The keys of the account that has a login name. The name is part of the log, so the server cannot answer with
    /// another account.
    ///
    /// - Throws: as `keys(of:)`; `refused` when the log does not show that the account has the name.
    public func keys(named name: String) async throws(PeopleError) -> PublicKeys {
        let handle: String
        do throws(KeyLogError) { handle = try KeyLogHandle.name(KeyLogHandle.folded(name), app: app) } catch {
            throw .refused(error)
        }
        return try await shared(handle) { book in await book.lookUp(name: name, handle) }.get()
    }

    public func earlierKeys(of user: UserID, id: String) async throws(PeopleError) -> PublicKeys? {
        let user = user.text
        let time = now()
        if let known = Self.keys(id, in: chains[user]), try read({ $0.mayVerify(user, now: time) }) { return known }
        if let pinned = try read({ $0.reader?.pinnedKeys(of: user) }), pinned.id == id {
            return try await keys(of: UserID(checked: user))
        }
        // Whole chains come with answers from entry 0.
        _ = try await shared("all:" + user) { book in await book.lookUp(user, isWhole: true) }.get()
        return Self.keys(id, in: chains[user])
    }

    private static func keys(_ id: String, in chain: [KeyLogEntry]?) -> PublicKeys? {
        chain?.first { $0.keys.id.utf8.elementsEqual(id.utf8) }?.keys
    }

    /// The entries of a user, if an answer had all of them.
    func knownChain(of user: UserID) -> [KeyLogEntry]? { chains[user.text] }

    /// The newest keys from a look-up that begins after this call, or from one that is under way.
    func fresh(_ user: String) async -> PeopleState.Found {
        await shared(user) { book in await book.lookUp(user, isWhole: false) }
    }

    private func shared(
        _ question: String, _ work: @escaping @Sendable (KeyBook) async -> PeopleState.Found
    ) async -> PeopleState.Found {
        if let task = waiting[question] { return await task.value }
        let task = Task { await work(self) }
        waiting[question] = task
        let found = await task.value
        waiting[question] = nil
        return found
    }

    private func lookUp(_ user: String, isWhole: Bool) async -> PeopleState.Found {
        await asking(user) { reader throws(PeopleError) in
            let question = isWhole ? reader.ownQuestion : reader.question(user)
            let answer: [UInt8]?
            do throws(ClientError) {
                answer = try await server.lookup(user, from: question.from, known: question.known)
            } catch { throw Self.error(error) }
            guard let answer else { return .failure(try read { $0.emptyLog() }) }
            let lookup = try Self.parsed(answer)
            let time = now()
            let result = try change { $0.receive(lookup, of: user, now: time) }
            remember(lookup, user, result.found)
            report(result)
            return result.found
        }
    }

    private func lookUp(name: String, _ handle: String) async -> PeopleState.Found {
        await asking(nil) { reader throws(PeopleError) in
            let question = reader.question(handle)
            let answer: NamedAnswer?
            do throws(ClientError) {
                // The account's entries from the first on: its id is not known yet.
                answer = try await server.lookup(
                    name: name, from: 0, fromName: question.from, known: question.known)
            } catch { throw Self.error(error) }
            guard let answer else { return .failure(try read { $0.emptyLog() }) }
            let named = try Self.parsed(answer.name)
            var account: KeyLogLookup?
            if let bytes = answer.account { account = try Self.parsed(bytes) }
            let (of, time) = (account, now())
            let result = try change {
                $0.receive(name: named, handle: handle, account: of, user: answer.user, now: time)
            }
            if let account, let user = answer.user { remember(account, user, result.found) }
            report(result)
            return result.found
        }
    }

    /// Asks until the answer fits the newest head known here, which another program may move meanwhile, and until the
    /// log's key is followed. Then required witnesses have to have confirmed the log.
    ///
    /// - Parameter user: its keys from before are used while the server is not reachable.
    private func asking(
        _ user: String?, _ ask: (KeyLogReader) async throws(PeopleError) -> PeopleState.Found
    ) async -> PeopleState.Found {
        do throws(PeopleError) {
            var found: PeopleState.Found = .failure(.absent)
            for _ in 0..<PeopleLimits.attemptsMax {
                found = try await ask(try await pinned())
                guard case .failure(.refused(let why)) = found else { break }
                switch why.kind {
                case .otherSize: continue
                case .notSigned: if try await followKey() { continue }
                default: break
                }
                break
            }
            if case .success = found { try await demandWitnesses() }
            return found
        } catch {
            guard case .offline = error, let user, let known = offline(user) else { return .failure(error) }
            return .success(known)
        }
    }

    private func offline(_ user: String) -> PublicKeys? {
        let time = now()
        return try? read { $0.ready(user, now: time, isOnline: false) }
    }

    private func remember(_ lookup: KeyLogLookup, _ user: String, _ found: PeopleState.Found) {
        guard case .success = found, lookup.chain.first?.sequence == 0 else { return }
        guard chains[user] != nil || chains.count < PeopleLimits.answersMax else { return }
        chains[user] = lookup.chain
    }

    private func report(_ result: (found: PeopleState.Found, rotated: PublicKeys?)) {
        switch result.found {
        case .success(let keys): if let old = result.rotated { report(.rotated(from: old, to: keys)) }
        case .failure(.alarm(let alarm)): report(.alarm(alarm))
        case .failure: break
        }
    }

    static func parsed(_ bytes: [UInt8]) throws(PeopleError) -> KeyLogLookup {
        do throws(KeyLogError) { return try KeyLogLookup(bytes) } catch { throw .refused(error) }
    }

    /// A server that answers, even with an error, is not offline: else it could keep old keys in use.
    static func error(_ error: ClientError) -> PeopleError {
        switch error.code {
        case .network, .offline, .deadline, .closed: .offline(error)
        default: .server(error)
        }
    }

    // MARK: - State

    /// Changes the state, and returns when that is kept.
    func change<Value>(_ body: (inout PeopleState) -> Value) throws(PeopleError) -> Value {
        do throws(ClientError) {
            return try storage.update { (bytes: inout [UInt8]?) throws(ClientError) in
                var state = if let bytes { try PeopleState(bytes) } else { PeopleState(app: app) }
                let before = state
                let value = body(&state)
                if state != before { bytes = state.bytes }
                return value
            }
        } catch { throw .store(error) }
    }

    func read<Value>(_ body: (PeopleState) -> Value) throws(PeopleError) -> Value {
        try change { body($0) }
    }

    public func newestHead() async -> KeyLogHead? { try? read { $0.reader?.head } }
}

extension UserID {
    /// A text that came from a `UserID`.
    init(checked text: String) {
        guard let id = try? UserID(text) else { preconditionFailure("the text was checked before") }
        self = id
    }
}
