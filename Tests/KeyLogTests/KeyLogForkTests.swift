import Testing
import ThicketCrypto

@testable import ThicketKeyLog

/// Two views of one log: users that compare their heads find the fork.
@Suite("Two key logs for two users")
struct KeyLogForkTests {
    private static let key = Ed25519.SigningKey.random()
    private static let now: UInt64 = 3_600_000_000

    /// Two logs that begin alike: the first `shared` entries are equal, the others differ.
    private static func logs(shared: Int, _ left: Int, _ right: Int) throws -> (HostileLog, HostileLog) {
        let people: [KeyLogPerson] = try (0..<shared + left + right).map { try .init("user \($0)", 1) }
        let begin: [KeyLogEntry] = people.prefix(shared).map(\.newest)
        return (
            .init(key: key, begin + people.dropFirst(shared).prefix(left).map(\.newest)),
            .init(key: key, begin + people.suffix(right).map(\.newest))
        )
    }

    private static func reader(_ log: HostileLog) throws -> KeyLogReader {
        var reader = try KeyLogReader(app: "chat", logKey: key.verifyingKey)
        #expect(reader.compare(try log.head(now), now: now) == .consistent)
        return reader
    }

    @Test("another user's head is consistent once a proof connects it with the own one, whichever is larger")
    func honest() throws {
        let people = try (0..<9).map { try KeyLogPerson("user \($0)", 1).newest }
        for mine in 1...9 {
            for theirs in 1...9 {
                let (older, newer) = (min(mine, theirs), max(mine, theirs))
                let log = HostileLog(key: Self.key, Array(people.prefix(newer)))
                var reader = try Self.reader(.init(key: Self.key, Array(people.prefix(mine))))
                // Signed at another moment.
                let received = try HostileLog(key: Self.key, Array(people.prefix(theirs))).head(7)
                guard mine != theirs else {
                    #expect(reader.compare(received, now: Self.now) == .consistent)
                    continue
                }
                let ask = KeyLogGossip.ask(older: UInt64(2 * older), newer: UInt64(2 * newer))
                #expect(reader.compare(received, now: Self.now) == ask)
                #expect(reader.head?.size == UInt64(2 * mine), "a head is not adopted before its proof")
                let way = KeyLogConsistency(
                    older: UInt64(2 * older), newer: UInt64(2 * newer), proof: try log.way(from: UInt64(2 * older)))
                #expect(reader.compare(received, way: .given(way), now: Self.now) == .consistent)
                #expect(reader.head?.size == UInt64(2 * newer) && reader.fork == nil)
            }
        }
    }

