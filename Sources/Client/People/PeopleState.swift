public import ThicketCrypto
public import ThicketKeyLog
import ThicketPlatform

/// A person whose keys the user of this device cares about.
public struct Contact: Sendable, Hashable {
    /// The account's id.
    public let user: String
    /// The login name by which it was found; nil: it was added by its id.
    public let name: String?
    /// Milliseconds since 1970.
    public let added: UInt64
    /// Identity key that both have compared by the safety number; nil: never compared.
    public internal(set) var compared: Ed25519.VerifyingKey?
}

/// An alarm that is kept.
public struct PeopleAlarm: Sendable, Equatable {
    /// What was found, for others to verify.
    public let evidence: KeyLogEvidence
    /// The user of this device has not resolved it yet.
    public internal(set) var isOpen: Bool
}

/// What a device knows of other people's keys, and every decision about it. Pure: answers and the time are passed in.
struct PeopleState: Sendable, Equatable {
    let app: String
    /// nil until the log's key is pinned.
    var reader: KeyLogReader?
    var contacts = [String: Contact]()
    var alarms = [PeopleAlarm]()
    /// Heads from other clients that are not compared yet.
    var heads = [KeyLogHead]()
    /// By user: the latest verified answer.
    var answers = [String: [UInt8]]()
    var witnesses = [Ed25519.VerifyingKey]()
    /// Time of the newest head which all required witnesses have confirmed.
    var witnessed: UInt64?

    init(app: String) { self.app = app }

    typealias Found = Result<PublicKeys, PeopleError>

    // MARK: - The log's key

    /// Pins the log's key, on first use.
    /// - Returns: whether it is new here.
    mutating func pin(_ key: Ed25519.VerifyingKey) throws(KeyLogError) -> Bool {
        guard reader == nil else { return false }
        reader = try KeyLogReader(app: app, logKey: key)
        return true
    }

    // MARK: - Look-ups

    /// What stops sealing to every other user: a fork, or a foreign key under the own name.
    var stop: PeopleError? {
        if let fork = reader?.fork { return .alarm(.fork(fork)) }
        let foreign = alarms.first { $0.isOpen && $0.evidence.kind == .foreignKey }
        return foreign?.evidence.alarm.map(PeopleError.alarm)
    }

    /// The keys that may be used without a look-up.
    func ready(_ user: String, now: UInt64, isOnline: Bool) -> PublicKeys? {
        // Offline, an earlier confirmation counts, and none does not.
        guard stop == nil, isOnline ? isWitnessed(now) : witnesses.isEmpty || witnessed != nil else { return nil }
        return reader?.verifiedKeys(of: user, now: now, isOnline: isOnline)
    }

    /// Whether signatures of a user may be verified with entries that were looked up before.
    func mayVerify(_ user: String, now: UInt64) -> Bool {
        stop == nil && isWitnessed(now) && !alarms.contains { $0.isOpen && $0.evidence.user == user }
    }

    /// Decides about an answer.
    mutating func receive(
        _ lookup: KeyLogLookup, of user: String, now: UInt64
    ) -> (found: Found, rotated: PublicKeys?) {
        guard var reader else { return (.failure(.noKeys), nil) }
        let verdict = reader.receive(lookup, of: user, now: now)
        self.reader = reader
        switch verdict {
        case .verified(let keys, let change):
            keep(lookup, of: user)
            if let stop { return (.failure(stop), nil) }
            if case .rotated(let old) = change { return (.success(keys), old) }
            return (.success(keys), nil)
        case .absent: return (.failure(stop ?? .absent), nil)
        case .needsConfirmation(let old, let new): return (.failure(.needsConfirmation(old: old, new: new)), nil)
        case .refused(let error): return (.failure(.refused(error)), nil)
        case .alarm(let alarm):
            raise(alarm, lookup: lookup, now: now)
            return (.failure(.alarm(alarm)), nil)
        }
    }

    /// Decides about the two answers to a look-up of a name: the account's keys if name and account have the same ones.
    mutating func receive(
        name: KeyLogLookup, handle: String, account: KeyLogLookup?, user: String?, now: UInt64
    ) -> (found: Found, rotated: PublicKeys?) {
        let named = receive(name, of: handle, now: now)
        guard case .success(let keys) = named.found else { return named }
        guard let account, let user, !user.utf8.starts(with: KeyLogHandle.prefix.utf8) else {
            return (.failure(.refused(Self.otherAccount)), nil)
        }
        let found = receive(account, of: user, now: now)
        guard case .success(let own) = found.found else { return found }
        guard own.identity == keys.identity, own.encryption == keys.encryption else {
            // Not an alarm: the two entries of one account may be appended one after the other.
            return (.failure(.refused(Self.otherAccount)), nil)
        }
        return found
    }

    private static let otherAccount = KeyLogError(
        .otherUser, "the key log does not show that this account has the name: the two have different keys")

    /// The server says that the log has no entries.
    func emptyLog() -> PeopleError {
        guard reader?.head != nil || reader?.pinCount ?? 0 > 0 else { return .absent }
        return .refused(KeyLogError(.olderHead, "the server shows an empty key log, and this device has seen entries"))
    }

