import Testing
import ThicketCrypto

@testable import ThicketSharing

/// Somebody with keys, made from numbers.
struct KeyLogPerson {
    static let app: String = "chat"

    let user: String
    /// What the account signs with now.
    private(set) var identity: Ed25519.SigningKey
    private(set) var encryption: X25519.PrivateKey
    /// All entries, in their order, whether or not a log has them.
    private(set) var entries: [KeyLogEntry]
    private var number: UInt8

    /// With a first entry.
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

    /// Gets another pair of keys, and the entry that says so.
    @discardableResult mutating func change(_ kind: KeyLogEntry.Kind, at time: UInt64) throws -> KeyLogEntry {
        number += 1
        let (new, opening): (Ed25519.SigningKey, X25519.PrivateKey) = (
            try Self.signing(user, number), try Self.opening(user, number)
        )
        let entry: KeyLogEntry =
            kind == .reset
            ? try newest.reset(to: new, encryption: opening.publicKey, validFrom: time)
            : try newest.rotated(to: new, encryption: opening.publicKey, signedBy: identity, validFrom: time)
        (identity, encryption) = (new, opening)
        entries.append(entry)
        return entry
    }
}

extension KeyLog {
    /// A log with these people's entries, one person after the other.
    static func with(_ people: KeyLogPerson...) throws -> KeyLog {
        var log: KeyLog = try .init(app: KeyLogPerson.app)
        for person: KeyLogPerson in people {
            for entry: KeyLogEntry in person.entries {
                _ = try log.append(entry, isResetAuthorised: true, now: 1 << 50)
            }
        }
        return log
    }

    /// What an honest server answers.
    mutating func answer(
        _ user: String, _ question: (from: UInt64, known: UInt64), key: Ed25519.SigningKey, now: UInt64
    ) throws -> KeyLogLookup {
        let lookup: KeyLogLookup = try self.lookup(
            user, from: question.from, known: question.known, head: head(time: now, key: key))
        // Whatever a test does goes over the line.
        return try KeyLogLookup(lookup.bytes)
    }
}

extension KeyLogReader {
    /// Asks an honest server.
    mutating func ask(
        _ user: String, _ log: inout KeyLog, key: Ed25519.SigningKey, now: UInt64
    ) throws -> KeyLogVerdict {
        receive(try log.answer(user, question(user), key: key, now: now), of: user, now: now)
    }

    /// Looks at its own entries at an honest server.
    mutating func askOwn(
        _ own: KeyLogOwnKeys, _ log: inout KeyLog, key: Ed25519.SigningKey, now: UInt64
    ) throws -> KeyLogOwnVerdict {
        checkOwn(try log.answer(own.current.user, ownQuestion, key: key, now: now), own: own, now: now)
    }
}

extension KeyLogVerdict {
    /// Keys that whoever gets this verdict would use.
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

/// The code that a call fails with; nil: it does not.
func keyLogRefusal(_ body: () throws -> Void) -> KeyLogError.Kind? {
    do { try body() } catch { return (error as? KeyLogError)?.kind }
    return nil
}

/// A server's log that takes whatever it is told to, and shows what it likes.
struct HostileLog {
    let key: Ed25519.SigningKey
    var tree: MerkleLog = .init()
    var map: SparseMerkleMap = .init()
    /// Where each entry stands.
    var places: [Digest256: UInt64] = [:]

    init(key: Ed25519.SigningKey) { self.key = key }

    /// The same leaves as an honest log has.
    init(key: Ed25519.SigningKey, _ entries: [KeyLogEntry]) {
        self.init(key: key)
        for entry: KeyLogEntry in entries { commit(entry) }
    }

    /// - Parameter latest: what the map says of the user afterwards; nil: the entry.
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
        let place: UInt64 = chain.last.flatMap { places[$0.hash] } ?? 0
        return KeyLogLookup(
            head: try head(time), known: known, consistency: try way(from: known),
            mapRootProof: try #require(tree.inclusionProof(index: tree.count - 1)),
            mapProof: map.proof(of: KeyLogEntry.mapKey(of: user)), chain: chain, index: place,
            inclusion: chain.isEmpty ? [] : try #require(tree.inclusionProof(index: Int(place))))
    }
}

extension KeyLogLookup {
    /// The same with some parts of another one.
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
