internal import ThicketCrypto
internal import ThicketKeyLog

/// The account's own entries.
extension KeyBook {
    /// What a check of the own entries found.
    public enum OwnCheck: Sendable, Equatable {
        /// All entries are the account's own, and the newest have the keys in use.
        case asCreated
        /// The entries are the account's own; this many were missing and were appended.
        case appended(Int)
    }

    /// Checks that the log has the keys of this account and no others, under its id and its name, and appends what is
    /// missing. Called at the start of a session and daily; apps may call it at any time.
    ///
    /// - Throws: `alarm` for an entry that no device of the account has made: from then on `keys(of:)` throws it for
    ///   every user. `refused`, `offline`, `server`, `store`.
    @discardableResult
    public func checkOwn() async throws(PeopleError) -> OwnCheck {
        var own: OwnEntries
        do throws(ClientError) { own = try await readOwn() } catch { throw Self.error(error) }
        let missing = try await self.missing(&own)
        await compareWaiting()
        guard !missing.isEmpty else { return .asCreated }
        do throws(ClientError) { try await server.append(missing.map(\.bytes)) } catch { throw Self.error(error) }
        guard try await self.missing(&own).isEmpty else {
            throw .refused(KeyLogError(.notProven, "the server does not show the entries that it has accepted"))
        }
        report(.appended(missing.count))
        return .appended(missing.count)
    }

    /// The entries that the log lacks.
    private func missing(_ own: inout OwnEntries) async throws(PeopleError) -> [KeyLogEntry] {
        var missing = [KeyLogEntry]()
        for user in try Self.refusing({ () throws(KeyLogError) in try own.users() }) {
            if let entry = try await self.missing(user, &own) { missing.append(entry) }
        }
        return missing
    }

    private func missing(_ user: String, _ own: inout OwnEntries) async throws(PeopleError) -> KeyLogEntry? {
        var keys = try Self.refusing { () throws(KeyLogError) in try own.keys(as: user) }
        var refusal = KeyLogError(.otherSize, "the newest head changed each time")
        for _ in 0..<PeopleLimits.attemptsMax {
            let known = try await pinned().ownQuestion.known
            let answer: [UInt8]?
            do throws(ClientError) { answer = try await server.lookup(user, from: 0, known: known) } catch {
                throw Self.error(error)
            }
            guard let answer else {
                guard try read({ $0.emptyLog() }) == .absent else { throw try read { $0.emptyLog() } }
                return try next(user, nil, own, at: now())
            }
            let lookup = try Self.parsed(answer)
            let time = now()
            if try isForeign(lookup, own, keys, now: time) {
                // Another device may have replaced the keys between the two requests. It writes the bundle before the
                // log, so a bundle that is read after the answer has every key of the account in it.
                do throws(ClientError) { own = try await readOwn() } catch { throw Self.error(error) }
                let newest = own
                keys = try Self.refusing { () throws(KeyLogError) in try newest.keys(as: user) }
            }
            let (newest, mine) = (own, keys)
            switch try change({ $0.checkOwn(lookup, newest, mine, now: time) }) {
            case .asCreated: return nil
            // The server's clock, when this one is ahead: the server refuses an entry from the future.
            case .missing: return try next(user, lookup.chain.last, own, at: min(time, lookup.head.time))
            case .held:
                report(.nameHeld)
                return try next(user, lookup.chain.last, own, at: min(time, lookup.head.time), isHeld: true)
            case .alarm(let alarm):
                report(.alarm(alarm))
                throw .alarm(alarm)
            case .refused(let error):
                refusal = error
                switch error.kind {
                case .otherSize: continue
                case .notSigned: if try await followKey() { continue }
                default: break
                }
                throw .refused(error)
            }
        }
        throw .refused(refusal)
    }

    /// Whether an answer has an entry with keys that the account is not known to have had.
    private func isForeign(
        _ lookup: KeyLogLookup, _ own: OwnEntries, _ keys: KeyLogOwnKeys, now time: UInt64
    ) throws(PeopleError) -> Bool {
        try read { state in
            var copy = state
            guard case .alarm(.foreignKey) = copy.checkOwn(lookup, own, keys, now: time) else { return false }
            return true
        }
    }

