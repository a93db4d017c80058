public import ThicketCrypto

/// What a device keeps of an alarm, so that other people can verify it without a server.
///
/// The log's key signs every head, and a head commits to all entries. So the evidence consists of what the server has
/// sent, and a verifier needs the log's key only.
public struct KeyLogEvidence: Sendable, Equatable {
    /// What the evidence is about.
    public enum Kind: String, Sendable, CaseIterable {
        /// Two heads that contradict each other, or that the server has not shown to be of one log.
        case heads
        /// The log has an entry that its rules forbid.
        case badEntry = "bad-entry"
        /// The log has an entry of this account which no device of the account has made.
        case foreignKey = "foreign-key"
        /// An entry that was in the log is not there any more, or another one is in its place.
        case replaced
    }

    /// What the evidence is about.
    public let kind: Kind
    /// The app of the log.
    public let app: String
    /// The key of the log.
    public let logKey: Ed25519.VerifyingKey
    /// The user of the log concerned; nil for heads.
    public let user: String?
    /// When the device found it, milliseconds since 1970, the device's clock.
    public let found: UInt64
    /// Two heads.
    public let fork: KeyLogFork?
    /// The answer in which the device found it, in its encoding.
    public let lookup: [UInt8]?
    /// An earlier answer about the same user, of `replaced`.
    public let earlier: [UInt8]?
    /// The entry that the owner has not made, of `foreignKey`.
    public let entry: KeyLogEntry?
    /// The owner's signed denial of the entry (`KeyLogDenial`).
    public internal(set) var denial: [UInt8]?

    init(
        kind: Kind, app: String, logKey: Ed25519.VerifyingKey, user: String?, found: UInt64, fork: KeyLogFork? = nil,
        lookup: [UInt8]? = nil, earlier: [UInt8]? = nil, entry: KeyLogEntry? = nil, denial: [UInt8]? = nil
    ) {
        (self.kind, self.app, self.logKey, self.user, self.found) = (kind, app, logKey, user, found)
        (self.fork, self.lookup, self.earlier, self.entry, self.denial) = (fork, lookup, earlier, entry, denial)
    }

    /// The evidence of an alarm.
    ///
    /// - Parameters:
    ///   - reader: the state of the device that found it.
    ///   - lookup: the answer in which it was found; nil for heads from other clients.
    ///   - earlier: an earlier verified answer about the same user, when the device has one.
    ///   - now: milliseconds since 1970.
    public init(
        of alarm: KeyLogAlarm, reader: KeyLogReader, lookup: KeyLogLookup?, earlier: [UInt8]? = nil, now: UInt64
    ) {
        let (app, key, now) = (reader.app, reader.logKey, min(now, KeyLogLimits.numberBound - 1))
        switch alarm {
        case .fork(let fork):
            self.init(kind: .heads, app: app, logKey: key, user: nil, found: now, fork: fork)
        case .badEntry(let user, _):
            self.init(kind: .badEntry, app: app, logKey: key, user: user, found: now, lookup: lookup?.bytes)
        case .replaced(let user), .removed(let user):
            self.init(
                kind: .replaced, app: app, logKey: key, user: user, found: now, lookup: lookup?.bytes, earlier: earlier)
        case .foreignKey(let entry):
            self.init(
                kind: .foreignKey, app: app, logKey: key, user: entry.user, found: now, lookup: lookup?.bytes,
                entry: entry)
        }
    }

    /// The same with the owner's denial of the foreign entry.
    public func denied(by denial: [UInt8]) -> KeyLogEvidence {
        var evidence = self
        evidence.denial = denial
        return evidence
    }

    /// Whether both are about the same finding, found at different times.
    public func isSameFinding(as other: KeyLogEvidence) -> Bool {
        kind == other.kind && user == other.user && fork == other.fork && entry == other.entry
    }

    /// The alarm, as far as the evidence has it.
    public var alarm: KeyLogAlarm? {
        switch kind {
        case .heads: fork.map(KeyLogAlarm.fork)
        case .foreignKey: entry.map(KeyLogAlarm.foreignKey)
        case .badEntry: user.map { .badEntry(user: $0, KeyLogError(.signature, "its rules forbid an entry")) }
        case .replaced: user.map(KeyLogAlarm.replaced)
        }
    }
}

/// What evidence proves to a holder of the log's key.
public enum KeyLogProof: Sendable, Equatable {
    /// The log's key has signed a contradiction, or something that the rules forbid. The text says what.
    case proven(String)
    /// It is not proven; the text says what is missing.
    case notProven(String)
}

