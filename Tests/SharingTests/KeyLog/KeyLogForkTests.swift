import Testing
import ThicketCrypto

@testable import ThicketSharing

/// Two views of one log: users who talk to each other find out.
@Suite("Two key logs for two users")
struct KeyLogForkTests {
    private static let key: Ed25519.SigningKey = .random()
    private static let now: UInt64 = 3_600_000_000

    /// Two logs that begin alike: the first `shared` entries, then each its own.
    private static func logs(shared: Int, _ left: Int, _ right: Int) throws -> (HostileLog, HostileLog) {
        let people: [KeyLogPerson] = try (0..<shared + left + right).map { try .init("user \($0)", 1) }
        let begin: [KeyLogEntry] = people.prefix(shared).map(\.newest)
        return (
            .init(key: key, begin + people.dropFirst(shared).prefix(left).map(\.newest)),
            .init(key: key, begin + people.suffix(right).map(\.newest))
        )
    }

    private static func reader(_ log: HostileLog) throws -> KeyLogReader {
        var reader: KeyLogReader = try .init(app: "chat", logKey: key.verifyingKey)
        #expect(reader.compare(try log.head(now), now: now) == .consistent)
        return reader
    }

    @Test("a head heard from somebody else is compared, whichever of the two is larger; a way between them settles it")
    func honest() throws {
        let people: [KeyLogEntry] = try (0..<9).map { try KeyLogPerson("user \($0)", 1).newest }
        for mine: Int in 1...9 {
            for theirs: Int in 1...9 {
                let (older, newer): (Int, Int) = (min(mine, theirs), max(mine, theirs))
                let log: HostileLog = .init(key: Self.key, Array(people.prefix(newer)))
                var reader: KeyLogReader = try Self.reader(.init(key: Self.key, Array(people.prefix(mine))))
                // Signed at another moment.
                let heard: KeyLogHead = try HostileLog(key: Self.key, Array(people.prefix(theirs))).head(7)
                guard mine != theirs else {
                    #expect(reader.compare(heard, now: Self.now) == .consistent)
                    continue
                }
                let ask: KeyLogGossip = .ask(older: UInt64(2 * older), newer: UInt64(2 * newer))
                #expect(reader.compare(heard, now: Self.now) == ask)
                #expect(reader.head?.size == UInt64(2 * mine), "nothing is believed before it is shown")
                let way: KeyLogConsistency = .init(
                    older: UInt64(2 * older), newer: UInt64(2 * newer), proof: try log.way(from: UInt64(2 * older)))
                #expect(reader.compare(heard, way: .given(way), now: Self.now) == .consistent)
                #expect(reader.head?.size == UInt64(2 * newer) && reader.fork == nil)
            }
        }
    }

