import Testing
import ThicketCrypto

@testable import ThicketKeyLog

/// A user whose keys are derived from numbers.
struct KeyLogPerson {
    static let app = "chat"

    let user: String
    /// The account's present signing key.
    private(set) var identity: Ed25519.SigningKey
    private(set) var encryption: X25519.PrivateKey
    /// All entries in order, whether or not a log has them.
    private(set) var entries: [KeyLogEntry]
    private var number: UInt8

    /// Makes a user with a first entry.
    init(_ user: String, _ number: UInt8, at time: UInt64 = 1_000) throws {
        (self.user, self.number) = (user, number)
        (identity, encryption) = (try Self.signing(user, number), try Self.opening(user, number))
        entries = [
            try .first(
                app: Self.app, user: user, identity: identity, encryption: encryption.publicKey, validFrom: time)
        ]
    }

    static func signing(_ user: String, _ number: UInt8) throws -> Ed25519.SigningKey {
        try .init(seed: SecureBytes(copying: Digest256.of(Array("\(user) signs \(number)".utf8)).bytes))
    }

    static func opening(_ user: String, _ number: UInt8) throws -> X25519.PrivateKey {
        try .init(SecureBytes(copying: Digest256.of(Array("\(user) opens \(number)".utf8)).bytes))
    }

    var newest: KeyLogEntry { entries[entries.count - 1] }
    var keys: PublicKeys { newest.keys }
    var own: KeyLogOwnKeys { KeyLogOwnKeys(current: keys, earlier: entries.dropLast().map(\.keys)) }

    /// Changes to another pair of keys, and makes the entry for it.
    @discardableResult mutating func change(_ kind: KeyLogEntry.Kind, at time: UInt64) throws -> KeyLogEntry {
        number += 1
        let (new, opening) = (
            try Self.signing(user, number), try Self.opening(user, number)
        )
        let entry =
            kind == .reset
            ? try newest.reset(to: new, encryption: opening.publicKey, validFrom: time)
            : try newest.rotated(to: new, encryption: opening.publicKey, signedBy: identity, validFrom: time)
        (identity, encryption) = (new, opening)
        entries.append(entry)
        return entry
    }
}

extension KeyLog {
    /// A log with these users' entries, one user after the other.
    static func with(_ people: KeyLogPerson...) throws -> KeyLog {
        var log = try KeyLog(app: KeyLogPerson.app)
        for person in people {
            for entry in person.entries {
                _ = try log.append(entry, isResetAuthorised: true, now: 1 << 50)
            }
        }
        return log
    }

    /// The answer of an honest server.
    mutating func answer(
        _ user: String, _ question: (from: UInt64, known: UInt64), key: Ed25519.SigningKey, now: UInt64
    ) throws -> KeyLogLookup {
        let lookup = try self.lookup(
            user, from: question.from, known: question.known, head: head(time: now, key: key))
        // Every answer of a test passes through its wire form.
        return try KeyLogLookup(lookup.bytes)
    }
}

extension KeyLogReader {
    /// Sends the device's question to an honest server.
    mutating func ask(
        _ user: String, _ log: inout KeyLog, key: Ed25519.SigningKey, now: UInt64
    ) throws -> KeyLogVerdict {
        receive(try log.answer(user, question(user), key: key, now: now), of: user, now: now)
    }

    /// Checks the device's own entries at an honest server.
    mutating func askOwn(
        _ own: KeyLogOwnKeys, _ log: inout KeyLog, mayBeHeld: Bool = false, key: Ed25519.SigningKey, now: UInt64
    ) throws -> KeyLogOwnVerdict {
        checkOwn(
            try log.answer(own.current.user, ownQuestion, key: key, now: now), own: own, mayBeHeld: mayBeHeld, now: now)
    }
}

extension KeyLogVerdict {
    /// The keys that a device would use after this verdict.
    var handedOut: PublicKeys? {
        if case .verified(let keys, _) = self { return keys }
        return nil
    }

    var refusal: KeyLogError.Kind? {
        if case .refused(let error) = self { return error.kind }
        return nil
    }

    var isAlarm: Bool {
        if case .alarm = self { return true }
        return false
    }

    /// The evidence of an alarm over two logs.
    var fork: KeyLogFork? {
        if case .alarm(.fork(let fork)) = self { return fork }
        return nil
    }
}

/// The code with which a call fails; nil: it does not fail.
func keyLogRefusal(_ body: () throws -> Void) -> KeyLogError.Kind? {
    do { try body() } catch { return (error as? KeyLogError)?.kind }
    return nil
}

/// A server's log that accepts and shows anything.
struct HostileLog {
    let key: Ed25519.SigningKey
    var tree = MerkleLog()
    var map = SparseMerkleMap()
    /// The leaf index of each entry.
    var places = [Digest256: UInt64]()

    init(key: Ed25519.SigningKey) { self.key = key }

    /// The same leaves as an honest log has.
    init(key: Ed25519.SigningKey, _ entries: [KeyLogEntry]) {
        self.init(key: key)
        for entry in entries { commit(entry) }
    }

    /// - Parameter latest: the map's value for the user afterwards; nil: the entry.
    mutating func commit(_ entry: KeyLogEntry, of user: String? = nil, latest: Digest256? = nil) {
        places[entry.hash] = UInt64(tree.count)
        tree.append(entry.hash)
        map.set(KeyLogEntry.mapKey(of: user ?? entry.user), to: latest ?? entry.hash)
        tree.append(KeyLogHead.mapLeaf(map.root))
    }

    func head(_ time: UInt64, mapRoot: Digest256? = nil) throws -> KeyLogHead {
        try KeyLogHead(
            size: UInt64(tree.count), root: #require(tree.root()), mapRoot: mapRoot ?? map.root, time: time, key: key)
    }

    func way(from older: UInt64) throws -> [Digest256] {
        older == 0 ? [] : try #require(tree.consistencyProof(oldSize: Int(older)))
    }

    func lookup(_ user: String, _ chain: [KeyLogEntry], known: UInt64 = 0, time: UInt64) throws -> KeyLogLookup {
        let place = chain.last.flatMap { places[$0.hash] } ?? 0
        return KeyLogLookup(
            head: try head(time), known: known, consistency: try way(from: known),
            mapRootProof: try #require(tree.inclusionProof(index: tree.count - 1)),
            mapProof: map.proof(of: KeyLogEntry.mapKey(of: user)), chain: chain, index: place,
            inclusion: chain.isEmpty ? [] : try #require(tree.inclusionProof(index: Int(place))))
    }
}

extension KeyLogLookup {
    /// The same look-up with some parts of another one.
    func with(
        head: KeyLogHead? = nil, known: UInt64? = nil, consistency: [Digest256]? = nil,
        mapRootProof: [Digest256]? = nil, mapProof: SparseMerkleProof? = nil, chain: [KeyLogEntry]? = nil,
        index: UInt64? = nil, inclusion: [Digest256]? = nil
    ) -> KeyLogLookup {
        KeyLogLookup(
            head: head ?? self.head, known: known ?? self.known, consistency: consistency ?? self.consistency,
            mapRootProof: mapRootProof ?? self.mapRootProof, mapProof: mapProof ?? self.mapProof,
            chain: chain ?? self.chain, index: index ?? self.index, inclusion: inclusion ?? self.inclusion)
    }
}
