public import ThicketCrypto

/// The key log of one app, as a server keeps it, and as an auditor rebuilds it from its entries (spec 4.12).
///
/// Each entry adds two leaves: leaf 2i is the entry itself, leaf 2i + 1 is the root of the map from users to their
/// newest entries, including that entry. The entries alone therefore determine every root: given the entries and a
/// head, an auditor can verify the whole log (`agrees`), and a map that once contained a wrong key cannot be denied
/// later.
///
/// A value type without I/O, clock or key: an entry is appended after it has been stored, and the caller supplies the
/// key that signs heads.
public struct KeyLog: Sendable {
    /// The app.
    public let app: String
    /// All entries, in log order.
    public private(set) var entries: [[UInt8]] = []
    private var tree = MerkleLog()
    private var map = SparseMerkleMap()
    /// By user: indices into `entries`.
    private var chains = [Digest256: [Int]]()
    var newest: KeyLogHead?

    /// The outcome of an append.
    public enum Appended: Sendable, Equatable {
        /// The entry is now at the end of the log.
        case new
        /// The entry already is the user's newest entry: a client that received no answer may send it again.
        case known
    }

    /// An empty log.
    /// - Throws: `malformed` for an invalid app name.
    public init(app: String) throws(KeyLogError) { self.app = try KeyLogFields.app(app) }

    /// Rebuilds a log from its entries, each of which is checked.
    /// - Throws: what `append` throws.
    public init(app: String, entries: [[UInt8]]) throws(KeyLogError) {
        try self.init(app: app)
        for bytes in entries { append(try checked(KeyLogEntry(bytes), isResetAuthorised: true)) }
    }

    /// Number of leaves in the log.
    public var size: UInt64 { UInt64(tree.count) }

    /// Number of users with an entry.
    public var userCount: Int { chains.count }

    /// The newest entry of a user; nil when the user has none.
    public func newestEntry(of user: String) -> KeyLogEntry? {
        guard let place = chains[KeyLogEntry.mapKey(of: user)]?.last else { return nil }
        guard let entry = try? KeyLogEntry(entries[place]) else {
            preconditionFailure("entries in the log were parsed before they were added")
        }
        return entry
    }

    /// Appends an entry.
    ///
    /// - Parameters:
    ///   - isResetAuthorised: whether this user was authorised, through another channel, to declare the old key lost.
    ///   - now: milliseconds since 1970.
    /// - Throws: what `KeyLogEntry.check` throws, `resetNotAuthorised`, `time` for an entry from the future, `tooMany`.
    ///   The log is unchanged then.
    public mutating func append(
        _ entry: KeyLogEntry, isResetAuthorised: Bool = false, now: UInt64
    ) throws(KeyLogError) -> Appended {
        let last = newestEntry(of: entry.user)
        if let last, entry == last { return .known }
        // An earlier entry may have been accepted while a clock was wrong; the next entry may then have the same time.
        guard entry.validFrom <= max(now &+ KeyLogLimits.skewMilliseconds, last?.validFrom ?? 0) else {
            throw KeyLogError(.time, "the entry is valid from a future time: is the device's clock right?")
        }
        append(try checked(entry, isResetAuthorised: isResetAuthorised))
        return .new
    }

    private func checked(_ entry: KeyLogEntry, isResetAuthorised: Bool) throws(KeyLogError) -> KeyLogEntry {
        guard entry.app.utf8.elementsEqual(app.utf8) else {
            throw KeyLogError(.otherApp, "the entry is for the log of another app")
        }
        guard chains[KeyLogEntry.mapKey(of: entry.user)]?.count ?? 0 < KeyLogLimits.entriesMax else {
            throw KeyLogError(.tooMany, "the user has \(KeyLogLimits.entriesMax) entries, which is the maximum")
        }
        try entry.check(after: newestEntry(of: entry.user))
        guard entry.kind != .reset || isResetAuthorised else {
            throw KeyLogError(.resetNotAuthorised, "this user is not authorised to declare the old key lost")
        }
        return entry
    }

    /// Number of a user's entries.
    func count(of user: String) -> Int { chains[KeyLogEntry.mapKey(of: user)]?.count ?? 0 }

