import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol

/// An entry of the key log, from a client and from the server.
public func fuzzKeyLogEntry(_ bytes: [UInt8]) {
    guard let entry: KeyLogEntry = try? .init(bytes) else { return }
    precondition(entry.bytes == bytes && entry.hash == MerkleTree.leafHash(bytes), "one encoding of one entry")
    precondition((entry.kind == .first) == (entry.sequence == 0), "a first entry is the first")
    precondition((entry.kind == .first) == (entry.previous == nil), "and has none before it")
    let standsAlone: Bool = (try? entry.check(after: nil)) != nil
    if standsAlone { precondition(entry.kind == .first, "nothing else stands alone") }
    guard standsAlone || entry.user == "ann" || entry.user == "ben" else { return }
    // The attacker has none of the users' keys. The log is rebuilt each time it is needed: the sanitizer does not see
    // that a map in a global is referenced, since its nodes hang on tagged pointers.
    guard let entries: [[UInt8]] = honest?.entries, var log: KeyLog = try? .init(app: "chat", entries: entries) else {
        preconditionFailure("the log is built")
    }
    guard (try? log.append(entry, isResetAuthorised: false, now: time)) == .new else { return }
    precondition(entry.kind == .first && log.newestEntry(of: entry.user) == entry, "a new user of their own making")
}

/// A head, from any sender.
public func fuzzKeyLogHead(_ bytes: [UInt8]) {
    guard let head: KeyLogHead = try? .init(bytes), let honest else { return }
    precondition(head.bytes == bytes && head.size % 2 == 0, "one encoding of one head")
    guard (try? head.check(honest.key.verifyingKey)) != nil else { return }
    precondition(honest.heads.contains(head), "nobody else has the log's key")
}

/// The answer to a look-up, for a device that knows nothing yet and for one that has seen a part of the log.
public func fuzzKeyLogLookup(_ bytes: [UInt8]) {
    guard let lookup: KeyLogLookup = try? .init(bytes), let honest else { return }
    precondition(lookup.bytes == bytes, "one encoding of one answer")
    for reader in honest.readers {
        for (user, keys) in honest.keys {
            var reader: KeyLogReader = reader
            let verdict: KeyLogVerdict = reader.receive(lookup, of: user, now: time)
            switch verdict {
            case .verified(let shown, _): precondition(keys.contains(shown), "no other keys than the user's")
            case .needsConfirmation(_, let shown): precondition(keys.contains(shown), "nor to be confirmed")
            case .absent: precondition(keys.isEmpty || lookup.head != honest.heads.last, "nobody is left out")
            case .refused: break
            case .alarm(.fork(let fork)):
                precondition(
                    (try? fork.check(honest.key.verifyingKey)) == .unexplained, "nothing proves a fork of one log")
            case .alarm: preconditionFailure("the log commits to nothing wrong")
            }
            let used = reader.verifiedKeys(of: user, now: time, isOnline: true)
            precondition(used.map(keys.contains) ?? true, "nor are others handed out")
        }
    }
}

/// The consistency proof between two heads.
public func fuzzKeyLogWay(_ bytes: [UInt8]) {
    guard let way: KeyLogConsistency = try? .init(bytes), let honest else { return }
    precondition(way.bytes == bytes && way.older < way.newer, "one encoding of one way")
    guard var reader: KeyLogReader = honest.readers.last, let received = honest.heads.last else {
        preconditionFailure("the log is built")
    }
    let isGood: Bool = honest.way == way
    let gossip = reader.compare(received, way: .given(way), now: time)
    precondition((gossip == .consistent) == isGood, "the true way and no other")
    if case .alarm(let fork) = gossip {
        precondition((try? fork.check(honest.key.verifyingKey)) == .unexplained, "nothing proves a fork of one log")
    }
}

/// Evidence of a fork, from any sender. The heads in the corpus are of one log: nothing proves two logs.
public func fuzzKeyLogFork(_ bytes: [UInt8]) {
    guard let fork: KeyLogFork = try? .init(bytes), let honest else { return }
    precondition(fork.bytes == bytes && fork.older.size <= fork.newer.size, "one encoding of one piece of evidence")
    guard let strength = try? fork.check(honest.key.verifyingKey) else { return }
    precondition(strength == .unexplained, "nobody is accused")
}

