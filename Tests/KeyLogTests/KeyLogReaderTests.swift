import Testing
import ThicketCrypto

@testable import ThicketKeyLog

@Suite("A device that reads the key log")
struct KeyLogReaderTests {
    private static let key = Ed25519.SigningKey.random()
    private static let hour: UInt64 = 3_600_000
    private static let now: UInt64 = 1_000 * hour

    private static func reader() throws -> KeyLogReader { try .init(app: "chat", logKey: key.verifyingKey) }

    @Test(
        "keys are trusted on first use, are the same later, and a rotation is verified and reports the old keys"
    )
    func rotation() throws {
        var ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(try .init("ben", 1), ann)
        var reader = try Self.reader()
        #expect(try reader.ask("ann", &log, key: Self.key, now: Self.now) == .verified(ann.keys, .first))
        #expect(try reader.ask("ann", &log, key: Self.key, now: Self.now) == .verified(ann.keys, .same))
        let old = ann.keys
        for _ in 0..<2 { _ = try log.append(ann.change(.rotation, at: 2_000), now: Self.now) }
        #expect(reader.verifiedKeys(of: "ann", now: Self.now, isOnline: true) == old)
        #expect(try reader.ask("ann", &log, key: Self.key, now: Self.now) == .verified(ann.keys, .rotated(from: old)))
        #expect(reader.verifiedKeys(of: "ann", now: Self.now, isOnline: true) == ann.keys)
        #expect(try reader.ask("ann", &log, key: Self.key, now: Self.now) == .verified(ann.keys, .same))
        #expect(reader.question("ann") == (from: 2, known: 8))
        #expect(reader.question("carl") == (from: 0, known: 8))
    }

    @Test("a device that has seen a part of a chain also accepts the whole chain from its first entry")
    func wholeChain() throws {
        var ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(ann)
        var reader = try Self.reader()
        _ = try reader.ask("ann", &log, key: Self.key, now: Self.now)
        for _ in 0..<3 {
            _ = try log.append(ann.change(.rotation, at: 2_000), now: Self.now)
            let answer = try log.answer(
                "ann", (from: 0, known: reader.question("ann").known), key: Self.key, now: Self.now)
            #expect(reader.receive(answer, of: "ann", now: Self.now).handedOut == ann.keys)
        }
    }

    @Test("for a user without entries, the log proves their absence")
    func absent() throws {
        var log: KeyLog = try .with(try .init("ann", 1))
        var reader = try Self.reader()
        #expect(try reader.ask("eve", &log, key: Self.key, now: Self.now) == .absent)
        #expect(reader.verifiedKeys(of: "eve", now: Self.now, isOnline: false) == nil)
        #expect(reader.pinCount == 0)
        // A user that is added later is a first sight as usual.
        let eve = try KeyLogPerson("eve", 1)
        _ = try log.append(eve.newest, now: Self.now)
        #expect(try reader.ask("eve", &log, key: Self.key, now: Self.now) == .verified(eve.keys, .first))
    }