    mutating func append(_ entry: KeyLogEntry) {
        let user = KeyLogEntry.mapKey(of: entry.user)
        chains[user, default: []].append(entries.count)
        entries.append(entry.bytes)
        map.set(user, to: entry.hash)
        tree.append(entry.hash)
        tree.append(KeyLogHead.mapLeaf(map.root))
    }
}

/// Heads, look-ups and consistency proofs.
extension KeyLog {
    /// The signed head of the log's current state. Returns the previous head if no entry was added since and it is less
    /// than ten minutes old.
    ///
    /// - Parameters:
    ///   - time: milliseconds since 1970.
    ///   - key: the log's key; always the same one.
    /// - Throws: `empty`; `malformed` for an invalid time.
    public mutating func head(time: UInt64, key: Ed25519.SigningKey) throws(KeyLogError) -> KeyLogHead {
        if let newest, newest.size == size, newest.time <= time,
            time - newest.time < KeyLogLimits.headRefreshMilliseconds
        {
            return newest
        }
        guard size > 0, let root = tree.root() else {
            throw KeyLogError(.empty, "the key log has no entry yet")
        }
        let head = try KeyLogHead(size: size, root: root, mapRoot: map.root, time: time, key: key)
        newest = head
        return head
    }

    /// Whether a head matches the log's current state. Does not check the signature.
    public func agrees(with head: KeyLogHead) -> Bool {
        head.size == size && head.root == tree.root() && head.mapRoot == map.root
    }

    /// Answers a look-up of a user's keys.
    ///
    /// - Parameters:
    ///   - sequence: the first of the user's entries to return; 0: all.
    ///   - known: log size that the asking device has seen; 0: none.
    ///   - head: a head of the log's current state.
    /// - Throws: `otherLog` for any other head; `otherSize` or `sequence` when the device claims to have seen more than
    ///   the log contains.
    public func lookup(
        _ user: String, from sequence: UInt64 = 0, known: UInt64 = 0, head: KeyLogHead
    ) throws(KeyLogError) -> KeyLogLookup {
        guard agrees(with: head), let mapRootProof = tree.inclusionProof(index: tree.count - 1) else {
            throw KeyLogError(.otherLog, "the head does not match the log's current state")
        }
        let consistency = known == 0 ? [] : try way(from: known, to: size)
        let key = KeyLogEntry.mapKey(of: user)
        let places = (chains[key] ?? [])[...]
        guard let last = places.last, let inclusion = tree.inclusionProof(index: 2 * last) else {
            return KeyLogLookup(
                head: head, known: known, consistency: consistency, mapRootProof: mapRootProof,
                mapProof: map.proof(of: key), chain: [], index: 0, inclusion: [])
        }
        guard sequence < UInt64(places.count) else {
            throw KeyLogError(.sequence, "the user has \(places.count) entries, and the request starts at \(sequence)")
        }
        var chain = [KeyLogEntry]()
        for place in places.dropFirst(Int(sequence)) { chain.append(try KeyLogEntry(entries[place])) }
        return KeyLogLookup(
            head: head, known: known, consistency: consistency, mapRootProof: mapRootProof,
            mapProof: map.proof(of: key), chain: chain, index: UInt64(2 * last), inclusion: inclusion)
    }

    /// Proves that the log of one size is a prefix of the log of another size.
    /// - Throws: `otherSize` for sizes in the wrong order, or beyond the log's size.
    public func consistency(older: UInt64, newer: UInt64) throws(KeyLogError) -> KeyLogConsistency {
        guard older < newer else {
            throw KeyLogError(.otherSize, "a consistency proof leads from a smaller log to a larger one")
        }
        return KeyLogConsistency(older: older, newer: newer, proof: try way(from: older, to: newer))
    }

    private func way(from older: UInt64, to newer: UInt64) throws(KeyLogError) -> [Digest256] {
        guard newer <= size, older > 0, older <= newer,
            let proof = tree.consistencyProof(oldSize: Int(older), newSize: Int(newer))
        else {
            throw KeyLogError(
                .otherSize, "the log has \(size) leaves, and the request asks for a proof from \(older) to \(newer)")
        }
        return proof
    }
}