    @Test("two logs shown to two users are found when they compare heads of any size, with both heads as evidence")
    func found() throws {
        for (shared, left, right) in [
            (0, 1, 1), (3, 1, 1), (3, 1, 4), (3, 4, 1), (5, 2, 7), (8, 3, 1),
        ] {
            let (one, other) = try Self.logs(shared: shared, left, right)
            for (mine, theirs) in [(one, other), (other, one)] {
                let larger = mine.tree.count < theirs.tree.count ? theirs : mine
                let received = try theirs.head(Self.now)
                let sizes = (
                    UInt64(min(mine.tree.count, theirs.tree.count)), UInt64(larger.tree.count)
                )
                var ways: [KeyLogWay] = [.notAsked]
                if sizes.0 < sizes.1 {
                    let way = try larger.way(from: sizes.0)
                    ways = [
                        .withheld, .given(.init(older: sizes.0, newer: sizes.1, proof: way)),
                        .given(.init(older: sizes.0, newer: sizes.1, proof: [])),
                        .given(.init(older: sizes.0, newer: sizes.1, proof: way.reversed())),
                    ]
                }
                for way in ways {
                    var reader = try Self.reader(mine)
                    guard case .alarm(let fork) = reader.compare(received, way: way, now: Self.now) else {
                        Issue.record("\(shared) \(left) \(right), \(way): not found")
                        continue
                    }
                    // Both heads are in the evidence, and a third party with only the key sees that both are signed.
                    #expect(Set([fork.older, fork.newer]) == Set([try mine.head(Self.now), received]))
                    let handedOn = try KeyLogFork(fork.bytes)
                    #expect(handedOn == fork && reader.fork == fork)
                    #expect(
                        try handedOn.check(Self.key.verifyingKey) != .proven || sizes.0 == sizes.1 || way != .withheld)
                    // No proof that the server has explains it.
                    let way = sizes.0 < sizes.1 ? try larger.way(from: sizes.0) : []
                    let isExplained = reader.explain(.init(older: sizes.0, newer: sizes.1, proof: way))
                    #expect(!isExplained)
                }
            }
        }
    }

    @Test("heads of one size, or a proof that leads to the newer head from another beginning, prove a fork")
    func proven() throws {
        let (one, other) = try Self.logs(shared: 3, 2, 2)
        let sameSize = KeyLogFork(try one.head(1), try other.head(2))
        #expect(try sameSize.check(Self.key.verifyingKey) == .proven)
        #expect(sameSize == KeyLogFork(try other.head(2), try one.head(1)))
        // One root, two maps: the last leaf can be the root of only one of them.
        let maps = KeyLogFork(try one.head(1), try one.head(1, mapRoot: other.map.root))
        #expect(try maps.check(Self.key.verifyingKey) == .proven)
        #expect(!maps.isExplained(by: .init(older: 10, newer: 10, proof: [])))
        for (left, right) in [(2, 3), (2, 9), (4, 5), (8, 9)] {
            let (smaller, larger) = try Self.logs(shared: 3, left, right)
            let (older, newer) = (try smaller.head(1), try larger.head(2))
            // The honest proof in the one log contradicts the other head.
            let fork = KeyLogFork(older, newer, proof: try larger.way(from: older.size))
            #expect(try fork.check(Self.key.verifyingKey) == .proven, "\(left) \(right)")
            #expect(try KeyLogFork(older, newer).check(Self.key.verifyingKey) == .unexplained)
        }
        // A log of 2^k leaves is not part of the proof, which therefore does not contradict it.
        let (smaller, larger) = try Self.logs(shared: 3, 1, 3)
        let fork = KeyLogFork(
            try smaller.head(1), try larger.head(2), proof: try larger.way(from: UInt64(smaller.tree.count)))
        #expect(smaller.tree.count == 8)
        #expect(try fork.check(Self.key.verifyingKey) == .unexplained)
    }

    @Test("an honest log cannot be accused: heads of one log and heads of another key are not evidence of a fork")
    func accused() throws {
        let people = try (0..<7).map { try KeyLogPerson("user \($0)", 1).newest }
        let log = HostileLog(key: Self.key, people)
        let newer = try log.head(5)
        let verifying = Self.key.verifyingKey
        #expect(keyLogRefusal { _ = try KeyLogFork(newer, newer).check(verifying) } == .noFork)
        #expect(keyLogRefusal { _ = try KeyLogFork(newer, try log.head(6)).check(verifying) } == .noFork)
        for count in 1..<7 {
            let older = try HostileLog(key: Self.key, Array(people.prefix(count))).head(1)
            let way = try log.way(from: older.size)
            #expect(keyLogRefusal { _ = try KeyLogFork(older, newer, proof: way).check(verifying) } == .noFork)
            // Any other sequence as the proof proves nothing.
            for wrong in [[], way.reversed(), way + [.zero], [.zero] + way, Array(way.dropLast())]
            where wrong != way {
                let fork = KeyLogFork(older, newer, proof: wrong)
                #expect(try fork.check(verifying) == .unexplained)
                #expect(fork.isExplained(by: .init(older: older.size, newer: newer.size, proof: way)))
            }
        }
        let outsider = HostileLog(key: .random(), people.reversed())
        let foreign = try outsider.head(5)
        #expect(keyLogRefusal { _ = try KeyLogFork(newer, foreign).check(verifying) } == .notSigned)
        #expect(keyLogRefusal { _ = try KeyLogFork(newer, foreign).check(outsider.key.verifyingKey) } == .notSigned)
        // A head from a sender without the key raises no alarm on a device.
        var reader = try Self.reader(log)
        guard case .refused(let why) = reader.compare(foreign, now: Self.now) else {
            Issue.record("a head of another key was taken")
            return
        }
        #expect(why.kind == .notSigned && reader.fork == nil)
    }

    @Test("a proof between other sizes than requested and a head from the future are refused and change nothing")
    func saysNothing() throws {
        let (one, _) = try Self.logs(shared: 5, 1, 1)
        var reader = try Self.reader(one)
        let received = try Self.logs(shared: 3, 0, 0).0.head(1)
        let other = KeyLogConsistency(older: 4, newer: 12, proof: try one.way(from: 4))
        guard case .refused(let why) = reader.compare(received, way: .given(other), now: Self.now) else {
            Issue.record("another way was taken")
            return
        }
        #expect(why.kind == .otherSize && reader.fork == nil)
        let future = try Self.logs(shared: 3, 9, 9).0.head(Self.now + 300_001)
        guard case .refused(let why) = reader.compare(future, now: Self.now) else {
            Issue.record("a head from the future was taken")
            return
        }
        #expect(why.kind == .futureHead)
        #expect(try reader.head == one.head(Self.now))
    }

    @Test(
        "while two heads contradict each other, no other comparison or answer hides that alarm"
    )
    func oneAfterTheOther() throws {
        let (one, other) = try Self.logs(shared: 5, 2, 2)
        let begin = try Self.logs(shared: 3, 0, 0).0
        var reader = try Self.reader(one)
        let fork = KeyLogFork(try one.head(Self.now), try other.head(1))
        let first = reader.compare(try other.head(1), now: Self.now)
        #expect(first == .alarm(fork))
        // An honest head without its proof and with it, the proof as an explanation, and an answer of the server.
        let way = KeyLogConsistency(older: 6, newer: 14, proof: try one.way(from: 6))
        for next: KeyLogWay in [.withheld, .notAsked, .given(way)] {
            let gossip = reader.compare(try begin.head(1), way: next, now: Self.now)
            #expect(gossip == .alarm(fork))
        }
        let explained = reader.explain(way)
        #expect(!explained && reader.fork == fork)
        let verdict = reader.receive(
            try one.lookup("nobody", [], known: 14, time: Self.now), of: "nobody", now: Self.now)
        #expect(verdict == .alarm(.fork(fork)))
    }

    @Test("a device without a head keeps the first one that it receives, and the server must continue from it")
    func firstReceived() throws {
        let (one, other) = try Self.logs(shared: 0, 3, 4)
        var reader = try Self.reader(one)
        let shown = try other.lookup("nobody", [], known: 6, time: Self.now)
        #expect(reader.question("nobody").known == 6)
        #expect(reader.receive(shown, of: "nobody", now: Self.now).fork != nil)
    }

    @Test("a server that shows each of two users a forked log is found when either receives the other's head")
    func conversation() throws {
        let (ann, ben, mallory): (KeyLogPerson, KeyLogPerson, KeyLogPerson) = (
            try .init("ann", 1), try .init("ben", 1), try .init("ann", 66)
        )
        // Ann sees herself, ben sees mallory under her name.
        let (forAnn, forBen): (HostileLog, HostileLog) = (
            .init(key: Self.key, [ben.newest, ann.newest]), .init(key: Self.key, [ben.newest, mallory.newest])
        )
        var (anns, bens): (KeyLogReader, KeyLogReader) = (
            try .init(app: "chat", logKey: Self.key.verifyingKey), try .init(app: "chat", logKey: Self.key.verifyingKey)
        )
        #expect(
            anns.checkOwn(try forAnn.lookup("ann", ann.entries, time: Self.now), own: ann.own, now: Self.now)
                == .asCreated)
        #expect(
            bens.receive(try forBen.lookup("ann", mallory.entries, time: Self.now), of: "ann", now: Self.now).handedOut
                == mallory.keys)
        let (hers, his) = (try #require(anns.head), try #require(bens.head))
        #expect(bens.compare(hers, now: Self.now) == .alarm(KeyLogFork(hers, his)))
        #expect(anns.compare(his, now: Self.now) == .alarm(KeyLogFork(hers, his)))
        #expect(try KeyLogFork(hers, his).check(Self.key.verifyingKey) == .proven)
        #expect(bens.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
    }
}
