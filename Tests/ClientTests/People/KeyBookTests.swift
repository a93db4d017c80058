import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@testable import ThicketKeyLog

/// What a key book returns, keeps and reports at an honest server.
@Suite("Key books")
struct KeyBookTests {
    private let server = LyingKeyServer()
    private let ann = LogPerson("ann-id", name: "Ann@example.com")
    private let ben = LogPerson("ben-id")

    private func enter(_ people: LogPerson...) throws {
        for person in people {
            for entry in try person.entries() { server.set { $0.log.commit(entry) } }
            if !person.own.name.isEmpty {
                server.set { $0.names[KeyLogHandle.folded(person.own.name)] = person.own.user }
            }
        }
    }

    @Test("keys of a user are looked up once an hour, and many callers share one look-up")
    func shared() async throws {
        try enter(ann)
        let book = try ben.book(server)
        let user = try UserID("ann-id")
        let expected = try ann.keys()
        try await withThrowingTaskGroup(of: PublicKeys.self) { group in
            for _ in 0..<20 { group.addTask { try await book.keys(of: user) } }
            for try await keys in group { #expect(keys == expected) }
        }
        #expect(server.look(\.lookups) == 1)
        server.set { $0.time += 3_000_000 }
        #expect(try await book.keys(of: user) == expected)
        #expect(server.look(\.lookups) == 1)
        server.set { $0.time += 700_000 }
        #expect(try await book.keys(of: user) == expected)
        #expect(server.look(\.lookups) == 2)
    }

    @Test("offline, known keys are returned and unknown ones are an error; a server that answers is not offline")
    func offline() async throws {
        try enter(ann)
        let book = try ben.book(server)
        let user = try UserID("ann-id")
        _ = try await book.keys(of: user)
        server.set { ($0.isDown, $0.time) = (true, $0.time + 90_000_000) }
        #expect(try await book.keys(of: user) == ann.keys())
        let unknown = try UserID("carl-id")
        #expect(await peopleCode { _ = try await book.keys(of: unknown) } == "offline")
        server.set { $0.isDown = false }
        #expect(await peopleCode { _ = try await book.keys(of: unknown) } == "absent")
    }

    @Test("a name leads to the account that has it, in any case of its letters, and to no other one")
    func names() async throws {
        let mallory = LogPerson("mallory-id")
        try enter(ann, mallory)
        let book = try ben.book(server)
        #expect(try await book.keys(named: "ANN@example.com") == ann.keys())
        server.set { $0.names["ann@example.com"] = "mallory-id" }
        #expect(await peopleCode { _ = try await book.keys(named: "ann@example.com") } == "refused")
        server.set { $0.names["ann@example.com"] = nil }
        #expect(await peopleCode { _ = try await book.keys(named: "ann@example.com") } == "refused")
        #expect(await peopleCode { _ = try await book.keys(named: "carl@example.com") } == "absent")
    }

    @Test("an account's missing entries are appended under its id and its name, and once only")
    func missing() async throws {
        let book = try ann.book(server)
        #expect(try await book.checkOwn() == .appended(2))
        #expect(try await book.checkOwn() == .asCreated)
        #expect(server.look(\.log.size) == 4)
        // A rotation that was cut short after the bundle is finished by the check, signed with the old key.
        let later = ann.rotated()
        #expect(try await later.book(server).checkOwn() == .appended(2))
        let friend = try ben.book(server)
        #expect(try await friend.keys(of: UserID("ann-id")) == later.keys())
    }

    @Test("an append that the server refuses is not reported as done")
    func refusedAppend() async throws {
        server.set { $0.refusesAppends = true }
        let book = try ann.book(server)
        #expect(await peopleCode { _ = try await book.checkOwn() } == "refused")
        #expect(server.look(\.log.size) == 0)
    }

    @Test("keys from before a rotation are found by their id, and others are not")
    func earlier() async throws {
        try enter(ann)
        let later = ann.rotated()
        _ = try await later.book(server).checkOwn()
        let book = try ben.book(server)
        let (user, old) = (try UserID("ann-id"), try ann.keys())
        #expect(try await book.earlierKeys(of: user, id: old.id) == old)
        #expect(try await book.earlierKeys(of: user, id: later.keys().id) == later.keys())
        #expect(try await book.earlierKeys(of: user, id: ben.keys().id) == nil)
    }

    @Test("a reset waits for a confirmation of exactly the newest keys, also after a restart")
    func reset() async throws {
        try enter(ann)
        let storage = MemoryPeopleStorage()
        let book = try ben.book(server, storage)
        let user = try UserID("ann-id")
        try await book.addContact(user)
        let other = LogPerson("ann-id")
        let entry = try #require(server.look { $0.log.chains["ann-id"]?.last }).reset(
            to: other.own.current.signing, encryption: other.own.current.encryption, validFrom: 2_000)
        server.set { ($0.time, $0.change) = ($0.time + 4_000_000, nil) }
        server.set { $0.log.commit(entry) }
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "needs-confirmation")
        let again = try ben.book(server, storage)
        #expect(await peopleCode { _ = try await again.keys(of: user) } == "needs-confirmation")
        #expect(try await again.contacts().map(\.standing) == [.needsConfirmation])
        #expect(await peopleCode { try await again.confirm(ann.keys()) } == "refused")
        let compared = try await again.safetyNumber(with: user)
        try await again.confirm(compared.keys)
        #expect(try await again.keys(of: user) == other.keys())
        #expect(try await again.contacts().map(\.standing) == [.compared])
    }

    @Test("two users see the same safety number")
    func safetyNumbers() async throws {
        try enter(ann, ben)
        let one = try await ann.book(server).safetyNumber(with: UserID("ben-id"))
        let other = try await ben.book(server).safetyNumber(with: UserID("ann-id"))
        #expect(one.number == other.number)
        #expect(one.number.digits.count == 60)
    }

    @Test("a new key of the log is followed when the old one has signed it, and refused otherwise")
    func logKey() async throws {
        try enter(ann)
        let book = try ben.book(server)
        let user = try UserID("ann-id")
        _ = try await book.keys(of: user)
        let (old, new) = (server.look(\.log.key), Ed25519.SigningKey.random())
        server.set { ($0.log.key, $0.time) = (new, $0.time + 4_000_000) }
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "refused")
        let foreign = try LogKeyRotation(app: LogPerson.app, from: .random(), to: new, time: 1)
        server.set { $0.rotations = [foreign.bytes] }
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "refused")
        let statement = try LogKeyRotation(app: LogPerson.app, from: old, to: new, time: 1)
        server.set { $0.rotations = [statement.bytes] }
        #expect(try await book.keys(of: user) == ann.keys())
        #expect(try await book.log().key == new.verifyingKey.octets)
    }

    @Test("with a required witness no look-up counts until that witness has confirmed the log within the last hour")
    func witness() async throws {
        try enter(ann)
        let (book, user, witness) = (try ben.book(server), try UserID("ann-id"), Ed25519.SigningKey.random())
        try await book.requireWitness(witness.verifyingKey.octets)
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "not-witnessed")
        let (head, key) = (try #require(server.look { $0.log.head($0.time) }), server.look(\.log.key))
        func confirmed(by signer: Ed25519.SigningKey) throws -> KeyLogWitness {
            try KeyLogWitness(confirming: head, app: LogPerson.app, logKey: key.verifyingKey, key: signer)
        }
        let other = try confirmed(by: .random())
        server.set { $0.witnesses = [other] }
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "not-witnessed")
        await #expect(throws: PeopleError.self) { try await book.demandWitnesses() }
        let right = try confirmed(by: witness)
        server.set { $0.witnesses = [other, right] }
        try await book.demandWitnesses()
        #expect(try await book.log().witnessed == head.time)
        #expect(try await book.keys(of: user) == ann.keys())
        server.set { $0.time += 3_700_000 }
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "not-witnessed")
        #expect(try await book.alarms().isEmpty)
        try await book.dropWitnesses()
        #expect(try await book.keys(of: user) == ann.keys())
    }

    @Test("A6: a required witness that has confirmed another log is an alarm with evidence, and no key is handed out")
    func otherWitnessed() async throws {
        try enter(ann)
        let (book, user, witness) = (try ben.book(server), try UserID("ann-id"), Ed25519.SigningKey.random())
        let key = server.look(\.log.key)
        var other = LyingLog(key: key)
        for entry in try ben.entries() { other.commit(entry) }
        let head = try #require(other.head(server.now))
        let confirmed = try KeyLogWitness(confirming: head, app: LogPerson.app, logKey: key.verifyingKey, key: witness)
        server.set { $0.witnesses = [confirmed] }
        try await book.requireWitness(witness.verifyingKey.octets)
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "alarm")
        let evidence = try #require(try await book.alarms().first?.evidence)
        #expect(evidence.kind == .heads)
    }

    @Test("keys that another device replaces between the bundle and the look-up are no alarm: the bundle is read again")
    func replacedMeanwhile() async throws {
        let old = LogPerson("ann-id")
        for entry in try old.entries() { server.set { $0.log.commit(entry) } }
        let new = old.rotated()
        let last = server.look { $0.log.chains["ann-id"]?.last }
        let entry = try new.own.next("ann-id", after: last, now: 2_000)
        server.set { $0.log.commit(entry) }
        let server = server
        let reads = Mutex(0)
        let book = try KeyBook(
            app: LogPerson.app, user: "ann-id", server: server, storage: MemoryPeopleStorage(), now: { server.now },
            readOwn: { () async throws(ClientError) in
                let number = reads.withLock { count in
                    count += 1
                    return count
                }
                return number == 1 ? old.own : new.own
            })
        #expect(try await book.checkOwn() == .asCreated)
        #expect(try await book.alarms().isEmpty && reads.withLock(\.self) == 2)
        // What no bundle has is an alarm, however often it is read.
        let stale = try KeyBook(
            app: LogPerson.app, user: "ann-id", server: server, storage: MemoryPeopleStorage(), now: { server.now },
            readOwn: { () async throws(ClientError) in old.own })
        #expect(await peopleCode { _ = try await stale.checkOwn() } == "alarm")
    }

    @Test("own keys that are asked for while a check runs are read after the call, not taken from that check")
    func renewals() async throws {
        let old = LogPerson("ann-id")
        let new = old.rotated()
        let entry = try #require(try old.entries().first)
        server.set {
            $0.log.commit(entry)
            $0.refusesAppends = false
        }
        let server = server
        let reads = Mutex(0)
        let book = Mutex<KeyBook?>(nil)
        let later = Mutex<Task<String?, Never>?>(nil)
        let made = try KeyBook(
            app: LogPerson.app, user: "ann-id", server: server, storage: MemoryPeopleStorage(), now: { server.now },
            readOwn: { () async throws(ClientError) in
                let number = reads.withLock { count in
                    count += 1
                    return count
                }
                guard number == 1 else { return new.own }
                // The first check has the old keys in hand when another caller hears of new ones.
                if let book = book.withLock(\.self) {
                    later.withLock { $0 = Task { await peopleCode { try await book.renew() } } }
                }
                for _ in 0..<100 { await Task.yield() }
                return old.own
            })
        book.withLock { $0 = made }
        try await made.renew()
        let second = later.withLock { $0 }
        #expect(try await #require(second).value == nil)
        #expect(reads.withLock { $0 } == 2)
        #expect(server.look { $0.log.chains["ann-id"]?.last?.keys.identity } == new.own.current.signing.verifyingKey)
    }

    @Test("an entry is dated by the server's clock when the device's is ahead, which the server would refuse")
    func fastClock() async throws {
        let old = LogPerson("ann-id")
        let new = old.rotated()
        let entry = try #require(try old.entries(at: LyingKeyServer.start - 1_000).first)
        server.set { $0.log.commit(entry) }
        let server = server
        let book = try KeyBook(
            app: LogPerson.app, user: "ann-id", server: server, storage: MemoryPeopleStorage(),
            now: { server.now + 40 * 60_000 }, readOwn: { () async throws(ClientError) in new.own })
        #expect(try await book.checkOwn() == .appended(1))
        let last = server.look { $0.log.chains["ann-id"]?.last }
        #expect(last?.validFrom == LyingKeyServer.start && last?.keys.identity == new.own.current.signing.verifyingKey)
    }
}