    private mutating func keep(_ lookup: KeyLogLookup, of user: String) {
        guard answers[user] != nil || answers.count < PeopleLimits.answersMax else { return }
        let bytes = lookup.bytes
        answers[user] = bytes.count <= PeopleLimits.answerBytesMax ? bytes : nil
    }

    // MARK: - Alarms

    mutating func raise(_ alarm: KeyLogAlarm, lookup: KeyLogLookup?, now: UInt64) {
        guard let reader else { return }
        let user: String? =
            switch alarm {
            case .replaced(let user), .removed(let user): user
            default: nil
            }
        let evidence = KeyLogEvidence(
            of: alarm, reader: reader, lookup: lookup, earlier: user.flatMap { answers[$0] }, now: now)
        keep(evidence)
    }

    /// Keeps evidence once.
    mutating func keep(_ evidence: KeyLogEvidence) {
        if let place = alarms.firstIndex(where: { $0.evidence.isSameFinding(as: evidence) }) {
            alarms[place].isOpen = true
            return
        }
        guard alarms.count < PeopleLimits.alarmsMax else { return }
        alarms.append(PeopleAlarm(evidence: evidence, isOpen: true))
    }

    private mutating func resolve(where isResolved: (KeyLogEvidence) -> Bool) {
        for place in alarms.indices where isResolved(alarms[place].evidence) { alarms[place].isOpen = false }
    }

    // MARK: - The user's decisions

    /// The user of this device has compared the safety number of these keys.
    mutating func confirm(_ keys: PublicKeys) throws(KeyLogError) {
        guard var reader else { throw KeyLogError(.notAwaited, "no keys were looked up yet") }
        if reader.isAwaited(keys) {
            try reader.confirm(keys)
        } else {
            guard reader.pinnedKeys(of: keys.user) == keys else {
                throw KeyLogError(.notAwaited, "these are not the newest keys: look the user up again")
            }
        }
        self.reader = reader
        contacts[keys.user]?.compared = keys.identity
        resolve { $0.user == keys.user && $0.kind != .foreignKey }
    }

    /// Removes everything about a user: the next keys are accepted like first ones.
    mutating func forget(_ user: String, handle: String?) {
        for each in [user, handle].compactMap(\.self) {
            reader?.forget(each)
            answers[each] = nil
            resolve { $0.user == each && $0.kind != .foreignKey }
        }
        contacts[user] = nil
    }

    /// The log was begun again or restored, as the user of this device declares. Own foreign keys are looked for again.
    mutating func reset() {
        reader?.reset()
        (heads, answers, witnessed) = ([], [:], nil)
        resolve { $0.kind == .heads || $0.kind == .foreignKey }
    }

    // MARK: - Heads of other clients

    /// Compares a head, or notes that the server has to be asked.
    mutating func heard(_ head: KeyLogHead, way: KeyLogWay, now: UInt64) -> KeyLogGossip {
        guard var reader else { return .refused(KeyLogError(.empty, "the log's key is not known yet")) }
        let gossip = reader.compare(head, way: way, now: now)
        self.reader = reader
        switch gossip {
        case .ask:
            guard !heads.contains(head) else { break }
            if heads.count >= PeopleLimits.headsMax { heads.removeFirst() }
            heads.append(head)
        case .alarm(let fork):
            heads.removeAll { $0 == head }
            raise(.fork(fork), lookup: nil, now: now)
        case .consistent, .refused: heads.removeAll { $0 == head }
        }
        return gossip
    }

    /// The server has shown a path between the two heads of an unexplained fork.
    mutating func explain(_ way: KeyLogConsistency) -> Bool {
        guard let fork = reader?.fork, reader?.explain(way) == true else { return false }
        resolve { $0.fork == fork }
        return true
    }

    // MARK: - Witnesses

    /// Whether all required witnesses have confirmed a head within the last hour.
    func isWitnessed(_ now: UInt64) -> Bool {
        guard !witnesses.isEmpty else { return true }
        guard let witnessed else { return false }
        return witnessed <= now &+ KeyLogLimits.skewMilliseconds
            && now < witnessed &+ KeyLogLimits.headAgeMilliseconds
    }

    /// The confirmed heads that have to be compared with the newest one here, one of each required witness.
    ///
    /// - Throws: `notWitnessed` when a required witness has confirmed none that counts.
    func confirmed(by offered: [KeyLogWitness], now: UInt64) throws(KeyLogError) -> [KeyLogHead] {
        guard let reader else { return [] }
        var heads = [KeyLogHead]()
        for key in witnesses {
            var reason = "it has confirmed nothing of this log, or the server keeps that back"
            var best: KeyLogHead?
            for each in offered where each.key == key {
                do throws(KeyLogError) {
                    try each.check(app: app, logKey: reader.logKey, now: now)
                    if best.map({ $0.time < each.head.time }) ?? true { best = each.head }
                } catch { reason = error.description }
            }
            guard let best else { throw Self.notWitnessed(by: key, reason) }
            heads.append(best)
        }
        return heads
    }

    /// - Parameter reason: a sentence.
    static func notWitnessed(by key: Ed25519.VerifyingKey, _ reason: String) -> KeyLogError {
        KeyLogError(
            .notWitnessed,
            "the required witness \(Hex.encode(Array(key.octets.prefix(8))))… has not confirmed the key log within the "
                + "last hour: \(reason)")
    }
}
