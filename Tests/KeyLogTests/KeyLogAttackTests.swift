import Testing
import ThicketCrypto

@testable import ThicketKeyLog

/// Attempts of a server that lies, and the devices that detect them.
@Suite("A key log that lies")
struct KeyLogAttackTests {
    private static let key = Ed25519.SigningKey.random()
    private static let now: UInt64 = 3_600_000_000

    private static func reader() throws -> KeyLogReader { try .init(app: "chat", logKey: key.verifyingKey) }

    /// An attacker's substitute for ann's keys: another first entry.
    private static func mallory() throws -> KeyLogPerson { try .init("ann", 66) }

    @Test(
        "substituted keys are found by the user's own check and by a device that has seen the true keys"
    )
    func substituted() throws {
        let (ann, mallory): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try Self.mallory())
        var log = HostileLog(key: Self.key, [ann.newest])
        var (friend, owner) = (try Self.reader(), try Self.reader())
        #expect(
            friend.receive(try log.lookup("ann", ann.entries, time: Self.now), of: "ann", now: Self.now).handedOut
                == ann.keys)
        log.commit(mallory.newest)
        let lie = try log.lookup("ann", mallory.entries, known: 2, time: Self.now)
        #expect(friend.receive(lie, of: "ann", now: Self.now) == .alarm(.replaced(user: "ann")))
        #expect(friend.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
        #expect(owner.checkOwn(lie, own: ann.own, now: Self.now) == .alarm(.foreignKey(mallory.newest)))
        // Keys that are shown afterwards, even the true ones, need a confirmation.
        log.commit(ann.newest)
        let truth = try log.lookup("ann", ann.entries, known: 4, time: Self.now)
        #expect(
            friend.receive(truth, of: "ann", now: Self.now) == .needsConfirmation(old: ann.keys, new: ann.keys))
        #expect(friend.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
        // A device that was shown only the lie detects it when the server withdraws it.
        var victim = try Self.reader()
        #expect(victim.receive(lie, of: "ann", now: Self.now).handedOut == mallory.keys)
        #expect(victim.receive(truth, of: "ann", now: Self.now) == .alarm(.replaced(user: "ann")))
        // Nor can the log be rebuilt: the map went from one chain to another.
        #expect(
            keyLogRefusal {
                _ = try KeyLog(app: "chat", entries: [ann.newest.bytes, mallory.newest.bytes])
            } == .sequence)
        #expect(try !KeyLog(app: "chat", entries: [ann.newest.bytes]).agrees(with: truth.head))
    }

    @Test("a rotation that the old key has not signed is an alarm for devices that have seen the user and for new ones")
    func forgedRotation() throws {
        let ann = try KeyLogPerson("ann", 1)
        let (thief, stolen): (Ed25519.SigningKey, X25519.PublicKey) = (.random(), X25519.PrivateKey.random().publicKey)
        let forged = try ann.newest.rotated(
            to: thief, encryption: stolen, signedBy: thief, validFrom: 2_000)
        var log = HostileLog(key: Self.key, [ann.newest])
        var friend = try Self.reader()
        _ = friend.receive(try log.lookup("ann", ann.entries, time: Self.now), of: "ann", now: Self.now)
        log.commit(forged)
        let lie = try log.lookup("ann", ann.entries + [forged], known: 2, time: Self.now)
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
        "a log with an entry of another user or app, a gap, an earlier time or another user's keys is an alarm"
    )
    func badEntries() throws {
        let (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        let foreign: KeyLogEntry = try .first(
            app: "notes", user: "ann", identity: ann.identity, encryption: ann.encryption.publicKey, validFrom: 1)
        let newKey = try KeyLogPerson.signing("ann", 7)
        func second(_ change: (inout KeyLogEntry.Fields) -> Void) throws -> KeyLogEntry {
            var fields = try ann.newest.rotated(
                to: newKey, encryption: ann.encryption.publicKey, signedBy: ann.identity, validFrom: 2_000
            ).fields
            change(&fields)
            return try .made(fields, newKey, last: ann.identity)
        }
        func stolen(_ owner: KeyLogPerson, by thief: KeyLogPerson) throws -> KeyLogEntry {
            var fields = thief.newest.fields
            fields.keys = try PublicKeys(
                user: thief.user, identity: owner.keys.identity, encryption: owner.keys.encryption)
            return try .made(fields, thief.identity, last: nil)
        }
        let cases: [([KeyLogEntry], KeyLogError.Kind)] = [
            ([ben.newest], .otherUser), ([foreign], .otherApp),
            ([ann.newest, try second { $0.sequence = 2 }], .sequence),
            ([ann.newest, try second { $0.validFrom = 1 }], .time),
            // Another user's keys under the own name, without that user's signature.
            ([try stolen(ben, by: ann)], .signature),
            ([try .init(ann.newest.fields, signature: ben.newest.signature, previousSignature: nil)], .signature),
        ]
        for (chain, kind) in cases {
            var log = HostileLog(key: Self.key)
            for entry in chain { log.commit(entry, of: "ann") }
            var reader = try Self.reader()
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

    @Test("an older head, an older map, a shorter chain or an empty answer does not hide the newest entry")
    func hidden() throws {
        var ann = try KeyLogPerson("ann", 1)
        let first = ann.newest
        let second = try ann.change(.rotation, at: 2_000)
        let before = HostileLog(key: Self.key, [first])
        let log = HostileLog(key: Self.key, [first, second])
        var reader = try Self.reader()
        #expect(
            reader.receive(try log.lookup("ann", [first, second], time: Self.now), of: "ann", now: Self.now).handedOut
                == ann.keys)
        func verdict(_ lookup: KeyLogLookup) -> KeyLogVerdict {
            var reader = reader
            let verdict = reader.receive(lookup, of: "ann", now: Self.now)
            #expect(
                reader.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == (verdict.isAlarm ? nil : ann.keys))
            return verdict
        }
        // An older head, newly signed.
        #expect(verdict(try before.lookup("ann", [first], time: Self.now)).refusal == .olderHead)
        // The older map under the newest root, and under its own root.
        let good = try log.lookup("ann", [first, second], known: 4, time: Self.now)
        #expect(
            verdict(good.with(mapProof: before.map.proof(of: KeyLogEntry.mapKey(of: "ann")), chain: [first])).refusal
                == .notProven)
        let mixed = try log.head(Self.now, mapRoot: before.map.root)
        #expect(verdict(good.with(head: mixed)).fork?.older.size == 4)
        // The log goes on, and its map goes back.
        var back = log
        back.commit(try KeyLogPerson("ben", 1).newest, of: "ann", latest: first.hash)
        #expect(
            verdict(try back.lookup("ann", [first], known: 4, time: Self.now)) == .alarm(.replaced(user: "ann")))
        var empty = log
        empty.map.remove(KeyLogEntry.mapKey(of: "ann"))
        empty.commit(try KeyLogPerson("ben", 1).newest)
        #expect(verdict(try empty.lookup("ann", [], known: 4, time: Self.now)) == .alarm(.removed(user: "ann")))
        // A chain without its end, or one whose beginning a new device does not know.
        #expect(verdict(good.with(chain: [first])).refusal == .notProven)
        #expect(verdict(good.with(chain: [])).refusal == .notProven)
        #expect(verdict(good.with(chain: [second])) == .verified(ann.keys, .same))
        var new = try Self.reader()
        #expect(new.receive(good.with(chain: [second]), of: "ann", now: Self.now).refusal == .sequence)
        // A device that has not seen the newest entry does not accept an old map either.
        var newer = try Self.reader()
        #expect(newer.receive(good.with(head: mixed), of: "ann", now: Self.now).refusal == .notProven)
    }

    @Test("a head of the day before, of another key, with a new time or with an impossible size is refused")
    func replayed() throws {
        let ann = try KeyLogPerson("ann", 1)
        let log = HostileLog(key: Self.key, [ann.newest])
        let day: UInt64 = 86_400_000
        var reader = try Self.reader()
        let old = try log.lookup("ann", ann.entries, time: Self.now - day)
        #expect(reader.receive(old, of: "ann", now: Self.now).refusal == .staleHead)
        let outsider = HostileLog(key: .random(), [ann.newest])
        #expect(
            reader.receive(try outsider.lookup("ann", ann.entries, time: Self.now), of: "ann", now: Self.now).refusal
                == .notSigned)
        // An old signature under a new time.
        let head = old.head.bytes
        let newTime = Array(head[..<72]) + Self.now.octets + Array(head[80...])
        #expect(
            reader.receive(old.with(head: try KeyLogHead(newTime)), of: "ann", now: Self.now).refusal == .notSigned)
        #expect(reader.head == nil && reader.pinCount == 0)
        // Sizes that no log has: zero, half an entry, and one above the bound.
        for size in [0, 1, 3, KeyLogLimits.numberBound] {
            #expect(keyLogRefusal { _ = try KeyLogHead(size.octets + head[8...]) } == .malformed)
        }
    }

    @Test("proofs of another log, another place or another user are refused")
    func otherProofs() throws {
        let people: [KeyLogPerson] = try ["ann", "ben", "carl", "dora", "emil"].map { try .init($0, 1) }
        let log = HostileLog(key: Self.key, people.map(\.newest))
        let other = HostileLog(key: Self.key, people.reversed().map(\.newest))
        let good = try log.lookup("ann", people[0].entries, time: Self.now)
        let bad = try other.lookup("ann", people[0].entries, time: Self.now)
        let ben = try log.lookup("ben", people[1].entries, time: Self.now)
        var reader = try Self.reader()
        for lie in [
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

    @Test("a map leaf is not accepted as an entry nor an entry as a map leaf, by its place or its bytes")
    func mixedLeaves() throws {
        let (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        var reader = try Self.reader()
        // A log that has them in the other order: the map's root first, the entry where the root belongs.
        var log = HostileLog(key: Self.key)
        log.map.set(KeyLogEntry.mapKey(of: "ann"), to: ann.newest.hash)
        log.tree.append(KeyLogHead.mapLeaf(log.map.root))
        log.places[ann.newest.hash] = 1
        log.tree.append(ann.newest.hash)
        let swapped = try log.lookup("ann", ann.entries, time: Self.now)
        #expect(reader.receive(swapped, of: "ann", now: Self.now).refusal == .notProven)
        // The root is at the end, as it should be, and the entry at another odd place.
        log.commit(ben.newest)
        #expect(
            reader.receive(try log.lookup("ann", ann.entries, time: Self.now), of: "ann", now: Self.now).refusal
                == .notProven)
        // A map that names one of its own roots as an entry: no entry has those bytes.
        var root = LabelledBytes("thicket/map-root/1")
        try root.add(log.map.root.bytes)
        #expect(keyLogRefusal { _ = try KeyLogEntry(root.octets) } == .malformed)
        #expect(KeyLogHead.mapLeaf(log.map.root) == MerkleTree.leafHash(root.octets))
        #expect(ann.newest.hash != KeyLogHead.mapLeaf(ann.newest.hash))
    }

    @Test("an answer from another size than the known one is refused; one with a bad proof is an alarm until explained")
    func ways() throws {
        let people: [KeyLogPerson] = try ["ann", "ben", "carl", "dora"].map { try .init($0, 1) }
        let log = HostileLog(key: Self.key, people.map(\.newest))
        var reader = try Self.reader()
        let early = HostileLog(key: Self.key, people.prefix(2).map(\.newest))
        _ = reader.receive(try early.lookup("ann", people[0].entries, time: Self.now), of: "ann", now: Self.now)
        for known: UInt64 in [0, 2, 6] {
            let answer: KeyLogLookup = try log.lookup("ann", people[0].entries, known: known, time: Self.now)
            #expect(reader.receive(answer, of: "ann", now: Self.now).refusal == .otherSize, "\(known)")
        }
        let good = try log.lookup("ann", people[0].entries, known: 4, time: Self.now)
        for way in [
            [], try log.way(from: 2), Array(good.consistency.dropLast()), good.consistency + [.zero],
        ] {
            var reader = reader
            let fork = try #require(
                reader.receive(good.with(consistency: way), of: "ann", now: Self.now).fork)
            #expect(fork.older.size == 4 && fork.newer.size == 8)
            #expect(try fork.check(Self.key.verifyingKey) == .unexplained)
            // The alarm remains, whatever else is shown, until the proof is.
            #expect(reader.receive(good, of: "ann", now: Self.now).fork == fork)
            #expect(reader.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
            let wayThere = KeyLogConsistency(older: 4, newer: 8, proof: good.consistency)
            let explained = [reader.explain(.init(older: 4, newer: 8, proof: way)), reader.explain(wayThere)]
            #expect(explained == [false, true] && reader.fork == nil)
            #expect(reader.receive(good, of: "ann", now: Self.now) == .verified(people[0].keys, .same))
        }
    }

    @Test(
        "after a restore that the user has vouched for, a device goes on with its pinned keys and with no others")
    func restored() throws {
        var ann = try KeyLogPerson("ann", 1)
        let ben = try KeyLogPerson("ben", 1)
        let backup = HostileLog(key: Self.key, ann.entries)
        try ann.change(.rotation, at: 2_000)
        let log = HostileLog(key: Self.key, ann.entries + ben.entries)
        var reader = try Self.reader()
        for person in [ann, ben] {
            _ = reader.receive(
                try log.lookup(person.user, person.entries, known: reader.head?.size ?? 0, time: Self.now),
                of: person.user, now: Self.now)
        }
        #expect(reader.pinCount == 2)
        var after = backup
        after.commit(ben.newest)
        after.commit(ann.newest)
        let shown = try after.lookup("ann", ann.entries, known: 6, time: Self.now)
        #expect(reader.receive(shown, of: "ann", now: Self.now).isAlarm)
        reader.reset()
        #expect(reader.receive(shown, of: "ann", now: Self.now) == .verified(ann.keys, .same))
        reader.reset()
        let lost = try backup.lookup("ann", Array(ann.entries.prefix(1)), time: Self.now)
        #expect(reader.receive(lost, of: "ann", now: Self.now) == .alarm(.replaced(user: "ann")))
        let gone = try backup.lookup("ben", [], time: Self.now)
        #expect(reader.receive(gone, of: "ben", now: Self.now) == .alarm(.removed(user: "ben")))
    }
}