    @Test("after a reset no keys are handed out until exactly the newest keys are confirmed")
    func reset() throws {
        var ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(ann)
        var reader = try Self.reader()
        _ = try reader.ask("ann", &log, key: Self.key, now: Self.now)
        let old = ann.keys
        func noKeys() { #expect(reader.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil) }
        _ = try log.append(ann.change(.reset, at: 2_000), isResetAuthorised: true, now: Self.now)
        let reset = ann.keys
        for _ in 0..<2 {
            #expect(
                try reader.ask("ann", &log, key: Self.key, now: Self.now) == .needsConfirmation(old: old, new: reset))
            noKeys()
        }
        // A rotation by the author of the reset does not replace the confirmation.
        _ = try log.append(ann.change(.rotation, at: 3_000), now: Self.now)
        #expect(
            try reader.ask("ann", &log, key: Self.key, now: Self.now) == .needsConfirmation(old: old, new: ann.keys))
        noKeys()
        // Confirmations of the reset's keys, of the old ones, and of another user's.
        for wrong in [reset, old, try KeyLogPerson("ben", 1).keys] {
            #expect(keyLogRefusal { try reader.confirm(wrong) } == .notAwaited)
            noKeys()
        }
        try reader.confirm(ann.keys)
        #expect(reader.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == ann.keys)
        #expect(try reader.ask("ann", &log, key: Self.key, now: Self.now) == .verified(ann.keys, .same))
        #expect(keyLogRefusal { try reader.confirm(ann.keys) } == .notAwaited)
    }

    @Test("rotations and a reset that arrive together need a confirmation as a reset does, in any order")
    func resetAmongRotations() throws {
        for kinds: [KeyLogEntry.Kind] in [[.rotation, .reset], [.reset, .rotation], [.rotation, .reset, .rotation]] {
            var ann = try KeyLogPerson("ann", 1)
            var log: KeyLog = try .with(ann)
            var reader = try Self.reader()
            _ = try reader.ask("ann", &log, key: Self.key, now: Self.now)
            let old = ann.keys
            for kind in kinds {
                _ = try log.append(ann.change(kind, at: 2_000), isResetAuthorised: true, now: Self.now)
            }
            #expect(
                try reader.ask("ann", &log, key: Self.key, now: Self.now)
                    == .needsConfirmation(old: old, new: ann.keys))
        }
    }

    @Test("a head is valid for an hour, and up to five minutes ahead of the clock, to the millisecond")
    func freshness() throws {
        let ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(ann)
        let answer = try log.answer("ann", (from: 0, known: 0), key: Self.key, now: Self.now)
        for (now, refusal): (UInt64, KeyLogError.Kind?) in [
            (Self.now, nil), (Self.now + Self.hour, nil), (Self.now + Self.hour + 1, .staleHead), (.max, .staleHead),
            (Self.now - 300_000, nil), (Self.now - 300_001, .futureHead), (0, .futureHead),
        ] {
            var reader = try Self.reader()
            #expect(reader.receive(answer, of: "ann", now: now).refusal == refusal, "\(now)")
            #expect((reader.head == nil) == (refusal != nil))
        }
    }

    @Test("online, keys are handed out for an hour after their look-up; offline, without a limit")
    func handedOut() throws {
        let ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(ann)
        var reader = try Self.reader()
        _ = try reader.ask("ann", &log, key: Self.key, now: Self.now)
        let later = Self.now + Self.hour
        #expect(reader.verifiedKeys(of: "ann", now: later, isOnline: true) == ann.keys)
        #expect(reader.verifiedKeys(of: "ann", now: later + 1, isOnline: true) == nil)
        #expect(reader.verifiedKeys(of: "ann", now: later + 1, isOnline: false) == ann.keys)
        // A look-up of another user does not refresh ann.
        _ = try reader.ask("eve", &log, key: Self.key, now: later + 1)
        #expect(reader.verifiedKeys(of: "ann", now: later + 1, isOnline: true) == nil)
        _ = try reader.ask("ann", &log, key: Self.key, now: later + 1)
        #expect(reader.verifiedKeys(of: "ann", now: later + 1, isOnline: true) == ann.keys)
    }

    @Test(
        "an own check reports entries as created, missing ones as missing, and a foreign one as an alarm"
    )
    func own() throws {
        var ann = try KeyLogPerson("ann", 1)
        var log: KeyLog = try .with(try .init("ben", 1))
        var reader = try Self.reader()
        #expect(reader.isSelfCheckDue(now: Self.now))
        #expect(try reader.askOwn(ann.own, &log, key: Self.key, now: Self.now) == .missing)
        _ = try log.append(ann.newest, now: Self.now)
        #expect(try reader.askOwn(ann.own, &log, key: Self.key, now: Self.now) == .asCreated)
        #expect(!reader.isSelfCheckDue(now: Self.now + 86_399_999))
        #expect(reader.isSelfCheckDue(now: Self.now + 86_400_000))
        #expect(reader.isSelfCheckDue(now: Self.now - 1))
        // At the start of a session, an hour is enough.
        #expect(!reader.isStartCheckDue(now: Self.now + 3_600_000) && reader.isStartCheckDue(now: Self.now + 3_600_001))
        #expect(reader.isStartCheckDue(now: Self.now - 1))
        let second = try ann.change(.rotation, at: 2_000)
        #expect(try reader.askOwn(ann.own, &log, key: Self.key, now: Self.now) == .missing)
        _ = try log.append(second, now: Self.now)
        #expect(try reader.askOwn(ann.own, &log, key: Self.key, now: Self.now) == .asCreated)
        // A user's own reset needs no confirmation.
        _ = try log.append(ann.change(.reset, at: 2_000), isResetAuthorised: true, now: Self.now)
        #expect(try reader.askOwn(ann.own, &log, key: Self.key, now: Self.now) == .asCreated)
        // An attacker has made the server reset it.
        let mine = ann.own
        let foreign = try ann.change(.reset, at: 3_000)
        _ = try log.append(foreign, isResetAuthorised: true, now: Self.now)
        #expect(try reader.askOwn(mine, &log, key: Self.key, now: Self.now) == .alarm(.foreignKey(foreign)))
        #expect(reader.verifiedKeys(of: "ann", now: Self.now, isOnline: false) == nil)
        // The earlier entries are needed, too: a part of the chain is not an answer.
        let part: KeyLogLookup = try log.answer(
            "ann", (from: 2, known: reader.question("ann").known), key: Self.key, now: Self.now)
        guard case .refused(let why) = reader.checkOwn(part, own: mine, now: Self.now) else {
            Issue.record("a part of the chain was taken")
            return
        }
        #expect(why.kind == .sequence)
    }

    @Test("keys of an earlier holder of a name come before the own ones and their reset, and never behind them")
    func heldBefore() throws {
        var ann = try KeyLogPerson("name-ann", 1)
        let earlier = ann.keys
        var log: KeyLog = try .with(ann)
        var reader = try Self.reader()
        let reset = try ann.change(.reset, at: 2_000)
        let own = KeyLogOwnKeys(current: ann.keys)
        #expect(try reader.askOwn(own, &log, mayBeHeld: true, key: Self.key, now: Self.now) == .held)
        #expect(reader.pinnedKeys(of: "name-ann") == nil, "another account's keys are not pinned as own ones")
        // The id of an account has no earlier holder.
        var other = try Self.reader()
        let verdict = try other.askOwn(own, &log, key: Self.key, now: Self.now)
        #expect(verdict == .alarm(.foreignKey(ann.entries[0])) && ann.entries[0].keys == earlier)
        _ = try log.append(reset, isResetAuthorised: true, now: Self.now)
        for mayBeHeld in [true, false] {
            var reader = try Self.reader()
            #expect(try reader.askOwn(own, &log, mayBeHeld: mayBeHeld, key: Self.key, now: Self.now) == .asCreated)
        }
        #expect(try reader.askOwn(own, &log, mayBeHeld: true, key: Self.key, now: Self.now) == .asCreated)
        // From now on every other key is foreign, also by a reset.
        let foreign = try ann.change(.reset, at: 3_000)
        _ = try log.append(foreign, isResetAuthorised: true, now: Self.now)
        #expect(
            try reader.askOwn(own, &log, mayBeHeld: true, key: Self.key, now: Self.now)
                == .alarm(.foreignKey(foreign)))
    }

    @Test("own keys that continue another account's without a reset are an alarm")
    func continued() throws {
        var ann = try KeyLogPerson("name-ann", 1)
        let earlier = ann.newest
        let rotated = try ann.change(.rotation, at: 2_000)
        var log: KeyLog = try .with(ann)
        var reader = try Self.reader()
        let own = KeyLogOwnKeys(current: rotated.keys)
        #expect(
            try reader.askOwn(own, &log, mayBeHeld: true, key: Self.key, now: Self.now)
                == .alarm(.foreignKey(earlier)))
    }

    @Test("the kept state survives a round trip: pins, awaited confirmations, the newest head, a fork")
    func state() throws {
        var (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        var log: KeyLog = try .with(ann, ben)
        var reader = try Self.reader()
        #expect(try KeyLogReader(reader.bytes) == reader)
        for user in ["ann", "ben"] { _ = try reader.ask(user, &log, key: Self.key, now: Self.now) }
        _ = try log.append(ann.change(.reset, at: 2_000), isResetAuthorised: true, now: Self.now)
        _ = try log.append(ben.change(.rotation, at: 2_000), now: Self.now)
        let old = ann.entries[0].keys
        _ = try reader.ask("ann", &log, key: Self.key, now: Self.now)
        _ = try reader.askOwn(ben.own, &log, key: Self.key, now: Self.now)
        reader = try KeyLogReader(reader.bytes)
        let newest = try log.head(time: Self.now, key: Self.key)
        #expect(reader.head == newest && reader.pinCount == 2)
        #expect(!reader.isSelfCheckDue(now: Self.now))
        #expect(reader.verifiedKeys(of: "ben", now: Self.now, isOnline: true) == ben.keys)
        #expect(
            try reader.ask("ann", &log, key: Self.key, now: Self.now) == .needsConfirmation(old: old, new: ann.keys))
        try reader.confirm(ann.keys)
        let other = try HostileLog(key: Self.key, ann.entries + ben.entries).head(Self.now)
        let received = reader.compare(other, now: Self.now)
        let fork = try #require(reader.fork)
        #expect(received == .alarm(fork))
        let restored = try KeyLogReader(reader.bytes)
        #expect(restored == reader && restored.fork == reader.fork)
        #expect(restored.verifiedKeys(of: "ben", now: Self.now, isOnline: false) == nil)
    }

    @Test("a device at its limit of users accepts no more and drops none; a forgotten user frees a place")
    func pinsMax() throws {
        let (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        var log: KeyLog = try .with(ann, ben)
        var reader = try Self.reader()
        _ = try reader.ask("ann", &log, key: Self.key, now: Self.now)
        let pin = try #require(reader.pins[KeyLogEntry.mapKey(of: "ann")])
        for number in 1..<KeyLogLimits.pinsMax {
            let name = "\(number)" + String(repeating: "u", count: 250)
            var pin = pin
            pin.keys = try PublicKeys(user: name, identity: ann.keys.identity, encryption: ann.keys.encryption)
            pin.confirmed = pin.keys
            reader.pins[KeyLogEntry.mapKey(of: name)] = pin
        }
        #expect(try reader.ask("ben", &log, key: Self.key, now: Self.now).refusal == .tooMany)
        #expect(try reader.ask("ann", &log, key: Self.key, now: Self.now) == .verified(ann.keys, .same))
        #expect(reader.verifiedKeys(of: "ben", now: Self.now, isOnline: false) == nil)
        let bytes = reader.bytes
        #expect(bytes.count <= KeyLogLimits.stateBytesMax)
        #expect(try KeyLogReader(bytes) == reader)
        reader.forget("1" + String(repeating: "u", count: 250))
        #expect(try reader.ask("ben", &log, key: Self.key, now: Self.now) == .verified(ben.keys, .first))
    }
}
