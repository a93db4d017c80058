import Testing
import ThicketCrypto

@testable import ThicketSharing

/// What a server that lies can try, and who finds it out.
@Suite("A key log that lies")
struct KeyLogAttackTests {
    private static let key: Ed25519.SigningKey = .random()
    private static let now: UInt64 = 3_600_000_000

    private static func reader() throws -> KeyLogReader { try .init(app: "chat", logKey: key.verifyingKey) }

    /// What an attacker puts in the place of ann's keys: another first entry.
    private static func mallory() throws -> KeyLogPerson { try .init("ann", 66) }

    @Test(
        "another's keys in the place of a user's: the user's own look finds them, and so does who has seen the true ones"
    )
    func substituted() throws {
        let (ann, mallory): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try Self.mallory())
        var log: HostileLog = .init(key: Self.key, [ann.newest])
        var (friend, owner): (KeyLogReader, KeyLogReader) = (try Self.reader(), try Self.reader())
        #expect(
            friend.receive(try log.lookup("ann", ann.entries, time: Self.now), of: "ann", now: Self.now).handedOut
                == ann.keys)
        log.commit(mallory.newest)
        let lie: KeyLogLookup = try log.lookup("ann", mallory.entries, known: 2, time: Self.now)
        #expect(friend.receive(lie, of: "ann", now: Self.now) == .alarm(.replaced(user: "ann")))
        #expect(friend.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
        #expect(owner.checkOwn(lie, own: ann.own, now: Self.now) == .alarm(.foreignKey(mallory.newest)))
        // What is shown afterwards waits for somebody's word, be it the truth.
        log.commit(ann.newest)
        let truth: KeyLogLookup = try log.lookup("ann", ann.entries, known: 4, time: Self.now)
        #expect(
            friend.receive(truth, of: "ann", now: Self.now) == .needsConfirmation(old: ann.keys, new: ann.keys))
        #expect(friend.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
        // Whoever was shown the lie alone finds out when it is taken back.
        var victim: KeyLogReader = try Self.reader()
        #expect(victim.receive(lie, of: "ann", now: Self.now).handedOut == mallory.keys)
        #expect(victim.receive(truth, of: "ann", now: Self.now) == .alarm(.replaced(user: "ann")))
        // And nobody can build the log again: the map went from one chain to another.
        #expect(
            keyLogRefusal {
                _ = try KeyLog(app: "chat", entries: [ann.newest.bytes, mallory.newest.bytes])
            } == .sequence)
        #expect(try !KeyLog(app: "chat", entries: [ann.newest.bytes]).agrees(with: truth.head))
    }

    @Test("an attacker's rotation that the old key has not signed is an alarm for everybody, seen before or not")
    func forgedRotation() throws {
        let ann: KeyLogPerson = try .init("ann", 1)
        let (thief, stolen): (Ed25519.SigningKey, X25519.PublicKey) = (.random(), X25519.PrivateKey.random().publicKey)
        let forged: KeyLogEntry = try ann.newest.rotated(
            to: thief, encryption: stolen, signedBy: thief, validFrom: 2_000)
        var log: HostileLog = .init(key: Self.key, [ann.newest])
        var friend: KeyLogReader = try Self.reader()
        _ = friend.receive(try log.lookup("ann", ann.entries, time: Self.now), of: "ann", now: Self.now)
        log.commit(forged)
        let lie: KeyLogLookup = try log.lookup("ann", ann.entries + [forged], known: 2, time: Self.now)
        for var reader: KeyLogReader in [friend, try Self.reader()] {
            guard case .alarm(.badEntry("ann", let why)) = reader.receive(lie, of: "ann", now: Self.now) else {
                Issue.record("a forged rotation was taken")
                continue
            }
            #expect(why.kind == .signature)
            #expect(reader.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
        }
    }

    @Test(
        "entries that no log may hold are alarms when it holds them: another user's, another app's, a gap, a moment before, keys of somebody else"
    )
    func badEntries() throws {
        let (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        let foreign: KeyLogEntry = try .first(
            app: "notes", user: "ann", identity: ann.identity, encryption: ann.encryption.publicKey, validFrom: 1)
        let newKey: Ed25519.SigningKey = try KeyLogPerson.signing("ann", 7)
        func second(_ change: (inout KeyLogEntry.Fields) -> Void) throws -> KeyLogEntry {
            var fields: KeyLogEntry.Fields = try ann.newest.rotated(
                to: newKey, encryption: ann.encryption.publicKey, signedBy: ann.identity, validFrom: 2_000
            ).fields
            change(&fields)
            return try .made(fields, newKey, last: ann.identity)
        }
        func stolen(_ owner: KeyLogPerson, by thief: KeyLogPerson) throws -> KeyLogEntry {
            var fields: KeyLogEntry.Fields = thief.newest.fields
            fields.keys = try PublicKeys(
                user: thief.user, identity: owner.keys.identity, encryption: owner.keys.encryption)
            return try .made(fields, thief.identity, last: nil)
        }
        let cases: [([KeyLogEntry], KeyLogError.Kind)] = [
            ([ben.newest], .otherUser), ([foreign], .otherApp),
            ([ann.newest, try second { $0.sequence = 2 }], .sequence),
            ([ann.newest, try second { $0.validFrom = 1 }], .time),
            // Somebody else's keys under one's own name, without their signature.
            ([try stolen(ben, by: ann)], .signature),
            ([try .init(ann.newest.fields, signature: ben.newest.signature, previousSignature: nil)], .signature),
        ]
        for (chain, kind): ([KeyLogEntry], KeyLogError.Kind) in cases {
            var log: HostileLog = .init(key: Self.key)
            for entry: KeyLogEntry in chain { log.commit(entry, of: "ann") }
            var reader: KeyLogReader = try Self.reader()
            guard
                case .alarm(.badEntry("ann", let why)) = reader.receive(
                    try log.lookup("ann", chain, time: Self.now), of: "ann", now: Self.now)
            else {
                Issue.record("\(kind): taken")
                continue
            }
            #expect(why.kind == kind)
        }
    }

    @Test("the newest entry hidden: by an older head, an older map, a shorter chain, or by saying that there is none")
    func hidden() throws {
        var ann: KeyLogPerson = try .init("ann", 1)
        let first: KeyLogEntry = ann.newest
        let second: KeyLogEntry = try ann.change(.rotation, at: 2_000)
        let before: HostileLog = .init(key: Self.key, [first])
        let log: HostileLog = .init(key: Self.key, [first, second])
        var reader: KeyLogReader = try Self.reader()
        #expect(
            reader.receive(try log.lookup("ann", [first, second], time: Self.now), of: "ann", now: Self.now).handedOut
                == ann.keys)
        func verdict(_ lookup: KeyLogLookup) -> KeyLogVerdict {
            var reader: KeyLogReader = reader
            let verdict: KeyLogVerdict = reader.receive(lookup, of: "ann", now: Self.now)
            #expect(
                reader.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == (verdict.isAlarm ? nil : ann.keys))
            return verdict
        }
        // An older head, and one that is signed anew.
        #expect(verdict(try before.lookup("ann", [first], time: Self.now)).refusal == .olderHead)
        // The older map under the newest root, and under one of its own.
        let good: KeyLogLookup = try log.lookup("ann", [first, second], known: 4, time: Self.now)
        #expect(
            verdict(good.with(mapProof: before.map.proof(of: KeyLogEntry.mapKey(of: "ann")), chain: [first])).refusal
                == .notProven)
        let mixed: KeyLogHead = try log.head(Self.now, mapRoot: before.map.root)
        #expect(verdict(good.with(head: mixed)).fork?.older.size == 4)
        // The log goes on, and its map goes back.
        var back: HostileLog = log
        back.commit(try KeyLogPerson("ben", 1).newest, of: "ann", latest: first.hash)
        #expect(
            verdict(try back.lookup("ann", [first], known: 4, time: Self.now)) == .alarm(.replaced(user: "ann")))
        var empty: HostileLog = log
        empty.map.remove(KeyLogEntry.mapKey(of: "ann"))
        empty.commit(try KeyLogPerson("ben", 1).newest)
        #expect(verdict(try empty.lookup("ann", [], known: 4, time: Self.now)) == .alarm(.removed(user: "ann")))
        // A chain without its end, or that begins where nobody can follow.
        #expect(verdict(good.with(chain: [first])).refusal == .notProven)
        #expect(verdict(good.with(chain: [])).refusal == .notProven)
        #expect(verdict(good.with(chain: [second])) == .verified(ann.keys, .same))
        var new: KeyLogReader = try Self.reader()
        #expect(new.receive(good.with(chain: [second]), of: "ann", now: Self.now).refusal == .sequence)
        // One who has not seen it does not get it from an old map either.
        var newer: KeyLogReader = try Self.reader()
        #expect(newer.receive(good.with(head: mixed), of: "ann", now: Self.now).refusal == .notProven)
    }

    @Test("a head of yesterday, of another key, or of which anything was changed, shows nothing")
    func replayed() throws {
        let ann: KeyLogPerson = try .init("ann", 1)
        let log: HostileLog = .init(key: Self.key, [ann.newest])
        let day: UInt64 = 86_400_000
        var reader: KeyLogReader = try Self.reader()
        let old: KeyLogLookup = try log.lookup("ann", ann.entries, time: Self.now - day)
        #expect(reader.receive(old, of: "ann", now: Self.now).refusal == .staleHead)
        let stranger: HostileLog = .init(key: .random(), [ann.newest])
        #expect(
            reader.receive(try stranger.lookup("ann", ann.entries, time: Self.now), of: "ann", now: Self.now).refusal
                == .notSigned)
        // An old signature under a new time.
        let head: [UInt8] = old.head.bytes
        let newTime: [UInt8] = Array(head[..<72]) + Self.now.octets + Array(head[80...])
        #expect(
            reader.receive(old.with(head: try KeyLogHead(newTime)), of: "ann", now: Self.now).refusal == .notSigned)
        #expect(reader.head == nil && reader.pinCount == 0)
        // Sizes that no log has: nothing, and half an entry.
        for size: UInt64 in [0, 1, 3, KeyLogLimits.numberBound] {
            #expect(keyLogRefusal { _ = try KeyLogHead(size.octets + head[8...]) } == .malformed)
        }
    }

    @Test("proofs of another log, another place or another user show nothing")
    func otherProofs() throws {
        let people: [KeyLogPerson] = try ["ann", "ben", "carl", "dora", "emil"].map { try .init($0, 1) }
        let log: HostileLog = .init(key: Self.key, people.map(\.newest))
        let other: HostileLog = .init(key: Self.key, people.reversed().map(\.newest))
        let good: KeyLogLookup = try log.lookup("ann", people[0].entries, time: Self.now)
        let bad: KeyLogLookup = try other.lookup("ann", people[0].entries, time: Self.now)
        let ben: KeyLogLookup = try log.lookup("ben", people[1].entries, time: Self.now)
        var reader: KeyLogReader = try Self.reader()
        for lie: KeyLogLookup in [
            good.with(inclusion: bad.inclusion), good.with(index: bad.index, inclusion: bad.inclusion),
            good.with(index: 2), good.with(index: 1), good.with(index: 1 << 40), good.with(inclusion: []),
            good.with(mapRootProof: bad.mapRootProof), good.with(mapRootProof: []), good.with(mapProof: ben.mapProof),
            good.with(mapProof: bad.mapProof, chain: people[1].entries),
            ben.with(chain: people[0].entries), good.with(chain: [], index: 0, inclusion: []), ben,
            good.with(chain: people[1].entries + people[0].entries),
        ] {
            let verdict: KeyLogVerdict = reader.receive(lie, of: "ann", now: Self.now)
            #expect(verdict.refusal == .notProven, "\(verdict)")
            #expect(reader.pinCount == 0)
        }
        #expect(reader.receive(good, of: "ann", now: Self.now).handedOut == people[0].keys)
    }

    @Test("a leaf of the map is no entry, an entry none of the map: neither its bytes nor its place let it pass")
    func mixedLeaves() throws {
        let (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        var reader: KeyLogReader = try Self.reader()
        // A log that has them in the other order: the map's root first, the entry where the root belongs.
        var log: HostileLog = .init(key: Self.key)
        log.map.set(KeyLogEntry.mapKey(of: "ann"), to: ann.newest.hash)
        log.tree.append(KeyLogHead.mapLeaf(log.map.root))
        log.places[ann.newest.hash] = 1
        log.tree.append(ann.newest.hash)
        let swapped: KeyLogLookup = try log.lookup("ann", ann.entries, time: Self.now)
        #expect(reader.receive(swapped, of: "ann", now: Self.now).refusal == .notProven)
        // The root stands at the end as it should, and the entry at another odd place.
        log.commit(ben.newest)
        #expect(
            reader.receive(try log.lookup("ann", ann.entries, time: Self.now), of: "ann", now: Self.now).refusal
                == .notProven)
        // A map that names one of its own roots as an entry: nothing has those bytes.
        var root: LabelledBytes = .init("thicket/map-root/1")
        try root.add(log.map.root.bytes)
        #expect(keyLogRefusal { _ = try KeyLogEntry(root.octets) } == .malformed)
        #expect(KeyLogHead.mapLeaf(log.map.root) == MerkleTree.leafHash(root.octets))
        #expect(ann.newest.hash != KeyLogHead.mapLeaf(ann.newest.hash))
    }

    @Test("an answer that leads from another size than the one seen is asked for again; without a way it is an alarm")
    func ways() throws {
        let people: [KeyLogPerson] = try ["ann", "ben", "carl", "dora"].map { try .init($0, 1) }
        let log: HostileLog = .init(key: Self.key, people.map(\.newest))
        var reader: KeyLogReader = try Self.reader()
        let early: HostileLog = .init(key: Self.key, people.prefix(2).map(\.newest))
        _ = reader.receive(try early.lookup("ann", people[0].entries, time: Self.now), of: "ann", now: Self.now)
        for known: UInt64 in [0, 2, 6] {
            let answer: KeyLogLookup = try log.lookup("ann", people[0].entries, known: known, time: Self.now)
            #expect(reader.receive(answer, of: "ann", now: Self.now).refusal == .otherSize, "\(known)")
        }
        let good: KeyLogLookup = try log.lookup("ann", people[0].entries, known: 4, time: Self.now)
        for way: [Digest256] in [
            [], try log.way(from: 2), Array(good.consistency.dropLast()), good.consistency + [.zero],
        ] {
            var reader: KeyLogReader = reader
            let fork: KeyLogFork = try #require(
                reader.receive(good.with(consistency: way), of: "ann", now: Self.now).fork)
            #expect(fork.older.size == 4 && fork.newer.size == 8)
            #expect(try fork.check(Self.key.verifyingKey) == .unexplained)
            // It stands, whatever else is shown, until the way is.
            #expect(reader.receive(good, of: "ann", now: Self.now).fork == fork)
            #expect(reader.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
            let wayThere: KeyLogConsistency = .init(older: 4, newer: 8, proof: good.consistency)
            let explained: [Bool] = [reader.explain(.init(older: 4, newer: 8, proof: way)), reader.explain(wayThere)]
            #expect(explained == [false, true] && reader.fork == nil)
            #expect(reader.receive(good, of: "ann", now: Self.now) == .verified(people[0].keys, .same))
        }
    }

    @Test(
        "after a restore that its user has vouched for a device goes on with what it has pinned, and with nothing else")
    func restored() throws {
        var ann: KeyLogPerson = try .init("ann", 1)
        let ben: KeyLogPerson = try .init("ben", 1)
        let backup: HostileLog = .init(key: Self.key, ann.entries)
        try ann.change(.rotation, at: 2_000)
        let log: HostileLog = .init(key: Self.key, ann.entries + ben.entries)
        var reader: KeyLogReader = try Self.reader()
        for person: KeyLogPerson in [ann, ben] {
            _ = reader.receive(
                try log.lookup(person.user, person.entries, known: reader.head?.size ?? 0, time: Self.now),
                of: person.user, now: Self.now)
        }
        #expect(reader.pinCount == 2)
        var after: HostileLog = backup
        after.commit(ben.newest)
        after.commit(ann.newest)
        let shown: KeyLogLookup = try after.lookup("ann", ann.entries, known: 6, time: Self.now)
        #expect(reader.receive(shown, of: "ann", now: Self.now).isAlarm)
        reader.beginAnew()
        #expect(reader.receive(shown, of: "ann", now: Self.now) == .verified(ann.keys, .same))
        reader.beginAnew()
        let lost: KeyLogLookup = try backup.lookup("ann", Array(ann.entries.prefix(1)), time: Self.now)
        #expect(reader.receive(lost, of: "ann", now: Self.now) == .alarm(.replaced(user: "ann")))
        let gone: KeyLogLookup = try backup.lookup("ben", [], time: Self.now)
        #expect(reader.receive(gone, of: "ben", now: Self.now) == .alarm(.removed(user: "ben")))
    }
}