    @Test("two logs shown to two users are found when they talk, in either order of sizes, and nothing is handed out")
    func found() throws {
        for (shared, left, right): (Int, Int, Int) in [
            (0, 1, 1), (3, 1, 1), (3, 1, 4), (3, 4, 1), (5, 2, 7), (8, 3, 1),
        ] {
            let (one, other): (HostileLog, HostileLog) = try Self.logs(shared: shared, left, right)
            for (mine, theirs): (HostileLog, HostileLog) in [(one, other), (other, one)] {
                let larger: HostileLog = mine.tree.count < theirs.tree.count ? theirs : mine
                let heard: KeyLogHead = try theirs.head(Self.now)
                let sizes: (UInt64, UInt64) = (
                    UInt64(min(mine.tree.count, theirs.tree.count)), UInt64(larger.tree.count)
                )
                var ways: [KeyLogWay] = [.notAsked]
                if sizes.0 < sizes.1 {
                    let way: [Digest256] = try larger.way(from: sizes.0)
                    ways = [
                        .withheld, .given(.init(older: sizes.0, newer: sizes.1, proof: way)),
                        .given(.init(older: sizes.0, newer: sizes.1, proof: [])),
                        .given(.init(older: sizes.0, newer: sizes.1, proof: way.reversed())),
                    ]
                }
                for way: KeyLogWay in ways {
                    var reader: KeyLogReader = try Self.reader(mine)
                    guard case .alarm(let fork) = reader.compare(heard, way: way, now: Self.now) else {
                        Issue.record("\(shared) \(left) \(right), \(way): not found")
                        continue
                    }
                    // Both heads are in it, and a third person who knows the key alone sees that both are signed.
                    #expect(Set([fork.older, fork.newer]) == Set([try mine.head(Self.now), heard]))
                    let handedOn: KeyLogFork = try .init(fork.bytes)
                    #expect(handedOn == fork && reader.fork == fork)
                    #expect(
                        try handedOn.check(Self.key.verifyingKey) != .proven || sizes.0 == sizes.1 || way != .withheld)
                    // Nothing that the server has takes it back.
                    let way: [Digest256] = sizes.0 < sizes.1 ? try larger.way(from: sizes.0) : []
                    let isExplained: Bool = reader.explain(.init(older: sizes.0, newer: sizes.1, proof: way))
                    #expect(!isExplained)
                }
            }
        }
    }

    @Test("heads of one size, and a way that leads to the newer head from another beginning, prove it to anybody")
    func proven() throws {
        let (one, other): (HostileLog, HostileLog) = try Self.logs(shared: 3, 2, 2)
        let sameSize: KeyLogFork = .init(try one.head(1), try other.head(2))
        #expect(try sameSize.check(Self.key.verifyingKey) == .proven)
        #expect(sameSize == KeyLogFork(try other.head(2), try one.head(1)))
        // One root, two maps: the last leaf can be one of them alone.
        let maps: KeyLogFork = .init(try one.head(1), try one.head(1, mapRoot: other.map.root))
        #expect(try maps.check(Self.key.verifyingKey) == .proven)
        #expect(!maps.isExplained(by: .init(older: 10, newer: 10, proof: [])))
        for (left, right): (Int, Int) in [(2, 3), (2, 9), (4, 5), (8, 9)] {
            let (smaller, larger): (HostileLog, HostileLog) = try Self.logs(shared: 3, left, right)
            let (older, newer): (KeyLogHead, KeyLogHead) = (try smaller.head(1), try larger.head(2))
            // The honest way in the one log contradicts the other head.
            let fork: KeyLogFork = .init(older, newer, proof: try larger.way(from: older.size))
            #expect(try fork.check(Self.key.verifyingKey) == .proven, "\(left) \(right)")
            #expect(try KeyLogFork(older, newer).check(Self.key.verifyingKey) == .unexplained)
        }
        // A log of 2^k leaves is left out of the way, so the way says nothing of it.
        let (smaller, larger): (HostileLog, HostileLog) = try Self.logs(shared: 3, 1, 3)
        let fork: KeyLogFork = .init(
            try smaller.head(1), try larger.head(2), proof: try larger.way(from: UInt64(smaller.tree.count)))
        #expect(smaller.tree.count == 8)
        #expect(try fork.check(Self.key.verifyingKey) == .unexplained)
    }

    @Test("nobody can accuse an honest log: heads of one log, heads of another key and changed heads are no evidence")
    func accused() throws {
        let people: [KeyLogEntry] = try (0..<7).map { try KeyLogPerson("user \($0)", 1).newest }
        let log: HostileLog = .init(key: Self.key, people)
        let newer: KeyLogHead = try log.head(5)
        let verifying: Ed25519.VerifyingKey = Self.key.verifyingKey
        #expect(keyLogRefusal { _ = try KeyLogFork(newer, newer).check(verifying) } == .noFork)
        #expect(keyLogRefusal { _ = try KeyLogFork(newer, try log.head(6)).check(verifying) } == .noFork)
        for count: Int in 1..<7 {
            let older: KeyLogHead = try HostileLog(key: Self.key, Array(people.prefix(count))).head(1)
            let way: [Digest256] = try log.way(from: older.size)
            #expect(keyLogRefusal { _ = try KeyLogFork(older, newer, proof: way).check(verifying) } == .noFork)
            // Whatever else is said to be the way proves nothing.
            for wrong: [Digest256] in [[], way.reversed(), way + [.zero], [.zero] + way, Array(way.dropLast())]
            where wrong != way {
                let fork: KeyLogFork = .init(older, newer, proof: wrong)
                #expect(try fork.check(verifying) == .unexplained)
                #expect(fork.isExplained(by: .init(older: older.size, newer: newer.size, proof: way)))
            }
        }
        let stranger: HostileLog = .init(key: .random(), people.reversed())
        let foreign: KeyLogHead = try stranger.head(5)
        #expect(keyLogRefusal { _ = try KeyLogFork(newer, foreign).check(verifying) } == .notSigned)
        #expect(keyLogRefusal { _ = try KeyLogFork(newer, foreign).check(stranger.key.verifyingKey) } == .notSigned)
        // And no device is led to an alarm by what somebody who has not the key sends along.
        var reader: KeyLogReader = try Self.reader(log)
        guard case .refused(let why) = reader.compare(foreign, now: Self.now) else {
            Issue.record("a head of another key was taken")
            return
        }
        #expect(why.kind == .notSigned && reader.fork == nil)
    }

    @Test("a way between other sizes than those asked for, and a head from the future, say nothing")
    func saysNothing() throws {
        let (one, _): (HostileLog, HostileLog) = try Self.logs(shared: 5, 1, 1)
        var reader: KeyLogReader = try Self.reader(one)
        let heard: KeyLogHead = try Self.logs(shared: 3, 0, 0).0.head(1)
        let other: KeyLogConsistency = .init(older: 4, newer: 12, proof: try one.way(from: 4))
        guard case .refused(let why) = reader.compare(heard, way: .given(other), now: Self.now) else {
            Issue.record("another way was taken")
            return
        }
        #expect(why.kind == .otherSize && reader.fork == nil)
        let future: KeyLogHead = try Self.logs(shared: 3, 9, 9).0.head(Self.now + 300_001)
        guard case .refused(let why) = reader.compare(future, now: Self.now) else {
            Issue.record("a head from the future was taken")
            return
        }
        #expect(why.kind == .futureHead)
        #expect(try reader.head == one.head(Self.now))
    }

    @Test(
        "while two heads contradict each other nothing else is weighed, so that no later matter, once settled, hides the first"
    )
    func oneAfterTheOther() throws {
        let (one, other): (HostileLog, HostileLog) = try Self.logs(shared: 5, 2, 2)
        let begin: HostileLog = try Self.logs(shared: 3, 0, 0).0
        var reader: KeyLogReader = try Self.reader(one)
        let fork: KeyLogFork = .init(try one.head(Self.now), try other.head(1))
        let first: KeyLogGossip = reader.compare(try other.head(1), now: Self.now)
        #expect(first == .alarm(fork))
        // An honest head without its way, with it, the device's own, and an answer of the server.
        let way: KeyLogConsistency = .init(older: 6, newer: 14, proof: try one.way(from: 6))
        for next: KeyLogWay in [.withheld, .notAsked, .given(way)] {
            let gossip: KeyLogGossip = reader.compare(try begin.head(1), way: next, now: Self.now)
            #expect(gossip == .alarm(fork))
        }
        let explained: Bool = reader.explain(way)
        #expect(!explained && reader.fork == fork)
        let verdict: KeyLogVerdict = reader.receive(
            try one.lookup("nobody", [], known: 14, time: Self.now), of: "nobody", now: Self.now)
        #expect(verdict == .alarm(.fork(fork)))
    }

    @Test("a device that knows no head yet keeps the first one it hears of: the server has to go on from there")
    func firstHeard() throws {
        let (one, other): (HostileLog, HostileLog) = try Self.logs(shared: 0, 3, 4)
        var reader: KeyLogReader = try Self.reader(one)
        let shown: KeyLogLookup = try other.lookup("nobody", [], known: 6, time: Self.now)
        #expect(reader.question("nobody").known == 6)
        #expect(reader.receive(shown, of: "nobody", now: Self.now).fork != nil)
    }

    @Test("a server that forks its log and shows each user a log of his own is found at the next statement of either")
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
        let (hers, his): (KeyLogHead, KeyLogHead) = (try #require(anns.head), try #require(bens.head))
        #expect(bens.compare(hers, now: Self.now) == .alarm(KeyLogFork(hers, his)))
        #expect(anns.compare(his, now: Self.now) == .alarm(KeyLogFork(hers, his)))
        #expect(try KeyLogFork(hers, his).check(Self.key.verifyingKey) == .proven)
        #expect(bens.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
    }
}
