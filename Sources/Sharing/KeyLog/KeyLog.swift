public import ThicketCrypto

/// The key log of one app, as a server keeps it and whoever wants to check all of it builds it again (spec 4.12).
///
/// Two leaves for each entry: at 2i the entry itself, at 2i + 1 the root of the map from users to their newest entries
/// with that entry in it. So the entries alone decide every root: whoever has them and a head can tell whether the log
/// is what it says (`agrees`), and a map that once showed somebody another key cannot be denied later.
///
/// A value without disk, clock or key: entries are appended once they are stored, heads are signed by who calls.
public struct KeyLog: Sendable {
    /// The app.
    public let app: String
    /// All entries, in their order.
    public private(set) var entries: [[UInt8]] = []
    private var tree = MerkleLog()
    private var map = SparseMerkleMap()
    /// By user, places in `entries`.
    private var chains = [Digest256: [Int]]()
    private var newest: KeyLogHead?

    /// What became of an entry.
    public enum Appended: Sendable, Equatable {
        /// It stands at the log's end now.
        case new
        /// It is the user's newest entry already: who sends it again, since no answer came, has done nothing wrong.
        case known
    }

    /// An empty log.
    /// - Throws: `malformed` for an app that is none.
    public init(app: String) throws(KeyLogError) { self.app = try KeyLogFields.app(app) }

    /// Builds a log again from its entries, each of which is checked.
    /// - Throws: what `append` throws.
    public init(app: String, entries: [[UInt8]]) throws(KeyLogError) {
        try self.init(app: app)
        for bytes in entries { take(try checked(KeyLogEntry(bytes), isResetAuthorised: true)) }
    }

    /// Leaves in the log.
    public var size: UInt64 { UInt64(tree.count) }

    /// Users who have an entry.
    public var userCount: Int { chains.count }

    /// The newest entry of a user; nil: there is none.
    public func newestEntry(of user: String) -> KeyLogEntry? {
        guard let place = chains[KeyLogEntry.mapKey(of: user)]?.last else { return nil }
        guard let entry = try? KeyLogEntry(entries[place]) else {
            preconditionFailure("what stands in the log was read before it was taken")
        }
        return entry
    }

    /// Appends an entry.
    ///
    /// - Parameters:
    ///   - isResetAuthorised: whether this user was allowed, on another way, to say that the old key is lost.
    ///   - now: milliseconds since 1970.
    /// - Throws: what `KeyLogEntry.check` throws, `resetNotAuthorised`, `time` for an entry from the future, `tooMany`.
    ///   Then nothing has changed.
    public mutating func append(
        _ entry: KeyLogEntry, isResetAuthorised: Bool = false, now: UInt64
    ) throws(KeyLogError) -> Appended {
        let last = newestEntry(of: entry.user)
        if let last, entry == last { return .known }
        // An earlier one may have been accepted while a clock was wrong: then the next may carry the same moment.
        guard entry.validFrom <= max(now &+ KeyLogLimits.skewMilliseconds, last?.validFrom ?? 0) else {
            throw KeyLogError(.time, "the entry is valid from a time that has not come: is the device's clock right?")
        }
        take(try checked(entry, isResetAuthorised: isResetAuthorised))
        return .new
    }

    private func checked(_ entry: KeyLogEntry, isResetAuthorised: Bool) throws(KeyLogError) -> KeyLogEntry {
        guard entry.app.utf8.elementsEqual(app.utf8) else {
            throw KeyLogError(.otherApp, "the entry is for the log of another app")
        }
        guard chains[KeyLogEntry.mapKey(of: entry.user)]?.count ?? 0 < KeyLogLimits.entriesMax else {
            throw KeyLogError(.tooMany, "the user has \(KeyLogLimits.entriesMax) entries: that is the most")
        }
        try entry.check(after: newestEntry(of: entry.user))
        guard entry.kind != .reset || isResetAuthorised else {
            throw KeyLogError(.resetNotAuthorised, "nobody has allowed this user to say that the old key is lost")
        }
        return entry
    }

    private mutating func take(_ entry: KeyLogEntry) {
        let user = KeyLogEntry.mapKey(of: entry.user)
        chains[user, default: []].append(entries.count)
        entries.append(entry.bytes)
        map.set(user, to: entry.hash)
        tree.append(entry.hash)
        tree.append(KeyLogHead.mapLeaf(map.root))
    }
}

/// What it shows.
extension KeyLog {
    /// The head of the log as it is, signed: the one from before if nothing came since and it is younger than ten
    /// minutes.
    ///
    /// - Parameters:
    ///   - time: milliseconds since 1970.
    ///   - key: the log's; always the same.
    /// - Throws: `empty`, `malformed` for a time that none is.
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

    /// Whether a head is of this log as it is, whoever has signed it.
    public func agrees(with head: KeyLogHead) -> Bool {
        head.size == size && head.root == tree.root() && head.mapRoot == map.root
    }

    /// Answers which keys a user has.
    ///
    /// - Parameters:
    ///   - sequence: the user's entry from which on the asker wants to know; 0: all.
    ///   - known: size of the log that the asker has seen; 0: none.
    ///   - head: of the log as it is.
    /// - Throws: `otherLog` for another head, `otherSize` or `sequence` for an asker that has seen more than there is.
    public func lookup(
        _ user: String, from sequence: UInt64 = 0, known: UInt64 = 0, head: KeyLogHead
    ) throws(KeyLogError) -> KeyLogLookup {
        guard agrees(with: head), let mapRootProof = tree.inclusionProof(index: tree.count - 1) else {
            throw KeyLogError(.otherLog, "the head is not that of the log as it is")
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
            throw KeyLogError(.sequence, "the user has \(places.count) entries, and somebody asks from \(sequence) on")
        }
        var chain = [KeyLogEntry]()
        for place in places.dropFirst(Int(sequence)) { chain.append(try KeyLogEntry(entries[place])) }
        return KeyLogLookup(
            head: head, known: known, consistency: consistency, mapRootProof: mapRootProof,
            mapProof: map.proof(of: key), chain: chain, index: UInt64(2 * last), inclusion: inclusion)
    }

    /// Shows that the log of one size began with that of another.
    /// - Throws: `otherSize` for sizes that are not in this order or that the log has not reached.
    public func consistency(older: UInt64, newer: UInt64) throws(KeyLogError) -> KeyLogConsistency {
        guard older < newer else { throw KeyLogError(.otherSize, "a way leads from a smaller log to a larger one") }
        return KeyLogConsistency(older: older, newer: newer, proof: try way(from: older, to: newer))
    }

    private func way(from older: UInt64, to newer: UInt64) throws(KeyLogError) -> [Digest256] {
        guard newer <= size, older > 0, older <= newer,
            let proof = tree.consistencyProof(oldSize: Int(older), newSize: Int(newer))
        else {
            throw KeyLogError(
                .otherSize, "the log has \(size) leaves, and somebody asks for the way from \(older) to \(newer)")
        }
        return proof
    }
}
