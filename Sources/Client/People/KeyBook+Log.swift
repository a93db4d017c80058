internal import ThicketCrypto
public import ThicketKeyLog
public import ThicketProtocol

/// The log itself: its key, heads of other clients, witnesses.
extension KeyBook {
    // MARK: - The log's key

    /// The state after the log's key has been pinned: on first use, the server's.
    func pinned() async throws(PeopleError) -> KeyLogReader {
        if let reader = try read({ $0.reader }) { return reader }
        let key = try Self.key(try await logState().key)
        let isNew = try change { state -> Result<Bool, KeyLogError> in
            do throws(KeyLogError) { return .success(try state.pin(key)) } catch { return .failure(error) }
        }
        switch isNew {
        case .success(true): report(.logKey(key.octets))
        case .success(false): break
        case .failure(let error): throw .refused(error)
        }
        guard let reader = try read({ $0.reader }) else { throw .noKeys }
        return reader
    }

    private func logState() async throws(PeopleError) -> LogState {
        do throws(ClientError) { return try await server.logState() } catch { throw Self.error(error) }
    }

    private static func key(_ octets: [UInt8]) throws(PeopleError) -> Ed25519.VerifyingKey {
        guard let key: Ed25519.VerifyingKey = try? .init(octets) else {
            throw .refused(KeyLogError(.malformed, "the server's key of the log is invalid"))
        }
        return key
    }

    /// Follows the log's key from the pinned one, when the server has statements that lead to another one.
    ///
    /// - Returns: whether the key has changed here.
    func followKey() async throws(PeopleError) -> Bool {
        let state = try await logState()
        let (reader, wanted) = (try await pinned(), try Self.key(state.key))
        guard wanted != reader.logKey else { return false }
        do throws(KeyLogError) {
            try follow(state.rotations, from: reader.logKey, to: wanted)
            let head = try state.head.map { (bytes) throws(KeyLogError) in try KeyLogHead(bytes) }
            var way: KeyLogConsistency?
            if let old = reader.head, let head, old.size < head.size {
                way = try await self.way(old.size, head.size)
            }
            let (proof, time) = (way, now())
            let next = try reader.following(wanted, head: head, way: proof, now: time)
            try await adopt(next, from: reader)
        } catch { throw .refused(error) }
        report(.logKey(wanted.octets))
        return true
    }

    private func follow(
        _ rotations: [[UInt8]], from old: Ed25519.VerifyingKey, to new: Ed25519.VerifyingKey
    ) throws(KeyLogError) {
        guard rotations.count <= PeopleLimits.rotationsMax else {
            throw KeyLogError(.tooMany, "the log's key was changed more than \(PeopleLimits.rotationsMax) times")
        }
        var trusted = old
        for bytes in rotations {
            let statement = try LogKeyRotation(bytes)
            // Statements from before the pinned key lead to it.
            guard statement.old == trusted else { continue }
            try statement.check(app: app, trusted: trusted)
            trusted = statement.new
            if trusted == new { return }
        }
        throw KeyLogError(.notSigned, "the log has another key, and the known one has not signed it")
    }

    private func way(_ older: UInt64, _ newer: UInt64) async throws(KeyLogError) -> KeyLogConsistency? {
        guard let bytes = try? await server.consistency(older: older, newer: newer) else { return nil }
        return try KeyLogConsistency(bytes)
    }

    private func adopt(_ next: KeyLogReader, from old: KeyLogReader) async throws(KeyLogError) {
        let isKept = try? change { state in
            // Another program may have seen more meanwhile.
            guard state.reader == old else { return false }
            state.reader = next
            return true
        }
        guard isKept == true else { throw KeyLogError(.otherSize, "the state changed meanwhile: ask again") }
    }

    // MARK: - Heads of other clients

    public func heard(_ head: KeyLogHead, from user: UserID) async {
        guard case .refused(let why)? = await compare(head), why.kind == .notSigned,
            (try? await followKey()) == true
        else { return }
        _ = await compare(head)
    }

    /// Compares the heads for which the server had not answered.
    func compareWaiting() async {
        for head in (try? read { $0.heads }) ?? [] { _ = await compare(head) }
    }

    /// - Returns: the decision; nil: the head waits for the server.
    private func compare(_ head: KeyLogHead) async -> KeyLogGossip? {
        var way = KeyLogWay.notAsked
        // Another program may move the newest head between question and answer.
        for _ in 0..<PeopleLimits.attemptsMax {
            let (given, time) = (way, now())
            guard let gossip = try? change({ $0.heard(head, way: given, now: time) }) else { return nil }
            switch gossip {
            case .consistent: return gossip
            case .alarm(let fork):
                report(.alarm(.fork(fork)))
                return gossip
            case .ask(let older, let newer):
                guard let answer = await ask(older, newer) else { return nil }
                way = answer
            case .refused(let error):
                guard error.kind == .otherSize, way != .notAsked else { return gossip }
                way = .notAsked
            }
        }
        return nil
    }

    /// - Returns: nil when the server does not answer: the head waits.
    private func ask(_ older: UInt64, _ newer: UInt64) async -> KeyLogWay? {
        do throws(ClientError) {
            guard let bytes = try await server.consistency(older: older, newer: newer) else { return .withheld }
            do throws(KeyLogError) { return .given(try KeyLogConsistency(bytes)) } catch { return .withheld }
        } catch { return nil }
    }

    /// Asks the server for the path that would end an unexplained fork.
    ///
    /// - Returns: whether no fork is left.
    func explain() async throws(PeopleError) -> Bool {
        guard let fork = try read({ $0.reader?.fork }) else { return true }
        guard fork.older.size < fork.newer.size else { return false }
        guard case .given(let way)? = await ask(fork.older.size, fork.newer.size) else { return false }
        return try change { $0.explain(way) }
    }

    // MARK: - Witnesses

    /// Demands that each required witness has confirmed a head of this log within the last hour. Look-ups do this by
    /// themselves.
    ///
    /// - Throws: `refused` with the kind `notWitnessed` when one has not; `alarm` when one has confirmed another log;
    ///   `offline`, `server`, `store`.
    public func demandWitnesses() async throws(PeopleError) {
        let time = now()
        guard try !read({ $0.isWitnessed(time) }) else { return }
        _ = try await pinned()
        let offered = try await logState().confirmations
        let heads = try read { state -> Result<[KeyLogHead], KeyLogError> in
            do throws(KeyLogError) { return .success(try state.confirmed(by: offered, now: time)) } catch {
                return .failure(error)
            }
        }
        switch heads {
        case .failure(let error): throw .refused(error)
        case .success(let heads):
            for head in heads {
                switch await compare(head) {
                case .consistent: break
                case .alarm(let fork): throw .alarm(.fork(fork))
                default: throw .refused(Self.notWitnessed)
                }
            }
            let oldest: UInt64? = heads.map(\.time).min()
            try change { $0.witnessed = oldest }
        }
    }

    private static let notWitnessed = KeyLogError(
        .notWitnessed, "the server does not show that its key log is the one that a required witness has confirmed")
}
