import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@testable import ThicketKeyLog

/// A server that lies about keys, and what its users learn of it.
@Suite("Key books at a server that lies")
struct KeyBookAttackTests {
    private let server = LyingKeyServer()
    private let ann = LogPerson("ann-id")
    private let ben = LogPerson("ben-id")

    private func enter(_ people: LogPerson...) throws {
        for person in people { for entry in try person.entries() { server.set { $0.log.commit(entry) } } }
    }

    @Test("A5: an attacker's key with a valid-looking entry is an alarm for a friend and for the owner, with evidence")
    func substituted() async throws {
        try enter(ann, ben)
        let (friend, owner, user) = (try ben.book(server), try ann.book(server), try UserID("ann-id"))
        try await friend.addContact(user)
        try await owner.checkOwn()
        let mallory = try #require(try LogPerson("ann-id").entries().first)
        server.set { $0.time += 4_000_000 }
        server.set { $0.log.commit(mallory, replacing: true) }
        #expect(await peopleCode { _ = try await friend.keys(of: user) } == "alarm")
        #expect(await peopleCode { _ = try await friend.keys(of: user) } == "alarm")
        let found = try #require(try await friend.alarms().first)
        #expect(found.isOpen && found.evidence.kind == .replaced)
        guard case .proven = found.evidence.check() else {
            Issue.record("\(found.evidence.check())")
            return
        }
        #expect(await peopleCode { _ = try await owner.checkOwn() } == "alarm")
        let alarms: [KeyLogEvidence.Kind] = try await owner.alarms().map(\.evidence.kind)
        #expect(alarms == [.foreignKey])
        // Sealing to others stops for the owner.
        #expect(await peopleCode { _ = try await owner.keys(of: UserID("ben-id")) } == "alarm")
    }

    @Test("A5: an attacker's key without an entry in the log is refused, and nothing is kept")
    func unproven() async throws {
        try enter(ann)
        let (friend, user) = (try ben.book(server), try UserID("ann-id"))
        let mallory = try #require(try LogPerson("ann-id").entries().first)
        server.set { world in
            world.change = { lookup in
                KeyLogLookup(
                    head: lookup.head, known: lookup.known, consistency: lookup.consistency,
                    mapRootProof: lookup.mapRootProof, mapProof: lookup.mapProof, chain: [mallory],
                    index: lookup.index, inclusion: lookup.inclusion)
            }
        }
        #expect(await peopleCode { _ = try await friend.keys(of: user) } == "refused")
        #expect(try await friend.alarms().isEmpty)
        server.set { $0.change = nil }
        #expect(try await friend.keys(of: user) == ann.keys())
    }

    @Test("A5: a reset that the owner has not made is denied with the old key, which proves it to others")
    func deniedReset() async throws {
        try enter(ann)
        let owner = try ann.book(server)
        try await owner.checkOwn()
        let thief = LogPerson("ann-id").own.current
        let entry = try #require(server.look { $0.log.chains["ann-id"]?.last }).reset(
            to: thief.signing, encryption: thief.encryption, validFrom: 2_000)
        server.set { $0.log.commit(entry) }
        #expect(await peopleCode { _ = try await owner.checkOwn() } == "alarm")
        let evidence = try #require(try await owner.alarms().first).evidence
        // As a file, with the log's key from another source.
        let read = try KeyLogEvidence(file: JSONValue.object(evidence.json).serialized())
        #expect(read == evidence)
        guard case .proven = read.check(server.look(\.log.key).verifyingKey) else {
            Issue.record("\(read.check())")
            return
        }
        guard case .notProven = read.check(Ed25519.SigningKey.random().verifyingKey) else {
            Issue.record("proven for another log")
            return
        }
        guard case .notProven = evidence.denied(by: [UInt8](repeating: 0, count: 64)).check() else {
            Issue.record("proven without the owner's denial")
            return
        }
    }

    @Test("A6: two logs for two users are an alarm with the first head that one receives from the other, for good")
    func twoViews() async throws {
        try enter(ann, ben)
        let other = LyingKeyServer(key: server.look(\.log.key))
        for entry in try LogPerson("ann-id").entries() + ben.entries() { other.set { $0.log.commit(entry) } }
        let storage = MemoryPeopleStorage()
        let (one, two) = (try ben.book(server, storage), try ben.book(other))
        let user = try UserID("ann-id")
        _ = try await (one.keys(of: user), two.keys(of: user))
        let head = try #require(await two.newestHead())
        await one.heard(head, from: user)
        #expect(await peopleCode { _ = try await one.keys(of: user) } == "alarm")
        let again = try ben.book(server, storage)
        #expect(await peopleCode { _ = try await again.keys(of: user) } == "alarm")
        let evidence = try #require(try await again.alarms().first).evidence
        guard case .proven = evidence.check() else {
            Issue.record("\(evidence.check())")
            return
        }
        // The user's word that the log was begun again.
        try await again.reset()
        #expect(try await again.keys(of: user) == ann.keys())
    }

    @Test("A6: a path that the server withholds is an alarm, and an honest path explains it; a head waits offline")
    func withheld() async throws {
        try enter(ann)
        let (one, two, user) = (try ben.book(server), try ben.book(server), try UserID("ann-id"))
        _ = try await one.keys(of: user)
        try enter(ben)
        _ = try await two.keys(of: UserID("ben-id"))
        let head = try #require(await two.newestHead())
        server.set { $0.isDown = true }
        await one.heard(head, from: user)
        #expect(try await one.alarms().isEmpty)
        server.set { ($0.isDown, $0.withholds) = (false, true) }
        await one.heard(head, from: user)
        #expect(try await one.alarms().map(\.isOpen) == [true])
        #expect(try await !one.explainFork())
        server.set { $0.withholds = false }
        #expect(try await one.explainFork())
        #expect(try await one.alarms().map(\.isOpen) == [false])
        #expect(try await one.keys(of: user) == ann.keys())
    }

    @Test("A6: a shrunk log and an old head are refused, and the keys from before stay")
    func shrunk() async throws {
        try enter(ann)
        let (book, user) = (try ann.book(server), try UserID("ben-id"))
        let before = server.look(\.log)
        try enter(ben)
        _ = try await book.keys(of: user)
        server.set { ($0.log, $0.time) = (before, $0.time + 4_000_000) }
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "refused")
        server.set { $0.log = LyingLog(key: before.key) }
        #expect(await peopleCode { _ = try await book.keys(of: user) } == "refused")
        server.set { $0.isDown = true }
        #expect(try await book.keys(of: user) == ben.keys())
    }

    @Test("A14: a rotation that the old key has not signed is an alarm, with evidence for others")
    func unsignedRotation() async throws {
        try enter(ann)
        let (friend, user) = (try ben.book(server), try UserID("ann-id"))
        _ = try await friend.keys(of: user)
        let thief = LogPerson("ann-id").own.current
        let forged = try #require(server.look { $0.log.chains["ann-id"]?.last }).rotated(
            to: thief.signing, encryption: thief.encryption, signedBy: thief.signing, validFrom: 2_000)
        server.set { $0.time += 4_000_000 }
        server.set { $0.log.commit(forged) }
        #expect(await peopleCode { _ = try await friend.keys(of: user) } == "alarm")
        let evidence = try #require(try await friend.alarms().first).evidence
        #expect(evidence.kind == .badEntry)
        guard case .proven = evidence.check() else {
            Issue.record("\(evidence.check())")
            return
        }
    }
}