    private func next(
        _ user: String, _ last: KeyLogEntry?, _ own: OwnEntries, at time: UInt64, isHeld: Bool = false
    ) throws(PeopleError) -> KeyLogEntry {
        let time = max(time, last?.validFrom ?? 0)
        return try Self.refusing { () throws(KeyLogError) in
            if isHeld, let last { return try own.reset(last, now: time) }
            return try own.next(user, after: last, now: time)
        }
    }

    static func refusing<Value>(_ body: () throws(KeyLogError) -> Value) throws(PeopleError) -> Value {
        do throws(KeyLogError) { return try body() } catch { throw .refused(error) }
    }

    /// Reads the account's own keys again, because something does not fit those of this session, and completes the log
    /// from them. Callers that wait at the same time share one check. It begins after the call: one that runs already
    /// may have read the keys before the change that the caller has seen.
    ///
    /// - Throws: as `checkOwn`, but not `alarm`: the keys were read then.
    public func renew() async throws(PeopleError) {
        if let earlier = renewing { _ = await finish(earlier) }
        let task =
            renewing
            ?? Task {
                do throws(PeopleError) { return .success(try await self.checkOwn()) } catch { return .failure(error) }
            }
        renewing = task
        let result = await finish(task)
        if case .failure(let error) = result, case .alarm = error { return }
        _ = try result.get()
    }

    private func finish(_ task: Renewal) async -> Result<OwnCheck, PeopleError> {
        let result = await task.value
        if renewing == task { renewing = nil }
        return result
    }

    /// Checks the own entries as a session does at its start: not within an hour of the last check of this device,
    /// unless that saw other keys than the session has. What is found is reported by events and kept; a check that
    /// fails is made again by the next session.
    public func checkOwnAtStart() async {
        let (time, known) = (now(), own)
        let isDue = try? read { state in
            guard let reader = state.reader, !reader.isStartCheckDue(now: time) else { return true }
            // The keys were replaced, and the log was not completed, or another device has done it.
            return known.map { reader.pinnedKeys(of: $0.user) != $0 } ?? false
        }
        if isDue ?? true { _ = try? await checkOwn() }
    }

    /// Waits for the check that began with the session. For programs that end soon.
    ///
    /// - Parameter limit: then the check is given up.
    public func finishStartCheck(within limit: Duration) async {
        guard let first else { return }
        let timer = Task {
            try? await Task.sleep(for: limit)
            first.cancel()
        }
        await first.value
        timer.cancel()
    }

    /// Checks now if that is due, and again whenever a day has passed.
    func startChecks(_ clock: any SessionClock) {
        guard daily == nil else { return }
        first = Task { [weak self] in await self?.checkOwnAtStart() }
        daily = Task { [weak self] in
            while !Task.isCancelled {
                await clock.sleep(until: clock.milliseconds() + Self.checkPauseMilliseconds)
                guard let book = self, !Task.isCancelled else { return }
                let time = book.now()
                let isDue = (try? await book.read { $0.reader?.isSelfCheckDue(now: time) ?? true }) ?? true
                // Reported by events; a check that failed is tried again after the pause.
                if isDue { _ = try? await book.checkOwn() }
            }
        }
    }

    /// Milliseconds between two looks at whether a check is due.
    private static let checkPauseMilliseconds: Int64 = 600_000
}

extension PeopleState {
    /// Decides about an answer about the account itself, and keeps evidence of an alarm, with the owner's denial.
    mutating func checkOwn(
        _ lookup: KeyLogLookup, _ own: OwnEntries, _ keys: KeyLogOwnKeys, now: UInt64
    ) -> KeyLogOwnVerdict {
        guard var reader else { return .refused(KeyLogError(.empty, "the log's key is not known yet")) }
        let verdict = reader.checkOwn(
            lookup, own: keys, mayBeHeld: !keys.current.user.utf8.elementsEqual(own.user.utf8), now: now)
        self.reader = reader
        guard case .alarm(let alarm) = verdict else { return verdict }
        guard case .foreignKey(let entry) = alarm else {
            raise(alarm, lookup: lookup, now: now)
            return verdict
        }
        var evidence = KeyLogEvidence(of: alarm, reader: reader, lookup: lookup, now: now)
        if let place = lookup.chain.firstIndex(of: entry), place > 0,
            let key = own.signingKey(lookup.chain[place - 1].keys.identity),
            let denial = try? KeyLogDenial.sign(entry, key: key)
        {
            evidence = evidence.denied(by: denial)
        }
        keep(evidence)
        return verdict
    }
}