/// A file of evidence, from any sender. The log's key has signed nothing that is forbidden.
public func fuzzKeyLogEvidence(_ bytes: [UInt8]) {
    guard let evidence: KeyLogEvidence = try? .init(file: bytes), let honest else { return }
    let again: KeyLogEvidence? = try? .init(file: JSONValue.object(evidence.json).serialized())
    precondition(again == evidence, "what is written again is the same evidence")
    if case .proven = evidence.check(honest.key.verifyingKey) { preconditionFailure("an honest log is accused") }
}

/// A witness's confirmation, from a witness to the server and from the server to a device.
public func fuzzKeyLogWitness(_ bytes: [UInt8]) {
    guard let object = (try? JSONValue(parsing: bytes))?.objectValue, let honest,
        let confirmation = KeyLogWitness(json: object)
    else { return }
    precondition(KeyLogWitness(json: confirmation.json) == confirmation, "what is written again is the same")
    guard
        (try? confirmation.check(app: "chat", logKey: honest.key.verifyingKey, now: confirmation.head.time)) != nil
    else { return }
    precondition(honest.heads.contains(confirmation.head), "no witness makes a head")
}

/// The kept state of a device.
public func fuzzKeyLogState(_ bytes: [UInt8]) {
    guard let reader: KeyLogReader = try? .init(bytes) else { return }
    precondition(reader.bytes == bytes, "one encoding of one state")
    precondition(reader.pinCount <= KeyLogLimits.pinsMax, "no more users than there may be")
}

/// The time at which all heads were signed, in milliseconds since 1970.
private let time: UInt64 = 1_700_000_600_000

/// A log of four entries: ann's first, ben's first, ann's rotation and reset.
private struct Honest {
    let key: Ed25519.SigningKey
    let entries: [[UInt8]]
    /// From the second head to the last.
    let way: KeyLogConsistency
    let heads: [KeyLogHead]
    /// A device that knows nothing, and one that has seen the first two entries.
    let readers: [KeyLogReader]
    let keys: [(String, [PublicKeys])]

    init() throws {
        func signing(_ byte: UInt8) throws -> Ed25519.SigningKey {
            try .init(seed: SecureBytes(copying: .init(repeating: byte, count: 32)))
        }
        func opening(_ byte: UInt8) throws -> X25519.PublicKey {
            try X25519.PrivateKey(SecureBytes(copying: .init(repeating: byte, count: 32))).publicKey
        }
        let start = time - 600_000
        let ann: KeyLogEntry = try .first(
            app: "chat", user: "ann", identity: signing(1), encryption: opening(2), validFrom: start)
        let ben: KeyLogEntry = try .first(
            app: "chat", user: "ben", identity: signing(3), encryption: opening(4), validFrom: start + 1)
        let rotation: KeyLogEntry = try ann.rotated(
            to: signing(5), encryption: opening(6), signedBy: signing(1), validFrom: start + 2)
        let reset: KeyLogEntry = try rotation.reset(to: signing(7), encryption: opening(8), validFrom: start + 3)
        key = try signing(9)
        var log = try KeyLog(app: "chat")
        var heads = [KeyLogHead]()
        let new = try KeyLogReader(app: "chat", logKey: key.verifyingKey)
        var old = new
        for entry in [ann, ben, rotation, reset] {
            _ = try log.append(entry, isResetAuthorised: true, now: time)
            let head = try log.head(time: time, key: key)
            heads.append(head)
            guard heads.count == 2 else { continue }
            for user in ["ann", "ben"] {
                _ = old.receive(try log.lookup(user, head: head), of: user, now: time)
            }
        }
        (entries, self.heads, readers) = (log.entries, heads, [new, old])
        way = try log.consistency(older: 4, newer: 8)
        keys = [("ann", [ann, rotation, reset].map(\.keys)), ("ben", [ben.keys]), ("eve", [])]
    }
}

private let honest = try? Honest()
