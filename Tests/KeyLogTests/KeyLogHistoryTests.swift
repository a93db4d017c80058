import Testing
import ThicketCrypto
import ThicketTestSupport

@testable import ThicketKeyLog

/// Histories from a seed: many users, devices that act at random times, and at most one lie.
@Suite("Random histories of the key log")
struct KeyLogHistoryTests {
    private static let key = Ed25519.SigningKey.random()
    private static let minute: UInt64 = 60_000

    @Test(
        "in honest histories of hundreds of entries no device has an alarm, and each look-up gives the newest keys",
        arguments: [1, 2, 3] as [UInt64])
    func honest(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var log = try KeyLog(app: "chat")
        var people = [KeyLogPerson]()
        var readers: [KeyLogReader] = try (0..<8).map { _ in try .init(app: "chat", logKey: Self.key.verifyingKey) }
        var now: UInt64 = 1_000_000_000
        var seen = [String: Int]()
        for _ in 0..<900 {
            now += Self.minute * .random(in: 0...90, using: &random)
            let index = Int.random(in: 0..<readers.count, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0 where people.count < 60, 1 where people.isEmpty:
                people.append(try .init("user \(people.count)", 1, at: now))
                _ = try log.append(people[people.count - 1].newest, now: now)
            case 1...4 where !people.isEmpty:
                let place = Int.random(in: 0..<people.count, using: &random)
                let kind: KeyLogEntry.Kind = .random(in: 0..<8, using: &random) == 0 ? .reset : .rotation
                _ = try log.append(people[place].change(kind, at: now), isResetAuthorised: true, now: now)
            case 5 where !people.isEmpty:
                let person = people[.random(in: 0..<people.count, using: &random)]
                #expect(try readers[index].askOwn(person.own, &log, key: Self.key, now: now) == .asCreated)
            case 6:
                guard let received: KeyLogHead = readers[.random(in: 0..<8, using: &random)].head else { continue }
                var gossip = readers[index].compare(received, now: now)
                if case .ask(let older, let newer) = gossip {
                    let way = try log.consistency(older: older, newer: newer)
                    gossip = readers[index].compare(received, way: .given(try KeyLogConsistency(way.bytes)), now: now)
                }
                #expect(gossip == .consistent)
            case 7: readers[index] = try KeyLogReader(readers[index].bytes)
            default:
                guard !people.isEmpty else { continue }
                let person = people[.random(in: 0..<people.count, using: &random)]
                let verdict = try readers[index].ask(person.user, &log, key: Self.key, now: now)
                switch verdict {
                case .verified(let keys, let change):
                    #expect(keys == person.keys)
                    if case .rotated = change { seen["rotated", default: 0] += 1 }
                case .needsConfirmation(_, let keys):
                    #expect(keys == person.keys)
                    seen["reset", default: 0] += 1
                    try readers[index].confirm(keys)
                default: Issue.record("\(verdict)")
                }
                #expect(readers[index].verifiedKeys(of: person.user, now: now, isOnline: true) == person.keys)
            }
        }
        #expect(log.entries.count > 300 && (seen["rotated"] ?? 0) > 10 && (seen["reset"] ?? 0) > 5, "\(seen)")
        #expect(try KeyLog(app: "chat", entries: log.entries).agrees(with: log.head(time: now, key: Self.key)))
    }

    enum Lie: CaseIterable, CustomTestStringConvertible {
        /// One device is shown its own log, in which a user has other keys.
        case forkWithOtherKeys
        /// One device is shown its own log, which ends here.
        case forkThatStops
        /// Foreign keys are inserted by a reset, for all.
        case foreignReset
        /// Foreign keys are inserted by a rotation that the old key has not signed.
        case forgedRotation
        /// Foreign keys are inserted as another first entry, and the map names them.
        case secondFirst
        /// The map goes back to an older entry.
        case olderMap
        /// Foreign keys are inserted for one look-up, and removed again.
        case flash

        var testDescription: String { "\(self)" }
    }

    /// Each user has a device: it looks up its own entries and those of others, and compares heads.
    private struct World {
        var people = [KeyLogPerson]()
        var readers = [KeyLogReader]()
        var log = HostileLog(key: KeyLogHistoryTests.key)
        /// The newest chain of each user in the log.
        var chains = [[KeyLogEntry]]()
        /// The device to which the server shows another log, and that log with its chains.
        var other: (reader: Int, log: HostileLog, chains: [[KeyLogEntry]])?
        var now: UInt64 = 1_000_000_000
        var alarms = 0

        mutating func join() throws {
            people.append(try .init("user \(people.count)", 1, at: now))
            readers.append(try .init(app: "chat", logKey: log.key.verifyingKey))
            chains.append([])
            try publish(people.count - 1)
        }

        mutating func publish(_ index: Int) throws {
            chains[index] = people[index].entries
            log.commit(people[index].newest)
            // Both logs grow, as far as the other one may.
            guard other != nil else { return }
            while other!.chains.count < people.count { other!.chains.append([]) }
        }

        mutating func look(_ index: Int, at target: Int) throws {
            let isOther = other?.reader == index
            let shown = isOther ? other!.log : log
            let chain = isOther ? other!.chains[target] : chains[target]
            let known = readers[index].head?.size ?? 0
            // A competent server does not make a proof from a size that the shown log lacks.
            let lookup = try shown.lookup(
                people[target].user, chain, known: known <= UInt64(shown.tree.count) ? known : 0, time: now)
            if index == target {
                if case .alarm = readers[index].checkOwn(lookup, own: people[index].own, now: now) { alarms += 1 }
                return
            }
            switch readers[index].receive(lookup, of: people[target].user, now: now) {
            case .alarm: alarms += 1
            case .needsConfirmation(_, let keys):
                // A user that is asked states whether the keys are theirs.
                if keys == people[target].keys { try readers[index].confirm(keys) }
            default: break
            }
        }