/// Verification, without a device's state and without a server.
extension KeyLogEvidence {
    /// What the evidence proves.
    ///
    /// - Parameter key: the log's key from another source; nil: the one in the evidence, which the reader must compare.
    public func check(_ key: Ed25519.VerifyingKey? = nil) -> KeyLogProof {
        if let key, key != logKey { return .notProven("it is about a log with another key") }
        do throws(KeyLogError) {
            switch kind {
            case .heads: return try checkHeads()
            case .badEntry: return try checkRules()
            case .foreignKey: return try checkForeign()
            case .replaced: return try checkReplaced()
            }
        } catch { return .notProven(error.description) }
    }

    private func checkHeads() throws(KeyLogError) -> KeyLogProof {
        guard let fork else { throw .malformed("the heads are missing") }
        return try fork.check(logKey) == .proven
            ? .proven("the log's key has signed two heads that contradict each other: there are two logs")
            : .notProven(
                "both heads are signed with the log's key, and no valid path between them is known: the server can still "
                    + "show one, or these are two logs")
    }

    private func checkRules() throws(KeyLogError) -> KeyLogProof {
        let (user, lookup) = try committed(self.lookup)
        guard let broken = Self.brokenRule(lookup.chain, user: user, app: app) else {
            return .notProven("the entries of \(user) in this answer keep the rules")
        }
        return .proven("the log has committed to an entry of \(user) that its rules forbid: \(broken.description)")
    }

    private func checkForeign() throws(KeyLogError) -> KeyLogProof {
        let (user, lookup) = try committed(self.lookup)
        guard let entry, let place = lookup.chain.firstIndex(of: entry) else {
            return .notProven("the entry is not among those of the answer")
        }
        if let broken = Self.brokenRule(lookup.chain, user: user, app: app) {
            return .proven("the log has committed to an entry of \(user) that its rules forbid: \(broken.description)")
        }
        guard entry.kind == .reset, place > 0 else {
            return .notProven(
                entry.kind == .first
                    ? "the entry is the first one of \(user): no earlier key is in the log which could deny it"
                    : "the key before has signed the entry")
        }
        guard let denial, KeyLogDenial.isSigned(denial, of: entry, key: lookup.chain[place - 1].keys.identity) else {
            return .notProven("the holder of the key before has not signed a denial")
        }
        return .proven(
            "the log has committed to a reset of the keys of \(user), and the holder of the key before denies it")
    }

    private func checkReplaced() throws(KeyLogError) -> KeyLogProof {
        guard earlier != nil else {
            return .notProven("the device did not keep the earlier answer, so it is its word against the server's")
        }
        let (user, before) = try committed(earlier)
        let (_, after) = try committed(lookup)
        guard before.head.size <= after.head.size, let seen = before.chain.last else {
            return .notProven("the second answer is of an earlier state of the log")
        }
        let first = after.chain.first?.sequence ?? 0
        guard !after.chain.isEmpty else {
            return .proven("the log had an entry of \(user), and its larger state has none")
        }
        guard seen.sequence >= first else { return .notProven("the second answer begins after the entry in question") }
        let place = seen.sequence - first
        guard place >= UInt64(after.chain.count) || after.chain[Int(place)] != seen else {
            return .notProven("the entry is still in its place")
        }
        return .proven("the log had an entry of \(user), and its larger state has another one in its place")
    }

    /// The answer, after verification that the log's key has signed its content.
    private func committed(_ bytes: [UInt8]?) throws(KeyLogError) -> (user: String, lookup: KeyLogLookup) {
        guard let bytes, let user else { throw .malformed("an answer of the server is missing") }
        let lookup = try KeyLogLookup(bytes)
        var reader = try KeyLogReader(app: app, logKey: logKey)
        do throws(KeyLogReader.Stop) {
            // The age of a head does not matter here.
            try reader.acceptHead(of: lookup, now: lookup.head.time)
            _ = try reader.isCommitted(lookup, user)
        } catch {
            if case .refused(let why) = error { throw why }
            throw .malformed("an answer of the server contradicts itself")
        }
        return (user, lookup)
    }

    private static func brokenRule(_ chain: [KeyLogEntry], user: String, app: String) -> KeyLogError? {
        do throws(KeyLogError) {
            for entry in chain {
                guard entry.user.utf8.elementsEqual(user.utf8) else {
                    throw KeyLogError(.otherUser, "an entry of another user is in this user's place")
                }
                guard entry.app.utf8.elementsEqual(app.utf8) else {
                    throw KeyLogError(.otherApp, "an entry for another app is in this app's log")
                }
            }
            if let first = chain.first, first.sequence == 0 { try first.check(after: nil) }
            for (earlier, later) in zip(chain, chain.dropFirst()) { try later.check(after: earlier) }
            return nil
        } catch { return error }
    }
}