        mutating func talk(_ one: Int, to two: Int) throws {
            guard let received = readers[one].head else { return }
            var gossip = readers[two].compare(received, now: now)
            if case .ask(let older, let newer) = gossip {
                let sides = [log] + (other.map { [$0.log] } ?? [])
                let ways = sides.compactMap { side in
                    side.tree.consistencyProof(oldSize: Int(older), newSize: Int(newer)).map {
                        KeyLogConsistency(older: older, newer: newer, proof: $0)
                    }
                }
                // The server gives the proof that helps, if it has any.
                let good = ways.first { way in
                    var copy = readers[two]
                    return copy.compare(received, way: .given(way), now: now) == .consistent
                }
                gossip = readers[two].compare(
                    received, way: (good ?? ways.first).map { .given($0) } ?? .withheld, now: now)
            }
            if case .alarm = gossip { alarms += 1 }
        }

        /// The number of wrong keys that devices would use.
        var wrong: Int {
            readers.indices.reduce(0) { count, index in
                count
                    + people.filter { person in
                        let keys = readers[index].verifiedKeys(of: person.user, now: now, isOnline: true)
                        return keys != nil && keys != person.keys
                    }.count
            }
        }

        mutating func lie(_ lie: Lie, to reader: Int, about target: Int) throws {
            let thief = try KeyLogPerson(people[target].user, 200, at: now)
            let newest = people[target].newest
            switch lie {
            case .forkWithOtherKeys:
                var (fork, forged) = (log, chains)
                let entry = try newest.reset(
                    to: thief.identity, encryption: thief.encryption.publicKey, validFrom: now)
                fork.commit(entry)
                forged[target].append(entry)
                other = (reader, fork, forged)
            case .forkThatStops: other = (reader, log, chains)
            case .foreignReset, .flash:
                let entry = try newest.reset(
                    to: thief.identity, encryption: thief.encryption.publicKey, validFrom: now)
                log.commit(entry)
                let truth = chains[target]
                chains[target].append(entry)
                guard lie == .flash else { return }
                try look(reader, at: target)
                log.commit(newest)
                chains[target] = truth
            case .forgedRotation:
                let entry: KeyLogEntry = try newest.rotated(
                    to: thief.identity, encryption: thief.encryption.publicKey, signedBy: thief.identity,
                    validFrom: now)
                log.commit(entry)
                chains[target].append(entry)
            case .secondFirst:
                log.commit(thief.newest)
                chains[target] = thief.entries
            case .olderMap:
                // Its owner has seen the newest entry in the log.
                try people[target].change(.rotation, at: now)
                try publish(target)
                try look(target, at: target)
                let older: [KeyLogEntry] = chains[target].dropLast()
                log.commit(people[target].newest, latest: older[older.count - 1].hash)
                chains[target] = older
            }
        }

        mutating func step(_ random: inout SeededRandom) throws {
            now += KeyLogHistoryTests.minute * .random(in: 0...50, using: &random)
            let (one, two): (Int, Int) = (
                .random(in: 0..<people.count, using: &random), .random(in: 0..<people.count, using: &random)
            )
            switch Int.random(in: 0..<8, using: &random) {
            case 0 where people.count < 8: try join()
            case 1:
                // A user with other entries in the log than their own would notice before making more.
                guard chains[one].count == people[one].entries.count, chains[one].last == people[one].newest else {
                    return
                }
                try people[one].change(.rotation, at: now)
                try publish(one)
            case 2: try talk(one, to: two)
            case 3: try look(one, at: one)
            default: if one != two { try look(one, at: two) }
            }
        }

        /// Finally all devices look up all users and compare heads, and two hours later look up all users again.
        mutating func finish() throws {
            for one in people.indices {
                for two in people.indices {
                    try look(one, at: two)
                    try talk(one, to: two)
                }
            }
            now += 2 * 3_600_000
            for one in people.indices {
                for two in people.indices { try look(one, at: two) }
            }
        }
    }

    @Test("after one lie in a history a device has an alarm, or none would use a wrong key", arguments: Lie.allCases)
    func lies(lie: Lie) throws {
        var found = 0
        for seed: UInt64 in 1...6 {
            var random = SeededRandom(seed: seed)
            var world = World()
            for _ in 0..<4 { try world.join() }
            for _ in 0..<40 { try world.step(&random) }
            #expect(world.alarms == 0, "before the lie, seed \(seed)")
            let (reader, shift): (Int, Int) = (
                .random(in: 0..<world.people.count, using: &random),
                .random(in: 1..<world.people.count, using: &random)
            )
            try world.lie(lie, to: reader, about: (reader + shift) % world.people.count)
            for _ in 0..<30 { try world.step(&random) }
            try world.finish()
            #expect(world.alarms > 0 || world.wrong == 0, "seed \(seed)")
            if world.alarms > 0 { found += 1 }
        }
        // A log that stops is not a lie in itself: its heads are refused once another device has shown a newer one.
        if lie == .forkThatStops {
            #expect(found == 0)
        } else {
            #expect(found >= 4, "\(lie) led to an alarm in \(found) of 6 histories")
        }
    }

    @Test(
        "the same histories without a lie lead to no alarm, and to the newest keys on every device",
        arguments: [1, 2, 3] as [UInt64])
    func truth(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var world = World()
        for _ in 0..<4 { try world.join() }
        for _ in 0..<70 { try world.step(&random) }
        try world.finish()
        #expect(world.alarms == 0 && world.wrong == 0)
        for reader in world.readers { #expect(reader.pinCount == world.people.count) }
    }
}
